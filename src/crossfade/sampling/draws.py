"""Posterior draws of one model, with the chains that made them: they can grow, be kept, and go on elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.coordinates import Coordinates, Density
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.files import appearing
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.evaluate import values
from crossfade.sampling.frame import frame_of
from crossfade.sampling.hmc import SEGMENT, Chains, Tuning, advance, begin
from crossfade.sampling.kept import asked_ahead
from crossfade.sampling.starts import first_steps, starts
from crossfade.sampling.warm_up import Past, warmed_up
from crossfade.types import Array, Bool, CrossfadeError, Float

KEPT = ("u", "log_density", "divergent", "slope", "slope_at")  # of what the chains visited


class Draws(NamedTuple):
    """Draws so far, in unconstrained coordinates, and the chains that made them (None: the user's own)."""

    joint: Joint
    density: Density  # the joint's, kept: compiled programs are found again by what it holds
    u: Float[np.ndarray, "chain draw size"]
    log_density: Float[np.ndarray, "chain draw"]
    divergent: Bool[np.ndarray, "chain draw"]
    slope: Float[np.ndarray, "chain point size"]  # gradients of the log density at some of the draws
    slope_at: Float[np.ndarray, "chain point size"]  # where, in the coordinates in which the chains move
    chains: Chains | None = None
    brought: np.ndarray | None = None  # the user's chains [chain, draw, size] before they were cut into pieces
    past: Past | None = None  # of the chains, before the first draw
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

    def theta(self) -> dict[str, np.ndarray]:
        """Arrays [chain, draw, ...] by parameter."""
        return self.coordinates.constrained(self.u)

    def last_places(self) -> list[dict[str, np.ndarray]]:
        """Where every chain is: parameters by name."""
        last = self.coordinates.constrained(self.u[:, -1:])
        return [{name: value[i, 0] for name, value in last.items()} for i in range(self.n_chains)]

    def emptied(self) -> Draws:
        """The same chains without any draw."""
        return self._replace(
            u=self.u[:, :0],
            log_density=self.log_density[:, :0],
            divergent=self.divergent[:, :0],
            slope=self.slope[:, :0],
            slope_at=self.slope_at[:, :0],
        )

    def with_shorter_steps(self) -> Draws:
        """The same chains in shorter steps."""
        assert self.chains is not None
        return self._replace(chains=self.chains.with_shorter_steps())

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
            slope=np.concatenate([self.slope, new.slope[:, SEGMENT - 1 :: SEGMENT]], axis=1),
            slope_at=np.concatenate([self.slope_at, new.w[:, SEGMENT - 1 :: SEGMENT]], axis=1),
            chains=chains,
        )

    def regrouped(self, n_chains: int) -> Draws:
        """The user's pieces in fewer, longer ones: several one after the other."""
        per_chain = self.n_chains // n_chains

        def group(values: np.ndarray) -> np.ndarray:
            return values[: n_chains * per_chain].reshape(n_chains, -1, *values.shape[2:])

        kept: dict[str, Any] = {name: group(getattr(self, name)) for name in KEPT}
        return self._replace(**kept)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that must be kept to go on later, or elsewhere: plain arrays (`restored` reads them)."""
        found = {name: getattr(self, name) for name in KEPT}
        if self.chains is not None:
            tuning = self.chains.tuning
            found |= {
                "keys": np.asarray(jax.random.key_data(self.chains.keys)),
                "last": self.chains.w,
                "shift": tuning.shift,
                "scale": tuning.scale,
                "step_size": tuning.step_size,
                "length": np.asarray(tuning.length),
                "n_steps": np.asarray(self.chains.n_steps),
            }
            if self.chains.away is not None:
                found["away"] = self.chains.away
        return found

    def save(self, path: str | Path) -> None:
        """Write what `arrays` gives to a file; it appears complete or not at all."""
        path = Path(path)
        with appearing(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.arrays())


def lengthened(wanted: Mapping[str, tuple[Draws, int]]) -> dict[str, Draws]:
    """So many draws more of several models, by name; whoever helps is asked for all of them at once."""
    with asked_ahead({name: own for name, own in wanted.items() if own[0].chains is not None and own[1] > 0}):
        return {name: own.more(n) for name, (own, n) in wanted.items()}


def _none(joint: Joint, density: Density, n_chains: int, n_draws: int = 0) -> Draws:
    zeros = np.zeros((n_chains, n_draws))
    nowhere = np.zeros((n_chains, n_draws, density.coordinates.size))
    # of a model without parameters the log density is one number, of the model of nothing 0
    log_density = values(density, nowhere) if n_draws and not nowhere.size else zeros
    return Draws(joint, density, nowhere, log_density, zeros.astype(bool), nowhere[:, :0], nowhere[:, :0])


@in_float64
def warmed(joint: Joint, key: Array, n_chains: int, which: str = "the model") -> Draws:
    """Chains that have found the posterior and tuned themselves, with no draws yet."""
    density = joint.density
    if density.coordinates.size == 0:
        return _none(joint, density, n_chains)
    first, scale = starts(joint, density, jax.random.fold_in(key, 0), n_chains, which)
    keys = chain_keys(jax.random.fold_in(key, 1), n_chains)
    chains = begin(density, first, scale, keys, frame_of(joint), joint.jumps)
    tuning = chains.tuning._replace(step_size=first_steps(density, first, scale))
    chains, past = warmed_up(chains._replace(tuning=tuning))
    return _none(joint, density, n_chains)._replace(chains=chains, past=past)


@in_float64
def restored(joint: Joint, kept: Mapping[str, np.ndarray] | str | Path) -> Draws:
    """Draws from what `Draws.arrays` gave or `Draws.save` wrote; the model must be the one that they are of."""
    if isinstance(kept, str | Path):
        with np.load(kept, allow_pickle=False) as file:
            kept = {name: file[name] for name in file.files}
    arrays, density = kept, joint.density
    visited: dict[str, Any] = {name: arrays[name] for name in KEPT}
    draws = Draws(joint, density, **visited)
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
    frame = frame_of(joint) if "away" in arrays else None
    chains = Chains(
        density, ones, keys, arrays["last"], tuning, int(arrays["n_steps"]), frame, arrays.get("away"), joint.jumps
    )
    return draws._replace(chains=chains)
