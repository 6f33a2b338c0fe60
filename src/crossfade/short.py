"""The default method: fit the short path to posterior draws, add rungs where the ends do not overlap, stop in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import reduce
from math import gcd
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.analysis.bennett import neighbour_overlaps
from crossfade.analysis.mixing import Mixing, mixing
from crossfade.analysis.summary import Summary, summarise
from crossfade.sampling.joint import Joint
from crossfade.sampling.link import WARPS, fit
from crossfade.sampling.posterior import SEGMENT
from crossfade.sampling.precision import in_float64
from crossfade.sampling.rungs import Fits, Rung, between, end, extend
from crossfade.sampling.source import Source, more, own_source, run_source
from crossfade.sampling.union import Fit, Share, ShortPath, Union, union
from crossfade.types import Array, CrossfadeError, Leg, Trace

PILOT = 4  # segments of draws per chain before anything is decided
GOOD_OVERLAP = 0.2  # of 0.5: below it a rung between costs less than more draws
MAX_RUNGS = 24
GROWTH = 4.0  # at most so many times more draws before the error is looked at again

Say = Callable[[str], None]


class Asked(NamedTuple):
    """What the user wants: a standard error, and how much may be spent on it."""

    target_se: float = 0.05
    seconds: float | None = None
    max_draws: int | None = None  # per posterior or rung, all chains together


class Short(NamedTuple):
    """A finished run along the short path."""

    legs: tuple[Leg, ...]
    summary: Summary
    rungs: tuple[Rung, ...]
    sources: tuple[Source, Source]
    mixings: tuple[Mixing, Mixing]
    joined: Union
    warp: str
    correlation: float  # of the errors of the two halves
    forecast: str
    stopped: str  # why, if not because the target was met


@in_float64
def short_path(
    j1: Joint,
    j2: Joint,
    *,
    asked: Asked,
    key: Array,
    n_chains: int,
    share: Share = None,
    draws: tuple[Any, Any] = (None, None),
    say: Say = lambda message: None,
) -> Short:
    """Run the short path until the asked error is met, or nothing more can be spent."""
    began = time.perf_counter()
    joined = union(j1, j2, share)
    path = ShortPath(j1, j2, joined)
    keys = [jax.random.fold_in(key, i) for i in range(5)]
    sources = _sources((j1, j2), draws, keys, n_chains, say)
    mixings = _of_both(sources)
    warp = choose_warp(path, joined, sources, keys[2])
    rungs, fits = _fitted(path, joined, sources, warp, keys[3])
    frozen = False
    while min(overlaps := _overlaps(rungs)) < GOOD_OVERLAP and len(rungs) < MAX_RUNGS:
        frozen = True  # rungs between belong to one fit
        k = int(np.argmin(overlaps))
        tau = split(rungs[k], rungs[k + 1])
        gap = f"tau = {rungs[k].tau:.3g} to {rungs[k + 1].tau:.3g}"
        say(f"overlap {overlaps[k]:.2g} from {gap}: a rung at {tau:.3g}")
        new = between(path, fits, rungs[k], rungs[k + 1], tau, jax.random.fold_in(keys[4], len(rungs)))
        rungs.insert(k + 1, extend(path, fits, new, PILOT))
        if asked.seconds is not None and time.perf_counter() - began > asked.seconds:
            break
    forecast, stopped = "", ""
    while True:
        legs = legs_of(rungs)
        correlation = 0.0 if frozen else shared_noise(path, sources, rungs, fits, keys[3])
        summary = summarise(legs, "mbar", correlation)
        error = summary.headline.error
        spent = time.perf_counter() - began
        if error <= asked.target_se:
            break
        factor = (error / asked.target_se) ** 2
        forecast = (
            forecast
            or f"after the pilot the error is {error:.2g}: {asked.target_se:g} needs about {factor:.2g} x the draws"
        )
        say(forecast)
        counts = allocate(rungs, min(1.15 * factor, GROWTH))
        counts = [n if _can_grow(rung, sources) else 0 for n, rung in zip(counts, rungs, strict=True)]
        if not any(counts):
            stopped = "the draws that were brought along are used up"
            break
        if asked.max_draws is not None:
            room = [asked.max_draws // (n_chains * SEGMENT) - rung.n_draws // SEGMENT for rung in rungs]
            counts = [max(min(n, r), 0) for n, r in zip(counts, room, strict=True)]
            if not any(counts):
                stopped = f"the budget of {asked.max_draws:,} draws per rung is used up"
                break
        if asked.seconds is not None and spent > asked.seconds:
            stopped = f"the budget of {asked.seconds:g} s is used up"
            break
        for i, rung in enumerate(rungs[1:-1], 1):
            if counts[i]:
                rungs[i] = extend(path, fits, rung, counts[i])
        sources = (more(sources[0], counts[0]), more(sources[1], counts[-1]))
        if frozen:
            rungs[0], rungs[-1] = _ends(path, sources, fits, keys[3])
        else:
            rungs, fits = _fitted(path, joined, sources, warp, keys[3])
    return Short(legs, summary, tuple(rungs), sources, _of_both(sources), joined, warp, correlation, forecast, stopped)


def _forecast(error: float, target: float, factor: float, spent: float) -> str:
    return f"after the pilot the error is {error:.2g}: {target:g} needs about {max(spent * factor, 1):.0f} s"


def _sources(joints: Any, draws: tuple[Any, Any], keys: list[Array], n_chains: int, say: Say) -> tuple[Source, Source]:
    found = []
    for joint, own, key, which in zip(joints, draws, keys, ("M1", "M2"), strict=False):
        if own is not None:
            found.append(own_source(joint, own, n_chains, which))
            continue
        if joint.places:
            say(f"drawing from the posterior of {which}")
        source = more(run_source(joint, key, n_chains, which), PILOT)
        for _ in range(3):  # slow chains get a longer start: the draws so far are thrown away
            if mixing(source.draws.u).r_hat < 1.05:
                break
            n = source.n_draws // SEGMENT
            source = more(source._replace(draws=source.draws.last(0)), 2 * n)
        found.append(source)
    n_pieces = min(len(source.draws.u) for source in found) // 2 * 2
    if n_pieces < 4:
        raise CrossfadeError("bring at least 4 pieces of draws per model: more chains, or longer ones")
    first, second = (source._replace(draws=source.draws.pieces(n_pieces)) for source in found)
    return first, second


def _of_both(sources: tuple[Source, Source]) -> tuple[Mixing, Mixing]:
    first, second = (mixing(np.concatenate(source.whole_chains(), axis=0)) for source in sources)
    return first, second


def _fitted(
    path: ShortPath, joined: Union, sources: tuple[Source, Source], warp: str, key: Array
) -> tuple[list[Rung], Fits]:
    """The ends, each half read with the fit of the other half."""
    own = [_fit_of(joined, sources, warp, part) for part in halves(len(sources[0].draws.u))]
    fits = (own[1], own[0])
    return list(_ends(path, sources, fits, key)), fits


def _ends(path: ShortPath, sources: tuple[Source, Source], fits: Fits, key: Array) -> tuple[Rung, Rung]:
    first, second = (end(path, k, sources[k], fits, jax.random.fold_in(key, k)) for k in (0, 1))
    return first, second


def shared_noise(path: ShortPath, sources: tuple[Source, Source], rungs: list[Rung], fits: Fits, key: Array) -> float:
    """The correlation of the two halves' errors, which both contain the noise of both fits.

    With score s and information I, the noise of the fit to half A moves the mean ratio over half B by
    s_A' I^-1 s_B (means over the halves), and so does the fit to B over A. Reading each half with its own fit as well
    gives (s_A - s_B)' I^-1 (s_A - s_B) at each end, twice the variance that a fit's noise adds to the ratio there.
    """
    own = _ends(path, sources, (fits[1], fits[0]), key)
    noise, total = 0.0, 0.0
    for across, inside, sign in ((rungs[0], own[0], -1), (rungs[-1], own[1], 1)):
        finite = [np.isfinite(a) & np.isfinite(b) for a, b in zip(across.ratio, inside.ratio, strict=True)]
        for a, b, f in zip(across.ratio, inside.ratio, finite, strict=True):
            noise += sign * float(np.mean(a[f] - b[f])) / 2
            total += float(np.var(a[f])) / 2
    return float(np.clip(noise / max(total, 1e-300), 0.0, 1.0))


def halves(n: int) -> tuple[slice, slice]:
    return slice(0, n // 2), slice(n // 2, n)


def _fit_of(joined: Union, sources: tuple[Source, Source], warp: str, part: Any) -> Fit:
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
    n = len(sources[0].draws.u)
    seen, unseen = slice(0, n // 2), slice(n // 2, n)
    scores = {}
    for warp in WARPS:
        one = _fit_of(joined, sources, warp, seen)
        other = _fit_of(joined, sources, warp, unseen)
        scores[warp] = min(_overlaps(list(_ends(path, sources, (other, one), key))))
    best = max(scores, key=lambda warp: scores[warp])
    simplest = next(warp for warp in WARPS if scores[warp] > scores[best] - 0.003)
    return simplest


def _overlaps(rungs: list[Rung]) -> list[float]:
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
        wanted.append(width * np.sqrt(np.nanvar(both) * n / effective))
    share = np.array(wanted) / max(sum(wanted), 1e-300)
    now = np.array([rung.n_draws // SEGMENT for rung in rungs])
    total = factor * now.sum()
    target = np.maximum(np.ceil(np.maximum(share, 0.5 / len(rungs)) * total / PILOT) * PILOT, now)
    return [int(n) for n in target - now]


def _can_grow(rung: Rung, sources: tuple[Source, Source]) -> bool:
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
