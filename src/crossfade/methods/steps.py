"""Steps of the short path: fit the links, choose how shared coordinates are read, place rungs, allot draws."""

from __future__ import annotations

from functools import reduce
from math import gcd
from typing import Any

import jax
import numpy as np

from crossfade.analysis.bennett import neighbour_overlaps
from crossfade.analysis.mixing import mixing
from crossfade.paths.fit import WARPS, fit
from crossfade.paths.link import Fit, ShortPath, Union
from crossfade.sampling.draws import Source
from crossfade.sampling.hmc import SEGMENT
from crossfade.sampling.rungs import Fits, Rung, end
from crossfade.types import Array, CrossfadeError, Leg, Trace

PILOT = 4  # segments of draws per chain before anything is decided


def fitted(
    path: ShortPath, joined: Union, sources: tuple[Source, Source], warp: str, key: Array
) -> tuple[list[Rung], Fits]:
    """The ends, each half read with the fit of the other half."""
    own = [fit_of(joined, sources, warp, part) for part in halves(len(sources[0].draws.u))]
    fits = (own[1], own[0])
    return list(ends(path, sources, fits, key)), fits


def ends(path: ShortPath, sources: tuple[Source, Source], fits: Fits, key: Array) -> tuple[Rung, Rung]:
    first, second = (end(path, k, sources[k], fits, jax.random.fold_in(key, k)) for k in (0, 1))
    return first, second


def shared_noise(path: ShortPath, sources: tuple[Source, Source], rungs: list[Rung], fits: Fits, key: Array) -> float:
    """The correlation of the two halves' errors, which both contain the noise of both links.

    With score s and information I, the noise of a link fitted to half A moves the mean ratio over half B by
    s_A' I^-1 s_B (means over the halves), and so does the link fitted to B over A. Reading each half with its own fit
    as well gives (s_A - s_B)' I^-1 (s_A - s_B) at each end, twice the variance that all fits' noise adds to the ratio
    there; the links' part is taken in proportion to the numbers fitted. The noise of the warps does not count: it is
    one function at both ends, and what it moves in one half is uncorrelated with what it moves in the other.
    """
    own = ends(path, sources, (fits[1], fits[0]), key)
    noise, total = 0.0, 0.0
    for k, (across, inside, sign) in enumerate(((rungs[0], own[0], -1), (rungs[-1], own[1], 1))):
        share = link_share(fits[0], k)
        for a, b in zip(across.ratio, inside.ratio, strict=True):
            finite = np.isfinite(a) & np.isfinite(b)
            noise += share * sign * float(np.mean(a[finite] - b[finite])) / 2
            total += float(np.var(a[finite])) / 2
    return float(np.clip(noise / max(total, 1e-300), 0.0, 1.0))


