"""Warming up: chains find the bulk, learn its shape from all of them together, and settle how far to go at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crossfade.density.precision import in_float64
from crossfade.paths.fit import root_covariance
from crossfade.sampling.hmc import DENSE, LONGEST, SEGMENT, SHORTEST, Chains, Stretch, Tuning, advance
from crossfade.sampling.starts import isolated
from crossfade.types import Float

LOST = 100.0  # log density per coordinate by which a chain that cannot move must be lower than those that can
N_RESCUES = 12
LEAST_MASS = 6.0  # log of the mass by which a corner must be emptier than other places for its chain to leave it
MASS_THAT_COUNTS = 5.0  # log of the usual mass around a chain over that of a place that must not be missed
MOST_COORDINATES = 20  # in which the spread of 25 draws tells a mass
FAR = 5.0  # standard deviations of the draws, in some coordinate, from every one of them
N_LOOKED_AT = 4000  # draws
N_ROUNDS = 4  # of whitening: one is enough where all chains have met by then and take long steps


class Past(NamedTuple):
    """Where chains were while they warmed up: some places of every window."""

    u: Float[np.ndarray, "stay draw size"]
    log_density: Float[np.ndarray, "stay draw"]

    def missed(self, u: np.ndarray, log_density: np.ndarray) -> np.ndarray | None:
        """A place where a chain once stayed that holds mass, and to which no draw u [chain, draw, size] comes near.

        Masses are in units of the draws.
        """
        flat, n = u.reshape(-1, u.shape[2]), self.u.shape[1]
        root = root_covariance(flat, DENSE)
        whitened = Tuning(np.zeros(len(root)), root, np.ones(1), SHORTEST)
        usual = np.median(_log_mass(whitened.z(u[:, -n:]), log_density[:, -n:]))
        heavy = _log_mass(whitened.z(self.u), self.log_density) > usual - MASS_THAT_COUNTS
        few = flat[:: max(len(flat) // N_LOOKED_AT, 1)]
        return isolated(np.median(self.u[heavy], axis=1), few, np.sqrt(np.einsum("ij,ij->i", root, root)), FAR)


def _log_mass(z: np.ndarray, log_density: np.ndarray) -> np.ndarray:
    """About the log of the mass around each chain: its mean log density + the entropy of its own draws z.

    The density is that of z, but for what is the same for all.
    """
    with np.errstate(divide="ignore"):
        return log_density.mean(axis=1) + np.log(z.std(axis=1)).sum(axis=1)


@in_float64
def warm_up(chains: Chains, n_windows: int = 3) -> Chains:
    return warmed_up(chains, n_windows)[0]


def warmed_up(chains: Chains, n_windows: int = 3) -> tuple[Chains, Past | None]:
    """Find the bulk, then whiten by all chains together over growing windows, then settle the trajectory length."""
    stays: list[tuple[np.ndarray, np.ndarray]] = []
    chains, seen = advance(chains, 2, gain=0.5, longest=8)
    for _ in range(N_RESCUES):
        if (freed := rescued(chains, seen)) is None:
            break
        chains, seen = advance(freed, 1, gain=0.5, longest=8)
    chains, n_level = whiten(chains, seen), 0
    for _ in range(N_ROUNDS):
        for window in range(n_windows):
            chains, seen = advance(chains, 2 + 2 * (window >= 1), gain=0.3, longest=16 * 2**window)
            if seen.u.shape[2] <= MOST_COORDINATES:
                stays.append((seen.u[:, -SEGMENT:].copy(), seen.log_density[:, -SEGMENT:]))
            chains = whiten(chains, seen)
        freed = relocated(chains, seen)
        if n_level < 2:  # how to standardise is told by two rounds in which all chains have arrived
            freed = standardised(freed or chains, seen) or freed
            n_level += _level(seen.log_density)
        chains, seen = advance(freed or chains, 2, gain=0.2)
        if freed is None and _level(seen.log_density) and SHORTEST / np.median(chains.tuning.step_size) < LONGEST / 4:
            break
    past = Past(*(np.concatenate(own) for own in zip(*stays, strict=True))) if stays else None
    return _settle(chains), past


def _level(height: np.ndarray) -> bool:
    """Whether no chain [chain, draw] is still on its way up: all visit the same heights, give or take their spread."""
    return bool(height.mean(axis=1).std() < 3 * np.median(height.std(axis=1)))


def _arrived(height: np.ndarray) -> np.ndarray:
    """Chains [chain, draw] that are not far below the others; the median's draws are among them in any case."""
    mean = height.mean(axis=1)
    return np.flatnonzero(mean >= np.median(mean) - 3 * np.median(height.std(axis=1)))


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
    w, step_size = np.array(chains.w), np.array(chains.tuning.step_size)
    w[lost] = (w[lost] + w[guide]) / 2
    step_size[lost] = step_size[guide]
    return chains._replace(w=w, tuning=chains.tuning._replace(step_size=step_size))


