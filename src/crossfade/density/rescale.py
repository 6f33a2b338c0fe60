"""Priors made wider or narrower: the same distribution with another scale."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.truncated import (
    LeftTruncatedDistribution,
    RightTruncatedDistribution,
    TwoSidedTruncatedDistribution,
)

from crossfade.density.model import Prior, describe, given
from crossfade.types import Array, CrossfadeError, Theta

TRUNCATED = (LeftTruncatedDistribution, RightTruncatedDistribution, TwoSidedTruncatedDistribution)


def rescaled(distribution: Distribution, factor: Array) -> Distribution | None:
    """The distribution with `factor` times its scale, other arguments and bounds as they are; None without a scale."""
    if isinstance(distribution, (dist.ExpandedDistribution, dist.Independent, *TRUNCATED)):
        inner = rescaled(distribution.base_dist, factor)
        if inner is None:
            return None
        if isinstance(distribution, dist.ExpandedDistribution):
            return inner.expand(distribution.batch_shape)
        if isinstance(distribution, dist.Independent):
            return inner.to_event(distribution.reinterpreted_batch_ndims)
        return type(distribution)(inner, **_arguments(distribution))
    arguments = _arguments(distribution)
    if isinstance(distribution, dist.Exponential):
        return dist.Exponential(distribution.rate / factor)
    if "scale" not in arguments:
        return None
    arguments["scale"] = jnp.asarray(arguments["scale"], float) * factor
    try:
        return type(distribution)(**arguments)
    except TypeError:  # it needs more than its numbers, e.g. a number of steps
        return None


def _arguments(distribution: Distribution) -> dict[str, Any]:
    return {name: getattr(distribution, name) for name in distribution.arg_constraints}


class Rescaled(eqx.Module):
    """A prior that depends on other parameters, with its scale multiplied."""

    prior: Any
    factor: np.ndarray

    def __call__(self, theta: Theta) -> Distribution:
        found = rescaled(self.prior(theta), self.factor)
        assert found is not None  # rescaled_prior has looked
        return found

    def __str__(self) -> str:
        name = str(self.prior) if isinstance(self.prior, eqx.Module) else "as before"
        return f"{name}, scale x {float(self.factor):.3g}" if self.factor != 1 else name


class Stretched(eqx.Module):
    """A prior that is known by its log density alone, `factor` times as wide around its origin."""

    log_prior: Any  # log p(theta[name] | the rest)
    origin: Any  # of theta; None where nobody knows it
    support: Any
    factor: np.ndarray
    name: str = eqx.field(static=True)
    words: str = eqx.field(static=True)

    def log_density(self, theta: Theta) -> Array:
        if self.origin is None:
            return self.log_prior(theta)
        value, origin = theta[self.name], self.origin(theta)
        inside = {**theta, self.name: origin + (value - origin) / self.factor}
        return self.log_prior(inside) - jnp.size(value) * jnp.log(self.factor)

    def __str__(self) -> str:
        return f"{self.words}, scale x {float(self.factor):.3g}" if self.factor != 1 else self.words


def rescaled_prior(prior: Prior | Stretched, factor: float, theta: Theta, whose: str) -> Prior | Stretched:
    """The prior with its scale multiplied; theta is a point at which a conditional one can be looked at."""
    if isinstance(prior, Stretched):
        if prior.origin is None:
            raise CrossfadeError(no_scale(prior, whose))
        return dataclasses.replace(prior, factor=np.asarray(float(factor)))
    before = given(prior, theta)
    after = rescaled(before, factor)
    if after is None or after.shape() != before.shape():
        raise CrossfadeError(no_scale(prior, whose))
    _check_support(before, after, whose)
    return after if isinstance(prior, Distribution) else Rescaled(prior, np.asarray(float(factor)))


def no_scale(prior: Prior | Stretched, whose: str) -> str:
    return (
        f"the prior of {whose} is {words(prior)}, which has no scale to multiply: pass prior=, a function of the "
        "factor that returns the new prior and at 1 the one that was compared; of a Gamma(2, 0.1), say, prior=lambda "
        "factor: Gamma(2, 0.1 / factor)"
    )


def checked(new: Any, old: Prior | Stretched, name: str, theta: Theta, whose: str) -> Prior:
    """The user's new prior, which must be one for draws of the old one: proper, of this shape, nowhere else."""
    after = new if isinstance(new, Distribution) else new(theta) if callable(new) else None
    if not isinstance(after, Distribution) or isinstance(after, dist.ImproperUniform):
        raise CrossfadeError(f"prior= returns {new} for {whose}: it must return a proper NumPyro distribution")
    shape = np.shape(theta[name])
    if np.broadcast_shapes(after.shape(), shape) != shape:
        raise CrossfadeError(
            f"prior= returns a distribution of shape {after.shape()} for {whose}, of shape {shape}: make them equal"
        )
    _check_support(old if isinstance(old, Stretched) else given(old, theta), after, whose)
    return new


def _check_support(old: Distribution | Stretched, new: Distribution, whose: str) -> None:
    if not covers(old.support, new.support):
        raise CrossfadeError(
            f"the new prior of {whose}, {words(new)}, reaches beyond the support of the old one, where there are no "
            "draws: keep inside of it, or compare models that have the new prior"
        )


def covers(old: Any, new: Any) -> bool:
    """Whether a support holds all of another: intervals by their bounds, other kinds if they are equal."""
    old, new = (getattr(support, "base_constraint", support) for support in (old, new))
    before, after = _bounds(old), _bounds(new)
    if before is None or after is None:
        return bool(eqx.tree_equal(old, new))
    return bool(np.all(after[0] >= before[0]) and np.all(after[1] <= before[1]))


def _bounds(support: Any) -> tuple[Array, Array] | None:
    if support is constraints.real:
        return -np.inf, np.inf
    if support.is_discrete or not (hasattr(support, "lower_bound") or hasattr(support, "upper_bound")):
        return None
    return np.asarray(getattr(support, "lower_bound", -np.inf)), np.asarray(getattr(support, "upper_bound", np.inf))


def words(prior: Any) -> str:
    """`describe`, with the scale of distributions that wrap another one."""
    if isinstance(prior, dist.ExpandedDistribution | dist.Independent):
        return words(prior.base_dist)
    if isinstance(prior, TRUNCATED):
        bounds = [f"{name} {np.asarray(value):g}" for name, value in _arguments(prior).items() if np.ndim(value) == 0]
        return ", ".join([f"{words(prior.base_dist)} truncated", *bounds])
    return describe(prior)
