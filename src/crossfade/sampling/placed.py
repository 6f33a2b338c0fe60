"""Drivers of `anneal` that place rungs by measurement: for chains of one run, or for many runs at once."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from crossfade.density.precision import in_float64
from crossfade.paths.path import Path
from crossfade.sampling.anneal import Interrupted, Schedule, anneal
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import LadderFn, Rung, equal_length, next_by_tangents, place_by_tangents, sigmoid
from crossfade.types import Array, CrossfadeError, State, Trace


@in_float64
def anneal_at_tangents(path: Path, kernel: Kernel, n_rungs: int, keys: Array, schedule: Schedule) -> Trace:
    """TI-optimal's run: each new rung is placed by what all chains measured so far, and started from its neighbour."""
    found: dict[float, tuple[Trace, State]] = {}
    segment = min(schedule.n_burn + schedule.n_draws, 4096)

    def measure(tau: float) -> Rung:
        order = len(found)
        start = found[min(found, key=lambda other: abs(other - tau))][1] if found else None
        # The two ends are far from where their chains come from, so both are given the warm-up.
        plan = schedule if order < 2 else schedule._replace(n_warm_up=0)
        own = _folded(keys, order)
        trace, _ = found[tau] = anneal(path, kernel, np.array([tau]), own, schedule=plan, state=start, segment=segment)
        return Rung(tau, float(trace.log_ratio.mean()), float(trace.log_ratio.var(ddof=1)))

    try:
        place_by_tangents(measure, n_rungs)
    except Interrupted as stop:
        if found:
            raise Interrupted(_in_order(found), stop.state) from stop
        raise
    return _in_order(found)


def _in_order(found: dict[float, tuple[Trace, State]]) -> Trace:
    """The rungs that were measured, as one trace."""
    tau = sorted(found)
    traces = [found[t][0] for t in tau]
    return traces[0]._replace(
        tau=np.array(tau),
        log_ratio=np.concatenate([trace.log_ratio for trace in traces], axis=1),
        acceptance=np.concatenate([trace.acceptance for trace in traces], axis=1),
    )


@jax.jit
def _folded(keys: Array, number: int) -> Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)


@in_float64
def anneal_together(
    path: Path,
    kernel: Kernel,
    ladders: Sequence[np.ndarray | int],
    n_iter: int,
    keys: Array,
    ends: tuple[State, State],
    segment: int | None = None,
) -> list[Trace]:
    """Independent runs of thermodynamic integration, a chain each, that advance together: a trace of every run.

    A run has a ladder of its own, or a number of rungs that it places by tangents. Each spends `n_iter` kept steps in
    all, a fifth of every rung's steps being burn-in, and begins at `ends[0]`; one that places its rungs goes from there
    to tau = 1, at `ends[1]`, and then to each rung from the nearest that it visited.

    Of a rung only the mean and the variance are held. Two draws that have them stand for all of its draws in the trace,
    which is therefore for estimators of moments alone.
    """
    n_rungs = np.array([ladder if isinstance(ladder, int) else len(ladder) for ladder in ladders])
    most = int(n_rungs.max())
    if n_iter % (4 * most) or (most % n_rungs).any():
        raise CrossfadeError(f"n_iter = {n_iter} must be a multiple of {4 * most}, and {most} of all numbers of rungs")
    placed = np.array([isinstance(ladder, int) for ladder in ladders])
    rungs = Rung(*np.full((3, len(ladders), most), np.nan))  # in the order in which they are visited
    for tau, ladder in zip(rungs.tau, ladders, strict=True):
        given = (0.0, 1.0) if isinstance(ladder, int) else ladder
        tau[: len(given)] = given
    # All runs do as many steps in a turn; one with fewer rungs than the most stays at each for several turns.
    schedule = Schedule(n_draws=5 * n_iter // (4 * most), n_warm_up=0)
    turns = most // n_rungs
    fifths = np.empty((2, len(ladders), most, 5))  # mean and mean square deviation of every fifth of a turn
    state, now = ends[0], rungs.tau[:, 0]
    visited = [(np.ones(len(ladders)), ends[1])]
    for turn in range(most):
        own = _folded(keys, turn)
        trace, state = anneal(path, kernel, now[:, None], own, schedule=schedule, state=state, segment=segment)
        parts = trace.log_ratio.reshape(len(ladders), 5, -1)
        fifths[:, :, turn] = parts.mean(axis=2), parts.var(axis=2)
        visited.insert(0, (now, jax.tree.map(np.asarray, state)))  # in front: the last state at a tau is found first
        ended, order = (turn + 1) % turns == 0, (turn + 1) // turns
        for k in np.unique(n_rungs[ended]):
            some, n = n_rungs == k, most // k
            kept = fifths[:, some, turn + 1 - n : turn + 1].reshape(2, some.sum(), 5 * n)[:, :, n:]
            rungs.mean[some, turn // n], rungs.variance[some, turn // n] = _pooled(kept, parts.shape[2])
        going = ended & (order < n_rungs)
        unknown = going & placed & (order > 1)
        if unknown.any():
            rungs.tau[unknown, order[unknown]] = next_by_tangents(Rung(*(values[unknown] for values in rungs)))
        now = np.where(going, rungs.tau[np.arange(len(now)), np.minimum(order, n_rungs - 1)], now)
        if (moved := going & placed).any():
            nearest = np.argmin(np.abs(np.array([tau for tau, _ in visited]) - now), axis=0)
            which = np.where(moved, nearest, 0), np.arange(len(now))
            state = jax.tree.map(lambda *all, which=which: np.stack(all)[which], *(state for _, state in visited))
    return [_stand_in(Rung(*(v[:k] for v in values))) for *values, k in zip(*rungs, n_rungs, strict=True)]


def _pooled(parts: np.ndarray, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of all draws from those of their parts [2, run, part], each of `n_draws`."""
    mean, square = parts
    centre = mean.mean(axis=1)
    squares = n_draws * np.sum(square + (mean - centre[:, None]) ** 2, axis=1)
    return centre, squares / (n_draws * mean.shape[1] - 1)


def _stand_in(rungs: Rung) -> Trace:
    """Two draws at every rung that have its mean and variance."""
    tau, mean, variance = rungs.in_order()
    half = np.sqrt(variance / 2)
    return Trace(tau, np.stack([mean - half, mean + half], axis=-1)[None], np.full((1, len(tau)), np.nan), True)


@in_float64
def measured_length(path: Path, kernel: Kernel, keys: Array, *, n_rungs: int = 100, n_draws: int = 50) -> LadderFn:
    """The equal-length ladder, from the variances of two short equilibrium runs (the second on the first's ladder)."""
    ladder: LadderFn = sigmoid
    schedule = Schedule(n_draws=n_draws, n_burn=n_draws // 4)
    for attempt in range(2):
        trace, _ = anneal(path, kernel, ladder(n_rungs), _folded(keys, attempt), schedule=schedule)
        ladder = equal_length(trace.tau, trace.log_ratio.var(axis=(0, 2), ddof=1))
    return ladder
