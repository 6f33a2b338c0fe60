"""The exact path between two Gaussian belief networks of the same nodes, and the blocks that sample it."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from numpyro.distributions import Distribution, constraints
from scipy.linalg import block_diag

from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Block
from crossfade.sampling.pencil import Pencil, pencil
from crossfade.types import Array, Theta
from crossfade.worlds.linear.conjugate import LOG_2PI


def stack(theta: Theta, names: tuple[str, ...]) -> Array:
    """The named scalars as a vector, which may be empty."""
    return jnp.stack([theta[name] for name in names]) if names else jnp.zeros(0)


class LogInverseGamma(Distribution):
    """log v where 1/v ~ Gamma(a, rate): density rate^a / Gamma(a) exp(-a x - rate e^-x)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.real
    pytree_data_fields = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, *, validate_args: bool | None = None):
        self.concentration, self.rate = concentration, rate
        super().__init__(jnp.shape(concentration), validate_args=validate_args)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        shapes = jnp.broadcast_to(self.concentration, sample_shape + self.batch_shape)
        return jnp.log(self.rate) - jnp.log(standard_gamma(key, shapes))

    def log_prob(self, value: Array) -> Array:
        constant = self.concentration * jnp.log(self.rate) - gammaln(self.concentration)
        return constant - self.concentration * value - self.rate * jnp.exp(-value)


class Network(eqx.Module):
    """The whole path of a pair: in u, beta = origin + V u, every node's S_1 and S_2 are sums of squares.

    S_1m = least_1m + sum u^2 and S_2m = least_2m + sum values (u - shift)^2 over the edges into m, |beta_m|^2 included.
    """

    pencil: Pencil
    inverse: np.ndarray  # V^-1, block diagonal as V is: one block per node
    origin: np.ndarray
    shift: np.ndarray
    least: np.ndarray  # [2, node]
    n: np.ndarray  # [2]
    shape: np.ndarray  # [node], of the prior of 1/v
    rate: np.ndarray
    child: np.ndarray  # [edge, node]
    betas: tuple[str, ...] = eqx.field(static=True)

    def mix(self, tau: Array, pair: Array) -> Array:
        return (1 - tau) * pair[0] + tau * pair[1]

    def centre(self, tau: Array) -> Array:
        return tau * self.pencil.values * self.shift / self.pencil.weights(tau)

    def squares(self, u: Array, tau: Array) -> Array:
        """S_tau of all nodes at u."""
        terms = (1 - tau) * u**2 + tau * self.pencil.values * (u - self.shift) ** 2
        return self.mix(tau, self.least) + terms @ self.child

    def position(self, theta: Theta) -> Array:
        return self.inverse @ (stack(theta, self.betas) - self.origin)

    def log_normaliser(self, tau: Array) -> Array:
        """log Z_tau in closed form; its first two derivatives are the mean and variance of log_ratio."""
        of = Marginal(self)
        shape, rate = of.shape(tau), of.rate({}, tau)
        constants = self.shape * jnp.log(self.rate) - gammaln(self.shape) + gammaln(shape) - shape * jnp.log(rate)
        n_data = len(self.shape) * self.mix(tau, self.n)
        return jnp.sum(constants) - (n_data * LOG_2PI + self.pencil.log_det(tau)) / 2


class Regression(NamedTuple):
    """One node at one end: S(beta) = |target - rows beta|^2 + |beta|^2."""

    rows: np.ndarray
    target: np.ndarray


