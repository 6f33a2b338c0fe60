"""Functions of the tails of distributions whose gradients are finite wherever they are, also where nobody looks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from crossfade.types import Array


def erfcx(x: Array) -> Array:
    """exp(x^2) erfc(x), in which PyMC writes the tails of the normal; constant where it would overflow."""
    x = jnp.maximum(x, -26.0)
    return 2 * jnp.exp(x**2 + jax.scipy.special.log_ndtr(-np.sqrt(2.0) * x))


def erfc(x: Array) -> Array:
    """1 - erf(x), at most the number before 2: PyMC takes log(1 - erfc / 2)."""
    return jnp.minimum(jax.scipy.special.erfc(x), np.nextafter(2.0, 0.0))


def log1mexp(x: Array) -> Array:
    """log(1 - exp(x)) of x < 0."""
    far = x < np.log(0.5)
    return jnp.where(
        far,
        jnp.log1p(-jnp.exp(jnp.where(far, x, -1.0))),
        jnp.log(-jnp.expm1(jnp.where(far, -1.0, x))),
    )
