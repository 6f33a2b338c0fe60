"""Estimators of log Z_1 - log Z_0: plain functions of a trace, each with the traces it is legal on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from crossfade.analysis.bennett import bar_difference, bar_steps, log_z_left_out, mbar_log_z, neighbour_overlaps
from crossfade.analysis.moments import Moments, controlled_values, not_finite, plain
from crossfade.types import CrossfadeError, Trace

FEWEST_RUNGS = 4  # of a sum over rungs


def trapezoid(trace: Trace, moments: Callable[[Trace], Moments] = plain) -> float:
    """Trapezoid rule on the slope of log Z: sum d/2 (E_k + E_{k-1}), d = tau step (Friel & Pettitt 2008)."""
    require(trace, "trapezoid")
    mean = moments(trace).mean
    return float(np.diff(trace.tau) @ (mean[1:] + mean[:-1]) / 2)


def corrected_trapezoid(trace: Trace, moments: Callable[[Trace], Moments] = plain) -> float:
    """Trapezoid minus its leading error: - sum d^2/12 (V_k - V_{k-1}) (Friel, Hurn & Wyse 2014)."""
    require(trace, "corrected_trapezoid")
    mean, variance = moments(trace)
    step = np.diff(trace.tau)
    return float(step @ (mean[1:] + mean[:-1]) / 2 - step**2 @ np.diff(variance) / 12)


def stepping_stone(trace: Trace) -> float:
    """Importance sampling from every rung to the next: sum log mean_k exp(d r) (Xie et al. 2011)."""
    require(trace, "stepping_stone")
    tau, samples = ratios(trace)
    stones = [_log_mean_exp(d * r) for d, r in zip(np.diff(tau), samples, strict=False)]
    if not np.isfinite(stones).all():
        lost = tau[np.argmin(np.isfinite(stones))]
        raise CrossfadeError(f"no draw at tau = {lost:g} is possible at the next rung: add rungs or draws")
    return float(sum(stones))


def bar(trace: Trace) -> float:
    """Bennett's acceptance ratio between neighbouring rungs, summed (Bennett 1976; see bar_difference)."""
    require(trace, "bar")
    return float(sum(bar_steps(*ratios(trace))))


def mbar(trace: Trace) -> float:
    """All rungs at once: maximum-likelihood log Z of every rung (Shirts & Chodera 2008; see mbar_log_z)."""
    require(trace, "mbar")
    return float(mbar_log_z(*ratios(trace))[-1])


def mbar_left_out(trace: Trace) -> tuple[float, np.ndarray]:
    """MBAR of the whole, and of all chains but each one [chain], by one Newton step from the whole's solution.

    The step is exact to second order in 1/n_chains and costs one pass over the draws. Where neighbours hardly overlap
    the curvature does not determine it, and each is solved anew.
    """
    require(trace, "mbar")
    tau, samples = ratios(trace)
    if min(neighbour_overlaps(tau, samples)) < 0.02:
        return mbar(trace), np.array([mbar(part) for part in trace.left_out()])
    chains = [ratios(trace.take(chains=[chain]))[1] for chain in range(trace.n_chains)]
    log_z, left_out = log_z_left_out(tau, samples, chains)
    return float(log_z[-1]), left_out[:, -1]


def jarzynski(trace: Trace) -> float:
    """Log mean exp of the works of the sweeps: log 1/n sum exp(W) (Jarzynski 1997; Neal 2001)."""
    require(trace, "jarzynski")
    value = _log_mean_exp(work(trace))
    if not np.isfinite(value):
        raise CrossfadeError("every sweep has weight zero: run it in the other direction, or use 'crooks'")
    return value


def work(trace: Trace) -> np.ndarray:
    """Log weight of every sweep [chain]: W = sum (tau_{k+1} - tau_k) r_k, the left point (Neal 2001)."""
    require(trace, "crooks", "work")
    step = np.diff(trace.tau)
    moved = step > 0  # a step of 0 costs nothing even where the ratio is infinite
    return trace.log_ratio[:, :-1, 0][:, moved].astype(float) @ step[moved]


def crooks(forward: Trace, reverse: Trace) -> float:
    """Log Z_1 - log Z_0 from sweeps both ways: BAR of their works (Crooks 2000; Shirts et al. 2003)."""
    works = work(forward), work(reverse)
    mirrored = 1 - reverse.tau[::-1]
    if mirrored.shape != forward.tau.shape or not np.allclose(mirrored, forward.tau, rtol=0, atol=1e-9):
        raise CrossfadeError("crooks needs the reverse sweep on the mirrored ladder: 1 - tau, reversed")
    return bar_difference(*works)


def controlled(trace: Trace) -> float:
    """The trapezoid of controlled means, corrected by plain variances (CTI-2 of Oates et al. 2016).

    Controlled errors are so small that without the correction the trapezoid's own error would exceed them.
    """
    variance = trace.extra["plain"].var(axis=(0, 2), ddof=1)
    return trapezoid(trace) - float(np.diff(trace.tau) ** 2 @ np.diff(variance) / 12)


def with_controls(trace: Trace) -> Trace:
    """Control variates are fitted once, each half of the chains by the other, before chains are deleted."""
    require(trace, "controlled")
    return trace._replace(log_ratio=controlled_values(trace), extra={"plain": trace.log_ratio})


def ratios(trace: Trace) -> tuple[np.ndarray, list[np.ndarray]]:
    """The distinct tau and, for each, all draws of log_ratio there: rungs of equal tau are one state."""
    tau = np.unique(trace.tau)
    return tau, [trace.log_ratio[:, trace.tau == t].reshape(-1).astype(float) for t in tau]


