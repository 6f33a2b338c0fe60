"""Gamma variates in bulk (jax.random.gamma maps over them one by one on the CPU and is four times slower)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from crossfade.types import Array

ATTEMPTS = 3  # all three are refused for about one variate in 10,000 at most, and then a loop goes on


class Attempts(NamedTuple):
    """Randomness for gamma variates whose shapes are not known yet."""

    normal: Array  # [ATTEMPTS, size]
    log_uniform: Array  # [ATTEMPTS, size]
    log_boost: Array  # [size]
    key: Array


def attempts(key: Array, size: int) -> Attempts:
    """Drawn ahead, for `gamma_from`."""
    normal, uniform, rest = jax.random.split(key, 3)
    log_u = -jax.random.exponential(uniform, (ATTEMPTS + 1, size))
    return Attempts(jax.random.normal(normal, (ATTEMPTS, size)), log_u[1:], log_u[0], rest)


def gamma_from(noise: Attempts, shape: Array) -> Array:
    """Gamma(shape, rate 1) variates as a map of noise drawn ahead: of each, the first attempt that fits."""
    above = _above_1(shape)
    cube, accepted = _attempt(noise.normal[0], noise.log_uniform[0], above)
    for x, log_u in zip(noise.normal[1:], noise.log_uniform[1:], strict=True):
        candidate, fits = _attempt(x, log_u, above)
        cube, accepted = jnp.where(accepted, cube, candidate), accepted | fits
    cube = _until_accepted(noise.key, above, accepted, cube)
    return (above - 1 / 3) * cube * _shrink(noise.log_boost, shape)


def standard_gamma(key: Array, shape: Array | float) -> Array:
    """Draws of Gamma(shape, rate 1) (Marsaglia & Tsang 2000), written so that vmap runs all lanes at once."""
    boost, loop = jax.random.split(key)
    above = _above_1(shape)
    nothing_yet = jnp.zeros_like(above)
    cube = _until_accepted(loop, above, nothing_yet > 0, nothing_yet)
    return (above - 1 / 3) * cube * _shrink(-jax.random.exponential(boost, above.shape), shape)


def _above_1(shape: Array | float) -> Array:
    return jnp.where(shape < 1, shape + 1.0, shape)


def _shrink(log_u: Array, shape: Array | float) -> Array:
    """Gamma(a) = Gamma(a + 1) U^(1/a) for a < 1."""
    return jnp.where(shape < 1, jnp.exp(log_u / jnp.where(shape < 1, shape, 1.0)), 1.0)


def _attempt(x: Array, log_u: Array, shape: Array) -> tuple[Array, Array]:
    """Marsaglia & Tsang's candidate for Gamma(shape) / (shape - 1/3), shape >= 1, and whether it is accepted."""
    d = shape - 1 / 3
    candidate = (1 + x / jnp.sqrt(9 * d)) ** 3
    log_candidate = jnp.log(jnp.where(candidate > 0, candidate, 1.0))
    return candidate, (candidate > 0) & (log_u < x**2 / 2 + d * (1 - candidate + log_candidate))


def _until_accepted(key: Array, shape: Array, accepted: Array, cube: Array) -> Array:
    def again(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, accepted, cube = carry
        normal, uniform = jax.random.split(jax.random.fold_in(key, i))
        x, log_u = jax.random.normal(normal, shape.shape), -jax.random.exponential(uniform, shape.shape)
        candidate, fits = _attempt(x, log_u, shape)
        return i + 1, accepted | fits, jnp.where(accepted, cube, candidate)

    return jax.lax.while_loop(lambda carry: ~jnp.all(carry[1]), again, (0, accepted, cube))[2]
