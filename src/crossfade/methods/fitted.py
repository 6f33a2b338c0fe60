"""The default method, as `compare` calls it: run the short path, judge it, and fall back where it cannot work."""

from __future__ import annotations

import re
import time
from typing import Any

import jax
import numpy as np

from crossfade.analysis.judge import WORDS, Posterior, Verdict, hysteresis, judge
from crossfade.analysis.mixing import Mixing
from crossfade.density.joint import Joint, as_joint, constrained_draws, flat, saturated
from crossfade.density.model import Model, describe
from crossfade.methods.fallback import FEW_TRIPS, tempered_legs
from crossfade.methods.short import Asked, Say, Separate, Short, short_path
from crossfade.paths.link import Share, union
from crossfade.paths.path import matched
from crossfade.types import Array, CrossfadeError, Result, Sharing

AUTO = "auto"
TEN_MINUTES = 600.0
MANY = 200  # coordinates above which half as many chains share the cost of warming up

AnyModel = Model | Joint
FINE = Mixing(1.0, 0, np.inf, 0, np.inf)  # where the verdict sees for itself, from the ratios


def asked(target_se: float, budget: float | str | None) -> Asked:
    """The error that is wanted, and what may be spent: seconds, or a text such as "5 min" or "20000 draws"."""
    if not (isinstance(target_se, int | float) and np.isfinite(target_se) and target_se > 0):
        raise CrossfadeError(f"target_se = {target_se}: ask for a positive standard error of the log Bayes factor")
    if budget is None:
        return Asked(target_se, TEN_MINUTES, None)
    if isinstance(budget, str):
        parts = re.fullmatch(r"\s*([\d.,_]+)\s*(s|sec|seconds?|min|minutes?|h|hours?|draws?)\s*", budget)
        if parts is None:
            raise CrossfadeError(f'budget = {budget!r}: write it like "90 s", "5 min", "2 h" or "20000 draws"')
        try:
            amount = float(parts[1].replace(",", "").replace("_", ""))
        except ValueError:
            raise CrossfadeError(f"budget = {budget!r}: {parts[1]!r} is no number") from None
        if parts[2].startswith("d"):
            return Asked(target_se, None, int(amount))
        budget = amount * {"s": 1, "m": 60, "h": 3600}[parts[2][0]]
    if not (isinstance(budget, int | float) and np.isfinite(budget) and budget > 0):
        raise CrossfadeError(f"budget = {budget}: give a positive number of seconds")
    return Asked(target_se, float(budget), None)


def compare_short(
    m1: AnyModel,
    m2: AnyModel,
    asked: Asked,
    seed: int,
    log_prior_odds: float,
    *,
    n_chains: int | None = None,
    share: Share = None,
    draws: tuple[Any, Any] = (None, None),
    say: Say = lambda message: None,
) -> Result:
    """The log Bayes factor of M2 over M1 along the short path, with a verdict."""
    began = time.perf_counter()
    j1, j2 = as_joint(m1, "M1"), as_joint(m2, "M2")
    check_data(j1, j2)
    sharing = union(j1, j2, share).sharing
    if isinstance(m1, Model) and isinstance(m2, Model) and share is None:
        sharing = sharing._replace(tempered=matched(m1, m2).tempered)
    about: dict[str, Any] = {
        "method": AUTO,
        "estimator": "mbar",
        "target_se": asked.target_se,
        "seed": seed,
        "log_prior_odds": float(log_prior_odds),
        "priors": {**_priors(m1), **_priors(m2)},
        "tempered_priors": {name: (_priors(m1)[name], _priors(m2)[name]) for name in sharing.tempered},
        "notes": [*j1.notes, *j2.notes],
    }
    n_chains = _even(n_chains) if n_chains else 32 if max(flat(j1).size, flat(j2).size) <= MANY else 16
    key = jax.random.key(seed)
    can_fall_back = j1.separable and j2.separable and all(own is None for own in draws)
    try:
        run = short_path(
            j1,
            j2,
            asked=asked,
            key=key,
            n_chains=n_chains,
            share=share,
            draws=draws,
            say=say,
            may_give_up=can_fall_back,
        )
    except Separate as reason:
        say(f"{reason}: falling back to tempering from the priors")
        left = None if asked.seconds is None else max(asked.seconds - (time.perf_counter() - began), 10.0)
        result = _fall_back((j1, j2), asked._replace(seconds=left), key, str(reason), say)
    else:
        result = _of_short(run, asked, (j1, j2), n_chains)
        result = result._replace(
            draws=(constrained_draws(j1, run.sources[0].draws.u), constrained_draws(j2, run.sources[1].draws.u))
        )
    about |= {**result.about, "seconds": time.perf_counter() - began}
    return result._replace(sharing=sharing, about=about)


