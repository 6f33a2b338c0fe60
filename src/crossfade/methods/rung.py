"""Rungs: draws at one tau, how neighbours overlap, where another is due, and what is written down of all of them."""

from __future__ import annotations

from functools import reduce
from math import gcd
from typing import NamedTuple

import numpy as np

from crossfade.analysis.bennett import neighbour_overlaps
from crossfade.analysis.mixing import mixing
from crossfade.sampling.hmc import Chains
from crossfade.types import CrossfadeError, Float, Leg, Trace


class Rung(NamedTuple):
    """Draws at one tau, by halves of the chains."""

    tau: float
    ratio: tuple[Float[np.ndarray, "chain draw"], Float[np.ndarray, "chain draw"]]  # of log q_1 - log q_0
    v: tuple[Float[np.ndarray, "chain kept union"], Float[np.ndarray, "chain kept union"]]  # the last of these draws
    chains: tuple[Chains, Chains] | None = None  # None at the ends, whose chains are those of the posteriors
    divergent: float = 0.0  # fraction of trajectories
    undefined: float = 0.0  # fraction of draws at which a log density is NaN; they count as impossible

    @property
    def n_draws(self) -> int:
        return self.ratio[0].shape[1]


def overlaps(rungs: tuple[Rung, ...]) -> list[float]:
    tau = np.array([rung.tau for rung in rungs])
    found = []
    for h in (0, 1):
        try:
            found.append(neighbour_overlaps(tau, [rung.ratio[h].ravel() for rung in rungs]))
        except CrossfadeError:  # nothing overlaps at all
            found.append([0.0] * (len(rungs) - 1))
    return [min(pair) for pair in zip(*found, strict=True)]


def middle(left: Rung, right: Rung) -> float:
    """The tau that halves the thermodynamic length between two rungs, its density taken as linear."""
    a, b = (np.mean([own.std() if np.isfinite(own).all() else np.inf for own in rung.ratio]) for rung in (left, right))
    if not np.isfinite([a, b]).all() or min(a, b) <= 0:
        return (left.tau + right.tau) / 2
    fraction = 0.5 if abs(a - b) < 1e-9 * a else (np.sqrt((a * a + b * b) / 2) - a) / (b - a)
    return float(left.tau + np.clip(fraction, 0.02, 0.98) * (right.tau - left.tau))


def allocate(rungs: tuple[Rung, ...], factor: float, unit: int) -> list[int]:
    """Draws per chain to add at each rung, as units: by tau-width x sqrt(variance x autocorrelation time)."""
    tau = np.array([rung.tau for rung in rungs])
    edges = np.concatenate([[tau[0]], (tau[1:] + tau[:-1]) / 2, [tau[-1]]])
    wanted = []
    for rung, width in zip(rungs, np.diff(edges), strict=True):
        both = np.concatenate(rung.ratio)
        both = np.where(np.isfinite(both), both, np.nan)
        effective = max(mixing(np.nan_to_num(both)[:, :, None]).effective, 1.0)
        spread = np.nanstd(np.clip(both, *np.nanquantile(both, [0.001, 0.999])))  # one wild draw must not take it all
        wanted.append(width * spread * np.sqrt(both.size / effective))
    share = np.nan_to_num(np.array(wanted), nan=0.0, posinf=0.0)
    share = share / share.sum() if share.sum() > 0 else np.full(len(rungs), 1 / len(rungs))
    now = np.array([rung.n_draws for rung in rungs])
    target = np.maximum(share, 0.5 / len(rungs)) * factor * now.sum()
    return [int(n) for n in np.maximum(np.ceil(target / unit) * unit, now) - now]


def legs_of(rungs: tuple[Rung, ...]) -> tuple[Leg, ...]:
    """A trace per half. A rung with more draws than the least is written as several rungs of the same tau."""
    unit = reduce(gcd, [rung.n_draws for rung in rungs])
    if unit < min(rung.n_draws for rung in rungs) // 2:  # the user's draws: of odd lengths, cut to the shortest
        unit = min(rung.n_draws for rung in rungs)
    legs = []
    for h in (0, 1):
        taus: list[float] = []
        columns: list[np.ndarray] = []
        for rung in rungs:
            copies = rung.n_draws // unit
            taus += [rung.tau] * copies
            kept = rung.ratio[h][:, rung.n_draws - copies * unit :]
            columns.append(kept.reshape(len(kept), copies, unit))
        log_ratio = np.concatenate(columns, axis=1)
        trace = Trace(np.array(taus), log_ratio, np.ones(log_ratio.shape[:2]), True)
        legs.append(Leg(f"half {h + 1} of the chains, links fitted to half {2 - h}", 0.5, trace, None))
    return tuple(legs)
