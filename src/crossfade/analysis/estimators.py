"""Estimators of log Z_1 - log Z_0: plain functions of a trace, each with the traces it is legal on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit, logsumexp

from crossfade.analysis.moments import Moments, not_finite, plain
from crossfade.types import CrossfadeError, Trace

Estimator = Callable[[Trace], float]


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
    """MBAR of the whole and without each chain [chain], the latter by one Newton step from the whole's solution.

    The step is exact to second order in 1/n_chains and costs one pass over the draws instead of one solve a chain.
    """
    require(trace, "mbar")
    tau, samples = ratios(trace)
    log_z = mbar_log_z(tau, samples)
    log_weight = np.log([len(r) for r in samples]) - log_z
    parts = []
    for chain in range(trace.n_chains):
        _, own = ratios(trace.take(chains=[chain]))
        finite = [r[np.isfinite(r)] for r in own]
        counts = np.array([len(r) for r in finite], dtype=float)
        parts.append((counts, *responsibilities(np.concatenate(finite), tau, log_weight)))
    target, total, joint = (sum(column) for column in zip(*parts, strict=True))
    left = []
    for counts, own_total, own_joint in parts:
        curvature = np.diag(total - own_total) - (joint - own_joint)
        step = np.linalg.lstsq(curvature, total - own_total - (target - counts), rcond=1e-12)[0]
        left.append(log_z[-1] + step[-1] - step[0])
    return float(log_z[-1]), np.array(left)


def jarzynski(trace: Trace) -> float:
    """Log mean exp of the works of the sweeps: log 1/n sum exp(W) (Jarzynski 1997; Neal 2001)."""
    require(trace, "jarzynski")
    value = _log_mean_exp(work(trace))
    if not np.isfinite(value):
        raise CrossfadeError("every sweep has weight zero: run it in the other direction, or use 'crooks'")
    return value


def work(trace: Trace) -> np.ndarray:
    """Log weight of every sweep [chain]: W = sum (tau_{k+1} - tau_k) r_k, the left point (Neal 2001)."""
    require(trace, "work")
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


def bar_difference(forward: np.ndarray, reverse: np.ndarray) -> float:
    """The x with sum_F expit(W_F - x + M) = sum_R expit(W_R + x - M), M = log(n_R / n_F) (Bennett 1976).

    Both works are log weights in their own direction; one of -inf counts in n and adds nothing. Newton in a
    bracket, on the logarithms of the sums, so that works far from overlapping are solved too.
    """
    shift = np.log(len(reverse) / len(forward))
    if np.isnan(forward).any() or np.isnan(reverse).any() or max(forward.max(), reverse.max()) == np.inf:
        raise CrossfadeError("a work is NaN or +inf: the sampler left the support of its own density")
    forward, reverse = forward[forward > -np.inf], reverse[reverse > -np.inf]
    if not (len(forward) and len(reverse)):
        raise CrossfadeError("no draw of one side is possible on the other: add rungs between them")
    x, low, high = (forward.mean() - reverse.mean()) / 2, -np.inf, np.inf
    reach = 1 + np.ptp(forward) + np.ptp(reverse) + abs(forward.mean() + reverse.mean())
    for _ in range(200):
        left, left_slope = _log_sum_expit(forward - x)
        right, right_slope = _log_sum_expit(reverse + x)
        low, high = (x, high) if left > right else (low, x)
        step = np.clip((left - right) / max(left_slope + right_slope, 1e-3), -reach, reach)
        if min(abs(step), high - low) <= 1e-13 * max(1, abs(x)):
            return float(x + step + shift)
        x = x + step if low < x + step < high else (low + high) / 2
    raise CrossfadeError("BAR did not converge in 200 steps: look at the works, they are not log weights")


def mbar_log_z(tau: np.ndarray, samples: Sequence[np.ndarray]) -> np.ndarray:
    """Log Z of every rung, 0 at the first: minimises sum_n log sum_k n_k q_k(x_n) / Z_k + sum_k n_k log Z_k.

    Newton on a convex function from the BAR start. A draw with an infinite ratio can only come from its own
    end, so it counts in n_k and drops out of the rest. Directions that no overlap determines stay with BAR.
    """
    n = np.array([len(r) for r in samples])
    finite = [r[np.isfinite(r)] for r in samples]
    target, ratio = np.array([len(r) for r in finite]), np.concatenate(finite)
    log_z = np.concatenate([[0.0], np.cumsum(bar_steps(tau, samples))])
    total, joint = responsibilities(ratio, tau, np.log(n) - log_z)
    for _ in range(100):
        gradient = target - total
        step = np.linalg.lstsq(np.diag(total) - joint, -gradient, rcond=1e-12)[0]
        step -= step[0]
        decrement = -gradient @ step  # squared distance to the minimum, in standard errors
        if np.abs(step).max() < 1e-5 or decrement < 1e-10:  # Newton squares the step: 1e-10 is left after it
            return log_z + step
        for _ in range(50):
            total, joint = responsibilities(ratio, tau, np.log(n) - log_z - step)
            if (target - total) @ step < 0.5 * decrement:  # not past the minimum by much
                break
            step, decrement = step / 2, decrement / 2
        log_z = log_z + step
    raise CrossfadeError("MBAR did not converge in 100 Newton steps: use 'bar', and look at the overlap")


def responsibilities(ratio: np.ndarray, tau: np.ndarray, log_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum_n p_n [K] and sum_n p_n p_n' [K, K], p_n = softmax over k of log_weight_k + tau_k r_n."""
    total, joint = np.zeros(len(tau)), np.zeros((len(tau), len(tau)))
    for start in range(0, len(ratio), 8192):  # a block stays in the cache
        p = np.multiply.outer(tau, ratio[start : start + 8192]) + log_weight[:, None]
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        total += p.sum(axis=1)
        joint += p @ p.T
    return total, joint