def _of_short(run: Short, asked: Asked, joints: tuple[Joint, Joint], n_chains: int) -> Result:
    headline, opinions, differences, _, _ = run.summary
    verdict = judge(run.legs, headline, posteriors(run, joints), asked.target_se, run.stopped, run.correlation)
    about = {
        "path": description(run),
        "forecast": run.forecast,
        "n_chains": n_chains,
        "n_draws": {f"{rung.tau:.4g}": rung.n_draws * len(run.sources[0].draws.u) for rung in run.rungs},
        "correlation": run.correlation,
    }
    gap = hysteresis(run.legs, run.correlation)
    checks = {} if gap is None else {"hysteresis": gap}
    return Result(headline, *verdict, opinions, differences, checks, run.legs, run.joined.sharing, about)


def _fall_back(joints: tuple[Joint, Joint], asked: Asked, key: Array, why: str, say: Say) -> Result:
    """Each evidence from its prior by parallel tempering, and a verdict on that."""
    n_replicates = 16
    run = tempered_legs(joints, asked, jax.random.fold_in(key, 99), n_replicates, say)
    headline, opinions, differences, _, _ = run.summary
    edges = [
        Posterior(f"M{k + 1}", FINE, ("",), 0.0, False, saturated(joints[k], run.u[k])) for k in (0, 1)
    ]  # of the chains the ratios tell
    verdict = judge(run.legs, headline, tuple(edges), asked.target_se, run.stopped)
    if (fewest := min(run.round_trips)) < FEW_TRIPS:
        few = f"Only {fewest} round trips between prior and posterior: some pieces may not have been found."
        verdict = Verdict(verdict.word if verdict.word == WORDS[2] else WORDS[1], (*verdict.reasons, few))
    about = {
        "path": f"both evidences from the priors by parallel tempering, because {why}",
        "forecast": "",
        "n_chains": n_replicates,
        "n_draws": {leg.name: leg.forward.log_ratio.size for leg in run.legs},
        "correlation": 0.0,
        "round_trips": list(run.round_trips),
    }
    own = tuple(constrained_draws(joint, u) for joint, u in zip(joints, run.u, strict=True))
    empty = Sharing((), (), ())
    gap = hysteresis(run.legs)
    checks = {} if gap is None else {"hysteresis": gap}
    return Result(headline, *verdict, opinions, differences, checks, run.legs, empty, about, (own[0], own[1]))


def _even(n_chains: int) -> int:
    if n_chains < 4 or n_chains % 2:
        raise CrossfadeError(f"n_chains = {n_chains}: the chains work in two halves; give an even number of at least 4")
    return n_chains


def check_data(j1: Joint, j2: Joint) -> None:
    """The same responses in both models, whatever their order: other data have no Bayes factor."""
    if j1.data is None or j2.data is None:
        return
    try:
        first, second = (np.sort(np.asarray(j.data, float).ravel()) for j in (j1, j2))
    except (TypeError, ValueError):
        raise CrossfadeError(
            "data= must be the responses as numbers, so that both models can be held to them"
        ) from None
    if np.isnan(first).any() or np.isnan(second).any():
        raise CrossfadeError("the data hold NaN: drop or model what is missing, in both models alike")
    if not np.array_equal(first, second):
        raise CrossfadeError(
            f"the two models are of different data ({first.size} and {second.size} responses, not all equal): a Bayes "
            "factor compares models of one data set, so build both from the same rows and scaling"
        )


def posteriors(run: Short, joints: tuple[Joint, Joint]) -> tuple[Posterior, ...]:
    """How the chains of both ends and of the rungs between did."""
    found = []
    for k, name in enumerate(("M1", "M2")):
        source = run.sources[k]
        if source.labels:
            divergent = float(source.draws.divergent.mean())
            edge, brought = saturated(joints[k], source.draws.u), source.whole is not None
            found.append(Posterior(name, run.mixings[k], source.labels, divergent, brought, edge, source.elsewhere))
    for rung in run.rungs[1:-1]:
        found.append(Posterior(f"the rung at tau = {rung.tau:.3g}", FINE, run.joined.labels, rung.divergent, False))
    return tuple(found)


def description(run: Short) -> str:
    warp = {"identity": "as they are", "shift": "shifted to each posterior", "affine": "whitened by each posterior"}
    own, shared = run.joined.size - run.joined.n_shared, run.joined.n_shared
    coordinates = "coordinate" if own == 1 else "coordinates"
    words = [f"links fitted to the draws for {own} unshared {coordinates}" if own else "nothing unshared to link"]
    if shared:
        words.append(f"{shared} shared read {warp[run.warp]}")
    between = len(run.rungs) - 2
    rungs = "1 rung" if between == 1 else f"{between} rungs"
    words.append("the two ends overlap" if not between else f"{rungs} between the ends")
    return "short path: " + ", ".join(words)


def _priors(model: AnyModel) -> dict[str, str]:
    if isinstance(model, Joint):
        return {}
    return {name: describe(model.priors[name]) for name in model.names}
