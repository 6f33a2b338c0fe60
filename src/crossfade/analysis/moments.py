"""Mean and variance of log_ratio at every rung, plain or with control variates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossfade.types import CrossfadeError, Float, Trace


class Moments(NamedTuple):
    """E_tau[r] and Var_tau[r], r = log_ratio: the first two derivatives of log Z with respect to tau."""

    mean: Float[np.ndarray, " rung"]
    variance: Float[np.ndarray, " rung"]


def not_finite(trace: Trace) -> str:
    """Why log_ratio has no mean at some rung, or nothing if it has one at all of them."""
    finite = np.isfinite(trace.log_ratio).all(axis=(0, 2))
    if finite.all():
        return ""
    return (
        f"log_ratio is not finite at tau = {trace.tau[np.argmin(finite)]:g}, so it has no mean there; "
        "use 'bar' or 'mbar' on equilibrium draws, which give an impossible draw zero weight"
    )


def plain(trace: Trace) -> Moments:
    """Sample moments, pooled over chains and draws: mean(r), sum (r - mean(r))^2 / (n - 1)."""
    _require_finite(trace)
    ratio = trace.log_ratio
    mean = ratio.mean(axis=(0, 2))
    if trace.n_chains * trace.n_draws < 2:
        return Moments(mean, np.full(mean.shape, np.nan))
    return Moments(mean, ratio.var(axis=(0, 2), ddof=1))


def controlled(trace: Trace, degree: int = 2) -> Moments:
    """Zero-variance moments: E[f] = mean(f - c'h), f = r and (r - b)^2 (Oates, Papamarkou & Girolami 2016).

    b is the plain mean. c is linear in f, so E[(r - b)^2] - (E[r] - b)^2 is the same for every b: this one is
    the safest in floating point.
    """
    _require_controls(trace, degree)
    mean, variance = np.empty((2, len(trace.tau)))
    for k in range(len(trace.tau)):
        ratio, h = trace.log_ratio[:, k], _controls(trace, k, degree)
        centre = ratio.mean()
        shift = _remove(ratio - centre, h)
        square = _remove((ratio - centre) ** 2, h)
        mean[k] = centre + shift.mean()
        # The last term undoes the bias of shift.mean()^2; without controls this is the usual n - 1 variance.
        variance[k] = square.mean() - shift.mean() ** 2 + shift.var(ddof=1) / shift.size
    return Moments(mean, variance)


def controlled_values(trace: Trace, degree: int = 2) -> np.ndarray:
    """r - c'h for every draw [chain, rung, draw]: the same mean as r and a smaller variance."""
    _require_controls(trace, degree)
    rungs = range(len(trace.tau))
    return np.stack([_remove(trace.log_ratio[:, k], _controls(trace, k, degree)) for k in rungs], axis=1)


def _controls(trace: Trace, rung: int, degree: int) -> np.ndarray:
    """h = Laplacian P + grad P . score for the monomials P of this degree; E_tau[h] = 0 (Stein's identity).

    Shifting and scaling theta by constants does not change the span of the h, so it costs no bias.
    """
    theta, score = trace.extra["theta"][:, rung], trace.extra["score"][:, rung]
    scale = theta.std(axis=(0, 1))
    scale = np.where(scale > 0, scale, 1.0)
    theta, score = (theta - theta.mean(axis=(0, 1))) / scale, score * scale
    if degree == 1:
        return score
    i, j = np.triu_indices(theta.shape[-1])
    second = theta[..., i] * score[..., j] + theta[..., j] * score[..., i] + 2.0 * (i == j)
    return np.concatenate([score, second], axis=-1)


def _remove(f: np.ndarray, h: np.ndarray) -> np.ndarray:
    """f - c'h with c by least squares on the half of the chains that does not hold the draw.

    Halves, not alternate chains: a jackknife that deletes one chain then moves at most one other.
    """
    values = np.empty(f.shape)
    half = f.shape[0] // 2
    first, second = slice(None, half), slice(half, None)
    for fit, use in ((first, second), (second, first)):
        target, design = f[fit].reshape(-1), h[fit].reshape(-1, h.shape[-1])
        design = design - design.mean(axis=0)  # centring both is the intercept
        scale = design.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        c = np.linalg.lstsq(design / scale, target - target.mean(), rcond=None)[0] / scale
        values[use] = f[use] - h[use] @ c
    return values


def _require_finite(trace: Trace) -> None:
    if reason := not_finite(trace):
        raise CrossfadeError(reason)


def _require_controls(trace: Trace, degree: int) -> None:
    if degree not in (1, 2):
        raise CrossfadeError(f"control variates are polynomials of degree 1 or 2, not {degree}")
    if not {"theta", "score"} <= set(trace.extra):
        raise CrossfadeError("controlled moments need theta and score: record them when sampling")
    _require_finite(trace)
    if not (np.isfinite(trace.extra["theta"]).all() and np.isfinite(trace.extra["score"]).all()):
        raise CrossfadeError("theta or score is not finite: control variates need a smooth log density")
    if trace.n_chains < 2:
        raise CrossfadeError("controlled moments fit on other chains than they average: run 2 chains or more")
    d = trace.extra["score"].shape[-1]
    n_controls = d if degree == 1 else d + d * (d + 1) // 2
    n_fit = (trace.n_chains // 2) * trace.n_draws
    if n_fit < 2 * (n_controls + 1):
        raise CrossfadeError(
            f"{n_controls} control variates of degree {degree} need {2 * (n_controls + 1)} draws in half "
            f"of the chains, this trace has {n_fit}: draw more, or use degree 1 or plain moments"
        )
