"""The user's own posterior draws: checked, taken to unconstrained space, and cut into pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from crossfade.density.exchangeable import in_order
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.sampling.draws import Draws
from crossfade.sampling.evaluate import values, values_and_slopes
from crossfade.sampling.starts import N_CANDIDATES, candidates, isolated
from crossfade.types import CrossfadeError

ALIKE = 6.0  # standard errors of a correlation between neighbouring chains
FAR = 6.0  # standard deviations of the draws, in some coordinate, from every one of them


@in_float64
def brought(joint: Joint, posterior: Any, n_pieces: int, which: str) -> Draws:
    """The user's posterior draws: an ArviZ or xarray posterior, or arrays [chain, draw, ...] by name."""
    density = joint.density
    if not joint.places:
        raise CrossfadeError(f"{which} has no parameters, so there are no draws to bring: give None for it")
    arrays = _arrays(joint, posterior, which)
    for name, own in arrays.items():
        if not np.isfinite(own).all():
            chain, draw = np.argwhere(~np.isfinite(own))[0][:2]
            bad = "NaN" if np.isnan(own).any() else "infinite values"
            raise CrossfadeError(f"the draws of {name!r} for {which} hold {bad} (chain {chain}, draw {draw})")
    if joint.numbered:
        arrays = {name: np.asarray(own) for name, own in in_order(arrays, joint.numbered).items()}
    u = density.coordinates.unconstrained(arrays)
    if not np.isfinite(u).all():
        lost = density.coordinates.labels()[int(np.argwhere(~np.isfinite(u))[0][2])]
        raise CrossfadeError(f"the draws of {lost!r} for {which} are not all inside the support of its prior")
    _check_axes(u, which)
    log_density = values(density, u)
    if not np.isfinite(log_density).all():
        raise CrossfadeError(
            f"the log joint of {which} is not finite at some of its own draws: are they of this model?"
        )
    n_chains, n_draws = u.shape[:2]
    per_chain = max(min(n_pieces // n_chains, n_draws // 20), 1)
    length = n_draws // per_chain
    n = n_chains * per_chain
    if n < 4:
        raise CrossfadeError(
            f"{which} comes with {n_chains} x {n_draws} draws, too few to tell their error: bring at least 4 chains, "
            "or 80 draws"
        )

    def cut(own: np.ndarray) -> np.ndarray:
        kept = own[:, n_draws - per_chain * length :]  # what is left over is the oldest
        return kept.reshape(n, length, *own.shape[2:])

    pieces = cut(u)
    none, never = pieces[:, :0], np.zeros((n, length), bool)
    draws = Draws(joint, density, pieces, cut(log_density), never, none, none, brought=u)
    if n > n_pieces:
        draws = draws.regrouped(n_pieces)
    n_points = max(min(N_CANDIDATES // draws.n_chains, draws.n_draws), 1)
    every = draws.n_draws // n_points
    points = draws.u[:, every - 1 :: every][:, :n_points]
    _, slope = values_and_slopes(density, points.reshape(-1, u.shape[2]))
    return draws._replace(slope=slope.reshape(points.shape), slope_at=points, elsewhere=missed_place(draws))


def _check_axes(u: np.ndarray, which: str) -> None:
    """Chains have nothing to do with each other: where neighbours go together, the axes are the wrong way round."""
    n_chains, n_draws = u.shape[:2]
    if n_chains <= n_draws or not u.size:
        return
    away = u - u.mean(axis=(0, 1))
    going = (away[1:] * away[:-1]).mean(axis=(0, 1)) / np.maximum(away.var(axis=(0, 1)), 1e-300)
    if going.max() > ALIKE / np.sqrt(n_chains - 1):
        raise CrossfadeError(
            f"the draws for {which} are of {n_chains} chains with {n_draws} draws each, and neighbouring chains go "
            f"together (correlation {going.max():.2f}) as draws of one chain do: give [chain, draw], not [draw, chain]"
        )


def missed_place(draws: Draws) -> str:
    """A draw of the prior that is as likely as the user's draws but far from all of them: a mode they missed.

    It sees what draws of the prior can hit, so little in many dimensions, and much in few.
    """
    there, value, _ = candidates(draws.joint, draws.density, jax.random.key(0))
    flat = draws.u.reshape(-1, draws.u.shape[2])
    kept = flat[:: max(len(flat) // 1000, 1)]
    sd = np.maximum(flat.std(axis=0), 1e-300)
    place = isolated(there[value > np.quantile(draws.log_density, 0.05)][:200], kept, sd, FAR)
    return "" if place is None else draws.coordinates.describe(place)


def _arrays(joint: Joint, draws: Any, which: str) -> dict[str, np.ndarray]:
    posterior = getattr(draws, "posterior", draws)
    if hasattr(posterior, "data_vars"):
        posterior = {str(name): posterior[name].transpose("chain", "draw", ...).values for name in posterior.data_vars}
    if not isinstance(posterior, Mapping):
        raise CrossfadeError(
            f"the draws for {which} are a {type(draws).__name__}: bring a posterior or a dict of arrays (of "
            "NumPyro's MCMC: mcmc.get_samples(group_by_chain=True))"
        )
    found: dict[str, np.ndarray] = {}
    for name, (shape, _) in joint.places.items():
        if name not in posterior:
            raise CrossfadeError(f"the draws for {which} have no {name!r}: they have {sorted(map(str, posterior))}")
        try:
            own = np.asarray(posterior[name], float)
        except (TypeError, ValueError):
            raise CrossfadeError(f"the draws of {name!r} for {which} are not numbers") from None
        if own.shape[1:] == shape and own.shape[2:] != shape:
            own = own[None]
        if own.ndim < 2 or own.shape[2:] != shape:
            wanted = ", ".join(["chain", "draw", *map(str, shape)])
            hint = " (of NumPyro: mcmc.get_samples(group_by_chain=True))" if own.shape[1:] == shape else ""
            raise CrossfadeError(f"the draws of {name!r} for {which} have shape {own.shape}: give [{wanted}]{hint}")
        found[name] = own
    counts = {name: own.shape[:2] for name, own in found.items()}
    if len(set(counts.values())) > 1:
        raise CrossfadeError(f"the draws for {which} differ in number between parameters: {counts}")
    return found
