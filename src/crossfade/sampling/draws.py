"""Posterior draws of one model: from chains that can go on, or brought along by the user."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from crossfade.density.joint import Flat, Joint, flat
from crossfade.density.precision import in_float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.hmc import SEGMENT, Draws, Sampler, advance, begin, describe, warm_up
from crossfade.types import Array, CrossfadeError

N_CANDIDATES = 1024  # draws of the prior that are looked at for places to start: their spread sets the first units


class Source(NamedTuple):
    """Draws so far, and the chains that made them (None: the user's own draws, of which there are no more)."""

    draws: Draws
    sampler: Sampler | None
    labels: tuple[str, ...]
    whole: np.ndarray | None = None  # the user's chains before they were cut into pieces: the verdict looks at these
    elsewhere: str = ""  # a place as likely as the user's draws and far from all of them, if there is one

    @property
    def n_draws(self) -> int:
        return self.draws.u.shape[1]

    @property
    def chains(self) -> np.ndarray:
        """[chain, draw, size] as the sampler made them."""
        return self.draws.u if self.whole is None else self.whole

    def regrouped(self, n_pieces: int) -> Source:
        """The user's pieces in fewer, longer ones: several one after the other."""
        per_piece = len(self.draws.u) // n_pieces
        return self._replace(draws=self.draws.regrouped(n_pieces, per_piece))


@in_float64
def run_source(joint: Joint, key: Array, n_chains: int, which: str) -> Source:
    """Warm chains, with no draws yet."""
    density = flat(joint)
    labels = tuple(density.labels())
    if density.size == 0:
        empty = np.zeros((n_chains, 0))
        return Source(Draws(empty[:, :, None][:, :, :0], empty, empty, empty, 0), None, labels)
    first, scale = starts(joint, density, jax.random.fold_in(key, 0), n_chains, which)
    sampler = begin(density, first, scale, chain_keys(jax.random.fold_in(key, 1), n_chains))
    sampler = warm_up(sampler)
    none = np.zeros((n_chains, 0))
    return Source(Draws(np.zeros((n_chains, 0, density.size)), none, none, none, 0), sampler, labels)


def starts(joint: Joint, density: Flat, key: Array, n_chains: int, which: str) -> tuple[np.ndarray, np.ndarray]:
    """Dispersed starts, so that chains that end in different places are noticed; and the spread of each coordinate."""
    u, log_density, slope = candidates(density, joint.start, chain_keys(key, N_CANDIDATES))
    u, log_density = np.asarray(u), np.asarray(log_density)
    if np.isnan(log_density).any() or np.isposinf(log_density).any():
        worst = int(np.argmax(np.isnan(log_density) | np.isposinf(log_density)))
        raise CrossfadeError(
            f"the log joint of {which} is {log_density[worst]} at a draw of its prior, {describe(density, u[worst])}: "
            "it must be a number or -inf. Guard the operation that fails (log of 0, division by 0, overflow), or "
            "narrow the prior."
        )
    usable = np.isfinite(log_density) & np.isfinite(np.asarray(slope)).all(axis=1) & np.isfinite(u).all(axis=1)
    if usable.sum() < max(2, n_chains // 8):
        raise CrossfadeError(
            f"only {usable.sum()} of {N_CANDIDATES} draws of the prior of {which} have a finite log joint and "
            "gradient: check the likelihood at draws of the prior, or narrow the prior to where it is not zero"
        )
    spread = (np.quantile(u[usable], 0.84, axis=0) - np.quantile(u[usable], 0.16, axis=0)) / 2
    # Half of the chains anywhere, half at the highest densities seen: a narrow peak far away then gets a chain.
    anywhere = np.resize(u[usable], (n_chains - n_chains // 2, u.shape[1]))
    high = u[usable][np.argsort(-log_density[usable])]
    both = np.empty((n_chains, u.shape[1]))
    both[::2], both[1::2] = anywhere, np.resize(high, (n_chains // 2, u.shape[1]))
    return both, np.clip(spread, 1e-6, 1e6)


@eqx.filter_jit
def candidates(density: Flat, start: Any, keys: Array) -> Any:
    def one(key: Array) -> Any:
        u = density.inverse(start(key))
        return u, *jax.value_and_grad(density)(u)

    return jax.lax.map(one, keys, batch_size=16)


def more(source: Source, n_segments: int) -> Source:
    """The same chains, n_segments x SEGMENT draws further."""
    if n_segments == 0:
        return source
    if source.sampler is None:
        if source.draws.u.shape[2]:
            raise CrossfadeError("the draws that were brought along cannot be continued: bring more, or leave them out")
        n_chains = source.draws.u.shape[0]
        none = np.zeros((n_chains, source.n_draws + n_segments * SEGMENT))
        return source._replace(draws=Draws(none[:, :, None][:, :, :0], none, none + 1, none.astype(bool), 0))
    sampler, new = advance(source.sampler, n_segments)
    return source._replace(draws=Draws.joined([source.draws, new]), sampler=sampler)