def relocated(chains: Chains, seen: Stretch) -> Chains | None:
    """Chains in corners that hold next to nothing of the mass, set to where others are; None if there are none.

    In the neck of a funnel the density is high and the mass is not: a chain that starts there takes tiny steps for
    ever. A narrow peak that does hold mass keeps its chain.
    """
    height = seen.log_density
    if chains.frame is not None and chains.away is not None:
        height = height + chains.frame.volume(seen.w, chains.away)
    log_mass = _log_mass(chains.tuning.z(seen.w), height)
    middle = np.median(log_mass)
    spread = 1.48 * np.median(np.abs(log_mass - middle))
    empty = np.flatnonzero(~(log_mass > middle - max(LEAST_MASS, 6 * spread)))
    if not len(empty) or not np.isfinite(middle):
        return None
    full = np.flatnonzero(log_mass >= middle)
    w, step_size = np.array(chains.w), np.array(chains.tuning.step_size)
    w[empty], step_size[empty] = w[np.resize(full, len(empty))], step_size[np.resize(full, len(empty))]
    return chains._replace(w=w, tuning=chains.tuning._replace(step_size=step_size))


def standardised(chains: Chains, seen: Stretch) -> Chains | None:
    """The coordinates of the frame that suit the draws so far; None if those of the model do."""
    if chains.frame is None or chains.away is None:
        return None
    half, size = seen.u.shape[1] // 2, seen.u.shape[2]
    # a chain on its way from where a scale is vast would tell of a funnel that is not there
    there = _arrived(seen.log_density[:, half:])
    before, away = chains.away, chains.frame.measured(seen.u[there, half:].reshape(-1, size))
    if np.abs(away - before).max() < 0.1:
        return None
    w, here = (chains.frame.moved(own, before, away) for own in (seen.w[:, half:].reshape(-1, size), chains.w))
    root = apart(w, chains.jumps, lambda own: root_covariance(w[:, own], DENSE))
    tuning = Tuning(w.mean(axis=0), root, chains.tuning.step_size, SHORTEST)
    return chains._replace(w=here, tuning=tuning, away=away)


def metric_root(u: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """A root of the geometric mean of Cov(u) and Cov(slope)^-1, from draws and gradients [n, size].

    For a Gaussian it is the covariance itself, whatever part of it the draws have seen: with draws of covariance C
    gradients have Sigma^-1 C Sigma^-1, and the geometric mean of C and Sigma C^-1 Sigma is Sigma.
    """
    root = root_covariance(u, DENSE)
    if root.ndim == 1:
        return np.sqrt(root / np.maximum(slope.std(axis=0), 1e-10))
    stiffness = root_covariance(slope @ root, DENSE)
    values, vectors = np.linalg.eigh(stiffness @ stiffness.T)
    return root @ vectors * np.maximum(values, 1e-20) ** -0.25


def apart(w: np.ndarray, jumps: np.ndarray | None, root: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`root` of the coordinates that have gradients; those of `jumps` keep their own spread, apart from the others."""
    rest = np.setdiff1d(np.arange(w.shape[1]), [] if jumps is None else jumps)
    spread = np.maximum(w.std(axis=0), 1e-10)
    part = root(rest) if len(rest) else spread[:0]
    if part.ndim == 2:
        scale = np.diag(spread)
        scale[np.ix_(rest, rest)] = part
        return scale
    spread[rest] = part
    return spread if len(rest) else np.diag(spread)


def whiten(chains: Chains, seen: Stretch) -> Chains:
    """Coordinates whitened by the later half of the draws and gradients (in high dimension, by their variances)."""
    old, half, size = chains.tuning, seen.w.shape[1] // 2, seen.w.shape[2]
    w, slope = (own[:, half:].reshape(-1, size) for own in (seen.w, seen.slope))
    usable = np.isfinite(slope).all(axis=1)
    shift, w, slope = w.mean(axis=0), w[usable], slope[usable]
    scale = apart(w, chains.jumps, lambda own: metric_root(w[:, own], slope[:, own]))
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
        squares = (tuning.z(seen.w) ** 2).sum(axis=2)
        now = float(np.mean(np.diff(squares, axis=1) ** 2)) / seen.n_leapfrog
        if now <= 1.1 * gain:
            break
        best, gain = tuning.length, now
        tuning = tuning._replace(length=2 * tuning.length)
    return chains._replace(tuning=tuning._replace(length=best))
