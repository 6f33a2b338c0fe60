"""Two regressions without chains: the closed form where there is one, importance sampling from their modes elsewhere.

NumPy only: the answer is there before a compiler would have begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from crossfade.analysis.errors import Replicates
from crossfade.analysis.judge import judge, of_error
from crossfade.analysis.weights import PARETO_K, pareto_k
from crossfade.density.digest import digest
from crossfade.density.regression import VARIANCE, Regression, titles_of
from crossfade.methods.budget import Asked, asked, check_common
from crossfade.methods.coupled import EVEN, N_BLOCKS, PER_COORDINATE, Coupled, Side, Weighted, around_mode, refined
from crossfade.types import Estimate, Posterior, Result, Sharing

AUTO, PATH = ROUTES = ("auto", "path")  # the cheapest route that is right, or chains in any case
CLOSED, COUPLED = "closed form", "importance sampling"
EVALUATIONS = 2**21  # of a row at a point, in the first points of a block
MUCH, EVEN_ENOUGH = 2**28, 0.7  # of fitting such a t to large tables, which are nearly normal: not for a little more
FEWEST, MOST = 16, 256  # points of a block before the error is looked at
N_DRAWS = 256  # of each chain, of the posteriors that are handed on


def without_chains(r1: Regression, r2: Regression, settings: Mapping[str, Any]) -> Result | str:
    """The answer to what `compare` was asked, by no chains: "" where they are asked for, or why it takes them."""
    own = {name: value for name, value in settings.items() if name != "progress"}
    wanted = asked(own.pop("target_se", None), own.pop("budget", None))
    kept = {name: own.pop(name) for name in ("seed", "log_prior_odds") if name in own}
    check_common(kept.get("seed", 0), kept.get("log_prior_odds", 0.0), own.get("n_chains"))
    routes = own.pop("method", AUTO), own.pop("route", AUTO)
    hinted = any(len(own.pop(name, ())) for name in ("discontinuous", "exchangeable"))
    if routes != (AUTO, AUTO) or hinted or any(value is not None for value in own.values()):
        return ""
    return by_regression(r1, r2, wanted, **kept)


def by_regression(
    r1: Regression, r2: Regression, wanted: Asked, *, seed: int = 0, log_prior_odds: float = 0.0
) -> Result | str:
    """The answer, or why there is none this way."""
    began = time.perf_counter()
    if r1.conjugate != r2.conjugate:
        return "one response is measured, the other counted"
    found = _closed(r1, r2, seed) if r1.conjugate else _sampled(r1, r2, wanted, seed)
    if isinstance(found, str):
        return found
    about = {
        "method": AUTO,
        "target_se": wanted.target_se,
        "seed": seed,
        "log_prior_odds": float(log_prior_odds),
        "priors": {**r1.priors, **r2.priors},
        "notes": list(dict.fromkeys((*r1.notes, *r2.notes))),
        **titles_of(r1, r2),
        "tempered_priors": {name: (r1.priors[name], r2.priors[name]) for name in found.sharing.tempered},
        "responses": digest(r1.y),
        "seconds": time.perf_counter() - began,
    }
    return found._replace(about={**about, **found.about})


def _closed(r1: Regression, r2: Regression, seed: int) -> Result:
    value = r2.log_evidence() - r1.log_evidence()
    random = np.random.default_rng([seed, 2])
    first, second = (own.posterior(N_BLOCKS, N_DRAWS, random) for own in (r1, r2))
    about = {
        "route": CLOSED,
        "path": "both evidences in closed form, no sampling",
        "grounds": "Both evidences have a closed form, so the answer is exact.",
    }
    return Result(
        Estimate(value, 0.0, np.inf, CLOSED), *judge([]), {}, {}, {}, (), sharing(r1, r2), about, (first, second)
    )


def _sampled(r1: Regression, r2: Regression, wanted: Asked, seed: int) -> Result | str:
    began = time.perf_counter()
    first, second = order = _shared_first(r1, r2)
    n = max(len(r1.y), len(r2.y))
    n = 2 ** int(np.log2(np.clip(EVALUATIONS // n, FEWEST, MOST)))
    n_shared = len(set(r1.names) & set(r2.names))
    both = Coupled((_side(first, n, seed), _side(second, n, seed)), n_shared, seed)
    stopped = ""
    while True:
        last = time.perf_counter()
        both.more(max(both.n_points // N_BLOCKS, n))
        answer = both.answer()
        if np.sqrt(answer.variance) <= wanted.target_se:
            break
        now = time.perf_counter()
        if wanted.seconds is not None and now - began + 2 * (now - last) > wanted.seconds:
            stopped = f"the budget of {wanted.seconds:g} s is used up"
        elif wanted.max_draws is not None and 2 * both.n_points > wanted.max_draws:
            stopped = f"the budget of {wanted.max_draws:,} draws is used up"
        if stopped:
            break
    tails = [pareto_k(own.log_weight) for own in both.weighted]
    if max(tails) >= PARETO_K:
        return f"weights from the mode have a heavy tail (Pareto k {max(tails):.2f})"
    return _result(both, order, sharing(r1, r2), answer, tails, wanted, stopped, seed)


def _result(
    both: Coupled,
    order: tuple[Regression, Regression],
    shared: Sharing,
    answer: Replicates,
    tails: list[float],
    wanted: Asked,
    stopped: str,
    seed: int,
) -> Result:
    headline = answer.estimate(COUPLED)
    worst = max(max(tails), 0.0)
    about = {
        "route": COUPLED,
        "path": f"importance sampling from the modes, {both.n_points:,} points of each model",
        "n_chains": N_BLOCKS,
        "grounds": "Each posterior has one peak, the points cover both (Pareto k "
        f"{worst:.2f}, and up to {PARETO_K} is fine), and {N_BLOCKS} independent sets of points give the error.",
    }
    random = np.random.default_rng([seed, 3])
    draws = [_resampled(own, model.names, random) for own, model in zip(both.weighted, order, strict=True)]
    findings = of_error(headline, wanted.target_se, stopped)
    return Result(headline, *judge(findings), {}, {}, {}, (), shared, about, (draws[0], draws[1]))


def _side(model: Regression, n: int, seed: int) -> Side:
    """The log joint, and a t around its mode, refined by its own weighted points where they are uneven."""
    expensive = PER_COORDINATE * len(model.names) * len(model.y) > MUCH
    even = EVEN_ENOUGH if expensive else EVEN
    return refined(Side(model.log_joint, around_mode(*model.mode_and_curvature())), seed, n * N_BLOCKS, even)


def _shared_first(r1: Regression, r2: Regression) -> tuple[Regression, Regression]:
    """Columns in the order in which `Coupled` wants them: the shared ones first, in one order."""
    shared = [name for name in r1.names if name in r2.names]

    def ordered(model: Regression) -> Regression:
        return model.taken([model.names.index(n) for n in (*shared, *(n for n in model.names if n not in shared))])

    return ordered(r1), ordered(r2)


def _resampled(own: Weighted, names: tuple[str, ...], random: np.random.Generator) -> Posterior:
    """Draws of the posterior: of the points of every block, as often as their weights say."""
    n = min(N_DRAWS, own.log_weight.shape[1])
    found = []
    for points, log_weight in zip(own.points, own.log_weight, strict=True):
        reached = np.cumsum(np.exp(log_weight - log_weight.max()))
        ticks = (np.arange(n) + random.uniform()) / n * reached[-1]
        chosen = np.minimum(np.searchsorted(reached, ticks), len(reached) - 1)
        found.append(points[random.permutation(chosen)])
    return dict(zip(names, np.moveaxis(np.array(found), -1, 0), strict=True))


def sharing(r1: Regression, r2: Regression) -> Sharing:
    """Coefficients of equal names are the same."""
    both = [name for name in r1.names if name in r2.names]
    prior_1, prior_2 = (
        dict(zip(own.names, zip(own.mean, own.precision, strict=True), strict=True)) for own in (r1, r2)
    )
    unequal = [name for name in both if prior_1[name] != prior_2[name]]
    if isinstance(r1.noise, tuple) and isinstance(r2.noise, tuple):
        both = [VARIANCE, *both]
        unequal += [VARIANCE] * (r1.noise != r2.noise)
    only_1, only_2 = (tuple(name for name in own.names if name not in both) for own in (r1, r2))
    return Sharing(tuple(both), only_1, only_2, tuple(unequal))
