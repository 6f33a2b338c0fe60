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

from crossfade.density.coordinates import Density
from crossfade.density.precision import in_float64
from crossfade.paths.fit import DENSE, root_covariance
from crossfade.types import Array, CrossfadeError

SEGMENT = 25  # steps per call: warm-up and draws come in multiples of it
LONGEST = 256  # leapfrog steps of one trajectory, at most
TARGET_ACCEPTANCE = 0.85
LOST = 100.0  # log density per coordinate by which a chain that cannot move must be lower than those that can
N_RESCUES = 12
N_ROUNDS = 4  # of whitening: one is enough where all chains have met by then and take long steps
SHORTEST = 2.2  # trajectory length in whitened coordinates: jittered down to 0.4 of it, a quarter turn on average

# (u, tau) -> log density. A module, so that what it holds is an argument of the program; a posterior ignores tau.
Target = Callable[[Array, Array], Array]


class Tuning(NamedTuple):
    """u = shift + scale z (a vector: elementwise, a matrix: product); step size per chain; trajectory length in z.

    With a shift [chain, size] every chain has a shift and a scale of its own.
    """

    shift: np.ndarray
    scale: np.ndarray
    step_size: np.ndarray  # [chain]
    length: float

    @property
    def per_chain(self) -> bool:
        return self.shift.ndim == 2

    def u(self, z: np.ndarray) -> np.ndarray:
        """Of [chain, draw, size]."""
        return _each_chain(self, z, lambda shift, scale, z: shift + (z * scale if scale.ndim == 1 else z @ scale.T))

    def z(self, u: np.ndarray) -> np.ndarray:
        """Of [chain, draw, size]."""

        def back(shift: np.ndarray, scale: np.ndarray, u: np.ndarray) -> np.ndarray:
            if scale.ndim == 1:
                return (u - shift) / scale
            return np.linalg.solve(scale, (u - shift).reshape(-1, u.shape[-1]).T).T.reshape(u.shape)

        return _each_chain(self, u, back)

    def slope_in_u(self, slope: np.ndarray) -> np.ndarray:
        """Derivatives by u from derivatives by z [chain, draw, size]."""

        def back(_: np.ndarray, scale: np.ndarray, slope: np.ndarray) -> np.ndarray:
            if scale.ndim == 1:
                return slope / scale
            return np.linalg.solve(scale.T, slope.reshape(-1, slope.shape[-1]).T).T.reshape(slope.shape)

        return _each_chain(self, slope, back)


def _each_chain(tuning: Tuning, values: np.ndarray, change: Callable[..., np.ndarray]) -> np.ndarray:
    if not tuning.per_chain:
        return change(tuning.shift, tuning.scale, values)
    return np.array([change(*own) for own in zip(tuning.shift, tuning.scale, values, strict=True)])


class Chains(NamedTuple):
    """Chains in mid-run: what they sample, where they are, how they move, and how many steps each has made."""

    target: Target
    tau: np.ndarray  # [chain]
    keys: Array
    u: np.ndarray  # [chain, size]
    tuning: Tuning
    n_steps: int = 0


class Stretch(NamedTuple):
    """What the chains visited in a stretch of steps, in unconstrained space."""

    u: np.ndarray  # [chain, draw, size]
    log_density: np.ndarray  # [chain, draw]
    divergent: np.ndarray  # [chain, draw]
    slope: np.ndarray  # [chain, segment, size]: the gradient of the log density at the last draw of every segment
    n_leapfrog: int  # gradients spent per chain

    @staticmethod
    def joined(parts: list[Stretch]) -> Stretch:
        arrays = (np.concatenate([part[i] for part in parts], axis=1) for i in range(4))
        u, log_density, divergent, slope = arrays
        return Stretch(u, log_density, divergent, slope, sum(part.n_leapfrog for part in parts))


