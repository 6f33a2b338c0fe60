"""A model: one normalised prior factor per named parameter, and a log likelihood with all constants kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import reduce
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import Distribution, Normal, TransformedDistribution, constraints
from numpyro.distributions.transforms import AffineTransform, ExpTransform

from crossfade.density.traced import traced
from crossfade.types import Array, CrossfadeError, Theta

# A prior is a distribution, or a module that gives one from the other parameters (theta | variance, say).
Prior: TypeAlias = Distribution | Callable[[Theta], Distribution]


def given(prior: Prior, theta: Theta) -> Distribution:
    """The prior's distribution, conditional on the other parameters if it depends on them."""
    return narrowed(_plainly_given(prior, theta))


def _plainly_given(prior: Prior, theta: Theta) -> Distribution:
    return prior if isinstance(prior, Distribution) else prior(theta)


def log_density(prior: Prior, name: str, theta: Theta) -> Array:
    """log p(theta[name] | the rest): -inf outside the support, where formulas would give garbage."""
    distribution = _plainly_given(prior, theta)
    value = theta[name]
    if forgets(layers(distribution)[-1]):  # or else a compiler may round otherwise in the check than in the density
        value = jax.lax.optimization_barrier(value)
    elif distribution.support is constraints.real:
        return jnp.sum(distribution.log_prob(value))
    inside = jnp.all(within(distribution, value))
    safe = jnp.where(inside, value, feasible(distribution, value))
    return jnp.where(inside, jnp.sum(distribution.log_prob(safe)), -jnp.inf)


def forgets(own: Distribution) -> bool:
    """Whether more is impossible than its support says: of the exponential of a Uniform, all positive numbers."""
    if not isinstance(own, TransformedDistribution) or type(own).support is not TransformedDistribution.support:
        return False  # classes of their own say where they live
    images = [own.base_dist.support, *(transform.codomain for transform in own.transforms[:-1])]
    pairs = [(elementwise(t.domain), elementwise(image)) for t, image in zip(own.transforms, images, strict=True)]
    known = all(type(domain) is type(image) and not jax.tree.leaves(image) for domain, image in pairs)
    return not known or forgets(layers(own.base_dist)[-1])


def within(distribution: Distribution, value: Array) -> Array:
    """Where a value is possible: in the support, and in that of what it is a transform of."""
    found, own = jnp.asarray(distribution.support(value)), layers(distribution)[-1]
    if not forgets(own):
        return found
    ahead, masks = jnp.ndim(value) - distribution.event_dim, [found]
    for transform in reversed(own.transforms):
        masks.append(transform.codomain(value))
        value = transform.inv(value)
    masks.append(within(own.base_dist, value))
    return reduce(jnp.logical_and, (jnp.all(mask, axis=tuple(range(ahead, jnp.ndim(mask)))) for mask in masks))


def feasible(distribution: Distribution, value: Array) -> Array:
    """A possible value of this shape."""
    own = layers(distribution)[-1]
    if not forgets(own):
        return distribution.support.feasible_like(value)
    for transform in reversed(own.transforms):
        value = transform.inv(value)
    value = feasible(own.base_dist, value)
    for transform in own.transforms:
        value = transform(value)
    return jax.lax.stop_gradient(value)


def narrowed(distribution: Distribution) -> Distribution:
    """The same with a support that forgets nothing, where that is a known half-line or interval: chains live inside."""
    own = layers(distribution)[-1]
    if not forgets(own):
        return distribution
    new = copy(own)
    new.transforms, new.base_dist = [], narrowed(own.base_dist)
    image = new.base_dist.support
    with jax.ensure_compile_time_eval():  # bounds are numbers, even where the distribution is traced
        for transform in own.transforms:
            new.transforms.append(_from(elementwise(image), transform))
            image = new.transforms[-1].codomain
    for layer in reversed(layers(distribution)[:-1]):
        outer = copy(layer)
        outer.base_dist, new = new, outer
    return new


def _from(image: Any, transform: Any) -> Any:
    """A transform of these numbers alone."""
    below = isinstance(image, constraints.less_than)
    bounded = below or isinstance(image, constraints.interval | constraints.greater_than)
    moving = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((image, transform)))
    if not bounded or moving or transform.domain is not constraints.real:
        return transform
    if type(transform) is ExpTransform:  # which knows no upper bounds alone
        return ExpTransform(constraints.interval(-jnp.inf, image.upper_bound) if below else image)
    if type(transform) is AffineTransform and abs(np.sum(np.sign(transform.scale))) == np.size(transform.scale):
        return AffineTransform(transform.loc, transform.scale, domain=image)
    return transform


def elementwise(support: Any) -> Any:
    """The support of one element, where elements do not depend on each other: a vector of reals is so many reals."""
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    return support


def inner(distribution: Distribution) -> Iterator[Distribution]:
    """The distribution and all that it is made of: what it transforms, mixes, begins with."""
    yield distribution
    for value in vars(distribution).values():
        for part in jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, Distribution)):
            if isinstance(part, Distribution):
                yield from inner(part)


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
            parts = inner(prior) if isinstance(prior, Distribution) else ()
            if any(part is not prior and isinstance(part, dist.Delta | dist.ImproperUniform) for part in parts):
                raise CrossfadeError(
                    f"the prior of {name!r} is improper in part, or has a lump of probability: give it a density"
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
    while isinstance(found[-1], dist.ExpandedDistribution | dist.Independent | dist.MaskedDistribution):
        found.append(found[-1].base_dist)
    return found


def read(function: Any, *args: Any) -> Any:
    """Modules and distributions carry their data as arguments and are left alone; anything else is read, as of now."""
    return function if function is None or isinstance(function, eqx.Module | Distribution) else traced(function, *args)
