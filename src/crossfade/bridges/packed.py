"""Cholesky factors packed row by row into vectors, as PyMC keeps them, and the constant of their LKJ prior."""

from __future__ import annotations

from math import isqrt
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import ParameterFreeTransform
from scipy.special import gammaln

from crossfade.types import Array


def diagonal(size: int) -> np.ndarray:
    """Where the diagonal stands in a packed triangle of so many entries."""
    n = (isqrt(8 * size + 1) - 1) // 2
    return np.cumsum(np.arange(1, n + 1)) - 1


class _PackedCholesky(Constraint[Any]):
    """Packed lower triangles with a positive diagonal."""

    event_dim = 1

    def __call__(self, x: Any) -> Any:
        return (jnp.asarray(x)[..., diagonal(jnp.shape(x)[-1])] > 0).all(axis=-1)

    def feasible_like(self, prototype: Any) -> Array:
        return jnp.zeros_like(prototype).at[..., diagonal(jnp.shape(prototype)[-1])].set(1.0)

    def eq(self, other: object, static: bool = False) -> bool:
        return isinstance(other, _PackedCholesky)

    def tree_flatten(self) -> Any:
        return (), ((), {})


packed_cholesky = _PackedCholesky()


class PackedCholeskyTransform(ParameterFreeTransform[Any]):
    """The exponential of the diagonal; what is below is free."""

    domain = constraints.real_vector
    codomain = packed_cholesky

    def __call__(self, x: Any) -> Array:
        x, where = jnp.asarray(x), diagonal(jnp.shape(x)[-1])
        return x.at[..., where].set(jnp.exp(x[..., where]))

    def _inverse(self, y: Any) -> Array:
        y, where = jnp.asarray(y), diagonal(jnp.shape(y)[-1])
        return y.at[..., where].set(jnp.log(y[..., where]))

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Array:
        return jnp.asarray(x)[..., diagonal(jnp.shape(x)[-1])].sum(axis=-1)


@biject_to.register(_PackedCholesky)
def _transform_to_packed_cholesky(constraint: _PackedCholesky) -> PackedCholeskyTransform:
    return PackedCholeskyTransform()


def log_lkj_mass(n: int, eta: float) -> float:
    """log of the integral of det(R)^(eta - 1) over all n x n correlation matrices R (Lewandowski et al. 2009)."""
    k = np.arange(1, n)
    above = np.sum(k / 2 * np.log(np.pi) + gammaln(eta + (n - 1 - k) / 2))
    return float(above - (n - 1) * gammaln(eta + (n - 1) / 2))