@in_float64
def begin(target: Target, starts: np.ndarray, scale: np.ndarray, keys: Array) -> Chains:
    """Chains at `starts` [chain, size], in units of `scale` (a guess of the spread of each coordinate)."""
    if len(scale) <= DENSE:
        scale = np.diag(scale)
    tuning = Tuning(np.zeros(starts.shape[1]), scale, np.full(len(starts), 0.1), SHORTEST)
    return Chains(target, np.ones(len(starts)), keys, starts, tuning)


@in_float64
def warm_up(chains: Chains, n_windows: int = 4) -> Chains:
    """Find the bulk, then whiten by all chains together over growing windows, then settle the trajectory length."""
    chains, seen = advance(chains, 2, gain=0.5, longest=8)
    for _ in range(N_RESCUES):
        if (freed := rescued(chains, seen)) is None:
            break
        chains, seen = advance(freed, 1, gain=0.5, longest=8)
    for _ in range(N_ROUNDS):
        for window in range(n_windows):
            chains, seen = advance(chains, 2 + 2 * (window >= 2), gain=0.3, longest=8 * 2**window)
            recent = seen.u[:, seen.u.shape[1] // 2 :]
            chains = whiten(chains, recent.reshape(-1, recent.shape[2]))
        chains, seen = advance(chains, 2, gain=0.2)
        if _level(seen.log_density) and SHORTEST / np.median(chains.tuning.step_size) < LONGEST / 4:
            break
    return _settle(chains)


def _level(height: np.ndarray) -> bool:
    """Whether no chain [chain, draw] is still on its way up: all visit the same heights, give or take their spread."""
    return bool(height.mean(axis=1).std() < 3 * np.median(height.std(axis=1)))


def rescued(chains: Chains, seen: Stretch) -> Chains | None:
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
    u, step_size = np.array(chains.u), np.array(chains.tuning.step_size)
    u[lost] = (u[lost] + u[guide]) / 2
    step_size[lost] = step_size[guide]
    return chains._replace(u=u, tuning=chains.tuning._replace(step_size=step_size))


def whiten(chains: Chains, u: np.ndarray) -> Chains:
    """Coordinates in which the draws u [n, size] have unit covariance (or unit variances, in high dimension)."""
    old = chains.tuning
    shift = u.mean(axis=0)
    scale = root_covariance(u)
    spread = scale if scale.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", scale, scale))
    before = old.scale if old.scale.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", old.scale, old.scale))
    # the step size keeps its meaning in u where the units change: coordinates that shrink make it grow in z
    change = np.exp(np.median(np.log(before / spread)))
    step_size = np.clip(old.step_size * min(change, 1.0 / np.median(old.step_size)), 1e-6, 1.0)
    return chains._replace(tuning=Tuning(shift, scale, step_size, old.length))


def _settle(chains: Chains) -> Chains:
    """One step size for all chains, and the trajectory length with the most change of |z|^2 per gradient.

    Change of |z|^2 is the criterion of ChEES (Hoffman, Radul & Sountsov 2021), here compared on a doubling grid.
    """
    step_size = np.exp(np.median(np.log(chains.tuning.step_size)))
    tuning = chains.tuning._replace(step_size=np.full_like(chains.tuning.step_size, step_size), length=SHORTEST)
    best, gain = tuning.length, -1.0
    while tuning.length / step_size <= LONGEST:
        chains, seen = advance(chains._replace(tuning=tuning), 1, gain=0.0)
        squares = (tuning.z(seen.u) ** 2).sum(axis=2)
        now = float(np.mean(np.diff(squares, axis=1) ** 2)) / seen.n_leapfrog
        if now <= 1.1 * gain:
            break
        best, gain = tuning.length, now
        tuning = tuning._replace(length=2 * tuning.length)
    return chains._replace(tuning=tuning._replace(length=best))


@in_float64
def advance(
    chains: Chains, n_segments: int, gain: float = 0.0, longest: int = LONGEST, n_steps: int = SEGMENT
) -> tuple[Chains, Stretch]:
    """n_segments x n_steps more steps; `gain` > 0 lets every chain adapt its step size on the way."""
    tuning, parts = chains.tuning, []
    for _ in range(n_segments):
        z = tuning.z(chains.u[:, None])[:, 0]  # every time, so that it is to the last bit as if cut here
        steps = np.arange(chains.n_steps, chains.n_steps + n_steps)
        mean_size = float(np.exp(np.mean(np.log(tuning.step_size))))
        step_size, slope, record = _segment(
            chains.target,
            chains.tau,
            chains.keys,
            z,
            (tuning.shift, tuning.scale, tuning.step_size),
            (steps, _n_leapfrog(steps, min(tuning.length / mean_size, longest))),
            np.asarray(gain),
        )
        record = jax.tree.map(np.asarray, record)
        tuning = tuning._replace(step_size=np.asarray(step_size))
        u = tuning.u(np.moveaxis(record["z"], 0, 1))
        if gain == 0.0:
            _stop_if_broken(chains.target, record, u)
        slope = tuning.slope_in_u(np.asarray(slope)[:, None])
        n_leapfrog = int(record["n_leapfrog"].sum())
        parts.append(Stretch(u, record["log_density"].T, record["divergent"].T, slope, n_leapfrog))
        chains = chains._replace(u=u[:, -1], tuning=tuning, n_steps=chains.n_steps + n_steps)
    return chains, Stretch.joined(parts)


def _n_leapfrog(steps: np.ndarray, most: float) -> np.ndarray:
    """Between 0.4 of `most` and all of it, the same for all chains; golden-ratio steps fill the range evenly."""
    fraction = 0.4 + 0.6 * np.modf((steps + 1) * 0.6180339887498949)[0]
    return np.maximum(np.round(fraction * most), 1).astype(int)


@eqx.filter_jit
def _segment(
    target: Target,
    tau: Array,
    keys: Array,
    z: Array,
    tuning: tuple[Array, Array, Array],
    steps: tuple[Array, Array],
    gain: Array,
) -> Any:
    """The one place where Hamiltonian steps are made: of posteriors, of rungs and of tempering."""
    from blackjax.mcmc import hmc  # slow to import, and needed only here

    kernel = hmc.build_kernel()
    unit = jnp.ones(z.shape[1])
    shift, scale, step_size = tuning
    own = 0 if shift.ndim == 2 else None  # a shift and a scale for every chain, or one for all

    def log_density(tau: Array, shift: Array, scale: Array) -> Callable[[Array], Array]:
        return lambda z: target(shift + (scale * z if scale.ndim == 1 else scale @ z), tau)

    def step(carry: Any, now: Any) -> Any:
        index, length = now

        def move(key: Array, state: Any, size: Array, tau: Array, shift: Array, scale: Array) -> Any:
            key = jax.random.fold_in(key, index)
            state, info = kernel(key, state, log_density(tau, shift, scale), size, unit, length)
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
        states, record = jax.vmap(move, (0, 0, 0, 0, own, own))(keys, states, sizes, tau, shift, scale)
        sizes = sizes * jnp.exp(gain * (record.pop("acceptance") - TARGET_ACCEPTANCE))
        return (states, sizes), {**record, "n_leapfrog": length}

    states = jax.vmap(lambda z, *where: hmc.init(z, log_density(*where)), (0, 0, own, own))(z, tau, shift, scale)
    (states, sizes), record = jax.lax.scan(step, (states, step_size), steps)
    return sizes, states.logdensity_grad, record


def _stop_if_broken(target: Target, record: dict[str, np.ndarray], u: np.ndarray) -> None:
    if record["broken"].any():
        step, chain = np.argwhere(record["broken"])[0]
        raise CrossfadeError(
            f"the log density became NaN or +inf near {describe(target, u[chain, step])}: it must be a number or -inf "
            "everywhere. Guard the operation that fails (log of 0, division by 0, overflow), or narrow the prior."
        )


def describe(target: Target, u: np.ndarray) -> str:
    """A point by parameter names where the target knows them, else by unconstrained coordinates."""
    if isinstance(target, Density):
        return target.coordinates.describe(u)
    return f"u = {np.array2string(u, precision=4, threshold=8)} (unconstrained)"
