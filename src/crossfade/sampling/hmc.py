"""Draws of a density over unconstrained vectors: many HMC chains at once, tuned on all of them together.

BlackJAX's HMC moves the chains. Whitening, step sizes and trajectory lengths are arguments of one compiled segment,
so that warm-up, draws and every later refit of the target need a single compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.precision import in_float64
from crossfade.sampling.clock import look_at_clock
from crossfade.sampling.frame import Frame
from crossfade.sampling.kept import found_or_made
from crossfade.sampling.starts import FIRST_STEP, spread
from crossfade.types import Array, Bool, Float

SEGMENT = 25  # steps per call: warm-up and draws come in multiples of it
DENSE = 256  # coordinates up to which the metric is a full matrix
LONGEST = 256  # leapfrog steps of one trajectory, at most
TARGET_ACCEPTANCE = 0.85
N_JUMPS = 6  # Metropolis steps beside every trajectory, in coordinates where the density has steps
WRONG = 1000.0  # change of energy in one leapfrog step after which a trajectory goes no further
SHORTEST = 2.2  # trajectory length in whitened coordinates: jittered down to 0.4 of it, a quarter turn on average

# (u, tau) -> log density. A module, so that what it holds is an argument of the program; a posterior ignores tau.
Target = Callable[[Array, Array], Array]


class Tuning(NamedTuple):
    """u = shift + scale z (a vector: elementwise, a matrix: product); step size per chain; trajectory length in z.

    With a shift [chain, size] every chain has a shift and a scale of its own.
    """

    shift: np.ndarray
    scale: np.ndarray
    step_size: Float[np.ndarray, " chain"]
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
    tau: Float[np.ndarray, " chain"]
    keys: Array
    w: Float[np.ndarray, "chain size"]  # u, or the coordinates of `frame`
    tuning: Tuning
    n_steps: int = 0
    frame: Frame | None = None
    away: Float[np.ndarray, " size"] | None = None  # how far each coordinate is standardised, with a frame
    jumps: np.ndarray | None = None  # coordinates in which the density has steps: they are moved by Metropolis

    def with_shorter_steps(self) -> Chains:
        """The same chains in steps of 0.6 times the size, for densities in which trajectories diverge."""
        return self._replace(tuning=self.tuning._replace(step_size=0.6 * self.tuning.step_size))


class Stretch(NamedTuple):
    """What the chains visited in a stretch of steps: u and its log density, and w with the gradients by it."""

    u: Float[np.ndarray, "chain draw size"]
    log_density: Float[np.ndarray, "chain draw"]
    divergent: Bool[np.ndarray, "chain draw"]
    w: Float[np.ndarray, "chain draw size"]  # where the chains move; u itself without a frame
    slope: Float[np.ndarray, "chain draw size"]  # gradients of the log density of w
    n_leapfrog: int  # gradients spent per chain

    @staticmethod
    def joined(parts: list[Stretch]) -> Stretch:
        arrays = (np.concatenate([part[i] for part in parts], axis=1) for i in range(5))
        u, log_density, divergent, w, slope = arrays
        return Stretch(u, log_density, divergent, w, slope, sum(part.n_leapfrog for part in parts))


@in_float64
def begin(
    target: Target,
    starts: np.ndarray,
    scale: np.ndarray,
    keys: Array,
    frame: Frame | None = None,
    jumps: np.ndarray | None = None,
) -> Chains:
    """Chains at `starts` [chain, size], in units of `scale` (a guess of the spread of each coordinate)."""
    away = None if frame is None else frame.at_first()
    if frame is not None and away is not None and away.any():
        starts, _ = frame.seen(starts, away)
        scale = np.where(away > 0, spread(starts), scale)
    if len(scale) <= DENSE:
        scale = np.diag(scale)
    tuning = Tuning(np.zeros(starts.shape[1]), scale, np.full(len(starts), FIRST_STEP), SHORTEST)
    return Chains(target, np.ones(len(starts)), keys, starts, tuning, frame=frame, away=away, jumps=jumps)


@in_float64
def advance(
    chains: Chains, n_segments: int, gain: float = 0.0, longest: int = LONGEST, n_steps: int = SEGMENT
) -> tuple[Chains, Stretch]:
    """n_segments x n_steps more steps; `gain` > 0 lets every chain adapt its step size on the way."""
    tuning, parts = chains.tuning, []
    for _ in range(n_segments):
        look_at_clock()
        now = segment_of(chains._replace(tuning=tuning), gain, longest, n_steps)
        record = found_or_made(now, partial(_recorded, now))
        tuning = tuning._replace(step_size=record["step_size"])
        w = tuning.u(np.moveaxis(record["z"], 0, 1))
        u = np.moveaxis(record["u"], 0, 1) if chains.frame is not None else w
        slope = tuning.slope_in_u(np.moveaxis(record["slope"], 0, 1))
        n_leapfrog = int(record["n_leapfrog"].sum())
        parts.append(Stretch(u, record["log_density"].T, record["divergent"].T, w, slope, n_leapfrog))
        chains = chains._replace(w=w[:, -1], tuning=tuning, n_steps=chains.n_steps + n_steps)
    return chains, Stretch.joined(parts)


def _recorded(now: tuple[Any, ...]) -> dict[str, np.ndarray]:
    step_size, record = _segment(*now)
    return {"step_size": np.asarray(step_size), **{name: np.asarray(own) for name, own in record.items()}}


def segment_of(chains: Chains, gain: float = 0.0, longest: int = LONGEST, n_steps: int = SEGMENT) -> tuple[Any, ...]:
    """What `_segment` is called with for the next n_steps of these chains."""
    tuning = chains.tuning
    z = tuning.z(chains.w[:, None])[:, 0]  # every time, so that it is to the last bit as if cut here
    steps = np.arange(chains.n_steps, chains.n_steps + n_steps)
    mean_size = float(np.exp(np.mean(np.log(tuning.step_size))))
    return (
        chains.target,
        chains.tau,
        chains.keys,
        z,
        (tuning.shift, tuning.scale, tuning.step_size),
        (steps, _n_leapfrog(steps, min(tuning.length / mean_size, longest))),
        np.asarray(gain),
        None if chains.frame is None else (chains.frame, chains.away),
        chains.jumps,
    )


def _jumped(key: Array, z: Array, log_density: Callable[[Array], Array], jumps: Array) -> Array:
    """N_JUMPS Metropolis steps in one coordinate each, of sizes from a hundredth of its spread to three times that."""

    def jump(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        z, height = carry
        which, size, normal, uniform = jax.random.split(key, 4)
        width = 10 ** jax.random.uniform(size, minval=-2.0, maxval=0.5)
        there = z.at[jax.random.choice(which, jumps)].add(width * jax.random.normal(normal))
        new = log_density(there)
        accept = -jax.random.exponential(uniform) < jnp.where(jnp.isnan(new), -jnp.inf, new) - height
        return (jnp.where(accept, there, z), jnp.where(accept, new, height)), None

    (z, _), _ = jax.lax.scan(jump, (z, log_density(z)), jax.random.split(key, N_JUMPS))
    return z


def _n_leapfrog(steps: np.ndarray, most: float) -> np.ndarray:
    """Between 0.4 of `most` and all of it, the same for all chains; golden-ratio steps fill the range evenly."""
    fraction = 0.4 + 0.6 * np.modf((steps + 1) * 0.6180339887498949)[0]
    return np.maximum(np.round(fraction * most), 1).astype(int)


def _stopping(log_density: Callable[[Array], Array], kinetic_energy: Callable[[Array], Array]) -> Any:
    """Velocity Verlet up to the first step that goes wrong: it stays before that one, and the proposal is rejected.

    A trajectory that has left the bulk by accident would be thrown further at every step, to where the solver of a
    differential equation takes hours. On the way back the same step is wrong, so detailed balance holds.
    """
    from blackjax.mcmc.integrators import velocity_verlet

    one_step = velocity_verlet(log_density, kinetic_energy)

    def step(state: Any, size: Array) -> Any:
        new = one_step(state, jnp.where(jnp.isnan(state.logdensity), 0.0, size))
        before, after = (kinetic_energy(own.momentum) - own.logdensity for own in (state, new))
        fine = jnp.abs(after - before) < WRONG  # not of NaN
        return jax.tree.map(partial(jnp.where, fine), new, state._replace(logdensity=jnp.nan * state.logdensity))

    return step


@eqx.filter_jit
def _segment(
    target: Target,
    tau: Array,
    keys: Array,
    z: Array,
    tuning: tuple[Array, Array, Array],
    steps: tuple[Array, Array],
    gain: Array,
    frame: tuple[Frame, Array] | None,
    jumps: Array | None,
) -> Any:
    """The one place where Hamiltonian steps are made: of posteriors, of rungs and of tempering."""
    from blackjax.mcmc import hmc  # slow to import, and needed only here

    kernel = hmc.build_kernel(_stopping)
    # HMC leaves the coordinates of `jumps` where they are, as if they were very heavy.
    unit = jnp.ones(z.shape[1]) if jumps is None else jnp.ones(z.shape[1]).at[jumps].set(1e-20)
    shift, scale, step_size = tuning
    own = 0 if shift.ndim == 2 else None  # a shift and a scale for every chain, or one for all

    def place(z: Array, shift: Array, scale: Array) -> tuple[Array, Array | float]:
        w = shift + (scale * z if scale.ndim == 1 else scale @ z)
        return (w, 0.0) if frame is None else frame[0].u_and_jacobian(w, frame[1])

    def log_density(tau: Array, shift: Array, scale: Array) -> Callable[[Array], Array]:
        def at(z: Array) -> Array:
            u, log_jacobian = place(z, shift, scale)
            value = target(u, tau) + log_jacobian
            return jnp.where(value == jnp.inf, jnp.nan, value)  # neither is a density: such a proposal is rejected

        return at

    def step(carry: Any, now: Any) -> Any:
        index, length = now

        def move(key: Array, state: Any, size: Array, tau: Array, shift: Array, scale: Array) -> Any:
            key = jax.random.fold_in(key, index)
            at = log_density(tau, shift, scale)
            state, info = kernel(key, state, at, size, unit, length)
            if jumps is not None:
                state = hmc.init(_jumped(jax.random.fold_in(key, 1), state.position, at, jumps), at)
            u, log_jacobian = place(state.position, shift, scale)
            record = {
                "z": state.position,
                **({} if frame is None else {"u": u}),
                "log_density": state.logdensity - log_jacobian,
                "slope": state.logdensity_grad,
                "acceptance": info.acceptance_rate,
                "divergent": info.is_divergent,  # or it came to where the density is NaN
            }
            return state, record

        states, sizes = carry
        states, record = jax.vmap(move, (0, 0, 0, 0, own, own))(keys, states, sizes, tau, shift, scale)
        sizes = sizes * jnp.exp(gain * (record.pop("acceptance") - TARGET_ACCEPTANCE))
        return (states, sizes), {**record, "n_leapfrog": length}

    states = jax.vmap(lambda z, *where: hmc.init(z, log_density(*where)), (0, 0, own, own))(z, tau, shift, scale)
    (_, sizes), record = jax.lax.scan(step, (states, step_size), steps)
    return sizes, record
