"""Whether a run can be trusted: acceptance, overlap, hysteresis, disagreement, convergence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from crossfade.analysis.bennett import mbar_log_z, neighbour_overlaps, responsibilities
from crossfade.analysis.errors import combine, effective_draws, jackknife, paper_variance
from crossfade.analysis.estimators import FEWEST_RUNGS, estimator, ratios, require, trapezoid
from crossfade.types import CrossfadeError, Estimate, Trace

__all__ = [
    "acceptance_by_tau",
    "disagreement",
    "effective_draws",
    "hysteresis",
    "overlap",
    "partial_integrals",
    "r_hat",
    "weakest_overlap",
]


def partial_integrals(trace: Trace) -> np.ndarray:
    """Log Z_tau - log Z_0 along every chain [chain, rung]: the cumulative trapezoid of its mean ratios."""
    mean = trace.log_ratio.mean(axis=2)
    area = np.diff(trace.tau) * (mean[:, 1:] + mean[:, :-1]) / 2
    return np.concatenate([np.zeros((trace.n_chains, 1)), np.cumsum(area, axis=1)], axis=1)


def acceptance_by_tau(trace: Trace, n_bins: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Mean tau and mean acceptance over chains, in bins of equal numbers of neighbouring rungs."""
    bins = np.array_split(np.arange(len(trace.tau)), min(n_bins, len(trace.tau)))
    accepted = trace.acceptance.mean(axis=0)
    return np.array([trace.tau[b].mean() for b in bins]), np.array([accepted[b].mean() for b in bins])


def overlap(trace: Trace) -> np.ndarray:
    """How far rung j claims the draws of rung i: O_ij = sum_n p_in p_jn / n_i (Klimovich et al. 2015).

    p_kn is the posterior probability that draw n came from rung k under MBAR; every row sums to 1.
    """
    require(trace, "mbar")
    tau, samples = ratios(trace)
    n = np.array([len(r) for r in samples])
    n_finite = np.array([np.isfinite(r).sum() for r in samples])
    pooled = np.concatenate(samples)
    log_weight = np.log(n) - mbar_log_z(tau, samples)
    _, joint = responsibilities(pooled[np.isfinite(pooled)], tau, log_weight)
    joint += np.diag(n - n_finite)  # an infinite ratio is possible at its own end only
    state = np.searchsorted(tau, trace.tau)  # rungs of equal tau share the claim of their state
    share = (trace.n_chains * trace.n_draws) / n[state]
    return joint[np.ix_(state, state)] / n[state][:, None] * share


def weakest_overlap(trace: Trace) -> tuple[float, float, float]:
    """Smallest overlap of two neighbouring rungs, and their tau (see neighbour_overlaps)."""
    require(trace, "bar")
    tau, samples = ratios(trace)
    shared = neighbour_overlaps(tau, samples)
    k = int(np.argmin(shared))
    return shared[k], float(tau[k]), float(tau[k + 1])


def hysteresis(
    forward: Trace, reverse: Trace, estimator: Callable[[Trace], float] = trapezoid, name: str = "hysteresis"
) -> Estimate:
    """Forward minus reverse estimate, x_F + x_R as x_R has the other sign: 0 if both are in equilibrium."""
    return combine([(1, jackknife(forward, estimator)), (1, jackknife(reverse, estimator))], name)


def disagreement(
    trace: Trace,
    first: Callable[[Trace], float],
    second: Callable[[Trace], float],
    name: str = "disagreement",
) -> Estimate:
    """First minus second estimator on the same chains: the jackknife of the difference, as they correlate."""
    return jackknife(trace, lambda part: first(part) - second(part), name)


def r_hat(trace: Trace) -> np.ndarray:
    """Rank-normalised split R-hat per rung: above 1.01 the chains disagree (Vehtari et al. 2021)."""
    if not trace.equilibrium or trace.n_chains < 2 or trace.n_draws < 4:
        raise CrossfadeError("r_hat needs equilibrium draws, 2 chains or more with 4 draws or more per rung")
    from arviz_stats.base import array_stats  # slow to import

    draws = np.moveaxis(trace.log_ratio, 1, 0).copy()  # [rung, chain, draw]
    infinite = ~np.isfinite(draws).all(axis=(1, 2))
    draws[infinite] = rankdata(draws[infinite], axis=None).reshape(draws[infinite].shape)  # ranks are all it needs
    constant = (draws == draws[:, :1, :1]).all(axis=(1, 2))  # all chains agree, but 0/0 to arviz
    value = np.ones(len(draws))
    value[~constant] = array_stats.rhat(draws[~constant])
    return value


def discretisation(trace: Trace, name: str) -> float:
    """What the sum over rungs still misses, from every other rung left out: |T_h - T_2h| / (2^p - 1), order p."""
    own = estimator(name)
    if own.order is None or len(trace.tau) < FEWEST_RUNGS:
        return 0.0
    whole = own.prepare(trace)
    last = len(trace.tau) - 1
    kept = np.unique([*range(0, last, 2), last])
    half = whole._replace(
        tau=whole.tau[kept],
        log_ratio=whole.log_ratio[:, kept],
        acceptance=whole.acceptance[:, kept],
        extra={name: values[:, kept] for name, values in whole.extra.items()},
    )
    return abs(own.function(whole) - own.function(half)) / (2**own.order - 1)


def independent_draws(trace: Trace) -> float:
    """Draws of a sweep divided by how much more its integral varies over chains than independent draws would.

    n / (Var_chains / mean paper_variance): the paper's formula takes the draws for independent, the chains know.
    """
    if not np.isfinite(trace.log_ratio).all():
        return np.inf
    over_chains = partial_integrals(trace)[:, -1].var(ddof=1)
    if over_chains <= 1e-20:
        return np.inf
    return max(len(trace.tau) * float(paper_variance(trace).mean() / over_chains), 0.0)