ESTIMATORS: dict[str, Estimator] = {
    "trapezoid": trapezoid,
    "corrected_trapezoid": corrected_trapezoid,
    "stepping_stone": stepping_stone,
    "bar": bar,
    "mbar": mbar,
    "jarzynski": jarzynski,
}


def legal(trace: Trace) -> tuple[str, ...]:
    """The names of the estimators that this trace allows."""
    return tuple(name for name in ESTIMATORS if not _refusal(trace, name))


def ratios(trace: Trace) -> tuple[np.ndarray, list[np.ndarray]]:
    """The distinct tau and, for each, all draws of log_ratio there: rungs of equal tau are one state."""
    tau = np.unique(trace.tau)
    return tau, [trace.log_ratio[:, trace.tau == t].reshape(-1).astype(float) for t in tau]


def bar_steps(tau: np.ndarray, samples: Sequence[np.ndarray]) -> list[float]:
    steps = []
    for k, d in enumerate(np.diff(tau)):
        try:
            steps.append(bar_difference(d * samples[k], -d * samples[k + 1]))
        except CrossfadeError as error:
            raise CrossfadeError(f"between tau = {tau[k]:g} and {tau[k + 1]:g}: {error}") from None
    return steps


def _log_sum_expit(a: np.ndarray) -> tuple[float, float]:
    """Log sum_i expit(a_i), and minus its derivative under a common shift of a downwards."""
    top = a.max()
    if top < -40:  # expit is exp to the last digit, and would underflow
        return float(top + np.log(np.exp(a - top).sum())), 1.0
    s = expit(a)
    total = s.sum()
    squares = np.einsum("i,i", s, s)  # not s @ s: its BLAS threads make this 20 times slower on a busy machine
    return float(np.log(total)), float(1 - squares / total)


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


def _refusal(trace: Trace, name: str) -> str:
    """Why this estimator may not read this trace, or nothing."""
    if reason := _broken(trace):
        return reason
    if name in ("jarzynski", "work"):
        if trace.equilibrium or trace.n_draws != 1:
            return "needs sweeps of N x 1 draws, and these are equilibrium draws"
    elif name != "trapezoid":
        if not trace.equilibrium:
            return "needs equilibrium draws, and this is a sweep whose state lags behind tau"
        if trace.n_chains * trace.n_draws < 2:
            return "needs at least 2 draws per rung: draw more"
    if name in ("trapezoid", "corrected_trapezoid"):
        return not_finite(trace)
    if name in ("jarzynski", "stepping_stone") and (trace.log_ratio == np.inf).any():
        return "draws at tau = 1 are impossible at tau = 0, unseen from there: use 'bar', 'mbar' or 'crooks'"
    return ""


def require(trace: Trace, name: str) -> None:
    if reason := _refusal(trace, name):
        raise CrossfadeError(f"{name}: {reason}; legal on this trace: {', '.join(legal(trace)) or 'none'}")
