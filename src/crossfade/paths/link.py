"""Links and warps: what a fit to draws puts between two models.

A link is a normalised density of the coordinates that an end does not have; a warp is how an end reads the shared ones.
Both are normalised, so log Z_1 - log Z_0 is the log Bayes factor whatever was fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.special import chdtri, gammaln

from crossfade.types import Array, Float


def _xp(values: Any) -> Any:
    """NumPy for arrays of draws, JAX for a point of a chain: the same formula for both, and nothing to compile here."""
    return np if isinstance(values, np.ndarray) else jnp


class Noise(NamedTuple):
    """The random numbers that complete the draws of one end: they belong to the draw, whatever link they go through."""

    normal: Float[np.ndarray, "chain draw p"]
    uniform: Float[np.ndarray, "chain draw"]

    def take(self, chains: Any) -> Noise:
        return Noise(self.normal[chains], self.uniform[chains])


def noise(seed: tuple[int, ...], n_chains: int, n_draws: int, p: int) -> Noise:
    """A stream per chain, so that more draws and other chains leave those of a draw as they are."""
    streams = [[np.random.default_rng([*seed, chain, kind]) for kind in (0, 1)] for chain in range(n_chains)]
    return Noise(
        np.array([normal.standard_normal((n_draws, p)) for normal, _ in streams]).reshape(n_chains, n_draws, p),
        np.array([uniform.uniform(size=n_draws) for _, uniform in streams]).reshape(n_chains, n_draws),
    )


class Link(NamedTuple):
    """Student's t of some coordinates given the shared ones: centre linear in them, scale root root'."""

    intercept: Float[Array, " p"]
    slopes: Float[Array, "p shared"]
    root: Array  # [p, p] lower triangular, or [p] if it is diagonal
    inverse: Array  # of the root
    log_constant: Array
    dof: Array  # large: a Gaussian to the last digit that matters

    def log_density(self, own: Array, shared: Array) -> Array:
        """Of own [.., p] given shared [.., s]."""
        if self.intercept.shape[0] == 0:
            return _xp(own).zeros(own.shape[:-1])
        residual = own - self.intercept - shared @ self.slopes.T
        z = residual * self.inverse if self.inverse.ndim == 1 else residual @ self.inverse.T
        p = self.intercept.shape[0]
        return self.log_constant - (self.dof + p) / 2 * _xp(own).log1p((z * z).sum(axis=-1) / self.dof)

    def draw(self, noise: Noise, shared: np.ndarray) -> np.ndarray:
        """A draw [.., p] for each row of shared [.., s]; chi-square by its quantiles, so that it moves with the dof."""
        if len(self.intercept) == 0:
            return np.zeros((*shared.shape[:-1], 0))
        width = np.sqrt(chdtri(float(self.dof), noise.uniform) / float(self.dof))
        move = noise.normal * self.root if self.root.ndim == 1 else noise.normal @ self.root.T
        return self.intercept + shared @ self.slopes.T + move / width[..., None]


def link(intercept: np.ndarray, slopes: np.ndarray, root: np.ndarray, dof: float) -> Link:
    """With its normalising constant: that of a multivariate t."""
    p = len(intercept)
    diagonal = root if root.ndim == 1 else np.diagonal(root)
    inverse = 1 / root if root.ndim == 1 else np.linalg.inv(root)
    constant = gammaln((dof + p) / 2) - gammaln(dof / 2) - p / 2 * np.log(dof * np.pi) - np.log(diagonal).sum()
    return Link(intercept, slopes, root, inverse, np.asarray(constant), np.asarray(float(dof)))


class Warp(NamedTuple):
    """How an end reads the shared coordinates: s = shift + scale v (a vector: elementwise, a matrix: product)."""

    shift: Array
    scale: Array
    inverse_scale: Array
    log_volume: Array  # log|ds / dv|

    def __call__(self, v: Array) -> Array:
        return self.shift + (v * self.scale if self.scale.ndim == 1 else v @ self.scale.T)

    def inverse(self, s: np.ndarray) -> np.ndarray:
        """v of shared coordinates [.., size]."""
        centred = s - self.shift
        return centred * self.inverse_scale if self.scale.ndim == 1 else centred @ self.inverse_scale.T


def warp(shift: np.ndarray, scale: np.ndarray) -> Warp:
    diagonal = scale if scale.ndim == 1 else np.diagonal(scale)
    inverse = 1 / scale if scale.ndim == 1 else np.linalg.inv(scale)
    return Warp(shift, scale, inverse, np.log(diagonal).sum())


class LinkFactor(eqx.Module):
    """A fitted link as a factor of a path's end."""

    link: Link
    own: tuple[int, int] = eqx.field(static=True)  # from, to, in the union
    n_shared: int = eqx.field(static=True)

    def __call__(self, v: Array) -> Array:
        return self.link.log_density(v[self.own[0] : self.own[1]], v[: self.n_shared])


class Read(eqx.Module):
    """A model's density at a point of the union, the shared coordinates read through its warp."""

    density: Callable[[Array], Array]
    warp: Warp
    where: np.ndarray  # its coordinates in the union
    n_shared: int = eqx.field(static=True)

    def __call__(self, v: Array) -> Array:
        whole = v.at[: self.n_shared].set(self.warp(v[: self.n_shared]))
        return self.density(whole[self.where]) + self.warp.log_volume
