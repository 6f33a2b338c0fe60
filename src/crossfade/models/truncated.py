"""Draws of a normal variable on x >= 0, exact at any distance of its mean below 0."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri

from crossfade.types import Array

FAR = -30.0  # mean / sd below which the cdf comes near underflow: there the tail is drawn in another way
LEAST = 1e-300  # rounding must not put a draw on the edge


def truncated_noise(key: Array, n: int) -> Array:
    """[3, n]: a uniform, minus its log, and a second uniform; none is ever 0 or 1."""
    u = jax.random.uniform(key, (2, n)) + 2.0**-53
    return jnp.concatenate([u[:1], -jnp.log(u[:1]), u[1:]])


def truncated_draw(noise: Array, old: Array, mean: Array, sd: Array) -> Array:
    """A draw of N(mean, sd^2) on x >= 0, by the inverse cdf; far out a Metropolis step from the old value.

    That step proposes from the Rayleigh tail, density proportional to z exp(-z^2 / 2) on z > -mean / sd, and accepts
    with z_old / z_new, which is near 1 there: the target is left invariant exactly.
    """
    u, e, v = noise
    t = mean / sd
    near = mean - sd * ndtri(u * ndtr(t))
    z = jnp.sqrt(t**2 + 2 * e)
    far = sd * 2 * e / (z - t)  # sd (z + t) without cancellation
    accepted = v * z < old / sd - t
    return jnp.where(t > FAR, jnp.maximum(near, LEAST), jnp.where(accepted, jnp.maximum(far, LEAST), old))
