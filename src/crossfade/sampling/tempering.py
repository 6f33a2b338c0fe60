"""Non-reversible parallel tempering from prior to posterior, for posteriors in separate pieces.

Every replicate holds one state per rung. HMC moves each within its rung, then neighbours swap, even and odd pairs in
turn (Okabe et al. 2001; Syed et al. 2022): a state travels down to the prior, forgets where it was, and comes back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.paths.path import Path, from_no_data
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.hmc import Chains, Tuning
from crossfade.sampling.hmc import advance as moved
from crossfade.sampling.starts import drawn, spread
from crossfade.types import Array, Bool, Float, Trace

LEAPFROGS = 10  # at most, between two swaps
N_RUNGS = 16  # before their number is measured
MOST_RUNGS = 48
TUNING = (50, 50, 100, 200, 400)  # steps of each round of tuning
N_TUNING = sum(TUNING)


class Tempered(NamedTuple):
    """Replicates in mid-run: chains [replicate x rung], rungs fastest."""

    joint: Joint
    path: Path
    key: Array
    tau: Float[np.ndarray, " rung"]
    chains: Chains

    @property
    def n_replicates(self) -> int:
        return len(self.chains.w) // len(self.tau)


class Passage(NamedTuple):
    """What a stretch of steps recorded."""

    log_likelihood: Float[np.ndarray, "replicate rung draw"]
    u: Float[np.ndarray, "replicate _ draw size"]  # of all rungs, or of the posterior's alone
    swapped: Bool[np.ndarray, "step replicate gap"]
    rejection: Float[np.ndarray, " gap"]  # mean over steps

    @staticmethod
    def joined(parts: list[Passage]) -> Passage:
        """One passage of all."""
        return Passage(
            np.concatenate([part.log_likelihood for part in parts], axis=2),
            np.concatenate([part.u for part in parts], axis=2),
            np.concatenate([part.swapped for part in parts]),
            np.mean([part.rejection for part in parts], axis=0),
        )

    def round_trips(self) -> int:
        """How often a state went from the prior to the posterior and back, over all replicates."""
        n_steps, n_replicates, n_gaps = self.swapped.shape
        trips = 0
        for r in range(n_replicates):
            where = np.arange(n_gaps + 1)  # which state sits at each rung
            seen_top = np.zeros(n_gaps + 1, bool)
            for t in range(n_steps):
                for k in np.flatnonzero(self.swapped[t, r]):
                    where[k], where[k + 1] = where[k + 1], where[k]
                seen_top[where[-1]] = True
                if seen_top[where[0]]:
                    trips += 1
                    seen_top[where[0]] = False
        return trips


@in_float64
def begin(joint: Joint, key: Array, n_replicates: int) -> Tempered:
    """All rungs at draws of the prior, on a power ladder."""
    path = from_no_data(joint)
    n = n_replicates * N_RUNGS
    u = drawn(joint, jax.random.fold_in(key, 1), n)
    tuning = Tuning(np.zeros_like(u), np.tile(spread(u), (n, 1)), np.full(n, 0.1), np.inf)
    tau = np.linspace(0, 1, N_RUNGS) ** 3
    chains = Chains(path, np.tile(tau, n_replicates), chain_keys(key, n), u, tuning)
    return Tempered(joint, path, key, tau, chains)


@in_float64
def tune(run: Tempered, rounds: tuple[int, ...] = TUNING) -> Tempered:
    """Rounds of growing length: spread and step size of every rung, rungs at equal steps of the barrier."""
    for i, n_steps in enumerate(rounds):
        run, seen = advance(run, n_steps, gain=0.1)
        recent = seen.u[:, :, seen.u.shape[2] // 2 :]
        scale = np.maximum(recent.std(axis=(0, 2)), 1e-8)  # [rung, size]
        by_rung = run.chains.tuning.step_size.reshape(run.n_replicates, -1)
        before = run.chains.tuning.scale.reshape(run.n_replicates, *scale.shape)[0]
        size = np.exp(np.log(by_rung).mean(axis=0)) * np.median(before / scale, axis=1)
        run = _tuned(run, scale, np.clip(size, 0.01, 1.0))
        if 0 < i < len(rounds) - 1:
            run = _placed(run, seen.rejection, final=i == len(rounds) - 2)
    return run


def _tuned(run: Tempered, scale: np.ndarray, step_size: np.ndarray) -> Tempered:
    """One spread and one step size for the chains of each rung."""
    n = run.n_replicates
    tuning = Tuning(np.zeros_like(run.chains.w), np.tile(scale, (n, 1)), np.tile(step_size, n), np.inf)
    return run._replace(chains=run.chains._replace(tuning=tuning))


def _placed(run: Tempered, rejection: np.ndarray, final: bool) -> Tempered:
    """Rungs at equal steps of the cumulative rejection; the last time, as many as twice the barrier asks for."""
    barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rejection, 1e-3))])
    n_rungs = int(np.clip(np.ceil(2 * barrier[-1]) + 4, 8, MOST_RUNGS)) if final else len(run.tau)
    tau = np.interp(np.linspace(0, barrier[-1], n_rungs), barrier, run.tau)
    tau[0], tau[-1] = 0.0, 1.0
    near = np.argmin(np.abs(tau[:, None] - run.tau[None, :]), axis=1)
    n, old = run.n_replicates, run.chains
    index = (np.arange(n)[:, None] * len(run.tau) + near).ravel()
    tuning = Tuning(old.tuning.shift[index], old.tuning.scale[index], old.tuning.step_size[index], np.inf)
    keys = chain_keys(run.key, len(index))
    chains = Chains(old.target, np.tile(tau, n), keys, old.w[index], tuning, old.n_steps)
    return run._replace(tau=tau, chains=chains)


@in_float64
def advance(run: Tempered, n_steps: int, gain: float = 0.0) -> tuple[Tempered, Passage]:
    """n_steps times: a Hamiltonian step of every chain, fresh draws of the prior, swaps of neighbours.

    While steps adapt (`gain` > 0) the places at all rungs are recorded, else those at the posterior.
    """
    n_rungs, n = len(run.tau), run.n_replicates
    likelihoods, places, swaps, rejections, chains = [], [], [], [], run.chains
    for _ in range(n_steps):
        index = chains.n_steps
        chains, _ = moved(chains, 1, gain=gain, longest=LEAPFROGS, n_steps=1)
        u = chains.w.reshape(n, n_rungs, -1)
        if run.joint.exact_start:
            u[:, 0] = drawn(run.joint, jax.random.fold_in(run.key, 2 + index), n)
        ratio = np.asarray(_log_likelihoods(run.path, u.reshape(chains.w.shape))).reshape(n, n_rungs)
        ratio = np.where(np.isnan(ratio), -np.inf, ratio)
        with np.errstate(invalid="ignore"):  # both impossible
            gap = np.diff(run.tau) * (ratio[:, :-1] - ratio[:, 1:])
        tried = np.arange(n_rungs - 1) % 2 == index % 2
        chance = np.exp(np.minimum(np.nan_to_num(gap, nan=-np.inf), 0.0))
        random = np.random.default_rng([*np.asarray(jax.random.key_data(run.key)).tolist(), index])
        swapped = tried & (random.uniform(size=gap.shape) < chance)
        order = np.arange(n_rungs) + np.pad(swapped, ((0, 0), (0, 1))) - np.pad(swapped, ((0, 0), (1, 0)))
        u, ratio = np.take_along_axis(u, order[:, :, None], axis=1), np.take_along_axis(ratio, order, axis=1)
        chains = chains._replace(w=u.reshape(chains.w.shape))
        likelihoods.append(ratio)
        places.append(u if gain else u[:, -1:])
        swaps.append(swapped)
        rejections.append(np.where(tried, 1 - chance, 0.0).mean(axis=0))
    passage = Passage(
        np.stack(likelihoods, axis=2),
        np.stack(places, axis=2),
        np.array(swaps),
        2 * np.mean(rejections, axis=0),  # every pair is tried at every second step
    )
    return run._replace(chains=chains), passage


@eqx.filter_jit
def _log_likelihoods(path: Path, u: Array) -> Any:
    return jax.vmap(lambda u: path.energy(u).ratio)(u)


def trace_of(run: Tempered, passage: Passage) -> Trace:
    """The waist: log likelihoods are the log ratios from prior to posterior."""
    shape = passage.log_likelihood.shape[:2]
    return Trace(run.tau, passage.log_likelihood, np.ones(shape), True)
