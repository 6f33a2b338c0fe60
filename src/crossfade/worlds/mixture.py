"""Mixtures of K normals, with the allocations z as part of the state or summed out.

y_i | z_i = k ~ N(mean_k, 1 / precision_k), P(z_i = k) = weight_k; weight ~ Dirichlet(c, ..., c),
mean_k ~ N(0, mean_variance), precision_k ~ Gamma(shape, rate). All labellings count, so evidences need no K!.
Parameters carry K in their names: mixtures of different size share nothing.

`model` tempers the complete-data likelihood, p(y | z, theta)^tau p(z | weight), which keeps every full conditional in
closed form; `summed` tempers p(y | theta)^tau. Both paths have the same ends, but not the same log_ratio between them.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from crossfade.data import load
from crossfade.density.model import Model
from crossfade.paths.path import named_sharing
from crossfade.sampling.gamma import Attempts, attempts, gamma_from
from crossfade.sampling.kernel import Block, Gibbs
from crossfade.types import Array, CrossfadeError, Float, Theta
from crossfade.worlds.design import LOG_2PI, mix


class Allocations(dist.Distribution):
    """n labels 0 ... K - 1 with the probabilities `weight`, as floats like the rest of a state."""

    arg_constraints = {"weight": constraints.simplex}
    pytree_data_fields = ("weight",)

    def __init__(self, weight: Any, n: int, *, validate_args: bool | None = None):
        self.weight = weight
        super().__init__((), (n,), validate_args=validate_args)

    @property
    def support(self) -> Any:
        return constraints.independent(constraints.integer_interval(0, self.weight.shape[-1] - 1), 1)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        return jax.random.categorical(key, jnp.log(self.weight), shape=sample_shape + self.event_shape).astype(float)

    def log_prob(self, value: Array) -> Array:
        return _pick(value, jnp.log(self.weight)[:, None])


class AllocationPrior(eqx.Module):
    """z_i | weight ~ Categorical(weight)."""

    weight: str = eqx.field(static=True)
    n: int = eqx.field(static=True)

    def __str__(self) -> str:
        return f"Categorical({self.weight}), {self.n} times"

    def __call__(self, theta: Theta) -> dist.Distribution:
        return Allocations(theta[self.weight], self.n)


def _pick(z: Array, values: Array) -> Array:
    """sum_i values[z_i, i]; selected and not multiplied, since a log weight may be -inf."""
    return jnp.sum(jnp.where(z == jnp.arange(len(values))[:, None], values, 0.0))


def _log_normal(y: Array, mean: Array, precision: Array) -> Array:
    """log N(y_i; mean_k, 1 / precision_k) [component, datum], without its -log(2 pi) / 2."""
    return (jnp.log(precision)[:, None] - precision[:, None] * (y - mean[:, None]) ** 2) / 2


class MixtureLikelihood(eqx.Module):
    """sum_i log N(y_i; mean_z_i, 1 / precision_z_i), or with z summed out sum_i log sum_k weight_k N(y_i; ..._k)."""

    y: np.ndarray
    n_components: int = eqx.field(static=True)
    summed: bool = eqx.field(static=True, default=False)

    @property
    def exchangeable(self) -> tuple[str, ...]:
        """The components may be renumbered, unless there are allocations to them."""
        return tuple(f"{name}_{self.n_components}" for name in ("mean", "precision", "weight")) if self.summed else ()

    def __call__(self, theta: Theta) -> Array:
        k = self.n_components
        values = _log_normal(self.y, theta[f"mean_{k}"], theta[f"precision_{k}"])
        if self.summed:
            total = jnp.sum(logsumexp(jnp.log(theta[f"weight_{k}"])[:, None] + values, axis=0))
        else:
            total = _pick(theta[f"z_{k}"], values)
        return total - len(self.y) / 2 * LOG_2PI


def model(
    y: Any,
    n_components: int,
    *,
    mean_variance: float = 1000.0,
    shape: float = 1.0,
    rate: float = 1.0,
    concentration: float = 1.0,
) -> Model:
    """A mixture with its allocations in the state: p(y | z, theta)^tau p(z | weight) between the ends of a path."""
    y = np.asarray(y, float)
    if y.ndim != 1 or not np.all(np.isfinite(y)):
        raise CrossfadeError("y must be one column of finite numbers: drop or impute the missing values first")
    if not (isinstance(n_components, int | np.integer) and n_components >= 1):
        raise CrossfadeError(f"n_components = {n_components!r}: give a whole number from 1")
    if not min(mean_variance, shape, rate, concentration) > 0:
        raise CrossfadeError("mean_variance, shape, rate and concentration must be positive: a prior must be proper")
    k, ones = n_components, np.ones(n_components)
    priors: dict[str, Any] = {
        f"weight_{k}": dist.Dirichlet(concentration * ones),
        f"mean_{k}": dist.Normal(0 * ones, np.sqrt(mean_variance) * ones),
        f"precision_{k}": dist.Gamma(shape * ones, rate * ones),
        f"z_{k}": AllocationPrior(f"weight_{k}", len(y)),
    }
    return Model(priors, MixtureLikelihood(y, k), gibbs, y)


def summed(y: Any, n_components: int, **prior: float) -> Model:
    """`model` of the same arguments with its allocations summed out, for the default method; the evidence is equal."""
    full = model(y, n_components, **prior)
    priors = {name: own for name, own in full.priors.items() if not isinstance(own, AllocationPrior)}
    return Model(priors, MixtureLikelihood(full.log_likelihood.y, n_components, summed=True), data=full.data)


class Part(eqx.Module):
    """One mixture of a pair: its data, priors, and how much of its data it feels at tau."""

    y: np.ndarray
    shares: Float[np.ndarray, " 2"]  # of the likelihood at tau = 0 and at tau = 1
    mean_precision: np.ndarray
    gamma: np.ndarray  # (shape, rate) of the prior of a precision
    concentration: np.ndarray
    n_components: int = eqx.field(static=True)

    def share(self, tau: Array) -> Array:
        return mix(tau, self.shares)

    def of(self, theta: Theta, name: str) -> Array:
        return theta[f"{name}_{self.n_components}"]

    def named(self, name: str, value: Array) -> Theta:
        return {f"{name}_{self.n_components}": value}

    def members(self, theta: Theta) -> Array:
        """[component, datum], 1 where the datum is of the component."""
        return (self.of(theta, "z") == jnp.arange(self.n_components)[:, None]).astype(float)


class Labels(Block):
    """z_i ~ Categorical(weight_k N(y_i; mean_k, 1 / precision_k)^t), all data at once by inversion."""

    part: Part

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.uniform(key, (len(self.part.y),))

    def log_p(self, theta: Theta, tau: Array) -> Array:
        weight, mean, precision = (self.part.of(theta, name) for name in ("weight", "mean", "precision"))
        return jnp.log(weight)[:, None] + self.part.share(tau) * _log_normal(self.part.y, mean, precision)

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        log_p = self.log_p(theta, tau)
        p = jnp.exp(log_p - jnp.max(log_p, axis=0))
        below = [p[0]]
        for k in range(1, self.part.n_components):
            below.append(below[-1] + p[k])
        level = noise * below[-1]
        # Label k has the interval [below_{k-1}, below_k), which is empty where its probability is 0.
        z = sum(((level >= edge).astype(float) for edge in below[:-1]), jnp.zeros_like(level))
        return self.part.named("z", z)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        log_p = self.log_p(theta, tau)
        return _pick(self.part.of(theta, "z"), log_p - logsumexp(log_p, axis=0))


class Means(Block):
    """mean_k ~ N(t precision_k sum y / H, 1 / H), H = t precision_k n_k + 1 / mean_variance."""

    part: Part

    def noise(self, key: Array, tau: Array) -> Array:
        return jax.random.normal(key, (self.part.n_components,))

    def mean_and_precision(self, theta: Theta, tau: Array) -> tuple[Array, Array]:
        members = self.part.members(theta)
        felt = self.part.share(tau) * self.part.of(theta, "precision")
        total = felt * jnp.sum(members, axis=1) + self.part.mean_precision
        return felt * (members @ self.part.y) / total, total

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        mean, precision = self.mean_and_precision(theta, tau)
        return self.part.named("mean", mean + noise / jnp.sqrt(precision))

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        mean, precision = self.mean_and_precision(theta, tau)
        return jnp.sum(dist.Normal(mean, 1 / jnp.sqrt(precision)).log_prob(self.part.of(theta, "mean")))


class WeightsAndPrecisions(Block):
    """weight ~ Dirichlet(c + n_k) and precision_k ~ Gamma(a + t n_k / 2, b + t SS_k / 2), independent given the rest.

    One block, since all of them come from gamma variates whose shapes depend on the state.
    """

    part: Part

    def noise(self, key: Array, tau: Array) -> Attempts:
        return attempts(key, 2 * self.part.n_components)

    def shapes_and_rate(self, theta: Theta, tau: Array) -> tuple[Array, Array, Array]:
        """Shapes of the weights; shapes and rates of the precisions."""
        members, mean, share = self.part.members(theta), self.part.of(theta, "mean"), self.part.share(tau)
        counts = jnp.sum(members, axis=1)
        squares = jnp.sum(members * (self.part.y - mean[:, None]) ** 2, axis=1)
        shape, rate = self.part.gamma
        return self.part.concentration + counts, shape + share * counts / 2, rate + share * squares / 2

    def draw(self, noise: Attempts, theta: Theta, tau: Array) -> Theta:
        *shapes, rate = self.shapes_and_rate(theta, tau)
        weight, precision = jnp.split(gamma_from(noise, jnp.concatenate(shapes)), 2)
        return self.part.named("weight", weight / jnp.sum(weight)) | self.part.named("precision", precision / rate)

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        of_weight, shape, rate = self.shapes_and_rate(theta, tau)
        log_p = dist.Dirichlet(of_weight).log_prob(self.part.of(theta, "weight"))
        return log_p + jnp.sum(dist.Gamma(shape, rate).log_prob(self.part.of(theta, "precision")))


def gibbs(m1: Model, m2: Model) -> Gibbs:
    """Allocation Gibbs of both mixtures: M1 feels 1 - tau of its data and M2 tau."""
    if tempered := named_sharing(m1, m2).tempered:
        raise CrossfadeError(f"{tempered} have other priors in M2 than in M1: give both mixtures the same priors")
    priors = {**m1.priors, **m2.priors}
    parts = [_part(priors, prior, (m1, m2)) for prior in priors.values() if isinstance(prior, AllocationPrior)]
    return Gibbs(tuple(kind(part) for part in parts for kind in (Labels, Means, WeightsAndPrecisions)))


def _part(priors: dict[str, Any], z: AllocationPrior, models: tuple[Model, Model]) -> Part:
    k = len(priors[z.weight].concentration)
    seen = [getattr(m.log_likelihood, "n_components", None) == k for m in models]
    data = [m.log_likelihood.y for m, has in zip(models, seen, strict=True) if has]
    gamma = priors[f"precision_{k}"]
    return Part(
        y=data[0] if data else np.zeros(z.n),
        shares=np.array(seen, float),
        mean_precision=np.asarray(priors[f"mean_{k}"].scale[0] ** -2),
        gamma=np.array([gamma.concentration[0], gamma.rate[0]]),
        concentration=np.asarray(priors[z.weight].concentration[0]),
        n_components=k,
    )


def galaxy() -> tuple[Model, Model]:
    """Velocities of 82 galaxies as 3 (M1) and 4 (M2) normals; log Bayes factor 0.492 (error 0.003)."""
    y = load("galaxy")["velocity"].to_numpy(float)
    return model(y, 3), model(y, 4)
