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
from crossfade.density.coordinates import Density
from crossfade.density.joint import Joint, LogDensity, PriorFactor
from crossfade.density.model import given
from crossfade.doctor.finding import Finding, reason
from crossfade.doctor.integral import LogFunctions, integrals
from crossfade.sampling.evaluate import values
from crossfade.sampling.starts import drawn
from crossfade.types import Array, Theta

NAME = "prior"
SMALL = 0.01  # of a log mass: less is no dropped constant
WORST = 0.05  # error of a log mass: more says nothing
TARGET_SE = 0.02
SECONDS = 60.0  # for an integral by sampling
N_PARENTS = 3  # draws of the other parameters that a conditional prior is looked at
N_ELEMENTS = 20_000  # of one parameter that are integrated one by one, at most: all at once, so memory is the limit
N_FACTORS = 30  # coordinates of a product that are integrated one by one, at most
N_TOGETHER = 10  # coordinates that are integrated together by sampling, at most
N_STARTS = 128  # points that are looked at for ties, and for the highest density


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


def prior_mass(joint: Joint, which: str, seed: int) -> list[Finding]:
    """A finding for every prior that is not normalised, or one that all are."""
    if joint.factors is not None:
        thetas = [joint.start(jax.random.fold_in(jax.random.key(seed), i)) for i in range(N_PARENTS)]
        masses: dict[tuple[str, ...], Mass] = {
            (name,): _of_factor(joint, name, factor, thetas, seed) for name, factor in joint.factors.items()
        }
    elif joint.log_prior is None:
        said = "not checked: the log joint is one function; give the prior and the likelihood apart (log_likelihood=)"
        return [Finding(NAME, which, True, said)]
    else:
        alone = joint._replace(whole=joint.log_prior, log_prior=None, log_likelihood=None, data=None, model=None)
        masses = {joint.names: _of_joint(alone, seed)}
    bad = [(names, mass) for names, mass in masses.items() if not mass.ok]
    if bad:
        return [Finding(NAME, which, False, _complaint(names, mass, joint)) for names, mass in bad]
    known = [name for names, mass in masses.items() if mass.known for name in names]
    unknown = [f"the prior of {_listed(names)}: {mass.note}" for names, mass in masses.items() if not mass.known]
    parts = [f"the prior of {_listed(known)} integrates to 1"] if known else []
    parts += [f"not checked: {'; '.join(unknown)}"] if unknown else []
    return [Finding(NAME, which, True, "; ".join(parts))]


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*map(repr, names[:8]), *(["..."] if len(names) > 8 else [])])


def _complaint(names: tuple[str, ...], mass: Mass, joint: Joint) -> str:
    if np.isposinf(mass.log_value):
        return (
            f"the prior of {mass.note or _listed(names)} does not integrate to a finite number, or has mass beyond the "
            "numbers of a computer, which makes the Bayes factor arbitrary: give it a proper prior"
        )
    value = float(np.exp(mass.log_value))
    said = f"the prior of {_listed(names)} integrates to {value:{'.3f' if 1e-3 < value < 1e6 else '.3g'}}, not 1"
    if mass.error:
        said += f" (log {mass.log_value:.3f} ± {mass.error:.3f})"
    bounded = next((name for name in names if joint.places[name][1] != constraints.real), "")
    if bounded and min(abs(mass.log_value - np.log(x)) for x in (0.5, 2.0)) <= SMALL + 5 * mass.error:
        region = f"{bounded} > 0" if joint.places[bounded][1] == constraints.positive else f"the support of {bounded}"
        return (
            f"{said}: multiply a half-normal that is written as a normal restricted to {region} by 2 (use HalfNormal "
            "or TruncatedNormal)"
        )
    said += f": it lacks its normalising constant, so subtract {mass.log_value:.6g} from its log density"
    return f"{said} (divide a truncated density by its mass in the support of {bounded})" if bounded else said


def _of_factor(joint: Joint, name: str, factor: LogDensity, thetas: list[Theta], seed: int) -> Mass:
    """The worst over some draws of the parameters that it depends on."""
    prior = factor.prior if isinstance(factor, PriorFactor) else None
    found = []
    for theta in thetas[:1] if isinstance(prior, Distribution) else thetas:
        mass = None if prior is None else _of_elements(given(prior, theta), theta[name])
        if mass is None:
            # The start draws all parameters; of these, coordinates take their own.
            mass = _of_joint(Joint({name: joint.places[name]}, joint.start, whole=GivenOthers(factor, theta)), seed)
        found.append(mass)
    return max(found, key=lambda mass: (not mass.ok, mass.known, abs(mass.log_value)))


