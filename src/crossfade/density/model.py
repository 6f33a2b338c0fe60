"""A model: one normalised prior factor per named parameter, and a log likelihood with all constants kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import (
    Distribution,
    ExpandedDistribution,
    Independent,
    MaskedDistribution,
    Normal,
    constraints,
)

from crossfade.density.traced import traced
from crossfade.types import Array, CrossfadeError, Theta

# A prior is a distribution, or a module that gives one from the other parameters (theta | variance, say).
Prior: TypeAlias = Distribution | Callable[[Theta], Distribution]


def given(prior: Prior, theta: Theta) -> Distribution:
    """The prior's distribution, conditional on the other parameters if it depends on them."""
    return prior if isinstance(prior, Distribution) else prior(theta)


def log_density(prior: Prior, name: str, theta: Theta) -> Array:
    """log p(theta[name] | the rest): -inf outside the support, where formulas would give garbage."""
    distribution = given(prior, theta)
    value = theta[name]
    if distribution.support is constraints.real:
        return jnp.sum(distribution.log_prob(value))
    inside = jnp.all(distribution.support(value))
    safe = jnp.where(inside, value, distribution.support.feasible_like(value))
    return jnp.where(inside, jnp.sum(distribution.log_prob(safe)), -jnp.inf)


def total(log_densities: list[Array]) -> Array:
    """Their sum, and -inf where one of them is: those that depend on an impossible value may be undefined there."""
    stacked = jnp.stack(log_densities)
    return jnp.where(jnp.any(stacked == -jnp.inf), -jnp.inf, jnp.sum(stacked))


class NoData(eqx.Module):
    """The likelihood of no data: 1 everywhere."""

    def __call__(self, theta: Theta) -> Array:
        return jnp.zeros(())


class Model(eqx.Module):
    """Priors by parameter name (parents before children) and a log likelihood of all parameters.

    `priors` are NumPyro distributions, or functions of the parameters before that return one. `log_likelihood` takes a
    dict of parameters to a number, in JAX, every constant kept. `data` are the responses, which two models must have in
    common; `dims` names the dimensions of parameters, for the draws.
    """

    priors: dict[str, Any]  # each a Prior
    log_likelihood: Any  # Theta -> scalar; a world's own module, with data its kernels may read
    names: tuple[str, ...] = eqx.field(static=True)
    # How this world samples between two of its models; compare() uses it when no kernel is given.
    kernel: Callable[[Model, Model], Any] | None = eqx.field(static=True)
    # The responses, if known: two models of different data have no Bayes factor, and this is how they are caught.
    data: np.ndarray | None
    # The model's own names of dimensions, as (parameter, names) pairs: what is static must be hashable.
    named_dims: tuple[tuple[str, tuple[str, ...]], ...] = eqx.field(static=True)
    notes: tuple[str, ...] = eqx.field(static=True)  # what the user should know of it, said with the result
    title: str = eqx.field(static=True)  # what the user calls it: a formula, or the name of a function

    def __init__(
        self,
        priors: dict[str, Prior],
        log_likelihood: Callable[[Theta], Array],
        kernel: Callable[[Model, Model], Any] | None = None,
        data: np.ndarray | None = None,
        dims: dict[str, tuple[str, ...]] | None = None,
        notes: tuple[str, ...] = (),
        title: str = "",
    ):
        if not priors:
            raise CrossfadeError("a model needs at least one parameter: give `priors` a name and a distribution")
        for name, prior in priors.items():
            if not (isinstance(prior, Distribution) or callable(prior)) or hasattr(prior, "rvs"):
                raise CrossfadeError(
                    f"the prior of {name!r} is {prior!r}: give a NumPyro distribution, or a function of the other "
                    "parameters that returns one"
                )
        if data is not None and np.asarray(data).dtype.kind not in "biuf":
            raise CrossfadeError(
                "data= takes the responses as numbers, so that two models can be held to the same ones"
            )
        self.priors = dict(priors)
        self.names = tuple(priors)
        self.log_likelihood = log_likelihood
        self.kernel = kernel
        self.data = data
        self.named_dims = tuple((dims or {}).items())
        self.notes = tuple(notes)
        self.title = title

    def described(self, notes: tuple[str, ...], title: str) -> Model:
        return Model(self.priors, self.log_likelihood, self.kernel, self.data, self.dims, notes, title)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        return dict(self.named_dims)

    def log_prior(self, theta: Theta) -> Array:
        return total([log_density(self.priors[name], name, theta) for name in self.names])

    def log_joint(self, theta: Theta) -> Array:
        return self.log_prior(theta) + self.log_likelihood(theta)

    def sample_prior(self, key: Array) -> Theta:
        return sample_in_order(self.priors, self.names, key)


