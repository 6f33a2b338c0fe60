"""Whether a run can be trusted: acceptance, overlap, hysteresis, disagreement, convergence."""

from __future__ import annotations

import numpy as np
from scipy.integrate import cumulative_trapezoid

from crossfade.analysis.bennett import neighbour_overlaps
from crossfade.analysis.errors import paper_variance
from crossfade.analysis.estimators import FEWEST_RUNGS, estimator, ratios, require
from crossfade.types import Trace


def partial_integrals(trace: Trace) -> np.ndarray:
    """Log Z_tau - log Z_0 along every chain [chain, rung]: the cumulative trapezoid of its mean ratios."""
    return cumulative_trapezoid(trace.log_ratio.mean(axis=2), trace.tau, axis=1, initial=0)


def acceptance_by_tau(trace: Trace, n_bins: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Mean tau and mean acceptance over chains, in bins of equal numbers of neighbouring rungs."""
    bins = np.array_split(np.arange(len(trace.tau)), min(n_bins, len(trace.tau)))
    accepted = trace.acceptance.mean(axis=0)
    return np.array([trace.tau[b].mean() for b in bins]), np.array([accepted[b].mean() for b in bins])


def weakest_overlap(trace: Trace) -> tuple[float, float, float]:
    """Smallest overlap of two neighbouring rungs, and their tau (see neighbour_overlaps)."""
    require(trace, "bar")
    tau, samples = ratios(trace)
    shared = neighbour_overlaps(tau, samples)
    k = int(np.argmin(shared))
    return shared[k], float(tau[k]), float(tau[k + 1])


def discretisation(trace: Trace, name: str) -> float:
    """What the sum over rungs still misses, from every other rung left out: |T_h - T_2h| / (2^p - 1), order p."""
    own = estimator(name)
    if own.order is None or len(trace.tau) < FEWEST_RUNGS:
        return 0.0
    whole, last = own.prepare(trace), len(trace.tau) - 1
    half = whole.take(rungs=np.unique([*range(0, last, 2), last]))
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
