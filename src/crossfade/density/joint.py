"""A model as the short path sees it: one normalised log joint of named parameters, and where they live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform

from crossfade.density.model import Model, given, total
from crossfade.density.precision import in_float64
from crossfade.paths.path import fresh
from crossfade.types import Array, CrossfadeError, Theta

NOT_DENSITIES = (dist.ImproperUniform, dist.Unit, dist.Delta)

Place = tuple[tuple[int, ...], Constraint]  # the shape of a parameter and its support


class Joint(NamedTuple):
    """log p(data, theta) with every constant, from one function or from a prior and a likelihood kept apart."""

    places: dict[str, Place]
    start: Callable[[Array], Theta]  # key -> somewhere to begin: a draw of the prior where there is one
    whole: Callable[[Theta], Array] | None = None
    log_prior: Callable[[Theta], Array] | None = None
    log_likelihood: Callable[[Theta], Array] | None = None
    data: np.ndarray | None = None  # the responses, if known
    notes: tuple[str, ...] = ()  # what the user should know of it, said with the result
    exact_start: bool = False  # whether `start` gives independent draws of the prior

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.places)

    @property
    def separable(self) -> bool:
        return self.log_prior is not None and self.log_likelihood is not None

    @property
    def log_joint(self) -> Callable[[Theta], Array]:
        """One function of theta; plain functions are compiled anew for every comparison, as they may hide data."""
        if self.whole is not None:
            return fresh(self.whole)
        if self.log_prior is None or self.log_likelihood is None:
            raise CrossfadeError("a Joint needs `whole`, or `log_prior` and `log_likelihood`")
        return _Sum(fresh(self.log_prior), fresh(self.log_likelihood))


class _Sum(eqx.Module):
    log_prior: Callable[[Theta], Array]
    log_likelihood: Callable[[Theta], Array]

    def __call__(self, theta: Theta) -> Array:
        return total([self.log_prior(theta), self.log_likelihood(theta)])


class _Prior(eqx.Module):
    """The log prior of a model with one factor per parameter."""

    model: Model

    def __call__(self, theta: Theta) -> Array:
        return self.model.log_prior(theta)


class _Start(eqx.Module):
    model: Model

    def __call__(self, key: Array) -> Theta:
        return self.model.sample_prior(key)


@eqx.filter_jit
def _sampled(model: Model, key: Array) -> Theta:
    return model.sample_prior(key)


@in_float64
def as_joint(model: Model | Joint, which: str = "the model") -> Joint:
    """Any model, as a joint: the prior and the likelihood stay apart."""
    if isinstance(model, Joint):
        return model
    if not isinstance(model, Model):
        raise CrossfadeError(
            f"{which} is a {type(model).__name__}: bring it with from_numpyro, from_pymc, from_log_joint, "
            "from_formulas, or as a crossfade.Model"
        )
    try:
        first, second = (_sampled(model, jax.random.key(seed)) for seed in (0, 1))
    except NotImplementedError:
        raise CrossfadeError(f"a prior of {which} cannot be sampled, so it is no proper prior: change it") from None
    places: dict[str, Place] = {}
    for name in model.names:
        support = given(model.priors[name], first).support
        if not eqx.tree_equal(support, given(model.priors[name], second).support):
            raise CrossfadeError(
                f"the support of {name!r} depends on other parameters: write it as a fixed interval times a bound"
            )
        prior = given(model.priors[name], first)
        masked = isinstance(prior, dist.MaskedDistribution) and prior._mask is not True
        if masked or isinstance(prior, NOT_DENSITIES):
            kind = type(prior).__name__
            raise CrossfadeError(f"the prior of {name!r} is {kind}, not a normalised density: give it a proper prior")
        if support.is_discrete:
            raise CrossfadeError(f"{name!r} is discrete: sum it out of the likelihood, so that only numbers are left")
        places[name] = (jnp.shape(first[name]), support)
    _check_scalar(model, first, which)
    return Joint(
        places,
        _Start(model),
        log_prior=_Prior(eqx.tree_at(lambda m: m.log_likelihood, model, None)),
        log_likelihood=model.log_likelihood,
        data=model.data,
        exact_start=True,
    )


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


class Flat(eqx.Module):
    """The parameters as one unconstrained vector u: log p(theta(u)) + log|d theta / du|."""

    log_density: Callable[[Theta], Array]
    transforms: dict[str, Transform]
    shapes: dict[str, tuple[int, ...]] = eqx.field(static=True)  # in unconstrained space

    def __call__(self, u: Array) -> Array:
        theta, log_jacobian = self.theta_and_jacobian(u)
        return self.log_density(theta) + log_jacobian

    def theta_and_jacobian(self, u: Array) -> tuple[Theta, Array]:
        theta, log_jacobian, first = {}, jnp.zeros(()), 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            own = u[first : first + size].reshape(shape)
            first += size
            theta[name] = self.transforms[name](own)
            log_jacobian += jnp.sum(self.transforms[name].log_abs_det_jacobian(own, theta[name]))
        return theta, log_jacobian

    def theta(self, u: Array) -> Theta:
        return self.theta_and_jacobian(u)[0]

    def inverse(self, theta: Theta) -> Array:
        """u of a point in the support."""
        parts = [jnp.ravel(self.transforms[name].inv(jnp.asarray(theta[name], float))) for name in self.shapes]
        return jnp.concatenate([*parts, jnp.zeros(0)])

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def labels(self) -> list[str]:
        """A name for every coordinate: b, or b[2], or b[1,0]."""
        found = []
        for name, shape in self.shapes.items():
            for index in np.ndindex(*shape):
                found.append(f"{name}[{','.join(map(str, index))}]" if index else name)
        return found

    def offset(self, name: str) -> int:
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        return sum(sizes[: list(self.shapes).index(name)])


def flat(joint: Joint, log_density: Callable[[Theta], Array] | None = None) -> Flat:
    """The joint (or another density of its parameters) over unconstrained vectors."""
    transforms = {name: biject_to(support) for name, (_, support) in joint.places.items()}
    shapes = {name: tuple(transforms[name].inverse_shape(shape)) for name, (shape, _) in joint.places.items()}
    return Flat(fresh(log_density) if log_density else joint.log_joint, transforms, shapes)


def unconstrained_draws(density: Flat, theta: dict[str, Any]) -> np.ndarray:
    """[chain, draw, size] from arrays [chain, draw, ...] by name."""
    return np.asarray(jax.jit(jax.vmap(jax.vmap(density.inverse)))(theta))


@in_float64
def constrained_draws(joint: Joint, u: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays [chain, draw, ...] by name from [chain, draw, size]."""
    density, first, found = flat(joint), 0, {}
    for name, shape in density.shapes.items():
        size = int(np.prod(shape))
        own = u[:, :, first : first + size].reshape(*u.shape[:2], *shape)
        found[name] = np.asarray(density.transforms[name](own))
        first += size
    return found


def nothing() -> Joint:
    """The model without parameters and data: its evidence is 1, so a Bayes factor over it is an evidence."""
    return Joint({}, lambda key: {}, whole=lambda theta: jnp.zeros(()))


@in_float64
def saturated(joint: Joint, u: np.ndarray) -> tuple[float, str]:
    """The fraction of draws [chain, draw, size] that floating point cannot tell from the edge of a support, and whose.

    There theta(u) no longer determines u, so the density is not what the model says, and mass beyond is lost.
    """
    density = flat(joint)
    few = u.reshape(u.shape[0] * u.shape[1], u.shape[2])[:: max(u.shape[0] * u.shape[1] // 2000, 1)][None]
    if few.shape[2] == 0:
        return 0.0, ""
    again = unconstrained_draws(density, constrained_draws(joint, few))
    with np.errstate(invalid="ignore"):
        lost = ~(np.abs(again - few) < 1e-2 * (1 + 0.1 * np.abs(few)))[0]
    worst = int(np.argmax(lost.mean(axis=0)))
    return float(lost[:, worst].mean()), density.labels()[worst]
