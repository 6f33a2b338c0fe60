"""Bennett's acceptance ratio, between two rungs (BAR) and between all of them (MBAR), on plain arrays.

`samples[k]` holds the log ratios of the draws at `tau[k]`: the reduced potentials are minus their outer product.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from crossfade.types import CrossfadeError


def bar_difference(forward: np.ndarray, reverse: np.ndarray) -> float:
    """The x with sum_F expit(W_F - x + M) = sum_R expit(W_R + x - M), M = log(n_R / n_F) (Bennett 1976).

    Both works are log weights in their own direction; one of -inf counts in n and adds nothing. The root is that of the
    difference of the logarithms of the sums, so that works far from overlapping are solved too.
    """
    shift = np.log(len(reverse) / len(forward))
    if np.isnan(forward).any() or np.isnan(reverse).any() or max(forward.max(), reverse.max()) == np.inf:
        raise CrossfadeError("a work is NaN or +inf: the sampler left the support of its own density")
    forward, reverse = forward[forward > -np.inf], reverse[reverse > -np.inf]
    if not (len(forward) and len(reverse)):
        raise CrossfadeError("no draw of one side is possible on the other: add rungs between them")

    def excess(x: float) -> float:
        return _log_sum_expit(forward - x) - _log_sum_expit(reverse + x)

    # One of the sums cannot exceed the other outside of all works, give or take the numbers of draws.
    spare = abs(shift) + 1.0
    low = min(forward.min(), -reverse.max()) - spare
    high = max(forward.max(), -reverse.min()) + spare
    for _ in range(60):
        if excess(low) >= 0 >= excess(high):
            # Halving takes 600 steps where one work is 1e155, as that of a draw far out in a link may be.
            return float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14, maxiter=3000) + shift)
        low, high = low - 2 * spare, high + 2 * spare
        spare *= 2
    raise CrossfadeError("BAR did not converge: look at the works, they are not log weights")


def bar_steps(tau: np.ndarray, samples: Sequence[np.ndarray]) -> list[float]:
    steps = []
    for k, d in enumerate(np.diff(tau)):
        try:
            steps.append(bar_difference(d * samples[k], -d * samples[k + 1]))
        except CrossfadeError as error:
            raise CrossfadeError(f"between tau = {tau[k]:g} and {tau[k + 1]:g}: {error}") from None
    return steps


def neighbour_overlaps(tau: np.ndarray, samples: Sequence[np.ndarray]) -> list[float]:
    """Overlap of each two neighbouring rungs, taken by themselves: mean 2 p (1 - p), 1/2 is perfect, 0 is none.

    p is the probability that a draw of the two came from the first. Rungs beyond the two have no say, so a dense
    ladder does not look bad.
    """
    found = []
    for k, log_z in enumerate(bar_steps(tau, samples)):
        shared = 0.0
        for ratio in samples[k : k + 2]:  # each rung counts the same, however many draws it has
            p = expit((tau[k + 1] - tau[k]) * ratio[np.isfinite(ratio)] - log_z)
            shared += float(np.sum(p * (1 - p))) / len(ratio)
        found.append(shared)
    return found


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


def log_z_left_out(
    tau: np.ndarray, samples: Sequence[np.ndarray], chains: Sequence[Sequence[np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """log Z of every rung from all chains, and [chain, rung] without each, by one Newton step from the former."""
    log_z = mbar_log_z(tau, samples)
    log_weight = np.log([len(r) for r in samples]) - log_z
    parts = []
    for own in chains:
        finite = [r[np.isfinite(r)] for r in own]
        counts = np.array([len(r) for r in finite], dtype=float)
        parts.append((counts, *responsibilities(np.concatenate(finite), tau, log_weight)))
    target, total, joint = (sum(column) for column in zip(*parts, strict=True))
    left_out = []
    for counts, own_total, own_joint in parts:
        curvature = np.diag(total - own_total) - (joint - own_joint)
        step = np.linalg.lstsq(curvature, total - own_total - (target - counts), rcond=1e-12)[0]
        left_out.append(log_z + step - step[0])
    return log_z, np.array(left_out)


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


def _log_sum_expit(a: np.ndarray) -> float:
    """Log sum_i expit(a_i)."""
    top = a.max()
    if top < -40:  # expit is exp to the last digit, and would underflow
        return float(top + np.log(np.exp(a - top).sum()))
    return float(np.log(expit(a).sum()))
