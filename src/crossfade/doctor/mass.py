"""Every prior integrates to 1: a constant that was dropped goes straight into the Bayes factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, Independent, biject_to, constraints

from crossfade.api import evidence
from crossfade.density.joint import Flat, Joint, flat
from crossfade.density.model import Model, given, log_density
from crossfade.doctor.finding import Finding, reason
from crossfade.doctor.integral import integrals
from crossfade.doctor.numbers import starts, values
from crossfade.types import Array, Theta

NAME = "prior"
SMALL = 0.01  # of a log mass: less is no dropped constant
TARGET_SE = 0.02
SECONDS = 60.0  # for an integral by sampling
N_PARENTS = 3  # draws of the other parameters that a conditional prior is looked at
N_ELEMENTS = 20_000  # of one parameter that are integrated one by one, at most: all at once, so memory is the limit
N_FACTORS = 30  # coordinates of a product that are integrated one by one, at most
N_TOGETHER = 10  # coordinates that are integrated together by sampling, at most


class Mass(NamedTuple):
    """log of the integral of a prior, how far it may be off, and what is to be said; NaN: not known."""

    log_value: float
    error: float = 0.0
    note: str = ""

    @property
    def known(self) -> bool:
        return not np.isnan(self.log_value)

    @property
    def ok(self) -> bool:
        return not self.known or abs(self.log_value) <= SMALL + 5 * self.error


def prior_mass(model: Model | Joint, joint: Joint, which: str, seed: int) -> list[Finding]:
    """A finding for every prior that is not normalised, or one that all are."""
    if isinstance(model, Model):
        thetas = [model.sample_prior(jax.random.fold_in(jax.random.key(seed), i)) for i in range(N_PARENTS)]
        masses: dict[tuple[str, ...], Mass] = {
            (name,): _of_factor(model, joint, name, thetas, seed) for name in model.names
        }
    elif joint.log_prior is None:
        said = "could not be checked: the log joint is one function; give prior and likelihood apart (log_likelihood=)"
        return [Finding(NAME, which, True, said)]
    else:
        alone = joint._replace(whole=joint.log_prior, log_prior=None, log_likelihood=None, data=None)
        masses = {joint.names: _of_joint(alone, seed)}
    bad = [(names, mass) for names, mass in masses.items() if not mass.ok]
    if bad:
        return [Finding(NAME, which, False, _complaint(names, mass, joint)) for names, mass in bad]
    known = [name for names, mass in masses.items() if mass.known for name in names]
    parts = [f"the prior of {_listed(known)} integrates to 1"] if known else []
    parts += [
        f"that of {_listed(names)} could not be checked: {mass.note}"
        for names, mass in masses.items()
        if not mass.known
    ]
    return [Finding(NAME, which, True, "; ".join(parts))]


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*map(repr, names[:8]), *(["..."] if len(names) > 8 else [])])


def _complaint(names: tuple[str, ...], mass: Mass, joint: Joint) -> str:
    if np.isposinf(mass.log_value):
        return (
            f"the prior of {mass.note or _listed(names)} does not integrate to a finite number, or has mass beyond the "
            "numbers of a computer: under an improper prior the Bayes factor is arbitrary, so give it a proper one"
        )
    value = float(np.exp(mass.log_value))
    said = f"the prior of {_listed(names)} integrates to {value:{'.3f' if 1e-3 < value < 1e6 else '.3g'}}, not 1"
    if mass.error:
        said += f" (log {mass.log_value:.3f} ± {mass.error:.3f})"
    bounded = next((name for name in names if joint.places[name][1] != constraints.real), "")
    if bounded and min(abs(mass.log_value - np.log(x)) for x in (0.5, 2.0)) <= SMALL + 5 * mass.error:
        region = f"{bounded} > 0" if joint.places[bounded][1] == constraints.positive else f"the support of {bounded}"
        return (
            f"{said}: a half-normal written as an untruncated normal restricted to {region} must be multiplied by 2 "
            "(use HalfNormal / TruncatedNormal)"
        )
    said += f": a normalising constant was dropped, subtract {mass.log_value:.6g} from its log density"
    return f"{said} (a truncated density is to be divided by its mass in {bounded}'s support)" if bounded else said


def _of_factor(model: Model, joint: Joint, name: str, thetas: list[Theta], seed: int) -> Mass:
    """The worst over some draws of the parameters that it depends on."""
    prior = model.priors[name]
    found = []
    for theta in thetas[:1] if isinstance(prior, Distribution) else thetas:
        distribution = given(prior, theta)
        mass = _of_elements(distribution, theta[name])
        if mass is None:
            own = Joint({name: joint.places[name]}, _Draw(distribution, name), whole=_Factor(prior, theta, name))
            mass = _of_joint(own, seed)
        found.append(mass)
    return max(found, key=lambda mass: (not mass.ok, mass.known, abs(mass.log_value)))


class _Factor(eqx.Module):
    """The log density of one parameter, given the others."""

    prior: Any
    theta: Theta
    name: str = eqx.field(static=True)

    def __call__(self, own: Theta) -> Array:
        return log_density(self.prior, self.name, {**self.theta, **own})


class _Draw(eqx.Module):
    distribution: Any
    name: str = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        return {self.name: self.distribution.sample(key)}


def _of_elements(distribution: Any, value: Array) -> Mass | None:
    """Of independent numbers, each integrated by itself; None if they are not independent."""
    while isinstance(distribution, Independent):
        distribution = distribution.base_dist
    if distribution.event_shape or jnp.shape(distribution.log_prob(value)) != jnp.shape(value):
        return None
    if jnp.size(value) > N_ELEMENTS:
        return Mass(np.nan, note=f"it has {jnp.size(value):,} elements")
    shape, support = jnp.shape(value), distribution.support
    transform = biject_to(support)

    def log_f(u: np.ndarray) -> np.ndarray:
        x = transform(u.reshape(len(u), *shape))
        log_prob = jnp.where(support(x), jax.vmap(distribution.log_prob)(x), -jnp.inf)
        return np.asarray(log_prob + transform.log_abs_det_jacobian(u.reshape(x.shape), x)).reshape(u.shape)

    centre = np.ravel(transform.inv(value)).astype(float)
    found = integrals(log_f, np.where(np.isfinite(centre), centre, 0.0), np.ones(centre.size))
    return Mass(float(found.log_value.sum()) if found.converges.all() else np.inf)


def _of_joint(joint: Joint, seed: int) -> Mass:
    """Coordinate by coordinate if the density is a product; else as an evidence, that of no data, which must be 1."""
    density = flat(joint)
    u = starts(density, joint, jax.random.key(seed))
    if density.size <= N_FACTORS and _is_product(density, u):
        return _of_product(density, u)
    if density.size > N_TOGETHER:
        return Mass(np.nan, note=f"{density.size} coordinates that depend on each other")
    try:
        found = evidence(joint, target_se=TARGET_SE, budget=SECONDS, seed=seed)
    except Exception as failure:
        return Mass(np.nan, note=f"its draws failed ({reason(failure)})")
    log_mass = found.log_bayes_factor
    if not log_mass.error < 5 * TARGET_SE:
        return Mass(np.nan, note="its draws do not settle, for it has heavy tails or a funnel, or is improper")
    return Mass(log_mass.value, log_mass.error)


def _is_product(density: Flat, u: np.ndarray, n: int = 24) -> bool:
    """log f(a) + log f(b) does not change when some coordinates are exchanged: a tie is missed once in 2^n times."""
    if density.size == 1:
        return True
    random = np.random.default_rng(0)
    first, second = u[:n], u[n : 2 * n]
    swap = random.random(first.shape) < 0.5
    mixed = np.where(swap, second, first), np.where(swap, first, second)
    plain, exchanged = (values(density, np.concatenate(pair)).reshape(2, n) for pair in ((first, second), mixed))
    size = 1 + np.abs(plain).max(axis=0) + np.abs(exchanged).max(axis=0)
    return bool(np.all(np.abs(plain.sum(axis=0) - exchanged.sum(axis=0)) < 1e-9 * size))


def _of_product(density: Flat, u: np.ndarray) -> Mass:
    """log f(u) = log f(o) + sum_j [log f(o with u_j) - log f(o)] for any fixed point o."""
    log_u = values(density, u)
    origin = u[int(np.argmax(log_u))]
    top = float(np.max(log_u))
    each = np.arange(density.size)

    def log_f(x: np.ndarray) -> np.ndarray:
        rows = np.broadcast_to(origin, (len(x), density.size, density.size)).copy()
        rows[:, each, each] = x
        return values(density, rows.reshape(-1, density.size)).reshape(x.shape) - top

    found = integrals(log_f, origin, np.ones(density.size))
    if not found.converges.all():
        labels = [density.labels()[i] for i in np.flatnonzero(~found.converges)]
        return Mass(np.inf, note=_listed(labels))
    return Mass(top + float(found.log_value.sum()))
