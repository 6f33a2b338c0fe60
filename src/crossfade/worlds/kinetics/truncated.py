"""Slice sampling of a normal variable on x >= 0."""

from __future__ import annotations

import jax.numpy as jnp

from crossfade.types import Array


def slice_step(level: Array, place: Array, x: Array, mean: Array) -> Array:
    """A step that leaves N(mean, variance) on x >= 0 invariant, at any distance of the mean below 0.

    `level` is 2 variance E with E ~ Exp(1), `place` a uniform. Given x, a height under the density is drawn, and the
    new value evenly from where the density is higher: |x' - mean| < h, h^2 = (x - mean)^2 + 2 variance E. In the bulk
    x' is uncorrelated with x, in the tail (an exponential) the correlation is 1/2.
    """
    h = jnp.sqrt((x - mean) ** 2 + level)
    # mean + h without cancellation where the mean is negative
    top = jnp.where(mean < 0, (x * (x - 2 * mean) + level) / (h - mean), mean + h)
    bottom = jnp.maximum(mean - h, 0.0)
    return bottom + place * (top - bottom)
