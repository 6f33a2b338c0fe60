"""The default method: fit the short path to posterior draws, add rungs where the ends do not overlap, stop in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.analysis.judge import R_HAT, expected_error
from crossfade.analysis.mixing import Mixing, mixing
from crossfade.analysis.summary import Summary, summarise
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.methods.steps import (
    PILOT,
    allocate,
    can_grow,
    choose_warp,
    ends,
    fitted,
    legs_of,
    overlaps,
    shared_noise,
    split,
)
from crossfade.paths.link import Share, ShortPath, Union, union
from crossfade.sampling.draws import Source, more, run_source
from crossfade.sampling.hmc import SEGMENT
from crossfade.sampling.rungs import Rung, between, extend
from crossfade.sampling.user_draws import own_source
from crossfade.types import Array, Leg

GOOD_OVERLAP = 0.2  # of 0.5: below it a rung between costs less than more draws
MAX_RUNGS = 24
SEPARATE = 1.5  # R-hat of chains that more of the same will not bring together
GROWTH = 4.0  # at most so many times more draws before the error is looked at again

Say = Callable[[str], None]


class Asked(NamedTuple):
    """What the user wants: a standard error, and how much may be spent on it."""

    target_se: float = 0.05
    seconds: float | None = None
    max_draws: int | None = None  # per posterior or rung, all chains together


class Separate(Exception):
    """The short path does not fit this pair; the message says why."""


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
    may_give_up: bool = False,
) -> Short:
    """Run the short path until the asked error is met, or nothing more can be spent.

    With `may_give_up`, `Separate` is raised where chains sit in separate places or rungs do not connect the ends;
    without it the run goes on to its bad end, for the verdict to say so.
    """
    began = time.perf_counter()
    joined = union(j1, j2, share)
    path = ShortPath(j1, j2, joined)
    keys = [jax.random.fold_in(key, i) for i in range(5)]
    sources, pilot_seconds = _sources((j1, j2), draws, keys, n_chains, say)
    if may_give_up:
        _give_up_if_separate(sources)
    warp = choose_warp(path, joined, sources, keys[2])
    rungs, fits = fitted(path, joined, sources, warp, keys[3])
    frozen = False
    while min(shared := overlaps(rungs)) < GOOD_OVERLAP and len(rungs) < MAX_RUNGS:
        frozen = True  # rungs between belong to one fit
        k = int(np.argmin(shared))
        tau = split(rungs[k], rungs[k + 1])
        gap = f"tau = {rungs[k].tau:.3g} to {rungs[k + 1].tau:.3g}"
        say(f"overlap {shared[k]:.2g} from {gap}: a rung at {tau:.3g}")
        new = between(path, fits, rungs[k], rungs[k + 1], tau, jax.random.fold_in(keys[4], len(rungs)))
        rungs.insert(k + 1, extend(path, fits, new, PILOT))
        if asked.seconds is not None and time.perf_counter() - began > asked.seconds:
            break
    if may_give_up and len(rungs) >= MAX_RUNGS:
        raise Separate(f"{MAX_RUNGS} rungs do not connect the two posteriors")
    forecast, stopped, before = "", "", np.inf
    while True:
        legs = legs_of(rungs)
        correlation = 0.0 if frozen else shared_noise(path, sources, rungs, fits, keys[3])
        with np.errstate(all="ignore"):  # a wild ratio spoils an opinion, not the headline; the verdict sees it
            summary = _honest(summarise(legs, "mbar", correlation), legs, correlation)
        error = summary.headline.error
        factor = (error / asked.target_se) ** 2
        if factor <= 1:
            break
        forecast = (
            forecast or f"error {error:.2g}: {asked.target_se:g} needs about {max(factor * pilot_seconds, 1):.0f} s"
        )
        say(forecast if before == np.inf else f"error {error:.2g} so far")
        counts, stopped = _affordable(rungs, sources, asked, factor, n_chains)
        if asked.seconds is not None and time.perf_counter() - began > asked.seconds:
            stopped = f"the budget of {asked.seconds:g} s is used up"
        if not all(can_grow(rung, sources) for rung in rungs) and error > 0.95 * before:
            stopped = "the draws that were brought along are used up"
        if stopped:
            break
        before = error
        try:
            for i, rung in enumerate(rungs[1:-1], 1):
                rungs[i] = extend(path, fits, rung, counts[i])
            sources = (more(sources[0], counts[0]), more(sources[1], counts[-1]))
            if frozen:
                rungs[0], rungs[-1] = ends(path, sources, fits, keys[3])
            else:
                rungs, fits = fitted(path, joined, sources, warp, keys[3])
        except KeyboardInterrupt:  # what there was before still is an answer
            stopped = "it was stopped by hand"
            break
    return Short(legs, summary, tuple(rungs), sources, _of_both(sources), joined, warp, correlation, forecast, stopped)


def _honest(summary: Summary, legs: tuple[Leg, ...], correlation: float) -> Summary:
    """The larger of two errors: over independent chains, and from overlap and autocorrelation."""
    expected = expected_error(legs) * float(np.sqrt(1 + correlation))
    headline = summary.headline
    return summary._replace(headline=headline._replace(error=max(headline.error, expected)))


def _affordable(
    rungs: list[Rung], sources: tuple[Source, Source], asked: Asked, factor: float, n_chains: int
) -> tuple[list[int], str]:
    """Segments to add at each rung, or why there can be none."""
    wanted = allocate(rungs, min(1.15 * factor, GROWTH))
    counts = [n if can_grow(rung, sources) else 0 for n, rung in zip(wanted, rungs, strict=True)]
    if not any(counts):
        return counts, "the draws that were brought along are used up"
    if asked.max_draws is not None:
        room = [asked.max_draws // (n_chains * SEGMENT) - rung.n_draws // SEGMENT for rung in rungs]
        counts = [max(min(n, left), 0) for n, left in zip(counts, room, strict=True)]
        if not any(counts):
            return counts, f"the budget of {asked.max_draws:,} draws per rung is used up"
    return counts, ""


def _sources(
    joints: Any, draws: tuple[Any, Any], keys: list[Array], n_chains: int, say: Say
) -> tuple[tuple[Source, Source], float]:
    found: dict[int, Source] = {}
    for k, own in enumerate(draws):
        if own is not None:
            found[k] = own_source(joints[k], own, n_chains, f"M{k + 1}")
    if found:  # both ends need equally many chains: those brought along decide
        n_chains = min(len(source.draws.u) for source in found.values()) // 2 * 2
        found = {k: source.regrouped(n_chains) for k, source in found.items()}
    seconds = 0.0
    for k in {0, 1} - set(found):
        if joints[k].places:
            say(f"drawing from the posterior of M{k + 1}")
        warm = run_source(joints[k], keys[k], n_chains, f"M{k + 1}")
        began = time.perf_counter()
        source = more(warm, PILOT)
        seconds += time.perf_counter() - began
        for _ in range(2):  # slow chains get a longer start: the draws so far are thrown away
            if not R_HAT[0] < mixing(source.draws.u).r_hat < SEPARATE:
                break
            source = more(source._replace(draws=source.draws.none()), 2 * source.n_draws // SEGMENT)
        found[k] = source
    return (found[0], found[1]), seconds


def _give_up_if_separate(sources: tuple[Source, Source]) -> None:
    for which, source, mixed in zip(("M1", "M2"), sources, _of_both(sources), strict=True):
        if mixed.r_hat > R_HAT[1]:
            where = source.labels[mixed.r_hat_of]
            raise Separate(f"the chains of {which} stay in separate places (R-hat {mixed.r_hat:.2f} for {where})")


def _of_both(sources: tuple[Source, Source]) -> tuple[Mixing, Mixing]:
    first, second = (mixing(source.chains) for source in sources)
    return first, second