class GivenOthers(eqx.Module):
    """The log density of one parameter, given the others."""

    factor: LogDensity
    theta: Theta

    def __call__(self, own: Theta) -> Array:
        return self.factor({**self.theta, **own})


def _of_elements(distribution: Any, value: Array) -> Mass | None:
    """Of independent numbers, each integrated by itself; None if they are not independent."""
    while isinstance(distribution, Independent):
        distribution = distribution.base_dist
    if distribution.event_shape or jnp.shape(distribution.log_prob(value)) != jnp.shape(value):
        return None
    if jnp.size(value) > N_ELEMENTS:
        return Mass(np.nan, note=f"it has {jnp.size(value):,} elements, more than {N_ELEMENTS:,}")
    shape, transform = jnp.shape(value), biject_to(distribution.support)

    def log_f(u: np.ndarray) -> np.ndarray:
        x = transform(u.reshape(len(u), *shape))
        log_prob = jax.vmap(distribution.log_prob)(x) + transform.log_abs_det_jacobian(u.reshape(x.shape), x)
        log_value, again = (np.asarray(own).reshape(u.shape) for own in (log_prob, transform.inv(x)))
        return _unless_lost(log_value, again, u)

    centre = np.ravel(transform.inv(value)).astype(float)
    return _summed(log_f, np.where(np.isfinite(centre), centre, 0.0))


def _summed(log_f: LogFunctions, centre: np.ndarray, log_constant: float = 0.0, labels: Sequence[str] = ()) -> Mass:
    """Of a product, from the integrals of its factors."""
    log_values, errors, converge = integrals(log_f, centre, np.ones(centre.size))
    if not converge.all():
        return Mass(np.inf, note=_listed([label for label, fine in zip(labels, converge, strict=False) if not fine]))
    error = float(errors.sum())
    if error > WORST:
        return Mass(np.nan, note=f"its integral is only known to {error:.2g}, for its density jumps or has many peaks")
    return Mass(log_constant + float(log_values.sum()), error if error > SMALL / 10 else 0.0)


def _of_joint(joint: Joint, seed: int) -> Mass:
    """Coordinate by coordinate if the density is a product; else as an evidence, that of no data, which must be 1."""
    density, size = joint.density, joint.coordinates.size
    u = drawn(joint, jax.random.key(seed), N_STARTS)
    if size <= N_FACTORS and _is_product(density, u):
        return _of_product(density, u)
    if size > N_TOGETHER:
        return Mass(np.nan, note=f"it has {size} coordinates that depend on each other, more than {N_TOGETHER}")
    try:
        found = evidence(joint, target_se=TARGET_SE, budget=SECONDS, seed=seed, progress=False)
    except Exception as failure:
        return Mass(np.nan, note=f"its draws failed ({reason(failure)})")
    log_mass = found.log_bayes_factor
    if not log_mass.error < 5 * TARGET_SE:
        return Mass(np.nan, note="its draws do not settle, for it has heavy tails or a funnel, or is improper")
    return Mass(log_mass.value, log_mass.error)


def _is_product(density: Density, u: np.ndarray, n: int = 24) -> bool:
    """log f(a) + log f(b) does not change when some coordinates are exchanged: a tie is missed once in 2^n times."""
    first, second = u[:n], u[n : 2 * n]
    swap = np.random.default_rng(0).random(first.shape) < 0.5
    mixed = np.where(swap, second, first), np.where(swap, first, second)
    plain, exchanged = values(density, np.stack([first, second])), values(density, np.stack(mixed))
    size = 1 + np.abs(plain).max(axis=0) + np.abs(exchanged).max(axis=0)
    return bool(u.shape[1] == 1 or np.all(np.abs(plain.sum(axis=0) - exchanged.sum(axis=0)) < 1e-9 * size))


def _of_product(density: Density, u: np.ndarray) -> Mass:
    """log f(u) = log f(o) + sum_j [log f(o with u_j) - log f(o)] for any fixed point o."""
    log_u, size, coordinates = values(density, u), u.shape[1], density.coordinates
    origin, top = u[int(np.argmax(log_u))], float(np.max(log_u))
    each = np.arange(size)

    def log_f(x: np.ndarray) -> np.ndarray:
        rows = np.broadcast_to(origin, (len(x), size, size)).copy()
        rows[:, each, each] = x
        again = coordinates.unconstrained(coordinates.constrained(rows))[:, each, each]
        return _unless_lost(values(density, rows) - top, again, x)

    return _summed(log_f, origin, top, coordinates.labels())


def _unless_lost(log_f: np.ndarray, again: np.ndarray, u: np.ndarray) -> np.ndarray:
    """NaN where the parameter cannot be told from the edge of its support: there log f is not what the model says."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(again - u) < 1e-2 * (1 + 0.1 * np.abs(u)), log_f, np.nan)