def _log_mean_exp(a: np.ndarray) -> float:
    return float(logsumexp(a) - np.log(a.size))


def _broken(trace: Trace) -> str:
    """Why no estimator of the whole path may read this trace, or nothing."""
    tau, ratio = trace.tau, trace.log_ratio
    if np.isnan(tau).any() or (np.diff(tau) < 0).any():
        return "tau is NaN or decreases: sort the ladder from 0 to 1 before sampling"
    if tau[0] != 0 or tau[-1] != 1:
        return f"the trace runs from tau = {tau[0]:g} to {tau[-1]:g}, not 0 to 1: finish the interrupted run"
    if np.isfinite(ratio).all():
        return ""
    if (bad := np.isnan(ratio).any(axis=(0, 2))).any():
        return f"log_ratio is NaN at tau = {tau[np.argmax(bad)]:g}: check both log densities there"
    bad = (ratio == -np.inf).any(axis=(0, 2)) & (tau > 0) | (ratio == np.inf).any(axis=(0, 2)) & (tau < 1)
    if trace.equilibrium and bad.any():
        return f"a draw at tau = {tau[np.argmax(bad)]:g} has density zero there: the kernel left its support"
    return ""


def _as_is(trace: Trace) -> Trace:
    return trace


def _not_sweeps(trace: Trace) -> str:
    if trace.equilibrium or trace.n_draws != 1:
        return "needs sweeps of N x 1 draws, and these are equilibrium draws"
    return ""


def _not_equilibrium(trace: Trace) -> str:
    if not trace.equilibrium:
        return "needs equilibrium draws, and this is a sweep whose state lags behind tau"
    return "needs at least 2 draws per rung: draw more" if trace.n_chains * trace.n_draws < 2 else ""


def _unseen(trace: Trace) -> str:
    if (trace.log_ratio == np.inf).any():
        return "draws at tau = 1 are impossible at tau = 0, unseen from there: use 'bar', 'mbar' or 'crooks'"
    return ""


def _first(*refusals: Callable[[Trace], str]) -> Callable[[Trace], str]:
    """The first reason of several, after that no estimator may read the trace."""
    return lambda trace: next((why for refuse in (_broken, *refusals) if (why := refuse(trace))), "")


class Estimator(NamedTuple):
    """All that is to be known about an estimator: adding one is adding one of these to ESTIMATORS."""

    function: Callable[..., float]  # of a trace, or of the traces there and back
    refuses: Callable[[Trace], str]  # why it may not read a trace, or nothing
    order: int | None = None  # of what a sum over rungs misses, in the distance of rungs; None: it is no sum
    two_sided: bool = False  # averages a bounded function over the draws of both sides, so tails do not matter
    by_overlap: bool = False  # goes from rung to rung by overlap
    one_way: str = ""  # of one that reads the run back as well: the estimator that reads one of these ways
    prepare: Callable[[Trace], Trace] = _as_is  # once for all chains, before any is left out
    # With each chain left out, where there is a short cut.
    left_out: Callable[[Trace], tuple[float, np.ndarray]] | None = None


ESTIMATORS: dict[str, Estimator] = {
    "trapezoid": Estimator(trapezoid, _first(not_finite), order=2),
    "corrected_trapezoid": Estimator(corrected_trapezoid, _first(_not_equilibrium, not_finite), order=4),
    "stepping_stone": Estimator(stepping_stone, _first(_not_equilibrium, _unseen), by_overlap=True),
    "bar": Estimator(bar, _first(_not_equilibrium), two_sided=True, by_overlap=True),
    "mbar": Estimator(mbar, _first(_not_equilibrium), two_sided=True, by_overlap=True, left_out=mbar_left_out),
    "jarzynski": Estimator(jarzynski, _first(_not_sweeps, _unseen)),
    "crooks": Estimator(crooks, _first(_not_sweeps), two_sided=True, one_way="jarzynski"),
    "controlled": Estimator(controlled, _first(_not_equilibrium, not_finite), order=4, prepare=with_controls),
}


def legal(trace: Trace) -> tuple[str, ...]:
    """The names of the estimators of one trace that this one allows, as it is."""
    plain = (name for name, own in ESTIMATORS.items() if not own.one_way and own.prepare is _as_is)
    return tuple(name for name in plain if not (ESTIMATORS[name].refuses(trace) or too_coarse(trace, name)))


def too_coarse(trace: Trace, name: str) -> str:
    """Why a sum over rungs means nothing here: it must be seen to be fine enough, and two ends do not show it."""
    if ESTIMATORS[name].order and trace.equilibrium and len(np.unique(trace.tau)) < FEWEST_RUNGS:
        return f"needs {FEWEST_RUNGS} rungs or more, or what its sum over rungs misses cannot be told"
    return ""


def estimator(name: str) -> Estimator:
    if name not in ESTIMATORS:
        raise CrossfadeError(f"unknown estimator {name!r}: choose one of {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]


def require(trace: Trace, name: str, who: str = "") -> None:
    """Refuse a trace that this estimator may not read, and say which may."""
    if reason := estimator(name).refuses(trace):
        names = [*legal(trace), *(["crooks (with the run back)"] if "jarzynski" in legal(trace) else [])]
        raise CrossfadeError(f"{who or name}: {reason}; legal on this trace: {', '.join(names) or 'none'}")
