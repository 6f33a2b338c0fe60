"""Drivers that place their rungs by measurement; they write the same trace as `anneal`."""

from __future__ import annotations

import jax
import numpy as np

from crossfade.density.precision import in_float64
from crossfade.paths.path import Path
from crossfade.sampling.anneal import Interrupted, Schedule, anneal
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import LadderFn, Rung, equal_length, place_by_tangents, sigmoid
from crossfade.types import Array, State, Trace


@in_float64
def anneal_at_tangents(path: Path, kernel: Kernel, n_rungs: int, keys: Array, schedule: Schedule) -> Trace:
    """TI-optimal's run: each new rung is placed by what all chains measured so far, and started from its neighbour."""
    found: dict[float, tuple[Trace, State]] = {}
    n_steps = schedule.n_burn + schedule.n_draws

    def measure(tau: float) -> Rung:
        order = len(found)
        own = jax.vmap(lambda key: jax.random.fold_in(key, order))(keys)
        nearest = min(found, key=lambda other: abs(other - tau)) if found else None
        # The two ends are far from where their chains come from, so both are given the warm-up.
        plan = schedule if order < 2 else schedule._replace(n_warm_up=0)
        trace, state = anneal(
            path,
            kernel,
            np.array([tau]),
            own,
            schedule=plan,
            state=None if nearest is None else found[nearest][1],
            segment=min(n_steps, 4096),
        )
        found[tau] = trace, state
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


@in_float64
def measured_length(path: Path, kernel: Kernel, keys: Array, *, n_rungs: int = 100, n_draws: int = 50) -> LadderFn:
    """The equal-length ladder, from the variances of two short equilibrium runs (the second on the first's ladder)."""
    ladder: LadderFn = sigmoid
    schedule = Schedule(n_draws=n_draws, n_burn=n_draws // 4)
    for attempt in range(2):
        own = jax.vmap(lambda key, attempt=attempt: jax.random.fold_in(key, attempt))(keys)
        trace, _ = anneal(path, kernel, ladder(n_rungs), own, schedule=schedule)
        ladder = equal_length(trace.tau, trace.log_ratio.var(axis=(0, 2), ddof=1))
    return ladder