def describe(prior: Prior) -> str:
    """The prior in words, e.g. Normal(0, 10): printed with every result, since a Bayes factor depends on it."""
    if not isinstance(prior, Distribution):
        return str(prior)
    inner = layers(prior)[-1]
    words = type(inner).__name__
    if inner.arg_constraints:
        values = (np.asarray(getattr(inner, name)) for name in inner.arg_constraints)
        words += f"({', '.join(f'{value:g}' if value.ndim == 0 else f'{value.shape} array' for value in values)})"
    shape = (*prior.batch_shape, *prior.event_shape)
    return f"{words} of shape {shape}" if shape and inner is not prior else words


def normal_mean_and_precision(prior: Any) -> tuple[float, float]:
    """Of a normal prior and no other: samplers that complete the square would be wrong without a sign of it."""
    if type(prior) is not Normal:
        raise CrossfadeError(f"a prior is {describe(prior)}; this world's sampler is for Normal priors: pass kernel=")
    return float(prior.loc), float(prior.scale) ** -2


def sample_in_order(priors: dict[str, Prior], names: tuple[str, ...], key: Array) -> Theta:
    """One draw of all parameters, each given those before it."""
    theta: Theta = {}
    for i, name in enumerate(names):
        theta[name] = given(priors[name], theta).sample(jax.random.fold_in(key, i))
    return theta


def without_data(model: Model) -> Model:
    """The model that has seen no data: its posterior is its prior, its evidence 1."""
    return Model({name: model.priors[name] for name in model.names}, NoData(), model.kernel, dims=model.dims)


class Conditional(eqx.Module):
    """A prior that depends on other parameters: its distribution as a program of them."""

    distribution: Callable[[Theta], Distribution]
    words: str = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Distribution:
        return self.distribution(theta)

    def __str__(self) -> str:
        return self.words


class Unread(eqx.Module):
    """A function that cannot be read as a program, with a token that no other has: it may hide data that change."""

    function: Callable[[Theta], Any] = eqx.field(static=True)
    token: object = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Any:
        return self.function(theta)


def conditional(prior: Callable[[Theta], Distribution], parents: Theta, words: str = "") -> Conditional:
    """A prior that is a plain function, read at parameters of these shapes."""
    kinds: list[type] = []

    def look(theta: Theta) -> Array:
        found = layers(prior(theta))
        kinds[:] = [type(layer) for layer in found]
        return jnp.zeros(())

    jax.eval_shape(look, parents)
    words = words or ", given ".join([kinds[-1].__name__, ", ".join(parents)])
    # Others may hold more than NumPyro knows of, and would lose it.
    if all(kind.__module__.startswith("numpyro.") for kind in kinds):
        return Conditional(traced(prior, parents), words)
    return Conditional(Unread(prior, object()), words)


def layers(distribution: Distribution) -> list[Distribution]:
    """The distribution and those it wraps: expanded by a plate, made one event, masked."""
    found = [distribution]
    while isinstance(found[-1], ExpandedDistribution | Independent | MaskedDistribution):
        found.append(found[-1].base_dist)
    return found


def read(function: Any, *args: Any) -> Any:
    """Modules and distributions carry their data as arguments and are left alone; anything else is read, as of now."""
    return function if function is None or isinstance(function, eqx.Module | Distribution) else traced(function, *args)