def link_share(fit: Fit, k: int) -> float:
    """Of the numbers fitted to the draws of model k, the share that is in its link."""
    warp, link = fit.warps[k], fit.links[k]
    size, p = len(warp.shift), len(link.intercept)
    n_slopes = p * int(np.count_nonzero(np.any(link.slopes, axis=0)))
    n_link = n_slopes + p + (p * (p + 1) // 2 if link.root.ndim == 2 else p)
    n_warp = int(np.count_nonzero(warp.shift))
    scale = np.asarray(warp.scale)
    if scale.ndim == 2 and np.count_nonzero(scale - np.diag(np.diag(scale))):
        n_warp += size * (size + 1) // 2
    return n_link / max(n_link + n_warp, 1)


def halves(n: int) -> tuple[slice, slice]:
    return slice(0, n // 2), slice(n // 2, n)


def fit_of(joined: Union, sources: tuple[Source, Source], warp: str, part: Any) -> Fit:
    u, worth = [], []
    for source in sources:
        own = source.draws.u[part]
        u.append(own.reshape(own.shape[0] * own.shape[1], own.shape[2]))
        worth.append(min(mixing(own[:, :, :20]).typical, float(len(u[-1]))) if own.shape[2] else float(len(u[-1])))
    return fit(joined, (u[0], u[1]), (worth[0], worth[1]), warp)


def choose_warp(path: ShortPath, joined: Union, sources: tuple[Source, Source], key: Array) -> str:
    """The way to read the shared coordinates whose overlap is best on draws that it was not fitted to."""
    if joined.n_shared == 0:
        return "identity"
    scores = {warp: min(overlaps(fitted(path, joined, sources, warp, key)[0])) for warp in WARPS}
    return next(warp for warp in WARPS if scores[warp] > max(scores.values()) - 0.003)  # the simplest of the best


def overlaps(rungs: list[Rung]) -> list[float]:
    """Of neighbouring rungs, the worse of the two halves."""
    tau = np.array([rung.tau for rung in rungs])
    found = []
    for h in (0, 1):
        try:
            found.append(neighbour_overlaps(tau, [rung.ratio[h].ravel() for rung in rungs]))
        except CrossfadeError:  # nothing overlaps at all
            found.append([0.0] * (len(rungs) - 1))
    return [min(pair) for pair in zip(*found, strict=True)]


def split(left: Rung, right: Rung) -> float:
    """The tau that halves the thermodynamic length between two rungs, its density taken as linear."""
    sd = [
        np.mean([r[np.isfinite(r)].std() if np.isfinite(r).all() else np.inf for r in rung.ratio])
        for rung in (left, right)
    ]
    if not np.isfinite(sd).all() or min(sd) <= 0:
        return (left.tau + right.tau) / 2
    a, b = sd
    fraction = 0.5 if abs(a - b) < 1e-9 * a else (np.sqrt((a * a + b * b) / 2) - a) / (b - a)
    return float(left.tau + np.clip(fraction, 0.02, 0.98) * (right.tau - left.tau))


def allocate(rungs: list[Rung], factor: float) -> list[int]:
    """Segments to add at each rung: draws in proportion to tau-width x sqrt(variance x autocorrelation time)."""
    tau = np.array([rung.tau for rung in rungs])
    edges = np.concatenate([[tau[0]], (tau[1:] + tau[:-1]) / 2, [tau[-1]]])
    wanted = []
    for rung, width in zip(rungs, np.diff(edges), strict=True):
        both = np.concatenate(rung.ratio)
        both = np.where(np.isfinite(both), both, np.nan)
        n = both.size
        effective = max(mixing(np.nan_to_num(both)[:, :, None]).effective, 1.0)
        spread = np.nanstd(np.clip(both, *np.nanquantile(both, [0.001, 0.999])))  # one wild draw must not take it all
        wanted.append(width * spread * np.sqrt(n / effective))
    share = np.nan_to_num(np.array(wanted), nan=0.0, posinf=0.0)
    share = share / share.sum() if share.sum() > 0 else np.full(len(rungs), 1 / len(rungs))
    now = np.array([rung.n_draws // SEGMENT for rung in rungs])
    total = factor * now.sum()
    target = np.maximum(np.ceil(np.maximum(share, 0.5 / len(rungs)) * total / PILOT) * PILOT, now)
    return [int(n) for n in target - now]


def can_grow(rung: Rung, sources: tuple[Source, Source]) -> bool:
    if rung.samplers is not None:
        return True
    source = sources[int(rung.tau)]
    return source.sampler is not None or source.draws.u.shape[2] == 0


def legs_of(rungs: list[Rung]) -> tuple[Leg, ...]:
    """A trace per half. A rung with more draws than the least is written as several rungs of the same tau."""
    unit = reduce(gcd, [rung.n_draws for rung in rungs])
    if unit < min(rung.n_draws for rung in rungs) // 2:  # the user's draws: of odd lengths, cut to the shortest
        unit = min(rung.n_draws for rung in rungs)
    legs = []
    for h in (0, 1):
        taus: list[float] = []
        columns: list[np.ndarray] = []
        for rung in rungs:
            copies = rung.n_draws // unit
            taus += [rung.tau] * copies
            kept = rung.ratio[h][:, rung.n_draws - copies * unit :]
            columns.append(kept.reshape(len(kept), copies, unit))
        log_ratio = np.concatenate(columns, axis=1)
        trace = Trace(np.array(taus), log_ratio, np.ones(log_ratio.shape[:2]), True)
        legs.append(Leg(f"half {h + 1} of the chains, links fitted to half {2 - h}", 0.5, trace, None))
    return tuple(legs)
