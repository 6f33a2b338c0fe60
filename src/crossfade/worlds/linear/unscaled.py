"""Blocks of a linear pair whose coefficients' prior does not scale with the noise variance: no closed form."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Block
from crossfade.types import Array, Theta
from crossfade.worlds.linear.conjugate import LOG_2PI, log_inverse_gamma


class UnscaledCoefficients(Block):
    """theta | s2 ~ N(H^-1 (R_tau / s2 + Q mean), H^-1), H = A_tau / s2 + Q: one Cholesky factor per draw."""

    gram: np.ndarray  # [2, p, p], D_k'D_k
    moment: np.ndarray  # [2, p], D_k'y
    precision: np.ndarray  # [2, p]
    weighted_mean: np.ndarray  # [2, p], precision times mean
    names: tuple[str, ...] = eqx.field(static=True)

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.normal(key, (len(self.names),))

    def _mean_and_factor(self, theta: Theta, tau: Array) -> tuple[Array, Array]:
        def mix(pair: Array) -> Array:
            return (1 - tau) * pair[0] + tau * pair[1]

        variance = theta["variance"]
        factor = jnp.linalg.cholesky(mix(self.gram) / variance + jnp.diag(mix(self.precision)))
        right = mix(self.moment) / variance + mix(self.weighted_mean)
        return jax.scipy.linalg.cho_solve((factor, True), right), factor

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        mean, factor = self._mean_and_factor(theta, tau)
        values = mean + jax.scipy.linalg.solve_triangular(factor.T, noise)
        return {name: values[i] for i, name in enumerate(self.names)}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        mean, factor = self._mean_and_factor(theta, tau)
        away = factor.T @ (jnp.stack([theta[name] for name in self.names]) - mean)
        return jnp.sum(jnp.log(jnp.diag(factor))) - (len(self.names) * LOG_2PI + jnp.sum(away**2)) / 2


class UnscaledVariance(Block):
    """1/s2 | theta ~ Gamma(a_tau + n_tau / 2, b_tau + RSS_tau / 2): the prior of theta has no say."""

    squares: tuple[Callable[[Theta], Array], Callable[[Theta], Array]]  # RSS of each end
    n: np.ndarray
    gamma: np.ndarray

    def _shape(self, tau: Array) -> Array:
        shape = self.gamma[:, 0] + self.n / 2
        return (1 - tau) * shape[0] + tau * shape[1]

    def _rate(self, theta: Theta, tau: Array) -> Array:
        first, second = (b + rss(theta) / 2 for b, rss in zip(self.gamma[:, 1], self.squares, strict=True))
        return (1 - tau) * first + tau * second

    def noise(self, key: Array, tau: Array) -> Array:
        return standard_gamma(key, self._shape(tau))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        return {"variance": self._rate(theta, tau) / noise}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        return log_inverse_gamma(theta["variance"], self._shape(tau), self._rate(theta, tau))
