"""Whether chains have found the same place: R-hat and effective numbers of draws of every coordinate."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from crossfade.types import Trace

REMEMBERED = 256  # results, by what the draws are
TAILS = ((0.05, 0.95), (0.01, 0.99))
RANKED = 200  # up to so many coordinates are looked at by ranks; of more, those that look worst without ranks


class Mixing(NamedTuple):
    """The worst of all coordinates: rank-normalised split R-hat, and the effective number of draws."""

    r_hat: float
    r_hat_of: int  # the coordinate
    effective: float
    effective_of: int
    typical: float  # median effective number


_LOOKED_AT: dict[tuple[tuple[int, ...], bytes], Mixing] = {}
NOTHING_AGAINST = Mixing(1.0, 0, np.inf, 0, np.inf)  # where there is nothing to mix, or something else tells


def mixing(draws: np.ndarray) -> Mixing:
    """Of draws [chain, draw, coordinate] (Vehtari et al. 2021).

    A run looks at the same draws several times, and a look takes longer than to see that they are the same.
    """
    if draws.shape[2] == 0:
        return NOTHING_AGAINST
    key = (draws.shape, hashlib.blake2b(np.ascontiguousarray(draws).data, digest_size=16).digest())
    if key not in _LOOKED_AT:
        while len(_LOOKED_AT) >= REMEMBERED:
            del _LOOKED_AT[next(iter(_LOOKED_AT))]
        _LOOKED_AT[key] = _mixing(draws)
    return _LOOKED_AT[key]


def _mixing(draws: np.ndarray) -> Mixing:
    if len(draws) == 1:  # a chain alone is held against itself: its two halves
        half = draws.shape[1] // 2
        draws = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    looked_at = _looked_at(draws)
    from arviz_stats.base import array_stats  # slow to import

    chosen = np.moveaxis(draws[:, :, looked_at], 2, 0).copy()
    moving = np.ptp(chosen, axis=(1, 2)) > 0
    if not moving.all():  # a coordinate that never moves has not mixed, whatever its chains agree on
        stuck = int(looked_at[np.argmin(moving)])
        return Mixing(np.inf, stuck, 1.0, stuck, 1.0)
    r_hat = np.atleast_1d(array_stats.rhat(chosen))
    effective = np.atleast_1d(array_stats.ess(chosen))
    return Mixing(
        float(r_hat.max()),
        int(looked_at[np.argmax(r_hat)]),
        float(effective.min()),
        int(looked_at[np.argmin(effective)]),
        float(np.median(effective)),
    )


def _looked_at(draws: np.ndarray) -> np.ndarray:
    """The coordinates that ranks are taken of: all, or those that look worst without."""
    size = draws.shape[2]
    return np.argsort(plain_r_hat(draws))[-RANKED:] if size > RANKED else np.arange(size)


def tail_effective(draws: np.ndarray) -> float:
    """The fewest effective draws of whether a coordinate is beyond its quantile of 5 % or 95 %, or of 1 % or 99 %.

    A region at the edge that chains seldom enter and seldom leave shows here long before it shows in R-hat; a small one
    in the outer quantiles alone.
    """
    from arviz_stats.base import array_stats

    chosen = np.moveaxis(draws[:, :, _looked_at(draws)], 2, 0).copy()
    return min(float(np.min(array_stats.ess(chosen, method="tail", prob=p), initial=np.inf)) for p in TAILS)


def mixing_at(trace: Trace, tau: float) -> Mixing:
    """Of the log ratio at one tau, which may be written as several rungs; infinite ones count by their ranks."""
    columns = trace.log_ratio[:, trace.tau == tau]
    ratio = columns.reshape(len(columns), -1)
    if (ratio == ratio[0, 0]).all():
        return NOTHING_AGAINST  # the ends are equal: nothing to average
    return mixing(np.nan_to_num(ratio, nan=np.nan, posinf=1e300, neginf=-1e300)[:, :, None])


def plain_r_hat(draws: np.ndarray) -> np.ndarray:
    """Split R-hat per coordinate from means and variances alone, for many coordinates."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / np.maximum(within, 1e-300))
