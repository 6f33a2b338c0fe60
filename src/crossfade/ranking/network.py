"""Many models sampled once each: relative evidences along a tree of pairs, checked by other pairs.

Every pair is arithmetic on draws that are there (`fade`), so a model costs its chains and nothing more. Errors leave a
group of chains of all models out, fit all links anew and solve again, since pairs with a model in common have its noise
in common.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossfade.analysis.errors import Replicates
from crossfade.analysis.estimators import ESTIMATORS
from crossfade.analysis.summary import expected_error
from crossfade.density.joint import Joint, as_joint, nothing
from crossfade.density.precision import in_float64
from crossfade.density.sharing import check_data
from crossfade.many import seed_of
from crossfade.methods import fitted
from crossfade.methods.budget import Asked
from crossfade.methods.edge import GOOD_OVERLAP, HEADLINE, MAX_RUNGS, N_GROUPS, Edge, left_out, with_rung
from crossfade.methods.edge import fitted as fitted_edge
from crossfade.methods.progress import Say, duration
from crossfade.runs.ahead import sampled_ahead
from crossfade.runs.workers import Task
from crossfade.sampling.ahead import compile_all, for_draws, for_starts
from crossfade.sampling.clock import OutOfTime, until
from crossfade.sampling.draws import Draws
from crossfade.types import CrossfadeError, Leg

NOTHING = "(no model)"  # whose evidence is 1
ALL_PAIRS = 12  # models up to which every pair is looked at
NEAREST = 6  # pairs of each model, beyond
Pair = tuple[str, str]


class Settings(NamedTuple):
    asked: Asked
    target: str
    prior: Mapping[str, float] | str | None
    design: str
    reference: str | None
    evidence: bool
    n_chains: int | None
    seed: int
    directory: str | Path | None = None  # where what is sampled is kept


class Network(NamedTuple):
    """Draws of every model, the pairs that were read, and the tree among them that gives the answer."""

    models: dict[str, Joint]  # in the order given
    draws: dict[str, Draws]
    missing: dict[str, str]
    settings: Settings
    terms: Mapping[str, frozenset[str]]
    said: Mapping[str, Any]
    edges: dict[Pair, Edge] = {}
    tree: tuple[Pair, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of models with draws, in an order that does not depend on how they were given."""
        return sorted(self.draws)

    @property
    def n_groups(self) -> int:
        """Of chains in each half, as `left_out` of an edge makes them."""
        return min(N_GROUPS, next(iter(self.draws.values())).n_chains // 2)

    def without(self, name: str) -> Network:
        """Of the other models: whoever goes on with it does not meet this one again."""

        def rest(own: Mapping[str, Any]) -> dict[str, Any]:
            return {other: value for other, value in own.items() if other != name}

        old = self.settings
        prior = rest(old.prior) if isinstance(old.prior, Mapping) else old.prior
        settings = old._replace(prior=prior, reference=None if old.reference == name else old.reference)
        edges = {pair: edge for pair, edge in self.edges.items() if name not in pair}
        parts = rest(self.models), rest(self.draws), rest(self.missing)
        return Network(*parts, settings, rest(self.terms), self.said, edges)


def sampled(
    network: Network,
    models: Mapping[str, Any],
    brought: Mapping[str, Any],
    say: Say,
    began: float,
    client: Any = None,
) -> Network:
    """With draws of these models too; those that cannot be sampled are missing, and why."""
    settings, missing = network.settings, dict(network.missing)
    joints: dict[str, Joint] = {}
    for name, model in models.items():
        try:
            joints[name] = as_joint(model, name)
        except CrossfadeError as error:
            missing[name] = str(error)
    known = {**network.models, **joints}
    if not known:
        why = "; ".join(f"{name}: {said}" for name, said in missing.items())
        raise CrossfadeError(f"none of the models can be ranked. {why}")
    with_data = [name for name in known if known[name].places]
    for first, second in pairwise(with_data):
        try:
            check_data(known[first], known[second])
        except CrossfadeError as error:
            raise CrossfadeError(f"{first} (M1) and {second} (M2): {error}") from None
    n_chains = settings.n_chains or fitted.usual_chains(known.values())
    if network.draws:
        n_chains = next(iter(network.draws.values())).n_chains
    own = [name for name, joint in joints.items() if joint.places and brought.get(name) is None]
    if client is None:
        _compiled([joints[name] for name in own], n_chains, say)
    jobs: list[Task] = [(name, first_draws, (models[name], name, n_chains, settings)) for name in own]
    with sampled_ahead(client, jobs, say):
        draws, missing = _all_drawn(network, joints, brought, n_chains, missing, say, began)
    say("")
    return network._replace(models={**network.models, **joints}, draws=draws, missing=missing)


def _compiled(joints: list[Joint], n_chains: int, say: Say) -> None:
    say(f"compiling {len(joints)} models")
    for programs in (for_starts, partial(for_draws, n_chains=n_chains)):
        try:
            compile_all(joints, programs)
        except CrossfadeError:  # one of them cannot be compiled: each is tried, and named, later
            break


def _all_drawn(
    network: Network,
    joints: dict[str, Joint],
    brought: Mapping[str, Any],
    n_chains: int,
    missing: dict[str, str],
    say: Say,
    began: float,
) -> tuple[dict[str, Draws], dict[str, str]]:
    """First draws of all models; `joints` learn what was found out about them."""
    draws, settings = dict(network.draws), network.settings
    for k, (name, joint) in enumerate(joints.items()):
        spent = time.perf_counter() - began
        say(f"drawing from the posterior of {name} ({k + 1} of {len(joints)}) | {duration(spent)} so far")
        try:
            joints[name], draws[name] = _drawn(joint, name, brought.get(name), n_chains, settings, began)
        except CrossfadeError as error:
            missing[name] = str(error)
        except OutOfTime as stop:
            why = str(stop) or f"the budget of {settings.asked.seconds:g} s was used up"
            missing[name] = f"{why}, before it was sampled"
    return draws, missing


@in_float64
def first_draws(model: Any, name: str, n_chains: int, settings: Settings) -> None:
    """What a ranking samples of one of its models before it looks at others: for workers, who keep it."""
    _drawn(as_joint(model, name), name, None, n_chains, settings, time.perf_counter())


def _drawn(joint: Joint, name: str, own: Any, n_chains: int, settings: Settings, began: float) -> tuple[Joint, Draws]:
    """First draws of one model, with all that a comparison does about chains that are slow or diverge."""
    seconds = settings.asked.seconds
    run = fitted.begin(
        (nothing(), joint), settings.asked, seed_of(settings.seed, name), n_chains=n_chains, draws=(None, own)
    )
    if own is not None and run.n_chains != n_chains:
        raise CrossfadeError(
            f"the draws that were brought along make {run.n_chains} chains and the other models have {n_chains}: bring "
            f"more of them, or set n_chains={run.n_chains}"
        )
    with until(np.inf if seconds is None else began + 0.8 * seconds):
        while run.draws[1] is None or not run.pilots[1].settled:
            run = fitted.step(run)
    return run.joints[1], run.draws[1]


# Pairs ----------------------------------------------------------------------------------------------------------------


def pairs_of(network: Network) -> list[Pair]:
    """Those that may carry the answer, each in the order of the names."""
    names, settings = network.names, network.settings
    if settings.design == "star":
        centre = settings.reference or next(name for name in network.models if name in network.draws)
        if centre not in network.draws:
            raise CrossfadeError(f"the reference {centre!r} has no draws: {network.missing.get(centre, '')}")
        return [_pair(centre, name) for name in names if name != centre]
    if settings.design == "chain":
        order = [name for name in network.models if name in network.draws]
        return [_pair(a, b) for a, b in pairwise(order)]
    if len(names) <= ALL_PAIRS:
        return [*combinations(names, 2)]
    apart = {pair: _apart(*(network.models[name] for name in pair)) for pair in combinations(names, 2)}
    near = {
        pair
        for name in names
        for pair in sorted((own for own in apart if name in own), key=lambda own: (apart[own], own))[:NEAREST]
    }
    return sorted(near | set(spanning(names, {pair: float(own) for pair, own in apart.items()})))


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def _apart(first: Joint, second: Joint) -> int:
    """How many coordinates one has and the other has not, by name."""
    sizes = [{name: int(np.prod(own.coordinates.shapes[name])) for name in own.names} for own in (first, second)]
    return sum(size for a, b in (sizes, sizes[::-1]) for name, size in a.items() if b.get(name) != size)


def spanning(names: Iterable[str], costs: Mapping[Pair, float]) -> tuple[Pair, ...]:
    """The tree over all names of the least cost (Kruskal); equal costs by name."""
    group = {name: name for name in names}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    found = []
    for pair in sorted(costs, key=lambda own: (costs[own], own)):
        a, b = map(root, pair)
        if a != b:
            group[a] = b
            found.append(pair)
    return tuple(sorted(found))


def with_tree(network: Network, say: Say) -> Network:
    """Pairs read, and the tree among them with the smallest errors, with rungs where a pair barely overlaps."""
    edges = dict(network.edges)
    wanted = pairs_of(network)
    for i, (a, b) in enumerate(wanted):
        say(f"reading {a} beside {b} ({i + 1} of {len(wanted)} pairs)")
        if (a, b) not in edges:
            edges[a, b] = read_anew(network, a, b)
    tree = spanning(network.names, {pair: cost(edges[pair]) for pair in wanted})
    for a, b in tree:
        while min(edges[a, b].overlaps()) < GOOD_OVERLAP and len(edges[a, b].rungs) < MAX_RUNGS:
            say(f"{a} and {b} barely overlap: putting rung {len(edges[a, b].rungs) - 1} between them")
            edges[a, b] = with_rung(edges[a, b])
    say("")
    return network._replace(edges=edges, tree=tree)


def read_anew(network: Network, a: str, b: str) -> Edge:
    """A pair, from all draws that there are."""
    return fitted_edge(network.draws[a], network.draws[b], seed=seed_of(network.settings.seed, f"{a} | {b}"))


def cost(edge: Edge) -> float:
    """The variance of a pair, as Bennett's formula has it."""
    try:
        found = expected_error(edge.legs) ** 2
    except CrossfadeError:  # nothing overlaps
        return 1e300
    return found if np.isfinite(found) else 1e300


def reading(edge: Edge) -> Replicates:
    """The log ratio of evidences that a pair tells, and the same without each group of chains.

    With rungs between, the fits stay: the halves may then be as correlated as `fitted_share`, and move further.
    """
    whole = _mean(edge.legs)
    without = left_out(edge) if len(edge.rungs) == 2 else _without_groups(edge.legs)
    moved = np.array([_mean(legs) for legs in without]) - whole
    return Replicates(whole, whole + np.sqrt(1 + edge.fitted_share) * moved, 2)


def _mean(legs: tuple[Leg, ...]) -> float:
    return float(np.mean([ESTIMATORS[HEADLINE].function(leg.forward) for leg in legs]))


def _without_groups(legs: tuple[Leg, ...]) -> list[tuple[Leg, ...]]:
    """Rungs were sampled with their fits, so these stay when chains are left out."""
    found: list[tuple[Leg, ...]] = []
    for h, leg in enumerate(legs):
        chains = np.arange(leg.forward.n_chains)
        for group in np.array_split(chains, min(N_GROUPS, len(chains))):
            kept = leg._replace(forward=leg.forward.take(chains=np.setdiff1d(chains, group)))
            found.append((kept, legs[1]) if h == 0 else (legs[0], kept))
    return found
