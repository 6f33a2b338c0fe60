"""Chains along the path between models that bring no sampler: HMC, whitened at every tau by draws of both ends."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from crossfade.density.joint import AnyOf, Joint
from crossfade.density.model import NoData
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Share, match
from crossfade.paths.fit import root_covariance
from crossfade.paths.path import Path, direct, reparametrise, reverse, union_coordinates, union_names
from crossfade.sampling.draws import warmed
from crossfade.sampling.kernel import HMC, Cycle, Kernel
from crossfade.sampling.pencil import Pencil, pencil
from crossfade.sampling.starts import drawn, spread
from crossfade.types import Array

N_CHAINS = 32  # that draw from each end before the journey
N_DRAWS = 100  # of each
N_LEAPFROG = 4
STEP_SIZES = (np.pi / 8, np.pi / 48)  # whitened: a quarter turn, and steps for corners where that is too far
WIDEST = 5.0  # spreads from the middle beyond which a draw of a prior says nothing about steps


class Way(NamedTuple):
    """A path and a kernel to go along it, from its first end to its second."""

    path: Path
    kernel: Kernel


@in_float64
def ways(a: Joint, b: Joint, key: Array, share: Share = None) -> tuple[Way, Way]:
    """There and back along the direct path between models of any kind, by HMC in unconstrained coordinates."""
    names, where = union_names(a, b, match(a, b, share)), union_coordinates(a, b, share)
    path = reparametrise(direct(a, b, share=share), where)
    ends = []
    for k, (own, other) in enumerate(((a, b), (b, a))):
        end = np.empty((N_CHAINS * N_DRAWS, where.size))
        prior = drawn(other, jax.random.fold_in(key, 2 + k), len(end))
        for joint, named, u in ((other, names[1 - k], prior), (own, names[k], _posterior(own, key, k))):
            for name in joint.names:
                end[:, where.stretch(named[name])] = u[:, joint.coordinates.stretch(name)]
        ends.append(end)
    shape = _shape(ends)
    first, second = (AnyOf(end, len(end)) for end in ends)
    there = Path(path.energy, first, second)
    return Way(there, _kernel(shape)), Way(reverse(there), _kernel(shape.reversed()))


def _kernel(shape: Pencil) -> Kernel:
    return Cycle(tuple(HMC(shape.spread, np.asarray(size), N_LEAPFROG, unroll=False) for size in STEP_SIZES))


def _posterior(joint: Joint, key: Array, k: int) -> np.ndarray:
    """Draws of a posterior, unconstrained [n, size]."""
    key = jax.random.fold_in(key, k)
    if isinstance(joint.log_likelihood, NoData) and joint.exact_start:
        return drawn(joint, key, N_CHAINS * N_DRAWS)
    u = warmed(joint, key, N_CHAINS).more(N_DRAWS).u
    return u.reshape(-1, u.shape[2])


def _shape(ends: list[np.ndarray]) -> Pencil:
    """The precisions of both ends, from draws [n, size] of each."""
    roots = []
    for u in ends:
        middle, half = np.median(u, axis=0), WIDEST * spread(u)
        roots.append(root_covariance(np.clip(u, middle - half, middle + half)))
    if roots[0].ndim == 1:
        return Pencil(roots[0], (roots[0] / roots[1]) ** 2)
    return pencil(np.linalg.inv(roots[0]), np.linalg.inv(roots[1]))
