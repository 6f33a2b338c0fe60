"""Full conditionals held to the energy of their path, and conjugate blocks drawn in one go to those drawn in turn."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from linear_pairs import TAUS, key

from crossfade.paths.path import direct
from crossfade.sampling.kernel import Gibbs
from crossfade.types import Energy, State
from crossfade.worlds.conjugate import Coefficients, TwoBlocks, Variance


@eqx.filter_jit
def mismatches(path, blocks, theta, moves, tau):
    """log p(new | rest) - log p(old | rest) minus log q_tau(new) - log q_tau(old), for each block and its move."""
    moved = [{**theta, **move} for move in moves]
    stacked = jax.tree.map(lambda *values: jnp.stack(values), theta, *moved)
    log_q = jax.vmap(lambda theta: path.energy(theta).at(tau))(stacked)
    by_block = [block.log_prob(new, tau) - block.log_prob(theta, tau) for block, new in zip(blocks, moved, strict=True)]
    return jnp.stack(by_block) - (log_q[1:] - log_q[0])


class WithoutPriorTerm(Variance):
    """Wrong twin: the shape lacks p / 2, as if the prior of the coefficients were not scaled by the variance."""

    def shape(self, tau):
        return self.pair.shape(tau)


class TwoBlocksWithoutPriorTerm(TwoBlocks):
    def __init__(self, pair):
        super().__init__(pair)
        self.blocks = (Coefficients(pair), WithoutPriorTerm(pair))


class OffByALittle(TwoBlocks):
    """Wrong twin: one energy is a millionth too high."""

    def __call__(self, noise, state, path, tau):
        state, accepted = super().__call__(noise, state, path, tau)
        return state._replace(energy=Energy(state.energy.start, state.energy.end * (1 + 1e-6))), accepted


@eqx.filter_jit
def _step(kernel, path, state, seed, tau):
    return kernel(kernel.noise(seed, state.theta, tau), state, path, tau)[0]


def assert_one_go_is_block_by_block(models, sweep, theta):
    """Same noise, same map: parameters, and energies as the path computes them, to 1e-9 of their size."""
    assert isinstance(sweep, TwoBlocks)
    path, state = direct(*models), State(theta, Energy(jnp.zeros(()), jnp.zeros(())))
    for i in range(20):
        tau = jnp.array(TAUS[i % len(TAUS)])
        kernels = Gibbs(sweep.blocks), sweep, OffByALittle(sweep.pair)
        one_by_one, state, wrong = (_step(kernel, path, state, key(i), tau) for kernel in kernels)
        truth, *others = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(s)]) for s in (one_by_one, state, wrong))
        apart = [(np.abs(other - truth) / (1 + np.abs(truth))).max() for other in others]
        assert apart[0] < 1e-9 < apart[1]
