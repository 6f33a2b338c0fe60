"""Geometric paths between two models over the union of their parameters.

log q_tau = (1 - tau) log q_0 + tau log q_1, where each end is a model's log joint times a normalised linking
density of the parameters it does not have; log Z_1 - log Z_0 is then the log Bayes factor, whatever the link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, biject_to
from numpyro.distributions.constraints import real
from numpyro.distributions.transforms import Transform

from crossfade.density.model import Model, Prior, given, log_density, sample_in_order
from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError, Energy, Sharing, Theta


class Path(eqx.Module):
    """The energies of both ends at a point, and where a chain may start at either end."""

    energy: Callable[[Theta], Energy]
    start: Callable[[Array], Theta]  # key -> a point from which tau = 0 can be reached
    start_reverse: Callable[[Array], Theta]  # the same for tau = 1


class Direct(eqx.Module):
    """Energies of the direct path; factors equal at both ends are evaluated once and cancel exactly."""

    common: dict[str, Prior]
    ends: tuple[dict[str, Prior], dict[str, Prior]]
    log_likelihoods: tuple[Callable[[Theta], Array], Callable[[Theta], Array]]

    def __call__(self, theta: Theta) -> Energy:
        common = _log_densities(self.common, theta)
        return Energy(*(self._end(k, common, theta) for k in (0, 1)))

    def _end(self, k: int, common: list[Array], theta: Theta) -> Array:
        log_priors = jnp.stack([*common, *_log_densities(self.ends[k], theta)])
        # Where a prior is 0, the likelihood and the priors that depend on it may be undefined (the log of a
        # negative variance): they have no say there.
        impossible = jnp.any(log_priors == -jnp.inf)
        return jnp.where(impossible, -jnp.inf, jnp.sum(log_priors) + self.log_likelihoods[k](theta))


class Ancestral(eqx.Module):
    """A draw from the priors and links of one end, parents first."""

    priors: dict[str, Prior]
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        return sample_in_order(self.priors, self.names, key)


class Swapped(eqx.Module):
    """The ends exchanged: log q'_tau = log q_{1 - tau}."""

    energy: Callable[[Theta], Energy]

    def __call__(self, theta: Theta) -> Energy:
        start, end = self.energy(theta)
        return Energy(end, start)


@in_float64
def matched(m1: Model, m2: Model) -> Sharing:
    """Shared parameters are those of one name; they must then have one shape and one kind of support."""
    of_1, of_2 = _shapes(m1), _shapes(m2)
    shared = tuple(name for name in m1.names if name in m2.priors)
    for name in shared:
        if of_1[name] != of_2[name]:
            raise CrossfadeError(
                f"parameter {name!r} is in both models but is {_describe(of_1[name])} in M1 and "
                f"{_describe(of_2[name])} in M2: rename it in one of them if they are different parameters, "
                "or give it one shape and support"
            )
    return Sharing(
        shared=shared,
        only_1=tuple(name for name in m1.names if name not in m2.priors),
        only_2=tuple(name for name in m2.names if name not in m1.priors),
        tempered=tuple(name for name in shared if not _equal(m1.priors[name], m2.priors[name])),
    )


def direct(m1: Model, m2: Model, *, links: dict[str, Prior] | None = None) -> Path:
    """The path from M1 to M2; `links` are normalised densities of unshared parameters, by default their priors."""
    sharing = matched(m1, m2)
    if m1.data is not None and m2.data is not None and not np.array_equal(m1.data, m2.data):
        raise CrossfadeError(
            f"the two models are of different data ({np.shape(m1.data)} and {np.shape(m2.data)} responses, not all "
            "equal): a Bayes factor compares models of one data set, so build both from the same rows and scaling"
        )
    links = dict(links or {})
    for name in links:
        if name not in sharing.only_1 + sharing.only_2:
            raise CrossfadeError(
                f"link for {name!r}, which is not an unshared parameter: link only {sharing.only_1 + sharing.only_2}"
            )
    end_1 = {**m1.priors, **{name: links.get(name, m2.priors[name]) for name in sharing.only_2}}
    end_2 = {**m2.priors, **{name: links.get(name, m1.priors[name]) for name in sharing.only_1}}
    common = {name: prior for name, prior in end_1.items() if _equal(prior, end_2[name])}
    parts = [common, end_1, end_2]
    parts += [{name: prior for name, prior in end.items() if name not in common} for end in (end_1, end_2)]
    common, end_1, end_2, own_1, own_2 = ({name: fresh(prior) for name, prior in part.items()} for part in parts)
    path = Path(
        energy=Direct(common, (own_1, own_2), (fresh(m1.log_likelihood), fresh(m2.log_likelihood))),
        start=Ancestral(end_1, m1.names + sharing.only_2),
        start_reverse=Ancestral(end_2, m2.names + sharing.only_1),
    )
    _check_scalar(path)
    return path


