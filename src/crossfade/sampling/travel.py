"""Chains along the path between models that bring no sampler: HMC, whitened at every tau by draws of both ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import real
from numpyro.distributions.transforms import Transform

from crossfade.density.joint import AnyOf, Joint
from crossfade.density.model import NoData
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Share, match
from crossfade.paths.fit import root_covariance
from crossfade.paths.path import Path, direct, reparametrise, reverse, union_names
from crossfade.sampling.draws import drawn, warmed
from crossfade.sampling.kernel import HMC, Cycle, Kernel
from crossfade.sampling.pencil import Pencil, pencil
from crossfade.types import Array, Theta

N_CHAINS = 32  # that draw from each end before the journey
N_DRAWS = 100  # of each
N_LEAPFROG = 4
STEP_SIZES = (np.pi / 8, np.pi / 48)  # whitened: a quarter turn, and steps for corners where that is too far
WIDEST = 5.0  # spreads from the middle beyond which a draw of a prior says nothing about steps


class Whitened(eqx.Module):
    """Steps shaped by the precisions of both ends, over all parameters in one vector."""

    pencil: Pencil

    def __call__(self, tau: Array, z: Theta) -> Theta:
        flat, unravel = ravel_pytree(z)
        return unravel(self.pencil.spread(tau, flat))


class Scaled(eqx.Module):
    """The same by variances alone, where parameters are many."""

    precision: tuple[np.ndarray, np.ndarray]

    def __call__(self, tau: Array, z: Theta) -> Theta:
        flat, unravel = ravel_pytree(z)
        first, second = self.precision
        return unravel(flat / jnp.sqrt((1 - tau) * first + tau * second))


class Mirrored(eqx.Module):
    """A step at 1 - tau: for the way back."""

    step: Any

    def __call__(self, tau: Array, z: Theta) -> Theta:
        return self.step(1 - tau, z)


class Way(NamedTuple):
    """A path and a kernel to go along it, from its first end to its second."""

    path: Path
    kernel: Kernel


@in_float64
def ways(a: Joint, b: Joint, key: Array, share: Share = None) -> tuple[Way, Way]:
    """There and back along the direct path between models of any kind, by HMC in unconstrained coordinates."""
    names = union_names(a, b, match(a, b, share))
    path = reparametrise(direct(a, b, share=share), _transforms((a, b), names))
    starts = []
    for k, (own, other) in enumerate(((a, b), (b, a))):
        posterior = _posterior(own, jax.random.fold_in(key, k))
        prior = _named(other, drawn(other, jax.random.fold_in(key, 2 + k), N_CHAINS * N_DRAWS))
        mine = {names[k][name]: values for name, values in posterior.items()}
        starts.append({names[1 - k][name]: values for name, values in prior.items()} | mine)
    step = _step(starts)
    first, second = (AnyOf(own, N_CHAINS * N_DRAWS) for own in starts)
    there = Path(path.energy, first, second)
    return Way(there, _kernel(step)), Way(reverse(there), _kernel(Mirrored(step)))


def _kernel(step: Any) -> Kernel:
    return Cycle(tuple(HMC(step, np.asarray(size), N_LEAPFROG, unroll=False) for size in STEP_SIZES))


def _posterior(joint: Joint, key: Array) -> dict[str, np.ndarray]:
    """Draws of a posterior by name, unconstrained [n, ...]."""
    if isinstance(joint.log_likelihood, NoData) and joint.exact_start:
        return _named(joint, drawn(joint, key, N_CHAINS * N_DRAWS))
    u = warmed(joint, key, N_CHAINS).more(N_DRAWS).u
    return _named(joint, u.reshape(-1, u.shape[2]))


def _named(joint: Joint, u: np.ndarray) -> dict[str, np.ndarray]:
    where = joint.coordinates
    return {name: u[:, where.stretch(name)].reshape(-1, *shape) for name, shape in where.shapes.items()}


def _transforms(joints: tuple[Joint, Joint], names: Any) -> dict[str, Transform]:
    places = {
        own[name]: place for joint, own in zip(joints, names, strict=True) for name, place in joint.places.items()
    }
    return {name: biject_to(support) for name, (_, support) in places.items() if support is not real}


def _step(ends: list[dict[str, np.ndarray]]) -> Any:
    """Steps of the size of both ends, mixed by precision at every tau."""
    roots = []
    for draws in ends:
        flat = np.concatenate([draws[name].reshape(len(draws[name]), -1) for name in sorted(draws)], axis=1)
        middle = np.median(flat, axis=0)
        half = WIDEST * np.maximum(np.quantile(flat, 0.84, axis=0) - np.quantile(flat, 0.16, axis=0), 1e-12) / 2
        roots.append(root_covariance(np.clip(flat, middle - half, middle + half)))
    if roots[0].ndim == 1:
        return Scaled((roots[0] ** -2, roots[1] ** -2))
    return Whitened(pencil(np.linalg.inv(roots[0]), np.linalg.inv(roots[1])))
