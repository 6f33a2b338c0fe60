"""Gamma variates in bulk (jax.random.gamma maps over them one by one on the CPU and is four times slower)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from crossfade.types import Array


def standard_gamma(key: Array, shape: Array | float) -> Array:
    """One draw of Gamma(shape, rate 1) (Marsaglia & Tsang 2000), written so that vmap runs all lanes at once."""
    boost, loop = jax.random.split(key)
    above = jnp.where(shape < 1, shape + 1, shape)
    d = above - 1 / 3
    c = 1 / jnp.sqrt(9 * d)

    def attempt(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, accepted, cube = carry
        normal, uniform = jax.random.split(jax.random.fold_in(loop, i))
        x = jax.random.normal(normal)
        candidate = (1 + c * x) ** 3
        log_candidate = jnp.log(jnp.where(candidate > 0, candidate, 1.0))
        log_u = -jax.random.exponential(uniform)
        fits = (candidate > 0) & (log_u < x**2 / 2 + d * (1 - candidate + log_candidate))
        return i + 1, accepted | fits, jnp.where(accepted, cube, candidate)

    _, _, cube = jax.lax.while_loop(lambda carry: ~carry[1], attempt, (0, jnp.array(False), jnp.ones(())))
    # Gamma(a) = Gamma(a + 1) U^(1/a) for a < 1
    shrink = jnp.where(shape < 1, jnp.exp(-jax.random.exponential(boost) / jnp.where(shape < 1, shape, 1.0)), 1.0)
    return d * cube * shrink