class Fresh(eqx.Module):
    """A plain function with a token that no other path has, so that it is compiled anew for every path.

    Compiled programs are found again by the identity of functions, and a function may read data that have changed.
    """

    function: Callable[[Theta], Any] = eqx.field(static=True)
    token: object = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Any:
        return self.function(theta)

    def __str__(self) -> str:
        return str(self.function)


def fresh(function: Any) -> Any:
    """Modules and distributions carry their data as arguments and are left alone; anything else may hide some."""
    return function if isinstance(function, eqx.Module | Distribution) else Fresh(function, object())


@in_float64
def _check_scalar(path: Path) -> None:
    shapes = jax.eval_shape(lambda key: path.energy(path.start(key)), jax.random.key(0))
    for model, end in (("M1", shapes.start), ("M2", shapes.end)):
        if end.shape != ():
            raise CrossfadeError(
                f"the log density of {model} has shape {end.shape} and must be one number: sum the log likelihood"
            )


def reverse(path: Path) -> Path:
    """The path travelled backwards: its log Z difference is minus that of `path`."""
    inner = path.energy
    energy = inner.energy if isinstance(inner, Swapped) else Swapped(inner)
    return Path(energy, path.start_reverse, path.start)


class Unconstrained(eqx.Module):
    """The path's energies in other coordinates: both ends gain log|J|, so the ratio does not change."""

    energy: Callable[[Theta], Energy]
    transforms: dict[str, Transform]

    def __call__(self, position: Theta) -> Energy:
        theta = transformed(self.transforms, position)
        log_jacobian = sum(
            (
                jnp.sum(transform.log_abs_det_jacobian(position[name], theta[name]))
                for name, transform in self.transforms.items()
            ),
            jnp.zeros(()),
        )
        start, end = self.energy(theta)
        return Energy(start + log_jacobian, end + log_jacobian)


class Pulled(eqx.Module):
    """A start, taken to the new coordinates."""

    start: Callable[[Array], Theta]
    transforms: dict[str, Transform]

    def __call__(self, key: Array) -> Theta:
        return untransformed(self.transforms, self.start(key))


def transformed(transforms: dict[str, Transform], position: Theta) -> Theta:
    """theta = T(position), by name; parameters without a transform stay as they are."""
    return {name: transforms[name](v) if name in transforms else v for name, v in position.items()}


def untransformed(transforms: dict[str, Transform], theta: Theta) -> Theta:
    """position = T^-1(theta), by name."""
    return {name: transforms[name].inv(v) if name in transforms else v for name, v in theta.items()}


def reparametrise(path: Path, transforms: dict[str, Transform]) -> Path:
    """The same path in coordinates u with theta = T(u) and log|J| in both ends, so no Z changes."""
    return Path(
        Unconstrained(path.energy, transforms),
        Pulled(path.start, transforms),
        Pulled(path.start_reverse, transforms),
    )


@in_float64
def unconstraining(*models: Model) -> dict[str, Transform]:
    """For each parameter with a bounded support, the bijection from the real line onto it."""
    transforms: dict[str, Transform] = {}
    for model in models:
        first, second = (model.sample_prior(jax.random.key(seed)) for seed in (0, 1))
        for name in model.names:
            support = given(model.priors[name], first).support
            if not _equal(support, given(model.priors[name], second).support):
                raise CrossfadeError(
                    f"the support of {name!r} depends on other parameters: write it as a fixed interval times a bound"
                )
            if support is not real:
                transforms[name] = biject_to(support)
    return transforms


def _log_densities(priors: dict[str, Prior], theta: Theta) -> list[Array]:
    return [log_density(prior, name, theta) for name, prior in priors.items()]


def _equal(a: Any, b: Any) -> bool:
    return bool(eqx.tree_equal(a, b))


def _shapes(model: Model) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and kind of support of each parameter, found by tracing: nothing is computed."""
    found: dict[str, tuple[tuple[int, ...], str]] = {}

    def look(key: Array) -> Theta:
        theta = model.sample_prior(key)
        for name in model.names:
            support = type(given(model.priors[name], theta).support).__name__
            found[name] = (jnp.shape(theta[name]), support)
        return theta

    jax.eval_shape(look, jax.random.key(0))
    return found


def _describe(shape_and_support: tuple[tuple[int, ...], str]) -> str:
    shape, support = shape_and_support
    return f"of shape {shape} with support {support}"
