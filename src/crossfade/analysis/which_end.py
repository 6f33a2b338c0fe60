"""Are the draws of a rung draws of its density? Which rung did each of them come from (Shirts 2013)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from crossfade.analysis.bennett import bar_steps

TAIL = 2.0  # standard deviations
CERTAIN = 1e6  # log ratio of which more says no more: powers of larger ones are lost


def slope(tau: np.ndarray, samples: Sequence[np.ndarray]) -> float:
    """The slope of a logistic regression of "which of two neighbours is this draw of" on their log ratio: 1.

    For draws of q_k and q_{k+1}, log odds = log(n_{k+1} / n_k) - log(Z_{k+1} / Z_k) + (tau_{k+1} - tau_k) r, whatever
    the densities are. One slope for all pairs of neighbours, an intercept for each; maximum likelihood by Newton steps.
    NaN where the log ratio does not vary, and where it tells the rungs apart without fail, so that any slope would do.
    """
    x, above, pair = _neighbours(tau, samples)
    spread = float(x.std())
    if spread < 1e-9:
        return np.nan
    x = x / spread
    n_pairs = len(tau) - 1
    n_above, n_all = np.bincount(pair, above, n_pairs), np.bincount(pair, minlength=n_pairs)
    odds = np.log(n_above / (n_all - n_above))

    def misfit(at: np.ndarray) -> float:
        """Minus the log likelihood of intercepts and slope."""
        log_odds = at[pair] + at[-1] * x
        return float((np.logaddexp(0, log_odds) - log_odds * above).sum())  # not @: see _log_sum_expit

    at = min((np.append(odds, start) for start in (spread, 0.0)), key=misfit)  # slope 1, or nothing known
    now = misfit(at)
    for _ in range(100):
        p = expit(at[pair] + at[-1] * x)
        weight = p * (1 - p)
        gradient = np.append(np.bincount(pair, above - p, n_pairs), ((above - p) * x).sum())
        curvature = np.diag(np.append(np.bincount(pair, weight, n_pairs), (weight * x * x).sum()))
        curvature[-1, :-1] = curvature[:-1, -1] = np.bincount(pair, weight * x, n_pairs)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        while (then := misfit(at + step)) > now + 1e-9 * (1 + now):
            step = step / 2
        at, now = at + step, then
        if now < 1e-3:
            return np.nan
        if np.abs(step).max() < 1e-8 * (1 + np.abs(at).max()):
            return float(at[-1] / spread)
    return np.nan


def _neighbours(tau: np.ndarray, samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every draw and each neighbour of its rung: log ratio of the two, 1 if it is of the upper, and which pair."""
    x, above, pair = [], [], []
    for k, (step, log_z) in enumerate(zip(np.diff(tau), bar_steps(tau, samples), strict=True)):
        for side, own in enumerate(samples[k : k + 2]):
            finite = own[np.isfinite(own)]  # infinite: possible at one of the two only, which tells nothing of a slope
            centred = step * finite - log_z  # so that intercept and slope hardly interact
            x.append(np.clip(centred, -CERTAIN, CERTAIN))
            above.append(np.full(len(finite), float(side)))
            pair.append(np.full(len(finite), k))
    return np.concatenate(x), np.concatenate(above), np.concatenate(pair)


def scores(u: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of draws u and gradients of their log density [chain, point, size], what has mean 0 if both belong together.

    For any f, E[f'(z) + f(z) d log p / dz] = 0: with f = 1 the mean gradient is 0, with f = z coordinate times gradient
    is -1. Both are weighed down where |z| is above TAIL, since a mean with long tails has no honest error; z is the
    coordinate in units of its spread. Gradient, and coordinate times gradient + 1, [chain, size] each.
    """
    flat = u.reshape(-1, u.shape[2])
    sd = np.maximum(flat.std(axis=0), 1e-300)
    z = (u - flat.mean(axis=0)) / sd
    gradient = slope * sd
    weight = 1 / (1 + (z / TAIL) ** 2)
    bend = -2 * z / TAIL**2 * weight**2  # the weight's derivative
    shift, width = bend + weight * gradient, weight + z * bend + z * weight * gradient
    # In units of what a unit of gradient, or of -z in it, would add.
    return shift.mean(axis=1) / weight.mean(axis=(0, 1)), width.mean(axis=1) / (z**2 * weight).mean(axis=(0, 1))
