"""Posterior draws of one model, with the chains that made them: they can grow, be kept, and go on elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.coordinates import Coordinates, Density
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.hmc import SEGMENT, Chains, Tuning, advance, begin, warm_up
from crossfade.types import Array, CrossfadeError, Theta

N_CANDIDATES = 1024  # draws of the prior that are looked at for places to start: their spread sets the first units
CHUNK = 1600  # points that are evaluated at once: one compiled shape


class Draws(NamedTuple):
    """Draws so far, in unconstrained coordinates, and the chains that made them (None: the user's own)."""

    joint: Joint
    density: Density  # the joint's, kept: compiled programs are found again by what it holds
    u: np.ndarray  # [chain, draw, size]
    log_density: np.ndarray  # [chain, draw]
    divergent: np.ndarray  # [chain, draw]
    slope: np.ndarray  # [chain, point, size]: gradients of the log density at some of the draws, evenly spaced
    chains: Chains | None = None
    brought: np.ndarray | None = None  # the user's chains [chain, draw, size] before they were cut into pieces
    elsewhere: str = ""  # a place as likely as the user's draws and far from all of them, if there is one

    @property
    def n_chains(self) -> int:
        return self.u.shape[0]

    @property
    def n_draws(self) -> int:
        return self.u.shape[1]

    @property
    def coordinates(self) -> Coordinates:
        return self.density.coordinates

    @property
    def can_grow(self) -> bool:
        return self.chains is not None or self.u.shape[2] == 0

    @property
    def as_made(self) -> np.ndarray:
        """[chain, draw, size] as the sampler made them."""
        return self.u if self.brought is None else self.brought

    def at_slopes(self) -> np.ndarray:
        """The draws [chain, point, size] at which `slope` was taken."""
        every = self.n_draws // max(self.slope.shape[1], 1)
        return self.u[:, every - 1 :: every][:, : self.slope.shape[1]] if every else self.u

    def theta(self) -> dict[str, np.ndarray]:
        """Arrays [chain, draw, ...] by parameter."""
        return self.coordinates.constrained(self.u)

    def emptied(self) -> Draws:
        """The same chains without any draw."""
        return self._replace(
            u=self.u[:, :0],
            log_density=self.log_density[:, :0],
            divergent=self.divergent[:, :0],
            slope=self.slope[:, :0],
        )

    def with_shorter_steps(self) -> Draws:
        """The same chains in steps of 0.6 times the size, for densities in which trajectories diverge."""
        assert self.chains is not None
        tuning = self.chains.tuning._replace(step_size=0.6 * self.chains.tuning.step_size)
        return self._replace(chains=self.chains._replace(tuning=tuning))

    def more(self, n_draws: int) -> Draws:
        """The same chains, at least n_draws further (in whole segments)."""
        n_segments = -(-n_draws // SEGMENT)
        if n_segments <= 0:
            return self
        if self.u.shape[2] == 0:  # the model of nothing
            n = self.n_draws + n_segments * SEGMENT
            return _none(self.joint, self.density, self.n_chains, n)
        if self.chains is None:
            raise CrossfadeError("the draws that were brought along cannot be continued: bring more, or leave them out")
        chains, new = advance(self.chains, n_segments)
        return self._replace(
            u=np.concatenate([self.u, new.u], axis=1),
            log_density=np.concatenate([self.log_density, new.log_density], axis=1),
            divergent=np.concatenate([self.divergent, new.divergent], axis=1),
            slope=np.concatenate([self.slope, new.slope], axis=1),
            chains=chains,
        )

    def regrouped(self, n_chains: int) -> Draws:
        """The user's pieces in fewer, longer ones: several one after the other."""
        per_chain = self.n_chains // n_chains

        def group(values: np.ndarray) -> np.ndarray:
            return values[: n_chains * per_chain].reshape(n_chains, -1, *values.shape[2:])

        arrays = (group(values) for values in (self.u, self.log_density, self.divergent, self.slope))
        u, log_density, divergent, slope = arrays
        return self._replace(u=u, log_density=log_density, divergent=divergent, slope=slope)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that must be kept to go on later, or elsewhere: plain arrays (`restored` reads them)."""
        found = {"u": self.u, "log_density": self.log_density, "divergent": self.divergent, "slope": self.slope}
        if self.chains is not None:
            tuning = self.chains.tuning
            found |= {
                "keys": np.asarray(jax.random.key_data(self.chains.keys)),
                "last": self.chains.u,
                "shift": tuning.shift,
                "scale": tuning.scale,
                "step_size": tuning.step_size,
                "length": np.asarray(tuning.length),
                "n_steps": np.asarray(self.chains.n_steps),
            }
        return found

    def save(self, path: str | Path) -> None:
        """Write what `arrays` gives to a file; it appears complete or not at all."""
        path = Path(path)
        unfinished = path.with_name(f".{path.name}.unfinished")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.arrays())
        unfinished.replace(path)


def _none(joint: Joint, density: Density, n_chains: int, n_draws: int = 0) -> Draws:
    zeros = np.zeros((n_chains, n_draws))
    nowhere = np.zeros((n_chains, n_draws, density.coordinates.size))
    return Draws(joint, density, nowhere, zeros, zeros.astype(bool), nowhere[:, :0])


@in_float64
def warmed(joint: Joint, key: Array, n_chains: int, which: str = "the model") -> Draws:
    """Chains that have found the posterior and tuned themselves, with no draws yet."""
    density = joint.density
    if density.coordinates.size == 0:
        return _none(joint, density, n_chains)
    first, scale = starts(joint, density, jax.random.fold_in(key, 0), n_chains, which)
    chains = begin(density, first, scale, chain_keys(jax.random.fold_in(key, 1), n_chains))
    return _none(joint, density, n_chains)._replace(chains=warm_up(chains))


@in_float64
def restored(joint: Joint, kept: Mapping[str, np.ndarray] | str | Path) -> Draws:
    """Draws from what `Draws.arrays` gave or `Draws.save` wrote; the model must be the one that they are of."""
    if isinstance(kept, str | Path):
        with np.load(kept, allow_pickle=False) as file:
            kept = {name: file[name] for name in file.files}
    arrays, density = kept, joint.density
    u, log_density, divergent, slope = (arrays[name] for name in ("u", "log_density", "divergent", "slope"))
    draws = Draws(joint, density, u, log_density, divergent, slope)
    if draws.u.shape[2] != density.coordinates.size:
        raise CrossfadeError(
            f"the draws have {draws.u.shape[2]} coordinates and the model has {density.coordinates.size}: bring the "
            "model that they are of"
        )
    last = draws.u[:, -1:]
    if last.size and not np.allclose(values(density, last), draws.log_density[:, -1:], rtol=1e-9, atol=1e-9):
        raise CrossfadeError("the log joint of the model at the last draws is not what it was: bring the same model")
    if "keys" not in arrays:
        return draws
    tuning = Tuning(arrays["shift"], arrays["scale"], arrays["step_size"], float(arrays["length"]))
    keys = jax.random.wrap_key_data(jnp.asarray(arrays["keys"]))
    ones = np.ones(draws.n_chains)
    return draws._replace(chains=Chains(density, ones, keys, arrays["last"], tuning, int(arrays["n_steps"])))


def starts(joint: Joint, density: Density, key: Array, n_chains: int, which: str) -> tuple[np.ndarray, np.ndarray]:
    """Dispersed starts, so that chains that end in different places are noticed; and the spread of each coordinate."""
    u, log_density, slope = candidates(joint, density, key)
    if np.isnan(log_density).any() or np.isposinf(log_density).any():
        worst = int(np.argmax(np.isnan(log_density) | np.isposinf(log_density)))
        where = density.coordinates.describe(u[worst])
        raise CrossfadeError(
            f"the log joint of {which} is {log_density[worst]} at a draw of its prior, {where}: it must be a number or "
            "-inf. Guard the operation that fails (log of 0, division by 0, overflow), or narrow the prior."
        )
    usable = np.isfinite(log_density) & np.isfinite(slope).all(axis=1) & np.isfinite(u).all(axis=1)
    if usable.sum() < max(2, n_chains // 8):
        raise CrossfadeError(
            f"only {usable.sum()} of {N_CANDIDATES} draws of the prior of {which} have a finite log joint and "
            "gradient: check the likelihood at draws of the prior, or narrow the prior to where it is not zero"
        )
    # Half of the chains anywhere, half at the highest densities seen: a narrow peak far away then gets a chain.
    anywhere = np.resize(u[usable], (n_chains - n_chains // 2, u.shape[1]))
    high = u[usable][np.argsort(-log_density[usable])]
    both = np.empty((n_chains, u.shape[1]))
    both[::2], both[1::2] = anywhere, np.resize(high, (n_chains // 2, u.shape[1]))
    return both, spread(u[usable])


def spread(u: np.ndarray) -> np.ndarray:
    """Half the distance between the quantiles of one standard deviation [size], of draws [n, size] with long tails."""
    return np.clip((np.quantile(u, 0.84, axis=0) - np.quantile(u, 0.16, axis=0)) / 2, 1e-6, 1e6)


@in_float64
def candidates(joint: Joint, density: Density, key: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws of the start, with the log density and its gradient there."""
    u = drawn(joint, key, N_CANDIDATES)
    return u, *values_and_slopes(density, u)


def drawn(joint: Joint, key: Array, n: int) -> np.ndarray:
    """n draws of the start [n, size]."""
    return np.asarray(_drawn(joint.coordinates, joint.start, chain_keys(key, n)))


@eqx.filter_jit
def _drawn(coordinates: Coordinates, start: Any, keys: Array) -> Array:
    return jax.lax.map(lambda key: coordinates.inverse(_float(start(key))), keys, batch_size=16)


def _float(theta: Theta) -> Theta:
    return {name: jnp.asarray(value, float) for name, value in theta.items()}


@in_float64
def values_and_slopes(density: Density, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log densities and gradients at N_CANDIDATES points [point, size]; fewer are padded."""
    padded = np.resize(u, (N_CANDIDATES, u.shape[1]))
    value, slope = (np.asarray(x)[: len(u)] for x in _values_and_slopes(density, padded))
    return value, slope


@eqx.filter_jit
def _values_and_slopes(density: Density, u: Array) -> Any:
    return jax.lax.map(jax.value_and_grad(density), u, batch_size=16)


@in_float64
def values(density: Density, u: np.ndarray) -> np.ndarray:
    """Log densities at points [.., size], in chunks of one shape: one compiled program for each model."""
    if u.shape[-1] == 0:  # the model of nothing has one value
        return np.full(u.shape[:-1], float(density(jnp.zeros(0))))
    flat = u.reshape(-1, u.shape[-1])
    n = -(-max(len(flat), 1) // CHUNK) * CHUNK
    padded = np.concatenate([flat, np.tile(flat[-1:], (n - len(flat), 1))])
    found = [np.asarray(_values(density, part)) for part in padded.reshape(-1, CHUNK, flat.shape[1])]
    return np.concatenate(found)[: len(flat)].reshape(u.shape[:-1])


@eqx.filter_jit
def _values(density: Density, u: Array) -> Array:
    return jax.lax.map(density, u, batch_size=32)
