"""The exact path between two conjugate linear ends, and the blocks that sample it.

Each end is one augmented least-squares problem S_k(theta) = |target_k - root_k theta|^2 + rest over the union of
coefficients, prior rows included; the path mixes them as (1 - tau) S_1 + tau S_2.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from crossfade.paths.path import Path
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Block, Gibbs
from crossfade.sampling.pencil import Pencil, pencil
from crossfade.types import Array, Energy, State, Theta

LOG_2PI = float(np.log(2 * np.pi))


class End(NamedTuple):
    """One end of a pair over the union: S(theta) = |target - root theta|^2 + rest; n data; Gamma(shape, rate)."""

    root: np.ndarray
    target: np.ndarray
    rest: float
    n: int
    log_precision: float  # sum of the logs of the prior precisions that are in root
    shape: float
    rate: float


class Pair(eqx.Module):
    """The whole path of a conjugate pair: in u, theta = origin + V u, both S_1 and S_2 are sums of squares.

    S_1 = least_1 + |u|^2 and S_2 = least_2 + sum values (u - shift)^2: nothing is factorised or cancelled later.
    """

    pencil: Pencil
    inverse: np.ndarray  # V^-1
    origin: np.ndarray  # minimiser of S_1
    shift: np.ndarray
    least: np.ndarray  # [2]
    n: np.ndarray  # [2]
    log_precision: np.ndarray  # [2]
    gamma: np.ndarray  # [2, (shape, rate)]
    variance: np.ndarray | None  # if known
    names: tuple[str, ...] = eqx.field(static=True)

    def mix(self, tau: Array, pair: Array) -> Array:
        return (1 - tau) * pair[0] + tau * pair[1]

    def ends(self, u: Array) -> Array:
        """S_1 and S_2 at u."""
        return self.least + jnp.stack([jnp.sum(u**2), jnp.sum(self.pencil.values * (u - self.shift) ** 2)])

    def squares(self, u: Array, tau: Array) -> Array:
        """S_tau at u."""
        return self.mix(tau, self.ends(u))

    def centre(self, tau: Array) -> Array:
        """The u that minimises S_tau."""
        return tau * self.pencil.values * self.shift / self.pencil.weights(tau)

    def noise(self, tau: Array) -> tuple[Array, Array]:
        """Shape and rate of 1/s2 given nothing but the data: a_tau + n_tau / 2, b_tau + min S_tau / 2."""
        shape = self.mix(tau, self.gamma[:, 0]) + self.mix(tau, self.n) / 2
        return shape, self.mix(tau, self.gamma[:, 1]) + self.squares(self.centre(tau), tau) / 2

    def position(self, theta: Theta) -> Array:
        return self.inverse @ (jnp.stack([theta[name] for name in self.names]) - self.origin)

    def coefficients(self, u: Array) -> Theta:
        values = self.origin + self.pencil.vectors @ u
        return {name: values[i] for i, name in enumerate(self.names)}

    def variance_of(self, theta: Theta) -> Array:
        return theta["variance"] if self.variance is None else self.variance

    def energy(self, squares: Array, variance: Array) -> Energy:
        """log q of both ends, the variance unknown, where `squares` are S_1 and S_2: what the path says, in short."""
        a, b = self.gamma.T
        n = self.n + len(self.names)
        constant = self.log_precision / 2 - n / 2 * LOG_2PI + a * jnp.log(b) - gammaln(a)
        start, end = constant - (a + 1 + n / 2) * jnp.log(variance) - (b + squares / 2) / variance
        return Energy(start, end)

    def log_normaliser(self, tau: Array) -> Array:
        """log Z_tau in closed form; its first two derivatives are the mean and variance of log_ratio."""
        log_det = self.mix(tau, self.log_precision) - self.pencil.log_det(tau)
        n = self.mix(tau, self.n)
        if self.variance is not None:
            least = self.squares(self.centre(tau), tau)
            return -n / 2 * (LOG_2PI + jnp.log(self.variance)) + (log_det - least / self.variance) / 2
        a, b = self.gamma.T
        shape, rate = self.noise(tau)
        return (
            -n / 2 * LOG_2PI
            + log_det / 2
            + self.mix(tau, a * jnp.log(b) - gammaln(a))
            + (gammaln(shape) - shape * jnp.log(rate))
        )


def pair_of(ends: tuple[End, End], names: tuple[str, ...], variance: np.ndarray | None) -> Pair:
    """Both ends in the one basis in which both are sums of squares."""
    best = [np.linalg.lstsq(end.root, end.target, rcond=None)[0] for end in ends]
    least = [end.rest + np.sum((end.target - end.root @ b) ** 2) for end, b in zip(ends, best, strict=True)]
    whitened = pencil(ends[0].root, ends[1].root)
    inverse = np.linalg.inv(whitened.vectors)
    return Pair(
        pencil=whitened,
        inverse=inverse,
        origin=best[0],
        shift=inverse @ (best[1] - best[0]),
        least=np.array(least),
        n=np.array([float(end.n) for end in ends]),
        log_precision=np.array([end.log_precision for end in ends]),
        gamma=np.array([[end.shape, end.rate] for end in ends]),
        variance=variance,
        names=names,
    )


class Coefficients(Block):
    """theta | s2 ~ N(origin + V centre, s2 (A_tau)^-1)."""

    pair: Pair

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.normal(key, (len(self.pair.names),))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        sd = jnp.sqrt(self.pair.variance_of(theta) / self.pair.pencil.weights(tau))
        return self.pair.coefficients(self.pair.centre(tau) + sd * noise)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        variance = self.pair.variance_of(theta)
        away = self.pair.position(theta) - self.pair.centre(tau)
        square = jnp.sum(self.pair.pencil.weights(tau) * away**2) / variance
        n_names = len(self.pair.names)
        return (self.pair.pencil.log_det(tau) - n_names * (LOG_2PI + jnp.log(variance)) - square) / 2


class Variance(Block):
    """1/s2 | theta ~ Gamma(a_tau + (n_tau + p) / 2, b_tau + S_tau(theta) / 2)."""

    pair: Pair

    def shape(self, tau: Array) -> Array:
        return self.pair.noise(tau)[0] + len(self.pair.names) / 2

    def rate(self, theta: Theta, tau: Array) -> Array:
        return self.pair.mix(tau, self.pair.gamma[:, 1]) + self.pair.squares(self.pair.position(theta), tau) / 2

    def noise(self, key: Array, tau: Array) -> Array:
        return standard_gamma(key, self.shape(tau))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        return {"variance": self.rate(theta, tau) / noise}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        return log_inverse_gamma(theta["variance"], self.shape(tau), self.rate(theta, tau))


class TwoBlocks(Gibbs):
    """Coefficients, then Variance, in one go in u: the same map as Gibbs on the two blocks, at half its cost."""

    pair: Pair

    def __init__(self, pair: Pair):
        self.blocks = (Coefficients(pair), Variance(pair))
        self.pair = pair

    def __call__(self, noise: tuple[Array, Array], state: State, path: Path, tau: Array) -> tuple[State, Array]:
        pair, (normal, gamma) = self.pair, noise
        u = pair.centre(tau) + jnp.sqrt(state.theta["variance"] / pair.pencil.weights(tau)) * normal
        squares = pair.ends(u)
        variance = (pair.mix(tau, pair.gamma[:, 1]) + pair.mix(tau, squares) / 2) / gamma
        theta = {**state.theta, **pair.coefficients(u), "variance": variance}
        return State(theta, pair.energy(squares, variance)), jnp.ones(())


class Joint(Block):
    """An exact draw of everything: s2 from its marginal, then theta | s2."""

    pair: Pair

    def noise(self, key: Array, tau: Array) -> tuple[Array, Array]:
        gamma, normal = jax.random.split(key)
        known = self.pair.variance is not None
        draw = jnp.ones(()) if known else standard_gamma(gamma, self.pair.noise(tau)[0])
        return draw, jax.random.normal(normal, (len(self.pair.names),))

    def draw(self, noise: tuple[Array, Array], theta: Theta, tau: Array) -> Theta:
        own = {} if self.pair.variance is not None else {"variance": self.pair.noise(tau)[1] / noise[0]}
        return own | Coefficients(self.pair).draw(noise[1], own, tau)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        coefficients = Coefficients(self.pair).log_prob(theta, tau)
        if self.pair.variance is not None:
            return coefficients
        return coefficients + log_inverse_gamma(theta["variance"], *self.pair.noise(tau))


def log_inverse_gamma(variance: Array, shape: Array, rate: Array) -> Array:
    """Log density of s2 when 1/s2 ~ Gamma(shape, rate)."""
    return shape * jnp.log(rate) - gammaln(shape) - (shape + 1) * jnp.log(variance) - rate / variance
