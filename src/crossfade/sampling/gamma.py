"""Gamma variates in bulk (jax.random.gamma maps over them one by one on the CPU and is four times slower)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from crossfade.types import Array, Float

ATTEMPTS = 3  # all three are refused for about one variate in 10,000 at most, and then a loop goes on


class Attempts(NamedTuple):
    """Randomness for gamma variates whose shapes are not known yet."""

    normal: Float[Array, "ATTEMPTS size"]
    log_uniform: Float[Array, "ATTEMPTS size"]
    log_boost: Float[Array, " size"]
    key: Array


def attempts(key: Array, size: int) -> Attempts:
    """Drawn ahead, for `gamma_from`."""
    normal, uniform, rest = jax.random.split(key, 3)
    log_u = -jax.random.exponential(uniform, (ATTEMPTS + 1, size))
    return Attempts(jax.random.normal(normal, (ATTEMPTS, size)), log_u[1:], log_u[0], rest)


def gamma_from(noise: Attempts, shape: Array) -> Array:
    """Gamma(shape, rate 1) variates as a map of noise drawn ahead: of each, the first attempt that fits."""
    return _gamma(noise.key, shape, noise.log_boost, zip(noise.normal, noise.log_uniform, strict=True))


def standard_gamma(key: Array, shape: Array | float) -> Array:
    """Draws of Gamma(shape, rate 1) (Marsaglia & Tsang 2000), written so that vmap runs all lanes at once."""
    boost, loop = jax.random.split(key)
    return _gamma(loop, shape, -jax.random.exponential(boost, jnp.shape(shape)))


def _gamma(key: Array, shape: Array, log_boost: Array, ahead: Iterable[tuple[Array, Array]] = ()) -> Array:
    """The first candidate that is accepted, of those drawn ahead and then of as many as it takes."""
    above = jnp.where(shape < 1, shape + 1.0, shape)

    def attempt(x: Array, log_u: Array, accepted: Array, cube: Array) -> tuple[Array, Array]:
        """Marsaglia & Tsang's candidate for Gamma(above) / (above - 1/3), where none has been accepted yet."""
        d = above - 1 / 3
        candidate = (1 + x / jnp.sqrt(9 * d)) ** 3
        log_candidate = jnp.log(jnp.where(candidate > 0, candidate, 1.0))
        fits = (candidate > 0) & (log_u < x**2 / 2 + d * (1 - candidate + log_candidate))
        return accepted | fits, jnp.where(accepted, cube, candidate)

    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, *found = carry
        normal, uniform = jax.random.split(jax.random.fold_in(key, i))
        x, log_u = jax.random.normal(normal, above.shape), -jax.random.exponential(uniform, above.shape)
        return i + 1, *attempt(x, log_u, *found)

    found = jnp.zeros_like(above) > 0, jnp.zeros_like(above)
    for x, log_u in ahead:
        found = attempt(x, log_u, *found)
    cube = jax.lax.while_loop(lambda carry: ~jnp.all(carry[1]), again, (0, *found))[2]
    shrink = jnp.where(shape < 1, jnp.exp(log_boost / jnp.where(shape < 1, shape, 1.0)), 1.0)
    return (above - 1 / 3) * cube * shrink  # Gamma(a) = Gamma(a + 1) U^(1/a) for a < 1