def network_of(
    nodes: list[tuple[Regression, Regression]],
    n: tuple[int, int],
    gamma: np.ndarray,
    betas: tuple[str, ...],
) -> Network:
    """All nodes in the bases in which both of their ends are sums of squares; betas come node by node."""
    pencils, inverses, origins, shifts, least = [], [], [], [], []
    for pair in nodes:
        size = pair[0].rows.shape[1]
        roots = [np.vstack([end.rows, np.eye(size)]) for end in pair]
        targets = [np.concatenate([end.target, np.zeros(size)]) for end in pair]
        best = [np.linalg.lstsq(r, t, rcond=None)[0] for r, t in zip(roots, targets, strict=True)]
        least.append([np.sum((t - r @ b) ** 2) for r, t, b in zip(roots, targets, best, strict=True)])
        own = pencil(*roots) if size else Pencil(np.zeros((0, 0)), np.zeros(0))
        pencils.append(own)
        inverses.append(np.linalg.inv(own.vectors))
        origins.append(best[0])
        shifts.append(inverses[-1] @ (best[1] - best[0]))
    sizes = [len(own.values) for own in pencils]
    return Network(
        pencil=Pencil(block_diag(*(own.vectors for own in pencils)), np.concatenate([p.values for p in pencils])),
        inverse=block_diag(*inverses),
        origin=np.concatenate(origins),
        shift=np.concatenate(shifts),
        least=np.array(least).T,
        n=np.array(n, float),
        shape=gamma[:, 0],
        rate=gamma[:, 1],
        child=np.repeat(np.eye(len(nodes)), sizes, axis=0),
        betas=betas,
    )


class Coefficients(Block):
    """beta | v ~ N(origin + V centre, v_m (A_tau)^-1), all nodes at once."""

    network: Network

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.normal(key, (len(self.network.betas),))

    def _spread(self, theta: Theta, tau: Array) -> Array:
        """Standard deviations of u."""
        log_variance = self.network.child @ theta["log_variance"]
        return jnp.exp(log_variance / 2) / jnp.sqrt(self.network.pencil.weights(tau))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        u = self.network.centre(tau) + self._spread(theta, tau) * noise
        values = self.network.origin + self.network.pencil.vectors @ u
        return {name: values[i] for i, name in enumerate(self.network.betas)}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        spread = self._spread(theta, tau)
        away = (self.network.position(theta) - self.network.centre(tau)) / spread
        log_jacobian = jnp.linalg.slogdet(jnp.asarray(self.network.inverse))[1]
        return log_jacobian - jnp.sum(LOG_2PI / 2 + jnp.log(spread) + away**2 / 2)


class Variances(Block):
    """1/v_m | beta ~ Gamma(a_m + (n_tau + p_m) / 2, 1/2 + S_tau,m(beta) / 2), all nodes at once."""

    network: Network

    def shape(self, tau: Array) -> Array:
        return self.network.shape + (self.network.mix(tau, self.network.n) + self.network.child.sum(axis=0)) / 2

    def rate(self, theta: Theta, tau: Array) -> Array:
        return self.network.rate + self.network.squares(self.network.position(theta), tau) / 2

    def noise(self, key: Array, tau: Array) -> Array:
        return standard_gamma(key, self.shape(tau))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        return {"log_variance": jnp.log(self.rate(theta, tau)) - jnp.log(noise)}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        return jnp.sum(LogInverseGamma(self.shape(tau), self.rate(theta, tau)).log_prob(theta["log_variance"]))


class Marginal(Variances):
    """1/v_m ~ Gamma(a_m + n_tau / 2, 1/2 + min S_tau,m / 2), beta integrated out."""

    def shape(self, tau: Array) -> Array:
        return self.network.shape + self.network.mix(tau, self.network.n) / 2

    def rate(self, theta: Theta, tau: Array) -> Array:
        return self.network.rate + self.network.squares(self.network.centre(tau), tau) / 2


class Joint(Block):
    """An exact draw of everything: v from its marginal, then beta | v."""

    network: Network

    def noise(self, key: Array, tau: Array) -> tuple[Array, Array]:
        gamma, normal = jax.random.split(key)
        return Marginal(self.network).noise(gamma, tau), Coefficients(self.network).noise(normal, tau)

    def draw(self, noise: tuple[Array, Array], theta: Theta, tau: Array) -> Theta:
        variances = Marginal(self.network).draw(noise[0], theta, tau)
        return variances | Coefficients(self.network).draw(noise[1], variances, tau)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        return Marginal(self.network).log_prob(theta, tau) + Coefficients(self.network).log_prob(theta, tau)
