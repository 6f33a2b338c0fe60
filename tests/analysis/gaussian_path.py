"""A path on which everything is exact: q_0 = exp(-x^2/2), q_1 = exp(log_c - (x - m)^2 / (2 s^2))."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from crossfade.analysis.moments import Moments
from crossfade.types import Trace


class GaussianPath(NamedTuple):
    m: float = 1.5
    s: float = 0.6
    log_c: float = 0.7

    @property
    def truth(self) -> float:
        """log Z_1 - log Z_0."""
        return self.log_c + float(np.log(self.s))

    def precision(self, tau: np.ndarray) -> np.ndarray:
        return (1 - tau) + tau / self.s**2

    def centre(self, tau: np.ndarray) -> np.ndarray:
        return tau * self.m / self.s**2 / self.precision(tau)

    def ratio(self, x: np.ndarray) -> np.ndarray:
        return self.log_c + x**2 / 2 - (x - self.m) ** 2 / (2 * self.s**2)

    def moments(self, tau: np.ndarray) -> Moments:
        """Mean and variance of a x^2 + b x + c under N(mu, v)."""
        a, b, c = (1 - 1 / self.s**2) / 2, self.m / self.s**2, self.log_c - self.m**2 / (2 * self.s**2)
        mu, v = self.centre(tau), 1 / self.precision(tau)
        return Moments(a * (mu**2 + v) + b * mu + c, 2 * a**2 * v**2 + (2 * a * mu + b) ** 2 * v)

    def log_z(self, tau: np.ndarray) -> np.ndarray:
        """log Z_tau - log Z_0."""
        linear = tau * self.m / self.s**2
        constant = tau * (self.log_c - self.m**2 / (2 * self.s**2))
        return constant - np.log(self.precision(tau)) / 2 + linear**2 / (2 * self.precision(tau))

    def equilibrium(
        self, rng: np.random.Generator, tau: np.ndarray, n_chains: int, n_draws: int, rho: float = 0.0
    ) -> Trace:
        """Exact draws at every rung, an AR(1) series with coefficient rho along each chain."""
        noise = rng.normal(size=(n_chains, len(tau), n_draws))
        noise[..., 1:] *= np.sqrt(1 - rho**2)
        z = lfilter([1.0], [1.0, -rho], noise, axis=-1)
        mu, precision = self.centre(tau)[:, None], self.precision(tau)[:, None]
        x = mu + z / np.sqrt(precision)
        extra = {"theta": x[..., None], "score": (-precision * (x - mu))[..., None]}
        return Trace(tau, self.ratio(x), np.ones(x.shape[:2]), True, extra)

    def sweep(self, rng: np.random.Generator, tau: np.ndarray, n_chains: int, rho: float) -> Trace:
        """N x 1 draws from 0 to 1 by a reversible AR(1) kernel at every rung, from an exact start."""
        return self._sweep(rng, tau, tau, n_chains, rho, 1)

    def reverse_sweep(self, rng: np.random.Generator, tau: np.ndarray, n_chains: int, rho: float) -> Trace:
        """The same on the reversed path: ladder 1 - tau reversed, ratio' = -ratio."""
        return self._sweep(rng, 1 - tau[::-1], tau[::-1], n_chains, rho, -1)

    def _sweep(
        self,
        rng: np.random.Generator,
        ladder: np.ndarray,
        tau: np.ndarray,
        n_chains: int,
        rho: float,
        sign: int,
    ) -> Trace:
        mu, sd = self.centre(tau), 1 / np.sqrt(self.precision(tau))
        x = np.empty((n_chains, len(tau)))
        z = rng.normal(size=x.shape)
        x[:, 0] = mu[0] + sd[0] * z[:, 0]
        for k in range(1, len(tau)):
            x[:, k] = mu[k] + rho * (x[:, k - 1] - mu[k]) + np.sqrt(1 - rho**2) * sd[k] * z[:, k]
        return Trace(ladder, sign * self.ratio(x)[..., None], np.ones(x.shape), False)


def sweep_of_works(works: np.ndarray) -> Trace:
    """One step from 0 to 1 whose work is given."""
    ratio = np.stack([works, np.zeros_like(works)], axis=1)[..., None]
    return Trace(np.array([0.0, 1.0]), ratio, np.ones(ratio.shape[:2]), False)
