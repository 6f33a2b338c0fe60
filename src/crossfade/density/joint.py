"""What every model becomes at the door: one normalised log joint of named parameters, and where they live."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from crossfade.density.coordinates import Coordinates, Density, Place, coordinates
from crossfade.density.model import (
    Model,
    NoData,
    conditional,
    describe,
    given,
    inner,
    log_density,
    read,
    total,
    without_data,
)
from crossfade.density.precision import in_float64
from crossfade.density.traced import traced
from crossfade.types import Array, CrossfadeError, Theta

NOT_DENSITIES = (dist.ImproperUniform, dist.Unit, dist.Delta)

LogDensity = Callable[[Theta], Array]


class Joint(NamedTuple):
    """log p(data, theta) with every constant, from one function or from a prior and a likelihood kept apart."""

    places: dict[str, Place]
    start: Callable[[Array], Theta]  # key -> somewhere to begin: a draw of the prior where there is one
    whole: LogDensity | None = None
    log_prior: LogDensity | None = None
    log_likelihood: LogDensity | None = None
    data: np.ndarray | None = None  # the responses, if known
    notes: tuple[str, ...] = ()  # what the user should know of it, said with the result
    title: str = ""  # what the user calls it: a formula, or the name of a function
    exact_start: bool = False  # whether `start` gives independent draws of the prior
    # log p(theta[name] | parameters before it), one factor per name in order, where the prior is known so.
    factors: dict[str, LogDensity] | None = None
    priors: dict[str, str] = {}  # in words
    # Where a prior is stretched from when it is made wider, where that is known and no distribution is at hand.
    origin: Callable[[str], Callable[[Theta], Array] | None] | None = None
    # Priors given other parameters, where they are known so: a distribution, or a Series, of those before.
    conditional: Mapping[str, Callable[[Theta], Any]] = {}
    model: Model | None = None  # with a world's own sampler, where it comes from one
    dims: dict[str, tuple[str, ...]] = {}  # the model's own names of dimensions, by parameter
    coords: dict[str, list[Any]] = {}  # labels along them, by dimension
    discontinuous: tuple[str, ...] = ()  # parameters in which the log density has steps
    exchangeable: tuple[str, ...] = ()  # parameters with one entry for each component, in any order
    numbered: tuple[str, ...] = ()  # those that are sampled in one order, of the first of them

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.places)

    @property
    def separable(self) -> bool:
        return self.log_prior is not None and self.log_likelihood is not None

    @property
    def log_joint(self) -> LogDensity:
        """One function of theta."""
        if self.whole is not None:
            return self.whole
        if self.log_prior is None or self.log_likelihood is None:
            raise CrossfadeError("a Joint needs `whole`, or `log_prior` and `log_likelihood`")
        return Sum(self.log_prior, self.log_likelihood)

    @property
    def shapes(self) -> Theta:
        return {name: jax.ShapeDtypeStruct(shape, float) for name, (shape, _) in self.places.items()}

    @property
    def coordinates(self) -> Coordinates:
        return coordinates(self.places)

    @property
    def jumps(self) -> np.ndarray | None:
        """Their coordinates."""
        if not self.discontinuous:
            return None
        return np.concatenate([self.coordinates.stretch(name) for name in self.discontinuous])

    def without_data(self) -> Joint:
        """The model that has seen no data: its posterior is its prior, its evidence 1."""
        if not self.separable:
            raise CrossfadeError(
                "a path from no data needs the prior and the likelihood apart: give both to from_log_joint, or bring "
                "the model with from_numpyro, from_pymc or as a crossfade.Model"
            )
        model = None if self.model is None else without_data(self.model)
        return self._replace(log_likelihood=NoData(), data=None, model=model)

    @property
    def density(self) -> Density:
        """The log joint over unconstrained vectors."""
        return Density(traced(self.log_joint, self.shapes), self.coordinates)


class Sum(eqx.Module):
    """log prior + log likelihood."""

    log_prior: LogDensity
    log_likelihood: LogDensity

    def __call__(self, theta: Theta) -> Array:
        return total([self.log_prior(theta), self.log_likelihood(theta)])


class PriorFactor(eqx.Module):
    """log p(theta[name] | the rest), of a model with one prior per parameter."""

    prior: Any
    name: str = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Array:
        return log_density(self.prior, self.name, theta)


class LogPrior(eqx.Module):
    """The log prior of a model with one factor per parameter."""

    model: Model

    def __call__(self, theta: Theta) -> Array:
        return self.model.log_prior(theta)


class PriorDraw(eqx.Module):
    """A draw of the prior of such a model."""

    model: Model

    def __call__(self, key: Array) -> Theta:
        return self.model.sample_prior(key)


class AnyOf(eqx.Module):
    """A start that picks one of these draws."""

    draws: Any  # arrays [draw, ...]: by name, or one of vectors
    n_draws: int = eqx.field(static=True)

    def __call__(self, key: Array) -> Any:
        which = jax.random.randint(key, (), 0, self.n_draws)
        return jax.tree.map(lambda values: jnp.asarray(values)[which], self.draws)


def opened(model: Any, which: str = "the model") -> Model | Joint:
    """Any model as one of ours."""
    if isinstance(model, Model | Joint):
        return model
    # By name, as the package finds its own: who has models of ours needs no bridge.
    if (found := import_module("crossfade.bridges.door").opened(model, which)) is None:
        raise CrossfadeError(
            f"{which} is a {type(model).__name__}: bring it with from_numpyro, from_pymc, from_log_joint, "
            "from_formulas, as a crossfade.Model, as a pm.Model, or as a NumPyro function with its arguments, "
            "(model, y)"
        )
    return found


@in_float64
def as_joint(model: Any, which: str = "the model") -> Joint:
    """Any model, ours or one that a bridge knows, as a joint: the prior and the likelihood stay apart.

    Plain functions are read here, with the data that they see now.
    """
    model = opened(model, which)
    if isinstance(model, Joint):
        parts = {part: read(getattr(model, part), model.shapes) for part in ("whole", "log_prior", "log_likelihood")}
        return model._replace(**parts)
    places, theta = _places(model, which)
    _check_scalar(model, theta, which)
    notes, title = model.notes, model.title  # which are no part of the program that it is read as
    model = _read(model, theta)
    bare = eqx.tree_at(lambda m: m.log_likelihood, model, None)
    return Joint(
        places,
        traced(PriorDraw(model), jax.random.key(0)),
        log_prior=LogPrior(bare),
        log_likelihood=model.log_likelihood,
        data=model.data,
        notes=notes,
        title=title,
        exact_start=True,
        factors={name: PriorFactor(model.priors[name], name) for name in model.names},
        priors={name: describe(model.priors[name]) for name in model.names},
        conditional={name: own for name, own in model.priors.items() if not isinstance(own, dist.Distribution)},
        model=model,
        dims=model.dims,
        exchangeable=getattr(model.log_likelihood, "exchangeable", ()),  # a world may know
    )


def notes_of(*joints: Joint) -> list[str]:
    """What is said of several models is said once."""
    return list(dict.fromkeys(note for joint in joints for note in joint.notes))


def _places(model: Model, which: str) -> tuple[dict[str, Place], Theta]:
    """Shapes and supports of all parameters, and theta in shapes; by tracing where that is enough."""
    priors: dict[str, Any] = {}

    def look(key: Array) -> Theta:
        theta = model.sample_prior(key)
        priors.update({name: given(model.priors[name], theta) for name in model.names})
        return theta

    try:
        shapes = jax.eval_shape(look, jax.random.key(0))
        supports = {name: prior.support for name, prior in priors.items()}
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(supports)):
            # Bounds that are computed may depend on other parameters: two draws tell.
            found = []
            for seed in (0, 1):
                look(jax.random.key(seed))
                found.append({name: prior.support for name, prior in priors.items()})
            supports = found[0]
            if moving := [name for name in model.names if not eqx.tree_equal(found[0][name], found[1][name])]:
                raise CrossfadeError(
                    f"the support of {moving[0]!r} depends on other parameters: write it as a fixed interval times a "
                    "bound"
                )
    except NotImplementedError:
        raise CrossfadeError(f"a prior of {which} cannot be sampled, so it is no proper prior: change it") from None
    for name, prior in priors.items():
        for part in inner(prior):
            masked = isinstance(part, dist.MaskedDistribution) and part._mask is not True
            if not (masked or isinstance(part, NOT_DENSITIES)):
                continue
            kind = type(part).__name__
            raise CrossfadeError(f"the prior of {name!r} is {kind}, not a normalised density: give it a proper prior")
    return {name: (tuple(shapes[name].shape), supports[name]) for name in model.names}, shapes


def _read(model: Model, theta: Theta) -> Model:
    """With every plain function as a program and its data."""
    priors: dict[str, Any] = {}
    for name, prior in model.priors.items():
        plain = not isinstance(prior, eqx.Module | dist.Distribution)
        priors[name] = conditional(prior, {before: theta[before] for before in priors}) if plain else prior
    return Model(priors, read(model.log_likelihood, theta), model.kernel, model.data, model.dims)


def _check_scalar(model: Model, theta: Theta, which: str) -> None:
    """One number, by tracing: the commonest slips show before anything is run."""
    try:
        out = jax.eval_shape(model.log_likelihood, theta)
    except KeyError as error:
        raise CrossfadeError(
            f"the log likelihood of {which} asks for the parameter {error}, which has no prior: it has {list(theta)}"
        ) from error
    except jax.errors.JAXTypeError as error:
        raise CrossfadeError(
            f"the log likelihood of {which} cannot be traced by JAX: use jax.numpy for its arithmetic and jnp.where "
            "for its branches, or bring it with from_numpy_log_joint"
        ) from error
    except CrossfadeError:
        raise
    except Exception as error:  # the user's function may raise anything
        reason = str(error).splitlines()[0] if str(error) else ""
        raise CrossfadeError(f"the log likelihood of {which} failed: {type(error).__name__}: {reason}") from error
    if getattr(out, "shape", None) != ():
        what = "nothing" if out is None else f"an array of shape {getattr(out, 'shape', '?')}"
        raise CrossfadeError(f"the log likelihood of {which} gives {what} and must give one number: sum it")


def fixed(log_likelihood: Array, data: Any) -> Joint:
    """A model without parameters: its evidence is its likelihood."""
    value = np.asarray(log_likelihood, float)
    if not np.isfinite(value):
        raise CrossfadeError(f"the log likelihood of the model without parameters is {value}: look at its data")
    return Joint({}, lambda key: {}, whole=lambda theta: jnp.asarray(value), factors={}, data=data)


def nothing() -> Joint:
    """The model without parameters and data: its evidence is 1, so a Bayes factor over it is an evidence."""
    return Joint({}, lambda key: {}, whole=lambda theta: jnp.zeros(()), factors={})
