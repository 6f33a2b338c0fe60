"""Many independent runs of the paper's methods at once, each with the settings of the paper.

A run of NETI-DIFF is one sweep; a run of thermodynamic integration is K rungs of N/K kept draws after 20 % burn-in.
All K, both ladders and all repeats advance together in one compiled program, every chain at a tau of its own.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.precision import in_float64
from crossfade.paths.path import Path
from crossfade.sampling.anneal import Schedule, anneal, begin, chain_keys
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import power
from crossfade.types import Array, CrossfadeError, State

WARM_UP = 1000  # steps of NETI-DIFF at tau = 0 before the sweep
APPROACH = 2000  # steps of TI-optimal from tau = 0 to its second rung, 1, which a chain from the prior would not find
STANDARD, OPTIMAL = "TI-standard", "TI-optimal"
MOST = 2**23  # numbers of a trace held at a time
CHUNKS = (160, 40, 25, 10, 5, 1)  # steps in a compiled program: few lengths, so that few are compiled


class Runs(NamedTuple):
    """Estimates of log Z_1 - log Z_0 by independent runs, and what one of them cost."""

    values: np.ndarray  # [run]
    cpu: float  # seconds per run, compilation not counted


def sweep_weights(tau: np.ndarray) -> np.ndarray:
    """The trapezoid rule as weights of the draws: half the distance between the two neighbours."""
    step = np.diff(tau)
    return (np.concatenate([[0.0], step]) + np.concatenate([step, [0.0]])) / 2


@in_float64
def sweeps(path: Path, kernel: Kernel, tau: np.ndarray, n_runs: int, key: Array) -> Runs:
    """Non-equilibrium runs: one draw per rung, started after 1,000 steps at tau = 0."""
    together = int(max(1, min(n_runs, MOST // len(tau))))
    keys, weights, values = chain_keys(key, n_runs), sweep_weights(tau), []
    segment = min(2**17 // together, 4096)
    anneal(path, kernel, tau[:1], keys[:together], schedule=Schedule(n_warm_up=1), segment=segment)  # compiles
    began = time.process_time()
    for first in range(0, n_runs, together):
        own = keys[np.arange(first, first + together) % n_runs]  # one shape: the last batch repeats some chains
        trace, _ = anneal(path, kernel, tau, own, schedule=Schedule(n_warm_up=WARM_UP), segment=segment)
        values.append(trace.log_ratio[:, :, 0] @ weights)
    n_done = together * len(values)
    return Runs(np.concatenate(values)[:n_runs], (time.process_time() - began) / n_done)


class Moments(NamedTuple):
    """Rungs of every chain in order of tau: arrays [chain, rung]."""

    tau: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    def trapezoid(self) -> np.ndarray:
        return np.sum(np.diff(self.tau) * (self.mean[:, 1:] + self.mean[:, :-1]) / 2, axis=1)

    def corrected(self) -> np.ndarray:
        return self.trapezoid() - np.sum(np.diff(self.tau) ** 2 * np.diff(self.variance), axis=1) / 12

    def with_rung(self, tau: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Moments:
        """One more rung for every chain, put where it belongs."""
        added = [np.column_stack([old, new]) for old, new in zip(self, (tau, mean, variance), strict=True)]
        order = np.argsort(added[0], axis=1, kind="stable")
        return Moments(*(np.take_along_axis(values, order, axis=1) for values in added))

    def next_tau(self) -> np.ndarray:
        """Where the tangents of the most uncertain interval meet, or its middle (as `ladder.place_by_tangents`)."""
        width, rise = np.diff(self.tau), np.diff(self.mean)
        k = np.argmax(width * rise, axis=1)
        row = np.arange(len(k))
        left, width, rise = self.tau[row, k], width[row, k], rise[row, k]
        above, below = self.variance[row, k], self.variance[row, k + 1]
        curve = above - below
        inside = left + width * (rise / width - below) / np.where(curve == 0, 1.0, curve)
        good = (curve != 0) & (left < inside) & (inside < left + width)
        return np.where(good, inside, left + width / 2)


class _Group:
    """The runs of one method with K rungs: which tau comes next, from which state, and what was measured there."""

    def __init__(self, method: str, n_rungs: int, n_blocks: int, n_runs: int):
        self.method, self.n_rungs, self.n_blocks = method, n_rungs, n_blocks
        self.done = Moments(*(np.empty((n_runs, 0)) for _ in range(3)))
        self.visited: list[tuple[np.ndarray, State]] = []
        self.at_one: State | None = None  # where TI-optimal begins at tau = 1
        self.blocks: list[tuple[np.ndarray, np.ndarray]] = []
        self.tau = np.zeros(n_runs)

    def measured(self, mean: np.ndarray, spread: np.ndarray, n_steps: int) -> bool:
        """Take in a block (mean and sum of squared deviations [run]); whether it was the last of a rung."""
        self.blocks.append((mean, spread))
        if len(self.blocks) < self.n_blocks:
            return False
        means, spreads = (np.array(part) for part in zip(*self.blocks[self.n_blocks // 5 :], strict=True))
        centre = means.mean(axis=0)
        squares = spreads.sum(axis=0) + n_steps * np.sum((means - centre) ** 2, axis=0)
        self.done = self.done.with_rung(self.tau, centre, squares / (n_steps * len(means) - 1))
        self.blocks = []
        return True

    def go_on(self, state: State) -> State:
        """Set the next tau, and return the state from which it is reached."""
        n_done = self.done.tau.shape[1]
        if n_done == self.n_rungs:
            return state
        if self.method == STANDARD:
            self.tau = np.full_like(self.tau, power(self.n_rungs)[n_done])
            return state
        self.visited.append((self.tau, state))
        if n_done == 1 and self.at_one is not None:
            self.tau = np.ones_like(self.tau)
            return self.at_one
        self.tau = self.done.next_tau()
        return self._nearest()

    def _nearest(self) -> State:
        """Of every run, the state it had at the visited tau nearest to the new one."""
        distance = np.abs(np.array([tau for tau, _ in self.visited]) - self.tau)
        best, row = np.argmin(distance, axis=0), np.arange(len(self.tau))
        return jax.tree.map(lambda *values: np.stack(values)[best, row], *(state for _, state in self.visited))

    def estimates(self) -> np.ndarray:
        return self.done.trapezoid() if self.method == STANDARD else self.done.corrected()


@in_float64
def integrations(
    path: Path, kernel: Kernel, n_iter: int, n_rungs: tuple[int, ...], n_runs: int, key: Array
) -> dict[tuple[str, int], Runs]:
    """Runs of TI-standard and TI-optimal with each number of rungs, `n_iter` kept steps in all; by method and K."""
    most = max(n_rungs)
    if n_iter % (4 * most) or any(most % k for k in n_rungs):
        raise CrossfadeError(f"n_iter = {n_iter} must be a multiple of {4 * most}, and {most} of all of {n_rungs}")
    fifth = n_iter // (4 * most)  # of a rung when there are most rungs; the first fifth is burn-in
    n_steps = next(size for size in CHUNKS if fifth % size == 0)
    per_fifth = fifth // n_steps
    groups = [_Group(method, k, 5 * per_fifth * most // k, n_runs) for method in (STANDARD, OPTIMAL) for k in n_rungs]
    parts = [slice(i * n_runs, (i + 1) * n_runs) for i in range(len(groups))]
    keys = chain_keys(key, n_runs * len(groups))
    state = end = begin(path, keys, np.array(0.0))
    for i, t in enumerate(power(max(APPROACH // n_steps, 25))):
        end, _, _ = _block(path, kernel, keys, end, np.full(len(keys), t), np.array(2**30 + i * n_steps), n_steps)
    for group, part in zip(groups, parts, strict=True):
        group.at_one = jax.tree.map(lambda x, part=part: np.asarray(x)[part], end)
    tau = np.zeros(len(keys))
    began = time.process_time()
    for block in range(5 * most * per_fifth):
        state, mean, spread = _block(path, kernel, keys, state, tau, np.array(1 + block * n_steps), n_steps)
        mean, spread = np.array(mean), np.array(spread)
        if not np.isfinite(mean).all():
            raise CrossfadeError("a log likelihood became infinite or NaN during thermodynamic integration")
        moved = [group.measured(mean[part], spread[part], n_steps) for group, part in zip(groups, parts, strict=True)]
        if any(moved):
            owns = [jax.tree.map(lambda x, part=part: np.asarray(x)[part], state) for part in parts]
            pieces = [group.go_on(own) if m else own for group, own, m in zip(groups, owns, moved, strict=True)]
            state = jax.tree.map(lambda *values: jnp.concatenate(values), *pieces)
            tau = np.concatenate([group.tau for group in groups])
    cpu = (time.process_time() - began) / len(keys)
    return {(group.method, group.n_rungs): Runs(group.estimates(), cpu) for group in groups}


@eqx.filter_jit
def _block(path: Path, kernel: Kernel, keys: Array, state: State, tau: Array, first: Array, n_steps: int) -> Any:
    """`n_steps` steps of every chain at its own tau: last states, mean of log_ratio and its squared deviations."""
    one = jax.tree.map(lambda x: x[0], state.theta)

    def ahead(step: Array) -> Any:
        return jax.vmap(lambda key, tau: kernel.noise(jax.random.fold_in(key, step), one, tau))(keys, tau)

    def body(state: State, noise: Any) -> tuple[State, Array]:
        state, _ = jax.vmap(lambda noise, old, tau: kernel(noise, old, path, tau))(noise, state, tau)
        return state, state.energy.ratio

    state, ratio = jax.lax.scan(body, state, jax.vmap(ahead)(first + jnp.arange(n_steps)))
    mean = jnp.mean(ratio, axis=0)
    return state, mean, jnp.sum((ratio - mean) ** 2, axis=0)
