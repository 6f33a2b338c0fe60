"""From a network of models to a ranking: sums along the tree, more draws where they help, checks, the verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np

from crossfade.analysis.judge import (
    CHANCE,
    Finding,
    chance,
    judge,
    level,
    of_chains,
    of_error,
    of_overlap,
    of_ratios,
    sigmas,
)
from crossfade.density.joint import Joint, as_joint, nothing
from crossfade.density.precision import in_float64
from crossfade.density.programs import kept_on_disk, let_go
from crossfade.methods.answer import chains_of_model
from crossfade.methods.budget import GROWTH
from crossfade.methods.edge import GOOD_OVERLAP, Edge, grown, with_draws
from crossfade.methods.progress import Say, duration
from crossfade.ranking.averages import moments_of
from crossfade.ranking.network import (
    NOTHING,
    Network,
    Pair,
    Settings,
    cost,
    pairs_of,
    read_anew,
    reading,
    sampled,
    with_tree,
)
from crossfade.ranking.points import relative_errors
from crossfade.ranking.prior import prior_of
from crossfade.ranking.record import Closure, Ranking, ranked
from crossfade.ranking.solved import Solved, solved_of, way
from crossfade.runs.longer import grown_ahead
from crossfade.runs.plan import in_directory
from crossfade.sampling.clock import OutOfTime, until
from crossfade.sampling.draws import lengthened
from crossfade.sampling.hmc import SEGMENT
from crossfade.types import CrossfadeError, Estimate


@kept_on_disk()
@in_float64
def by_draws(
    models: Mapping[str, Any],
    terms: Mapping[str, frozenset[str]],
    said: Mapping[str, Any],
    draws: Mapping[str, Any],
    settings: Settings,
    say: Say,
    client: Any = None,
) -> Ranking:
    let_go()
    began = time.perf_counter()
    if unknown := [name for name in draws if name not in models]:
        raise CrossfadeError(f"draws= names {unknown[0]!r}, which is no model: choose from {', '.join(models)}")
    if settings.reference is not None and settings.reference not in models:
        raise CrossfadeError(f"the reference {settings.reference!r} is no model: choose from {', '.join(models)}")
    network = Network({}, {}, {}, settings, terms, said)
    given = {**models, NOTHING: nothing()} if settings.evidence else dict(models)
    with _kept(settings, models, say), grown_ahead(client, models, say):
        return answered(sampled(network, given, draws, say, began, client), say, began)


def _kept(settings: Settings, models: Mapping[str, Any], say: Say) -> AbstractContextManager[None]:
    """What is sampled is kept in the folder of the ranking, if it has one."""
    joints: dict[str, Joint] = {}
    if settings.directory is not None:
        for name in sorted(models):
            with suppress(CrossfadeError):  # said later, with its name
                joints[name] = as_joint(models[name], name)
    said = {name: getattr(settings, name) for name in ("seed", "n_chains", "design", "reference", "evidence")}
    return in_directory(settings.directory, joints, said, say)


@kept_on_disk()
@in_float64
def more(network: Network, target_se: float, budget: float | None, say: Say) -> Ranking:
    """The same models with a smaller error."""
    asked = network.settings.asked._replace(target_se=target_se)
    asked = asked if budget is None else asked._replace(seconds=float(budget))
    network = network._replace(settings=network.settings._replace(asked=asked))
    return answered(network, say, time.perf_counter())


@kept_on_disk()
@in_float64
def with_model(network: Network, name: str, model: Any, draws: Any, say: Say) -> Ranking:
    """With one model more; the others are not sampled again."""
    if name in network.draws:
        raise CrossfadeError(f"there is a model {name!r} already: give the new one a name of its own")
    prior = network.settings.prior
    if (isinstance(prior, Mapping) and name not in prior) or (prior == "size" and name not in network.terms):
        why = "counts terms, and those of" if prior == "size" else "gives weights by name, and that of"
        raise CrossfadeError(
            f"the prior over models {why} {name!r} {'are' if prior == 'size' else 'is'} not known: add it to "
            "ranking.with_prior('uniform'), and give weights by name afterwards"
        )
    began = time.perf_counter()
    network = network._replace(missing={own: why for own, why in network.missing.items() if own != name})
    return answered(sampled(network, {name: model}, {name: draws}, say, began), say, began)


def answered(network: Network, say: Say, began: float) -> Ranking:
    """Draws until the asked error, then the ranking."""
    if len([name for name in network.draws if name != NOTHING]) < 1:
        why = "; ".join(f"{name}: {said}" for name, said in network.missing.items())
        raise CrossfadeError(f"no model could be sampled. {why}")
    asked, stopped = network.settings.asked, ""
    network = with_tree(network, say)
    solved = solved_of(network, {})
    while not stopped:
        error, worst = _asked_error(network, solved)
        say(f"worst error {error:.2g}, {asked.target_se:g} asked | {duration(time.perf_counter() - began)} so far")
        if error <= asked.target_se or not network.tree:
            break
        growth = min((error / asked.target_se) ** 2 * 1.15, GROWTH)
        try:
            with until(np.inf if asked.seconds is None else began + 0.9 * asked.seconds):
                later = _grown(network, worst, growth)
        except OutOfTime as stop:
            stopped = str(stop) or f"the budget of {asked.seconds:g} s is used up"
            break
        if later is None:
            stopped = "the draws that were brought along, or the budget of draws, are used up"
            break
        changed = {pair for pair in later.tree if later.edges[pair] is not network.edges[pair]}
        network = later
        solved = solved_of(network, {pair: own for pair, own in solved.readings.items() if pair not in changed})
    return _ranking(network, solved, error, stopped, say)


def _asked_error(network: Network, solved: Solved) -> tuple[float, Pair]:
    """The error that was asked for, and the pair of the tree that adds most to it."""
    names, settings = solved.names, network.settings
    real = [i for i, name in enumerate(names) if name != NOTHING]
    errors = relative_errors(solved.values[real], solved.left_out[:, real], 2)
    error = float(errors.max())
    if settings.target == "probability":
        ranking = _record(network, solved)
        error = next(iter(ranking.probabilities.values())).error
    if not network.tree:
        return error, ("", "")
    best, worst = real[int(np.argmax(solved.values[real]))], real[int(np.argmax(errors))]
    between = way(network.tree, names[best], names[worst]) or list(network.tree)
    return error, max(between, key=lambda pair: (solved.readings[pair].variance, pair))


def _grown(network: Network, pair: Pair, growth: float) -> Network | None:
    """More draws of both models of a pair, and of the rungs between; None if there are none to be had."""
    draws, most, wanted = dict(network.draws), network.settings.asked.max_draws, {}
    for name in pair:
        own = draws[name]
        n = int(np.ceil(own.n_draws * (growth - 1) / SEGMENT)) * SEGMENT
        if most is not None:
            n = min(n, (most // own.n_chains - own.n_draws) // SEGMENT * SEGMENT)
        if own.can_grow and n > 0:
            wanted[name] = own, n
    draws |= lengthened(wanted)
    edges, longer = {}, any(draws[name] is not network.draws[name] for name in pair)
    for other, edge in network.edges.items():
        if other == pair and len(edge.rungs) > 2:
            longer = True
            n = int(np.ceil(edge.rungs[1].n_draws * (growth - 1) / SEGMENT)) * SEGMENT
            edge = grown(edge, [0, *[n] * (len(edge.rungs) - 2), 0], SEGMENT)
        changed = any(draws[name] is not network.draws[name] for name in other)
        if changed and other in network.tree:
            edge = with_draws(edge, (draws[other[0]], draws[other[1]]))
        if not changed or other in network.tree:  # those outside the tree are read again when they are needed
            edges[other] = edge
    return network._replace(draws=draws, edges=edges) if longer else None


def _closures(network: Network, solved: Solved, say: Say) -> tuple[Closure, ...]:
    """Pairs outside the tree that overlap well: what they say minus what the tree says."""
    others = (
        [pair for pair in pairs_of(network) if pair not in network.tree] if network.settings.design == "tree" else []
    )
    found: list[tuple[float, Pair, Edge]] = []
    for a, b in others:
        if NOTHING in (a, b):
            continue
        edge = network.edges.get((a, b))
        if edge is None or any(own is not network.draws[name] for own, name in zip(edge.draws, (a, b), strict=True)):
            edge = read_anew(network, a, b)
        if min(edge.overlaps()) > GOOD_OVERLAP:
            found.append((cost(edge), (a, b), edge))
    closures = []
    for _, pair, edge in sorted(found, key=lambda own: own[:2])[: len(network.names)]:
        say(f"checking with {pair[0]} beside {pair[1]}")
        residual = reading(edge).minus(solved.difference(pair)).estimate()
        closures.append(Closure(*pair, residual))
    say("")
    return tuple(closures)


def _record(network: Network, solved: Solved) -> Ranking:
    """The numbers alone."""
    names = [name for name in solved.names if name != NOTHING]
    where = [solved.names.index(name) for name in names]
    values, without = solved.values[where], solved.left_out[:, where]
    if network.settings.evidence and NOTHING in solved.names:
        zero = solved.names.index(NOTHING)
        values, without = values - solved.values[zero], without - solved.left_out[:, [zero]]
    known = bool(network.terms) and all(name in network.terms for name in names)  # one added later may have none
    terms = tuple(network.terms[name] for name in names) if known else ()
    about = {"whole": network.said["whole"]} if known and "whole" in network.said else {}
    prior = network.settings.prior
    if isinstance(prior, Mapping):
        prior = {name: weight for name, weight in prior.items() if name not in network.missing}
    weights = prior_of(prior, tuple(names), terms, about.get("whole"))
    return ranked(Ranking(tuple(names), values, without, weights, "", (), {}, terms, n_strata=2, about=about))


def _ranking(network: Network, solved: Solved, error: float, stopped: str, say: Say) -> Ranking:
    settings = network.settings
    findings = of_error(Estimate(0.0, error, 2 * network.n_groups - 2), settings.asked.target_se, stopped)
    for name in network.names:
        if network.draws[name].u.shape[2]:
            findings += of_chains(chains_of_model(name, network.draws[name]), error)
    for a, b in network.tree:
        legs = network.edges[a, b].legs
        findings += [Finding(own.level, f"{a} and {b}: {own.text}") for own in (*of_overlap(legs), *of_ratios(legs))]
    closures = _closures(network, solved, say)
    for first, second, residual in closures:  # as many chances as there are pairs
        if now := level(chance(residual) * max(len(closures), 1), CHANCE):
            said = f"{first} beside {second} differs from the way round by {residual.value:.3g}"
            findings.append(Finding(now, f"{said} ({sigmas(residual)} standard errors). Run longer."))
    numbers = _record(network, solved)
    moments = {name: moments_of(network.draws[name].theta()) for name in numbers.names}
    about = {
        "absolute": settings.evidence and NOTHING in network.draws,
        "target_se": settings.asked.target_se,
        "seed": settings.seed,
        "route": "chains",
        "design": settings.design,
        "tree": [" | ".join(pair) for pair in network.tree],
        "n_draws": {name: int(own.n_draws * own.n_chains) for name, own in network.draws.items() if name != NOTHING},
        "brought": [name for name, own in network.draws.items() if own.brought is not None],
        **{key: value for key, value in network.said.items() if key != "whole"},
        **numbers.about,
    }
    word, reasons = judge(findings)
    missing = {name: why for name, why in network.missing.items() if name != NOTHING}
    return numbers._replace(
        verdict=word,
        reasons=reasons,
        missing=missing,
        moments=tuple(moments[name] for name in numbers.names),
        closure=closures,
        about=about,
        network=network,
    )
