"""Draws of a density over unconstrained vectors: many HMC chains at once, tuned on all of them together.

BlackJAX's HMC moves the chains. Whitening, step sizes and trajectory lengths are arguments of one compiled segment,
so that warm-up, draws and every later refit of the target need a single compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.joint import Flat
from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError

SEGMENT = 25  # steps per call: warm-up and draws come in multiples of it
DENSE = 100  # up to so many coordinates the whitening is a full matrix
LONGEST = 256  # leapfrog steps of one trajectory, at most
TARGET_ACCEPTANCE = 0.85
LOST = 100.0  # log density per coordinate by which a chain that cannot move must be lower than those that can
N_RESCUES = 12
N_ROUNDS = 4  # of whitening: one is enough where all chains have met by then and take long steps
SHORTEST = 2.2  # trajectory length in whitened coordinates: jittered down to 0.4 of it, a quarter turn on average

Target = Callable[[Array], Array]  # u -> log density; a module, so that what it holds is an argument of the program


class Tuning(NamedTuple):
    """u = shift + scale z (a vector: elementwise, a matrix: product); step size per chain; trajectory length in z."""

    shift: np.ndarray
    scale: np.ndarray
    step_size: np.ndarray  # [chain]
    length: float

    def u(self, z: np.ndarray) -> np.ndarray:
        return self.shift + (z * self.scale if self.scale.ndim == 1 else z @ self.scale.T)

    def z(self, u: np.ndarray) -> np.ndarray:
        if self.scale.ndim == 1:
            return (u - self.shift) / self.scale
        return np.linalg.solve(self.scale, (u - self.shift).reshape(-1, u.shape[-1]).T).T.reshape(u.shape)


class Sampler(NamedTuple):
    """Chains in mid-run: where they are, how they move, and how many steps each has made."""

    target: Target
    keys: Array
    u: np.ndarray  # [chain, size]
    tuning: Tuning
    n_steps: int = 0


class Draws(NamedTuple):
    """What the chains visited, in unconstrained space."""

    u: np.ndarray  # [chain, draw, size]
    log_density: np.ndarray  # [chain, draw]
    acceptance: np.ndarray  # [chain, draw]
    divergent: np.ndarray  # [chain, draw]
    n_leapfrog: int  # gradients spent per chain

    def none(self) -> Draws:
        """The same chains without any draw."""
        return self._each(lambda values: values[:, :0])

    def regrouped(self, n: int, per_group: int) -> Draws:
        """n chains, each made of per_group chains one after the other."""

        def group(values: np.ndarray) -> np.ndarray:
            kept = values[: n * per_group]
            return kept.reshape(n, per_group * values.shape[1], *values.shape[2:])

        return self._each(group)

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> Draws:
        arrays = (self.u, self.log_density, self.acceptance, self.divergent)
        u, log_density, acceptance, divergent = map(change, arrays)
        return Draws(u, log_density, acceptance, divergent, self.n_leapfrog)

    @staticmethod
    def joined(parts: list[Draws]) -> Draws:
        u, log_density, acceptance, divergent = (np.concatenate([p[i] for p in parts], axis=1) for i in range(4))
        return Draws(u, log_density, acceptance, divergent, sum(part.n_leapfrog for part in parts))


@in_float64
def begin(target: Target, starts: np.ndarray, scale: np.ndarray, keys: Array) -> Sampler:
    """Chains at `starts` [chain, size], in units of `scale` (a guess of the spread of each coordinate)."""
    if len(scale) <= DENSE:
        scale = np.diag(scale)
    tuning = Tuning(np.zeros(starts.shape[1]), scale, np.full(len(starts), 0.1), SHORTEST)
    return Sampler(target, keys, starts, tuning)


@in_float64
def warm_up(sampler: Sampler, n_windows: int = 4) -> Sampler:
    """Find the bulk, then whiten by all chains together over growing windows, then settle the trajectory length."""
    sampler, seen = advance(sampler, 2, gain=0.5, longest=8)
    for _ in range(N_RESCUES):
        if (freed := rescued(sampler, seen)) is None:
            break
        sampler, seen = advance(freed, 1, gain=0.5, longest=8)
    for _ in range(N_ROUNDS):
        for window in range(n_windows):
            sampler, seen = advance(sampler, 2 + 2 * (window >= 2), gain=0.3, longest=8 * 2**window)
            recent = seen.u[:, seen.u.shape[1] // 2 :]
            sampler = whiten(sampler, recent.reshape(-1, recent.shape[2]))
        sampler, seen = advance(sampler, 2, gain=0.2)
        if _level(seen.log_density) and SHORTEST / np.median(sampler.tuning.step_size) < LONGEST / 4:
            break
    return _settle(sampler)


def _level(height: np.ndarray) -> bool:
    """Whether no chain [chain, draw] is still on its way up: all visit the same heights, give or take their spread."""
    return bool(height.mean(axis=1).std() < 3 * np.median(height.std(axis=1)))


def rescued(sampler: Sampler, seen: Draws) -> Sampler | None:
    """Chains far below all that is likely, that will not be back soon, set half-way to a high one; None if none are.

    A vague prior of a variance starts chains at e^400, in a cleft where a trajectory moves by inches. A chain that is
    stuck at a density that could matter stays where it is: that is for the verdict to notice.
    """
    before, height = seen.log_density[:, -SEGMENT], seen.log_density[:, -1]
    floor = np.median(np.sort(height)[len(height) // 2 :]) - LOST * (seen.u.shape[2] + 10)
    lost = np.flatnonzero(floor - height > 10 * np.maximum(height - before, 0.0) + 1e-9)
    if not len(lost):
        return None
    guide = np.resize(np.flatnonzero(height >= floor), len(lost))
    u, step_size = np.array(sampler.u), np.array(sampler.tuning.step_size)
    u[lost] = (u[lost] + u[guide]) / 2
    step_size[lost] = step_size[guide]
    return sampler._replace(u=u, tuning=sampler.tuning._replace(step_size=step_size))


def whiten(sampler: Sampler, u: np.ndarray) -> Sampler:
    """Coordinates in which the draws u [n, size] have unit covariance (or unit variances, in high dimension)."""
    old = sampler.tuning
    shift = u.mean(axis=0)
    scale = root_covariance(u)
    spread = scale if scale.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", scale, scale))
    before = old.scale if old.scale.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", old.scale, old.scale))
    # the step size keeps its meaning in u where the units change: coordinates that shrink make it grow in z
    change = np.exp(np.median(np.log(before / spread)))
    step_size = np.clip(old.step_size * min(change, 1.0 / np.median(old.step_size)), 1e-6, 1.0)
    return sampler._replace(tuning=Tuning(shift, scale, step_size, old.length))


def root_covariance(u: np.ndarray) -> np.ndarray:
    """A root of the covariance of draws [n, size]: Cholesky in low dimension, standard deviations in high."""
    n, size = u.shape
    sd = np.maximum(u.std(axis=0), 1e-10)
    if size > DENSE or size == 0:
        return sd
    correlation = np.atleast_2d(np.corrcoef(u / sd, rowvar=False)) if size > 1 else np.ones((1, 1))
    correlation = np.nan_to_num(correlation, nan=0.0)
    # shrinking widens directions in which coordinates are tightly tied, so it is for few draws only
    weight = n / (n + size) if n < 20 * size else 1.0
    shrunk = weight * correlation + (1 - weight) * np.eye(size)
    np.fill_diagonal(shrunk, 1.0)
    return sd[:, None] * np.linalg.cholesky(shrunk + 1e-9 * np.eye(size))


def _settle(sampler: Sampler) -> Sampler:
    """One step size for all chains, and the trajectory length with the most change of |z|^2 per gradient.

    Change of |z|^2 is the criterion of ChEES (Hoffman, Radul & Sountsov 2021), here compared on a doubling grid.
    """
    step_size = np.exp(np.median(np.log(sampler.tuning.step_size)))
    tuning = sampler.tuning._replace(step_size=np.full_like(sampler.tuning.step_size, step_size), length=SHORTEST)
    best, gain = tuning.length, -1.0
    while tuning.length / step_size <= LONGEST:
        sampler, seen = advance(sampler._replace(tuning=tuning), 1, gain=0.0)
        squares = (tuning.z(seen.u) ** 2).sum(axis=2)
        now = float(np.mean(np.diff(squares, axis=1) ** 2)) / seen.n_leapfrog
        if now <= 1.1 * gain:
            break
        best, gain = tuning.length, now
        tuning = tuning._replace(length=2 * tuning.length)
    return sampler._replace(tuning=tuning._replace(length=best))


@in_float64
def advance(sampler: Sampler, n_segments: int, gain: float = 0.0, longest: int = LONGEST) -> tuple[Sampler, Draws]:
    """n_segments x SEGMENT more steps; `gain` > 0 lets every chain adapt its step size on the way."""
    tuning, parts = sampler.tuning, []
    z = tuning.z(sampler.u)
    for _ in range(n_segments):
        steps = np.arange(sampler.n_steps, sampler.n_steps + SEGMENT)
        mean_size = float(np.exp(np.mean(np.log(tuning.step_size))))
        z, step_size, record = _segment(
            sampler.target,
            sampler.keys,
            z,
            (tuning.shift, tuning.scale, tuning.step_size),
            (steps, _n_leapfrog(steps, min(tuning.length / mean_size, longest))),
            np.asarray(gain),
        )
        record = jax.tree.map(np.asarray, record)
        tuning = tuning._replace(step_size=np.asarray(step_size))
        u = tuning.u(np.moveaxis(record["z"], 0, 1))
        if gain == 0.0:
            _stop_if_broken(sampler.target, record, tuning)
        log_density, acceptance, divergent = (record[name].T for name in ("log_density", "acceptance", "divergent"))
        parts.append(Draws(u, log_density, acceptance, divergent, int(record["n_leapfrog"].sum())))
        sampler = sampler._replace(u=u[:, -1], tuning=tuning, n_steps=sampler.n_steps + SEGMENT)
        z = np.asarray(z)
    return sampler, Draws.joined(parts)


def _n_leapfrog(steps: np.ndarray, most: float) -> np.ndarray:
    """Between 0.4 of `most` and all of it, the same for all chains; golden-ratio steps fill the range evenly."""
    fraction = 0.4 + 0.6 * np.modf((steps + 1) * 0.6180339887498949)[0]
    return np.maximum(np.round(fraction * most), 1).astype(int)


@eqx.filter_jit
def _segment(
    target: Target,
    keys: Array,
    z: Array,
    tuning: tuple[Array, Array, Array],
    steps: tuple[Array, Array],
    gain: Array,
) -> Any:
    from blackjax.mcmc import hmc  # slow to import, and needed only here

    kernel = hmc.build_kernel()
    unit = jnp.ones(z.shape[1])
    shift, scale, step_size = tuning

    def log_density(z: Array) -> Array:
        return target(shift + (scale * z if scale.ndim == 1 else scale @ z))

    def step(carry: Any, now: Any) -> Any:
        index, length = now

        def move(key: Array, state: Any, size: Array) -> Any:
            key = jax.random.fold_in(key, index)
            state, info = kernel(key, state, log_density, size, unit, length)
            reached = info.proposal.logdensity
            somewhere = jnp.all(jnp.isfinite(info.proposal.position))
            record = {
                "z": state.position,
                "log_density": state.logdensity,
                "acceptance": info.acceptance_rate,
                "divergent": info.is_divergent,
                "broken": (jnp.isnan(reached) | (reached == jnp.inf)) & somewhere,
            }
            return state, record

        states, sizes = carry
        states, record = jax.vmap(move)(keys, states, sizes)
        sizes = sizes * jnp.exp(gain * (record["acceptance"] - TARGET_ACCEPTANCE))
        return (states, sizes), {**record, "n_leapfrog": length}

    states = jax.vmap(lambda z: hmc.init(z, log_density))(z)
    (states, sizes), record = jax.lax.scan(step, (states, step_size), steps)
    return states.position, sizes, record


def _stop_if_broken(target: Target, record: dict[str, np.ndarray], tuning: Tuning) -> None:
    if record["broken"].any():
        step, chain = np.argwhere(record["broken"])[0]
        raise CrossfadeError(
            f"the log density became NaN or +inf near {describe(target, tuning.u(record['z'][step, chain]))}: it must "
            "be a number or -inf everywhere. Guard the operation that fails (log of 0, division by 0, overflow), or "
            "narrow the prior."
        )


def describe(target: Target, u: np.ndarray) -> str:
    """A point by parameter names where the target knows them, else by unconstrained coordinates."""
    if not isinstance(target, Flat):
        return f"u = {np.array2string(u, precision=4, threshold=8)} (unconstrained)"
    values = {name: np.asarray(value) for name, value in target.theta(u).items()}
    shown = [f"{name} = {np.array2string(value, precision=4, threshold=6)}" for name, value in values.items()]
    return ", ".join(shown[:6])
