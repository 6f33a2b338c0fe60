"""The exact path between two conjugate linear ends, and the blocks that sample it: one regression, or several at once.

Each end of a regression is one augmented least-squares problem S_k(theta) = |target_k - root_k theta|^2 + rest over
the union of coefficients, prior rows included; the path mixes them as (1 - tau) S_1 + tau S_2.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from numpyro import distributions as dist
from scipy.linalg import block_diag

from crossfade.paths.path import Path
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Block, Gibbs
from crossfade.sampling.pencil import Pencil, pencil
from crossfade.types import Array, Energy, Float, State, Theta
from crossfade.worlds.design import LOG_2PI, mix, vector


class End(NamedTuple):
    """One end of a regression: S(theta) = |target - root theta|^2 + rest; n data; 1/variance ~ Gamma(shape, rate)."""

    root: np.ndarray
    target: np.ndarray
    rest: float
    n: int
    log_precision: float  # sum of the logs of the prior precisions that are in root
    shape: float
    rate: float


class Regressions(eqx.Module):
    """The whole path: in u, theta = origin + V u, both S_1 and S_2 of every regression are sums of squares.

    S_1 = least_1 + sum u^2 and S_2 = least_2 + sum values (u - shift)^2 over a regression's own coefficients: nothing
    is factorised or cancelled later. Fields [2, ...] are of both ends; of one regression they are pairs of scalars,
    of several there is an axis for them. A world says how it calls its variances and on which scale it keeps them.
    """

    pencil: Pencil
    inverse: np.ndarray  # V^-1
    origin: np.ndarray  # minimiser of S_1
    shift: np.ndarray
    least: Float[np.ndarray, "2 ..."]
    n: Float[np.ndarray, "2 ..."]
    log_precision: Float[np.ndarray, "2 ..."]
    gamma: tuple[np.ndarray, np.ndarray]  # shape and rate, each [2, ...]
    member: Float[np.ndarray, "coefficient regression"] | None  # 1 where it belongs; None if there is one regression
    known: np.ndarray | None  # the variance, if it is
    names: tuple[str, ...] = eqx.field(static=True)

    power: ClassVar[int] = 1  # a density of v has v^-(a + 1); of log v it would be v^-a

    @abc.abstractmethod
    def variance_of(self, theta: Theta) -> Array:
        """v, from the parameter that stands for it."""

    @abc.abstractmethod
    def named(self, variance: Array) -> Theta:
        """The parameter that stands for v."""

    @property
    def sizes(self) -> Any:
        """p, the number of coefficients of each regression."""
        return len(self.names) if self.member is None else self.member.sum(axis=0)

    def ends(self, u: Array) -> Array:
        """S_1 and S_2 at u."""
        squares = (u**2, self.pencil.values * (u - self.shift) ** 2)
        return self.least + jnp.stack([jnp.sum(own) if self.member is None else own @ self.member for own in squares])

    def centre(self, tau: Array) -> Array:
        """The u that minimises S_tau."""
        return tau * self.pencil.values * self.shift / self.pencil.weights(tau)

    def spread(self, variance: Array, tau: Array) -> Array:
        """Standard deviations of u given the variances."""
        of_each = variance if self.member is None else self.member @ variance
        return jnp.sqrt(of_each / self.pencil.weights(tau))

    def shape(self, tau: Array) -> Array:
        """Of 1/v given nothing but the data: a_tau + n_tau / 2."""
        return mix(tau, self.gamma[0]) + mix(tau, self.n) / 2

    def rate(self, squares: Array, tau: Array) -> Array:
        """b_tau + S_tau / 2."""
        return mix(tau, self.gamma[1]) + mix(tau, squares) / 2

    def position(self, theta: Theta) -> Array:
        return self.inverse @ (vector(theta, self.names) - self.origin)

    def coefficients(self, u: Array) -> Theta:
        values = self.origin + self.pencil.vectors @ u
        return {name: values[i] for i, name in enumerate(self.names)}

    def energy(self, squares: Array, variance: Array) -> Energy:
        """log q of both ends, the variances unknown, where `squares` are S_1 and S_2: what the path says, in short."""
        a, b = self.gamma
        n = self.n + self.sizes
        constant = self.log_precision / 2 - n / 2 * LOG_2PI + a * jnp.log(b) - gammaln(a)
        terms = constant - (a + self.power + n / 2) * jnp.log(variance) - (b + squares / 2) / variance
        start, end = terms if self.member is None else jnp.sum(terms, axis=1)
        return Energy(start, end)

    def log_normaliser(self, tau: Array) -> Array:
        """log Z_tau in closed form; its first two derivatives are the mean and variance of log_ratio."""
        least, n = self.ends(self.centre(tau)), mix(tau, self.n)
        if self.known is not None:
            terms = -n / 2 * (LOG_2PI + jnp.log(self.known)) - mix(tau, least) / self.known / 2
        else:
            a, b = self.gamma
            shape, rate = self.shape(tau), self.rate(least, tau)
            terms = -n / 2 * LOG_2PI + mix(tau, a * jnp.log(b) - gammaln(a)) + gammaln(shape) - shape * jnp.log(rate)
        return jnp.sum(terms + mix(tau, self.log_precision) / 2) - self.pencil.log_det(tau) / 2


R = TypeVar("R", bound=Regressions)


def regression(kind: type[R], ends: tuple[End, End], names: tuple[str, ...], known: np.ndarray | None = None) -> R:
    """Both ends in the one basis in which both are sums of squares."""
    best = [np.linalg.lstsq(end.root, end.target, rcond=None)[0] for end in ends]
    least = [end.rest + np.sum((end.target - end.root @ b) ** 2) for end, b in zip(ends, best, strict=True)]
    whitened = pencil(ends[0].root, ends[1].root) if names else Pencil(np.zeros((0, 0)), np.zeros(0))
    inverse = np.linalg.inv(whitened.vectors)
    return kind(
        pencil=whitened,
        inverse=inverse,
        origin=best[0],
        shift=inverse @ (best[1] - best[0]),
        least=np.array(least),
        n=np.array([float(end.n) for end in ends]),
        log_precision=np.array([end.log_precision for end in ends]),
        gamma=(np.array([end.shape for end in ends]), np.array([end.rate for end in ends])),
        member=None,
        known=known,
        names=names,
    )


def together(parts: Sequence[R]) -> R:
    """Several regressions as one, the coefficients of the first before those of the second."""
    of_ends = [(part.least, part.n, part.log_precision, *part.gamma) for part in parts]
    least, n, log_precision, *gamma = (np.stack(own, axis=1) for own in zip(*of_ends, strict=True))
    vectors, values = zip(*((part.pencil.vectors, part.pencil.values) for part in parts), strict=True)
    return type(parts[0])(
        pencil=Pencil(block_diag(*vectors), np.concatenate(values)),
        inverse=block_diag(*(part.inverse for part in parts)),
        origin=np.concatenate([part.origin for part in parts]),
        shift=np.concatenate([part.shift for part in parts]),
        least=least,
        n=n,
        log_precision=log_precision,
        gamma=(gamma[0], gamma[1]),
        member=np.repeat(np.eye(len(parts)), [len(part.names) for part in parts], axis=0),
        known=None,
        names=sum((part.names for part in parts), ()),
    )


class Coefficients(Block):
    """theta | v ~ N(origin + V centre, v (A_tau)^-1)."""

    pair: Regressions

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.normal(key, (len(self.pair.names),))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        spread = self.pair.spread(self.pair.variance_of(theta), tau)
        return self.pair.coefficients(self.pair.centre(tau) + spread * noise)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        spread = self.pair.spread(self.pair.variance_of(theta), tau)
        log_density = dist.Normal(self.pair.centre(tau), spread).log_prob(self.pair.position(theta))
        return jnp.sum(log_density) + jnp.linalg.slogdet(jnp.asarray(self.pair.inverse))[1]


class Variance(Block):
    """1/v | theta ~ Gamma(a_tau + (n_tau + p) / 2, b_tau + S_tau(theta) / 2), independent over the regressions."""

    pair: Regressions

    def shape(self, tau: Array) -> Array:
        return self.pair.shape(tau) + self.pair.sizes / 2

    def rate(self, theta: Theta, tau: Array) -> Array:
        return self.pair.rate(self.pair.ends(self.pair.position(theta)), tau)

    def noise(self, key: Array, tau: Array) -> Array:
        return standard_gamma(key, self.shape(tau))

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        return self.pair.named(self.rate(theta, tau) / noise)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        v = self.pair.variance_of(theta)
        log_density = dist.InverseGamma(self.shape(tau), self.rate(theta, tau)).log_prob(v)
        return jnp.sum(log_density + (1 - self.pair.power) * jnp.log(v))


class Marginal(Variance):
    """1/v ~ Gamma(a_tau + n_tau / 2, b_tau + min S_tau / 2), the coefficients integrated out."""

    def shape(self, tau: Array) -> Array:
        return self.pair.shape(tau)

    def rate(self, theta: Theta, tau: Array) -> Array:
        return self.pair.rate(self.pair.ends(self.pair.centre(tau)), tau)


class TwoBlocks(Gibbs):
    """Coefficients, then Variance, in one go in u: the same map as Gibbs on the two blocks, at half its cost."""

    pair: Regressions

    def __init__(self, pair: Regressions):
        self.blocks = (Coefficients(pair), Variance(pair))
        self.pair = pair

    def __call__(self, noise: tuple[Array, Array], state: State, path: Path, tau: Array) -> tuple[State, Array]:
        pair, (normal, gamma) = self.pair, noise
        u = pair.centre(tau) + pair.spread(pair.variance_of(state.theta), tau) * normal
        squares = pair.ends(u)
        variance = pair.rate(squares, tau) / gamma
        theta = {**state.theta, **pair.coefficients(u), **pair.named(variance)}
        return State(theta, pair.energy(squares, variance)), jnp.ones(())


class Joint(Block):
    """An exact draw of everything: v from its marginal, then theta | v."""

    pair: Regressions

    def noise(self, key: Array, tau: Array) -> tuple[Array, Array]:
        gamma, normal = jax.random.split(key)
        draw = jnp.ones(()) if self.pair.known is not None else Marginal(self.pair).noise(gamma, tau)
        return draw, Coefficients(self.pair).noise(normal, tau)

    def draw(self, noise: tuple[Array, Array], theta: Theta, tau: Array) -> Theta:
        own = {} if self.pair.known is not None else Marginal(self.pair).draw(noise[0], theta, tau)
        return own | Coefficients(self.pair).draw(noise[1], own, tau)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        log_prob = Coefficients(self.pair).log_prob(theta, tau)
        return log_prob if self.pair.known is not None else log_prob + Marginal(self.pair).log_prob(theta, tau)
