"""Rungs of the short path: its two ends, made of posterior draws and links, and rungs between them.

The chains are in two halves. Each half is read with the fit of the other, so no draw is used twice.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from crossfade.density.precision import in_float64
from crossfade.paths.link import AtTau, Fit, ShortPath, energies
from crossfade.sampling.draws import Source
from crossfade.sampling.hmc import SEGMENT, Sampler, Tuning, advance, root_covariance, warm_up
from crossfade.types import Array, CrossfadeError

CHUNK = 100  # draws per chain that are evaluated at once: one compiled shape
KEPT = 100  # draws per chain of which a rung remembers the place, for its neighbours to start from

Fits = tuple[Fit, Fit]  # the fit that each half is read with


class Rung(NamedTuple):
    """Draws at one tau, by halves."""

    tau: float
    ratio: tuple[np.ndarray, np.ndarray]  # [chain, draw] of log q_1 - log q_0
    v: tuple[np.ndarray, np.ndarray]  # [chain, draw, union]: the last KEPT of them
    samplers: tuple[Sampler, Sampler] | None  # None at the ends, whose chains are elsewhere
    divergent: float  # fraction of divergent steps

    @property
    def n_draws(self) -> int:
        return self.ratio[0].shape[1]


@in_float64
def end(path: ShortPath, k: int, source: Source, fits: Fits, key: Array) -> Rung:
    """The rung at tau = k: posterior draws of model k, completed by the other's link."""
    half = source.draws.u.shape[0] // 2
    ratios, places = [], []
    for h, fit in enumerate(fits):
        u = source.draws.u[h * half : (h + 1) * half]
        random = np.random.default_rng(np.asarray(jax.random.key_data(jax.random.fold_in(key, h))))
        v = path.complete(k, u.reshape(u.shape[0] * u.shape[1], u.shape[2]), fit, random).reshape(
            *u.shape[:2], path.size
        )
        ratios.append(_ratios(path, v, fit))
        places.append(v[:, -KEPT:])
    return Rung(float(k), (ratios[0], ratios[1]), (places[0], places[1]), None, float(source.draws.divergent.mean()))


def _ratios(path: ShortPath, v: np.ndarray, fit: Fit) -> np.ndarray:
    """log q_1 - log q_0 of draws [chain, draw, union], in chunks of one shape."""
    found = []
    for first in range(0, v.shape[1], CHUNK):
        part = v[:, first : first + CHUNK]
        padded = np.pad(part, [(0, 0), (0, CHUNK - part.shape[1]), (0, 0)], mode="edge")
        start, stop = (np.asarray(value)[:, : part.shape[1]] for value in energies(path, padded, fit))
        if np.isnan(start).any() or np.isnan(stop).any():
            which = "M1" if np.isnan(start).any() else "M2"
            raise CrossfadeError(
                f"the log joint of {which} is NaN at a draw of the other end: it must be a number or -inf everywhere. "
                "Guard the operation that fails (log of 0, division by 0, overflow), or narrow the prior."
            )
        found.append(stop - start)
    return np.concatenate(found, axis=1)


@in_float64
def between(path: ShortPath, fits: Fits, left: Rung, right: Rung, tau: float, key: Array) -> Rung:
    """A new rung, without draws yet: half of its chains come from each neighbour, so that a gap shows as R-hat."""
    samplers = []
    for h, fit in enumerate(fits):
        near = left.v[h], right.v[h]
        both = np.concatenate([v.reshape(-1, path.size) for v in near])
        n_chains = len(near[0])
        starts = np.where((np.arange(n_chains) % 2 == 0)[:, None], near[0][:, -1], near[1][:, -1])
        tuning = Tuning(both.mean(axis=0), root_covariance(both), np.full(n_chains, 0.3), 2.2)
        keys = jax.random.split(jax.random.fold_in(key, h), n_chains)
        target = AtTau(path, fit, np.asarray(tau))
        samplers.append(warm_up(Sampler(target, keys, starts, tuning), n_windows=2))
    none, nowhere = np.zeros((n_chains, 0)), np.zeros((n_chains, 0, path.size))
    return Rung(tau, (none, none), (nowhere, nowhere), (samplers[0], samplers[1]), 0.0)


@in_float64
def extend(path: ShortPath, fits: Fits, rung: Rung, n_segments: int) -> Rung:
    """The same chains, n_segments x SEGMENT draws further."""
    if n_segments == 0:
        return rung
    assert rung.samplers is not None
    samplers, ratios, places, divergent = [], [], [], 0.0
    for h, (sampler, fit) in enumerate(zip(rung.samplers, fits, strict=True)):
        sampler, new = advance(sampler, n_segments)
        ratios.append(np.concatenate([rung.ratio[h], _ratios(path, new.u, fit)], axis=1))
        places.append(np.concatenate([rung.v[h], new.u], axis=1)[:, -KEPT:])
        samplers.append(sampler)
        divergent += float(new.divergent.mean()) / 2
    n_new = n_segments * SEGMENT
    share = n_new / (rung.n_draws + n_new)
    return Rung(
        rung.tau,
        (ratios[0], ratios[1]),
        (places[0], places[1]),
        (samplers[0], samplers[1]),
        share * divergent + (1 - share) * rung.divergent,
    )
