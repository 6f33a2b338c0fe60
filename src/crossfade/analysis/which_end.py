"""Are the draws of a rung draws of its density? Which rung did each of them come from (Shirts 2013)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from crossfade.analysis.bennett import bar_steps

TAIL = 2.0  # standard deviations


def slope(tau: np.ndarray, samples: Sequence[np.ndarray]) -> float:
    """The slope of a logistic regression of "which of two neighbours is this draw of" on their log ratio: 1.

    For draws of q_k and q_{k+1}, log odds = log(n_{k+1} / n_k) - log(Z_{k+1} / Z_k) + (tau_{k+1} - tau_k) r, whatever
    the densities are. One slope for all pairs of neighbours, an intercept for each; maximum likelihood by Newton steps.
    NaN where the log ratio does not vary.
    """
    pairs = []
    for k, (step, log_z) in enumerate(zip(np.diff(tau), bar_steps(tau, samples), strict=True)):
        below, above = (own[np.isfinite(own)] for own in samples[k : k + 2])
        x = step * np.concatenate([below, above]) - log_z  # centred, so that intercept and slope hardly interact
        pairs.append((x, np.repeat([0.0, 1.0], [len(below), len(above)]), np.log(len(above) / len(below))))
    if max(float(np.ptp(x)) for x, _, _ in pairs) < 1e-9:
        return np.nan
    intercepts, b = np.array([start for _, _, start in pairs]), 1.0
    for _ in range(50):
        gradient, curvature = np.zeros(len(pairs)), np.zeros((len(pairs), 2))
        slope_gradient, slope_curvature = 0.0, 0.0
        for k, (x, above, _) in enumerate(pairs):
            p = expit(intercepts[k] + b * x)
            weight = p * (1 - p)
            gradient[k], slope_gradient = (above - p).sum(), slope_gradient + float((above - p) @ x)
            curvature[k] = weight.sum(), weight @ x
            slope_curvature += float(weight @ (x * x))
        # The slope's row and column border a diagonal matrix, so that the system is solved by hand.
        share = curvature[:, 1] / np.maximum(curvature[:, 0], 1e-300)
        information = slope_curvature - share @ curvature[:, 1]
        if information <= 0:
            return np.nan
        move = float(np.clip((slope_gradient - share @ gradient) / information, -1.0, 1.0))
        intercepts = intercepts + gradient / np.maximum(curvature[:, 0], 1e-300) - share * move
        b += move
        if abs(move) < 1e-8:
            break
    return float(b)


def scores(u: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of draws u and gradients of their log density [chain, point, size], what has mean 0 if both belong together.

    For any f, E[f'(z) + f(z) d log p / dz] = 0: with f = 1 the mean gradient is 0, with f = z coordinate times gradient
    is -1. Both are weighed down where |z| is above TAIL, since a mean with long tails has no honest error; z is the
    coordinate in units of its spread. [chain, size] each.
    """
    flat = u.reshape(-1, u.shape[2])
    sd = np.maximum(flat.std(axis=0), 1e-300)
    z = (u - flat.mean(axis=0)) / sd
    gradient = slope * sd
    weight = 1 / (1 + (z / TAIL) ** 2)
    moved = -2 * z / TAIL**2 * weight**2  # the weight's derivative
    shift = moved + weight * gradient
    width = weight + z * moved + z * weight * gradient
    return shift.mean(axis=1), width.mean(axis=1)
