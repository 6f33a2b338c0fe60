"""Log joints that are written by hand: a function of named arrays in JAX, or in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform

from crossfade.bridges.callback import Called, Host
from crossfade.density.coordinates import Place, coordinates
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError, Theta

SUPPORTS = {
    "real": constraints.real,
    "positive": constraints.positive,
    "unit_interval": constraints.unit_interval,
    "simplex": constraints.simplex,
    "ordered": constraints.ordered_vector,
    "correlation": constraints.corr_matrix,
}
ONLY = "theta"  # the name of a parameter that came as one array

Support: TypeAlias = Constraint | str
Example: TypeAlias = Mapping[str, Any] | Any  # parameters by name, or one array


class Around(eqx.Module):
    """Starts near a known point: uniform(-2, 2) in every unconstrained coordinate."""

    centre: dict[str, Array]  # unconstrained
    transforms: dict[str, Transform]

    def __call__(self, key: Array) -> Theta:
        theta = {}
        for i, (name, u) in enumerate(self.centre.items()):
            noise = jax.random.uniform(jax.random.fold_in(key, i), jnp.shape(u), minval=-2.0, maxval=2.0)
            theta[name] = self.transforms[name](u + noise)
        return theta


class OfArray(eqx.Module):
    """A module that takes one array, as a function of named ones."""

    function: Callable[[Array], Array]

    def __call__(self, theta: Theta) -> Array:
        return self.function(theta[ONLY])


@in_float64
def from_log_joint(
    fn: Callable[[Any], Any],
    example: Example,
    *,
    support: Mapping[str, Support] | Support | None = None,
    data: Any = None,
    log_likelihood: Callable[[Any], Any] | None = None,
) -> Joint:
    """The joint of a JAX function log p(data, theta), every constant kept; with `log_likelihood`, fn is log p(theta).

    `example` is a point in the support and gives names and shapes: a dict of arrays, or one array, then called
    "theta". `support` is by name a NumPyro constraint or one of "real", "positive", "unit_interval", "simplex",
    "ordered" and "correlation"; a parameter it does not name is real.
    """
    theta, bare = _example(example)
    places, start = _places(theta, support, bare)
    parts: dict[str, Any] = {"log_prior": fn, "log_likelihood": log_likelihood}
    if log_likelihood is None:
        parts = {"whole": fn}
    for part, function in parts.items():
        what = "log joint" if part == "whole" else part.replace("_", " ")
        parts[part] = own = _of_names(function) if bare else function
        _check_traceable(own, theta, what)
        _check_numbers(own, theta, what)
    return Joint(places, start, data=_responses(data), **parts)


@in_float64
def from_numpy_log_joint(
    fn: Callable[[Any], Any],
    example: Example,
    *,
    gradient: Callable[[Any], Any] | None = None,
    support: Mapping[str, Support] | Support | None = None,
    data: Any = None,
) -> Joint:
    """The joint of a NumPy function log p(data, theta), every constant kept; JAX calls back to it.

    `gradient(theta)` gives the derivatives by name (or as one array). Without it they are central differences, whose
    steps scale with the example: give typical values, not zeros. `example` and `support` as in `from_log_joint`.
    """
    theta, bare = _example(example)
    places, start = _places(theta, support, bare)
    scale = jnp.concatenate([_scale(theta[name], places[name][1], u) for name, u in start.centre.items()])
    shapes = {name: shape for name, (shape, _) in places.items()}
    called = Called(Host(fn, gradient, shapes, bare), coordinates(places), scale)
    called.host.value(theta)  # so that an error in it surfaces here, with its own traceback
    if gradient is not None:
        called.host.derivatives(theta)
    _check_numbers(called, theta, "log joint")
    note = "the log joint is called back to Python, one point at a time, which is slower than a function of jax.numpy"
    if gradient is None:
        note += "; its gradients are finite differences, two calls a coordinate: pass gradient= if you can"
    else:
        _check_gradient(called, Called(Host(fn, None, shapes, bare), called.coordinates, scale), start.centre)
    return Joint(places, start, whole=called, data=_responses(data), notes=(note,))


def _example(example: Example) -> tuple[Theta, bool]:
    """Parameters by name as float64, and whether they came as one array."""
    bare = not isinstance(example, Mapping)
    given = {ONLY: example} if bare else dict(example)
    if not given:
        raise CrossfadeError("example has no parameter: give a dict of names and values, or one array")
    theta = {}
    for name, value in given.items():
        try:
            theta[name] = np.asarray(value, float)
        except (TypeError, ValueError):
            raise CrossfadeError(f"example[{name!r}] is a {type(value).__name__}: give real numbers") from None
        if not np.all(np.isfinite(theta[name])) or theta[name].size == 0:
            raise CrossfadeError(f"example[{name!r}] is {value}: give finite numbers, at least one")
    return theta, bare


def _places(
    theta: Theta, support: Mapping[str, Support] | Support | None, bare: bool
) -> tuple[dict[str, Place], Around]:
    """Shapes and supports, and starts around the example, which must be inside."""
    if support is not None and not isinstance(support, Mapping):
        if not bare:
            raise CrossfadeError(f"support is {support!r} for all parameters: give a dict with their names")
        support = {ONLY: support}
    given = dict(support or {})
    if unknown := set(given) - set(theta):
        raise CrossfadeError(f"support names {sorted(unknown)}, which example does not have: choose from {[*theta]}")
    places, centre, transforms = {}, {}, {}
    for name, value in theta.items():
        constraint = _constraint(name, given.get(name, "real"))
        try:
            transforms[name] = biject_to(constraint)
        except NotImplementedError:
            raise CrossfadeError(
                f"the support of {name!r} ({constraint}) has no map from unconstrained numbers: choose another"
            ) from None
        centre[name] = (
            jax.jit(lambda v, to=transforms[name]: to.inv(v))(value) if value.ndim >= constraint.event_dim else jnp.nan
        )
        if not (np.all(np.isfinite(centre[name])) and np.all(constraint(value))):
            raise CrossfadeError(
                f"example[{name!r}] = {value} is not inside its support ({given.get(name, 'real')}): move it inside"
            )
        places[name] = (np.shape(value), constraint)
    return places, Around(centre, transforms)


def _constraint(name: str, support: Support) -> Constraint:
    found = SUPPORTS.get(support) if isinstance(support, str) else support
    if not isinstance(found, Constraint) or found.is_discrete:
        raise CrossfadeError(
            f"the support of {name!r} is {support!r}: give a continuous NumPyro constraint or one of "
            f"{', '.join(SUPPORTS)}"
        )
    return found


def _of_names(function: Callable[[Any], Any]) -> Callable[[Theta], Any]:
    # Not a module if the function is none: plain functions are read again at every comparison.
    return OfArray(function) if isinstance(function, eqx.Module) else lambda theta: function(theta[ONLY])


def _responses(data: Any) -> np.ndarray | None:
    return None if data is None else np.ravel(np.asarray(data, float))


def _scale(value: Array, constraint: Constraint, u: Array) -> Array:
    """Of a real coordinate the size of its example; transformed ones are logarithms of sorts, of order 1."""
    if constraint is not constraints.real:
        return jnp.ones(jnp.size(u))
    return jnp.ravel(jnp.where(value == 0, 1.0, jnp.abs(value)))


def _check_traceable(function: Callable[[Theta], Any], theta: Theta, what: str) -> None:
    """JAX can trace it, and it gives one float."""
    try:
        found = jax.eval_shape(function, theta)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}" if str(error) else repr(error)
        try:
            function(theta)
        except Exception:
            raise CrossfadeError(f"the {what} failed at the example ({reason})") from error
        raise CrossfadeError(
            f"the {what} cannot be traced by JAX ({reason}): write it with jax.numpy, without branches on values, or "
            "bring it with from_numpy_log_joint"
        ) from error
    if not hasattr(found, "shape") or found.shape != ():
        shape = f"shape {found.shape}" if hasattr(found, "shape") else f"type {type(found).__name__}"
        raise CrossfadeError(f"the {what} has {shape} and must be one number: sum it")
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise CrossfadeError(f"the {what} is of type {found.dtype}: it must be a float")


def _check_numbers(function: Callable[[Theta], Any], theta: Theta, what: str) -> None:
    """Finite at the example, and so are its derivatives."""
    value, slopes = jax.jit(jax.value_and_grad(function))(theta)
    if not np.isfinite(value):
        raise CrossfadeError(f"the {what} is {value} at the example: give an example where it is finite, or mend it")
    for name, slope in slopes.items():
        if not np.all(np.isfinite(slope)):
            raise CrossfadeError(
                f"the derivative of the {what} by {name!r} is {np.asarray(slope)} at the example: mend it (a jnp.where "
                "must be safe on both sides), or give another example"
            )


def _check_gradient(called: Called, differences: Called, centre: Theta) -> None:
    """The user's gradient agrees with differences at the example, in unconstrained coordinates."""
    u = jnp.concatenate([jnp.ravel(own) for own in centre.values()])
    both = (called, differences)
    slopes = jnp.stack([jax.jit(jax.grad(lambda u, f=f: f(called.coordinates.theta(u))))(u) for f in both])
    agree = jnp.abs(slopes[0] - slopes[1]) <= 1e-3 * jnp.abs(slopes).max(axis=0) + 1e-4 / called.scale
    for name, shape in called.coordinates.shapes.items():
        if not np.all(agree[at := called.coordinates.stretch(name)]):
            own, expected = slopes[:, at].reshape(2, *shape)
            raise CrossfadeError(
                f"gradient and finite differences disagree in {name!r} at the example (unconstrained: {own} and "
                f"{expected}): mend gradient=, or leave it out"
            )
