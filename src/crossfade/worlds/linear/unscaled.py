"""Blocks of a linear pair whose coefficients' prior does not scale with the noise variance: no closed form."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Block
from crossfade.types import Array, Float, Theta
from crossfade.worlds.design import LOG_2PI, mix, vector


class UnscaledCoefficients(Block):
    """theta | s2 ~ N(H^-1 (R_tau / s2 + Q mean), H^-1), H = A_tau / s2 + Q: one Cholesky factor per draw."""

    gram: Float[np.ndarray, "2 p p"]  # D_k'D_k
    moment: Float[np.ndarray, "2 p"]  # D_k'y
    precision: Float[np.ndarray, "2 p"]
    weighted_mean: Float[np.ndarray, "2 p"]  # precision times mean
    names: tuple[str, ...] = eqx.field(static=True)

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.normal(key, (len(self.names),))

    def _mean_and_factor(self, theta: Theta, tau: Array) -> tuple[Array, Array]:
        variance = theta["variance"]
        factor = jnp.linalg.cholesky(mix(tau, self.gram) / variance + jnp.diag(mix(tau, self.precision)))
        right = mix(tau, self.moment) / variance + mix(tau, self.weighted_mean)
        return jax.scipy.linalg.cho_solve((factor, True), right), factor

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        mean, factor = self._mean_and_factor(theta, tau)
        values = mean + jax.scipy.linalg.solve_triangular(factor.T, noise)
        return {name: values[i] for i, name in enumerate(self.names)}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        mean, factor = self._mean_and_factor(theta, tau)
        away = factor.T @ (vector(theta, self.names) - mean)
        return jnp.sum(jnp.log(jnp.diag(factor))) - (len(self.names) * LOG_2PI + jnp.sum(away**2)) / 2


class UnscaledVariance(Block):
    """1/s2 | theta ~ Gamma(a_tau + n_tau / 2, b_tau + RSS_tau / 2): the prior of theta has no say."""

    squares: tuple[Callable[[Theta], Array], Callable[[Theta], Array]]  # RSS of each end
    shape: Float[np.ndarray, " 2"]  # a + n / 2
    rate: Float[np.ndarray, " 2"]  # b

    def _rate(self, theta: Theta, tau: Array) -> Array:
        return mix(tau, self.rate + jnp.stack([rss(theta) for rss in self.squares]) / 2)

    def noise(self, key: Array, tau: Array) -> Array:
        return standard_gamma(key, mix(tau, self.shape))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        return {"variance": self._rate(theta, tau) / noise}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        return dist.InverseGamma(mix(tau, self.shape), self._rate(theta, tau)).log_prob(theta["variance"])
