"""What worlds share: responses and design checked, coefficients as a vector, both ends of a path mixed."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from crossfade.density.regression import LOG_2PI as LOG_2PI  # one constant for all that have a normal in them
from crossfade.types import Array, CrossfadeError, Theta


def vector(theta: Theta, names: tuple[str, ...]) -> Array:
    """The named scalars, of which there may be none."""
    return jnp.stack([theta[name] for name in names]) if names else jnp.zeros(0)


def mix(tau: Array, pair: Array) -> Array:
    return (1 - tau) * pair[0] + tau * pair[1]


def checked(y: Any, design: Any, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Responses and design as numbers, one row per response and one column per name."""
    y, design = np.asarray(y, float), np.asarray(design, float)
    if design.shape != (len(y), len(names)):
        raise CrossfadeError(f"design has shape {design.shape}, but there are {len(y)} responses and names {names}")
    if not np.all(np.isfinite(design)):
        raise CrossfadeError("design must be finite numbers: drop or impute the missing values first")
    return y, design


def per_name(value: Any, names: tuple[str, ...]) -> np.ndarray:
    """A number for all names, or one for each."""
    return np.broadcast_to(np.asarray(value, float), len(names))
