"""The user's own posterior draws: checked, taken to unconstrained space, and cut into pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from crossfade.density.joint import Flat, Joint, flat, unconstrained_draws
from crossfade.density.precision import in_float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.draws import Source, candidates
from crossfade.sampling.hmc import Draws, describe
from crossfade.types import Array, CrossfadeError

FAR = 6.0  # standard deviations of the draws, in some coordinate, from every one of them


@in_float64
def own_source(joint: Joint, draws: Any, n_pieces: int, which: str) -> Source:
    """The user's posterior draws: an ArviZ or xarray posterior, or arrays [chain, draw, ...] by name."""
    density = flat(joint)
    arrays = _arrays(joint, draws, which)
    u = unconstrained_draws(density, arrays)
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            chain, draw = np.argwhere(~np.isfinite(values))[0][:2]
            raise CrossfadeError(f"the draws of {name!r} for {which} hold {_bad(values)} (chain {chain}, draw {draw})")
    if not np.isfinite(u).all():
        lost = density.labels()[int(np.argwhere(~np.isfinite(u))[0][2])]
        raise CrossfadeError(f"the draws of {lost!r} for {which} are not all inside the support of its prior")
    log_density = np.asarray(_log_densities(density, u))
    if not np.isfinite(log_density).all():
        raise CrossfadeError(
            f"the log joint of {which} is not finite at some of its own draws: are they of this model?"
        )
    n_chains, n_draws = u.shape[:2]
    per_chain = max(min(n_pieces // n_chains, n_draws // 20), 1)
    length = n_draws // per_chain
    if n_chains * per_chain < 4:
        raise CrossfadeError(
            f"{which} comes with {n_chains} x {n_draws} draws, too few to tell their error: bring at least 4 chains, "
            "or 80 draws"
        )

    def cut(values: np.ndarray) -> np.ndarray:
        kept = values[:, n_draws - per_chain * length :]  # what is left over is the oldest
        return kept.reshape(n_chains * per_chain, length, *values.shape[2:])

    ones = np.ones((n_chains * per_chain, length))
    own = Draws(cut(u), cut(log_density), ones, np.zeros_like(ones, dtype=bool), 0)
    return Source(own, None, tuple(density.labels()), u, elsewhere(joint, density, u, log_density))


def _bad(values: np.ndarray) -> str:
    return "NaN" if np.isnan(values).any() else "infinite values"


@eqx.filter_jit
def _log_densities(density: Flat, u: Array) -> Array:
    return jax.lax.map(jax.vmap(density), u)


def elsewhere(joint: Joint, density: Flat, u: np.ndarray, log_density: np.ndarray) -> str:
    """A draw of the prior that is as likely as the user's draws but far from all of them: a mode they missed.

    It sees what draws of the prior can hit, so little in many dimensions, and much in few.
    """
    there, value, _ = (np.asarray(x) for x in candidates(density, joint.start, chain_keys(jax.random.key(0), 1024)))
    flat = u.reshape(-1, u.shape[2])
    kept = flat[:: max(len(flat) // 1000, 1)]
    sd = np.maximum(flat.std(axis=0), 1e-300)
    likely = there[value > np.quantile(log_density, 0.05)]
    for place in likely[:200]:
        if np.abs((kept - place) / sd).max(axis=1).min() > FAR:
            return describe(density, place)
    return ""


def _arrays(joint: Joint, draws: Any, which: str) -> dict[str, np.ndarray]:
    posterior = getattr(draws, "posterior", draws)
    if hasattr(posterior, "data_vars"):
        posterior = {str(name): posterior[name].transpose("chain", "draw", ...).values for name in posterior.data_vars}
    if not isinstance(posterior, Mapping):
        raise CrossfadeError(
            f"the draws for {which} are a {type(draws).__name__}: bring a posterior or a dict of arrays"
        )
    found: dict[str, np.ndarray] = {}
    for name, (shape, _) in joint.places.items():
        if name not in posterior:
            raise CrossfadeError(f"the draws for {which} have no {name!r}: they have {sorted(map(str, posterior))}")
        try:
            values = np.asarray(posterior[name], float)
        except (TypeError, ValueError):
            raise CrossfadeError(f"the draws of {name!r} for {which} are not numbers") from None
        if values.shape[1:] == shape and values.shape[2:] != shape:
            values = values[None]
        if values.ndim < 2 or values.shape[2:] != shape:
            wanted = ", ".join(["chain", "draw", *map(str, shape)])
            raise CrossfadeError(f"the draws of {name!r} for {which} have shape {values.shape}: give [{wanted}]")
        found[name] = values
    counts = {name: values.shape[:2] for name, values in found.items()}
    if len(set(counts.values())) > 1:
        raise CrossfadeError(f"the draws for {which} differ in number between parameters: {counts}")
    return found
