"""Full conditionals held to the energy of their path."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp


@eqx.filter_jit
def mismatches(path, blocks, theta, moves, tau):
    """log p(new | rest) - log p(old | rest) minus log q_tau(new) - log q_tau(old), for each block and its move."""
    moved = [{**theta, **move} for move in moves]
    stacked = jax.tree.map(lambda *values: jnp.stack(values), theta, *moved)
    log_q = jax.vmap(lambda theta: path.energy(theta).at(tau))(stacked)
    by_block = [block.log_prob(new, tau) - block.log_prob(theta, tau) for block, new in zip(blocks, moved, strict=True)]
    return jnp.stack(by_block) - (log_q[1:] - log_q[0])
