"""Geometric paths between two densities over the union of their parameters.

log q_tau = (1 - tau) log q_0 + tau log q_1, where each end is a model's log joint times a normalised link: a density of
the parameters that it does not have. log Z_1 - log Z_0 is then the log Bayes factor, whatever the links. The paper's
links are the priors (`direct`); those of the default method are fitted to draws (`paths.fit`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from crossfade.density.coordinates import Coordinates, Density, coordinates
from crossfade.density.joint import Joint, PriorFactor, as_joint
from crossfade.density.model import Model, Prior, sample_in_order
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Match, Share, check_data, match, tempered
from crossfade.types import Array, CrossfadeError, Energy, Sharing, Theta

Point = Any  # parameters by name, or one vector of unconstrained coordinates
LogDensity = Callable[[Point], Array]
Start = Callable[[Array], Point]  # key -> a point from which an end can be reached


class End(eqx.Module):
    """One end of a path: log q = the sum of normalised factors (priors and links) and of the rest."""

    factors: tuple[LogDensity, ...]
    rest: LogDensity  # the log likelihood, or a whole log joint

    def log_density(self, common: list[Array], point: Point) -> Array:
        if not (common or self.factors):
            return self.rest(point)
        factors = jnp.stack([*common, *(factor(point) for factor in self.factors)])
        # Where a factor is 0, the rest and the factors that depend on it may be undefined (the log of a negative
        # variance): they have no say there.
        impossible = jnp.any(factors == -jnp.inf)
        return jnp.where(impossible, -jnp.inf, jnp.sum(factors) + self.rest(point))


class Ends(eqx.Module):
    """Energies from the two ends, and from what both have in common: evaluated once, it cancels exactly."""

    ends: tuple[End, End]
    common: tuple[LogDensity, ...] = ()

    def __call__(self, point: Point) -> Energy:
        common = [factor(point) for factor in self.common]
        return Energy(*(end.log_density(common, point) for end in self.ends))


def nowhere(key: Array) -> Point:
    """The start of a path that chains do not enter at its ends."""
    raise CrossfadeError("this path has no start of its own: pass state=")


class Path(eqx.Module):
    """The energies of both ends at a point, and where a chain may start at either end."""

    energy: Callable[[Point], Energy]
    start: Start = nowhere  # for tau = 0
    start_reverse: Start = nowhere  # for tau = 1

    def __call__(self, point: Point, tau: Array) -> Array:
        """log q_tau: a target for chains, as a posterior is."""
        return self.energy(point).at(tau)


class Swapped(eqx.Module):
    """The ends exchanged: log q'_tau = log q_{1 - tau}."""

    energy: Callable[[Point], Energy]

    def __call__(self, point: Point) -> Energy:
        start, end = self.energy(point)
        return Energy(end, start)


def reverse(path: Path) -> Path:
    """The path travelled backwards: its log Z difference is minus that of `path`."""
    inner = path.energy
    energy = inner.energy if isinstance(inner, Swapped) else Swapped(inner)
    return Path(energy, path.start_reverse, path.start)


class Renamed(eqx.Module):
    """A function of one model's parameters, read off a point of the union."""

    function: Callable[[Theta], Any]
    names: tuple[tuple[str, str], ...] = eqx.field(static=True)  # (in the model, in the union)

    def __call__(self, theta: Theta) -> Any:
        return self.function({own: theta[name] for own, name in self.names})


class Ancestral(eqx.Module):
    """A draw from the priors and links of one end, parents first."""

    priors: dict[str, Prior]
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        return sample_in_order(self.priors, self.names, key)


class Completed(eqx.Module):
    """A draw of one model's start, with the other model's own parameters from a start of that one."""

    starts: tuple[Start, Start]
    names: tuple[tuple[tuple[str, str], ...], ...] = eqx.field(static=True)  # (in the model, in the union), of each

    def __call__(self, key: Array) -> Theta:
        drawn = [start(jax.random.fold_in(key, k)) for k, start in enumerate(self.starts)]
        return {name: theta[own] for theta, names in zip(drawn, self.names, strict=True) for own, name in names}


@in_float64
def direct(m1: Model | Joint, m2: Model | Joint, *, share: Share = None, links: dict[str, Prior] | None = None) -> Path:
    """The path from M1 to M2 by parameter name; `links` are densities of unshared parameters, by default their priors.

    The prior of what only M2 has, given the shared parameters, is a link of M1's end; it needs priors by parameter.
    """
    j1, j2 = as_joint(m1, "M1"), as_joint(m2, "M2")
    check_data(j1, j2)
    matched = match(j1, j2, share)
    names = union_names(j1, j2, matched)
    own = [_factors(joint, own, which) for joint, own, which in ((j1, names[0], "M1"), (j2, names[1], "M2"))]
    only = [{a: b for a, b in own.items() if b not in other.values()} for own, other in (names, names[::-1])]
    links = dict(links or {})
    for name in links:
        if name not in (*only[0].values(), *only[1].values()):
            unshared = tuple((*only[0].values(), *only[1].values()))
            raise CrossfadeError(f"link for {name!r}, which is not an unshared parameter: link only {unshared}")
    ends: list[dict[str, LogDensity]] = []
    for k in (0, 1):
        linked = {name: PriorFactor(links[name], name) for name in only[1 - k].values() if name in links}
        ends.append(own[k] | {name: own[1 - k][name] for name in only[1 - k].values()} | linked)
    common = [name for name, factor in ends[0].items() if _equal(factor, ends[1][name])]
    rests = [_read(_likelihood(j), n) for j, n in zip((j1, j2), names, strict=True)]
    first, second = (
        End(tuple(factor for name, factor in end.items() if name not in common), rest)
        for end, rest in zip(ends, rests, strict=True)
    )
    energy = Ends((first, second), tuple(ends[0][name] for name in common))
    return Path(energy, *(_start((j1, j2), names, only, links, k) for k in (0, 1)))


def union_names(j1: Joint, j2: Joint, matched: Match) -> tuple[dict[str, str], dict[str, str]]:
    """The name in the union of every parameter of M1, and of M2: its own, unless the other has another one so named."""
    if matched.parts:
        raise CrossfadeError("this method shares whole parameters only: leave elements out of share=")
    first = {name: name for name in j1.names}
    second = {b: a for a, b in matched.whole.items()}
    for name in j2.names:
        if name not in second:
            second[name] = f"{name} (M2)" if name in first else name
    return first, {name: second[name] for name in j2.names}


def named_sharing(m1: Model | Joint, m2: Model | Joint, share: Share = None) -> Sharing:
    """What two models share, by parameter."""
    j1, j2 = as_joint(m1, "M1"), as_joint(m2, "M2")
    matched = match(j1, j2, share)
    only_1 = tuple(name for name in j1.names if name not in matched.whole)
    only_2 = tuple(name for name in j2.names if name not in matched.whole.values())
    return Sharing(matched.names(), only_1, only_2, tempered(j1, j2, matched.whole), matched.apart)


def _factors(joint: Joint, names: dict[str, str], which: str) -> dict[str, LogDensity]:
    """The prior's factors by name in the union."""
    if joint.factors is None:
        raise CrossfadeError(
            f"the prior of {which} is not known parameter by parameter, which this method needs for its links: bring "
            "the model with from_numpyro, from_pymc or as a crossfade.Model, or use the default method"
        )
    return {names[name]: _read(factor, names) for name, factor in joint.factors.items()}


def _likelihood(joint: Joint) -> LogDensity:
    return joint.log_joint if joint.log_likelihood is None else joint.log_likelihood


def _read(function: Any, names: dict[str, str]) -> Any:
    """The function on points of the union; itself where nothing is renamed."""
    return function if _is_plain(names) else Renamed(function, tuple(names.items()))


def _start(joints: Any, names: Any, only: list[dict[str, str]], links: dict[str, Prior], k: int) -> Start:
    own, other = joints[k], joints[1 - k]
    extra = only[1 - k]
    if own.model is not None and other.model is not None and _is_plain(names[0]) and _is_plain(names[1]):
        priors = {**own.model.priors, **{name: links.get(name, other.model.priors[name]) for name in extra}}
        return Ancestral(priors, own.names + tuple(extra))
    return Completed((own.start, other.start), (tuple(names[k].items()), tuple(extra.items())))


def _is_plain(names: dict[str, str]) -> bool:
    """Whether nothing is renamed."""
    return all(a == b for a, b in names.items())


def _equal(a: Any, b: Any) -> bool:
    return bool(eqx.tree_equal(a, b))


class Unconstrained(eqx.Module):
    """The energies over unconstrained vectors: both ends gain log|J|, so the ratio does not change."""

    energy: Callable[[Theta], Energy]
    coordinates: Coordinates

    def __call__(self, u: Array) -> Energy:
        theta, log_jacobian = self.coordinates.theta_and_jacobian(u)
        start, end = self.energy(theta)
        return Energy(start + log_jacobian, end + log_jacobian)


class Pulled(eqx.Module):
    """A start, as an unconstrained vector."""

    start: Callable[[Array], Theta]
    coordinates: Coordinates

    def __call__(self, key: Array) -> Array:
        return self.coordinates.inverse(self.start(key))


def reparametrise(path: Path, where: Coordinates) -> Path:
    """The same path over unconstrained vectors u with theta = theta(u) and log|J| in both ends, so no Z changes."""
    return Path(Unconstrained(path.energy, where), Pulled(path.start, where), Pulled(path.start_reverse, where))


def union_coordinates(m1: Model | Joint, m2: Model | Joint, share: Share = None) -> Coordinates:
    """One unconstrained vector for all parameters of the direct path."""
    j1, j2 = as_joint(m1, "M1"), as_joint(m2, "M2")
    first, second = union_names(j1, j2, match(j1, j2, share))
    places = {second[name]: place for name, place in j2.places.items()}
    return coordinates(dict(sorted((places | {first[name]: place for name, place in j1.places.items()}).items())))


class AtTheta(eqx.Module):
    """A function of named parameters, at an unconstrained vector."""

    function: Callable[[Theta], Array]
    coordinates: Coordinates

    def __call__(self, u: Array) -> Array:
        return self.function(self.coordinates.theta(u))


def from_no_data(joint: Joint) -> Path:
    """The path from a model's prior to its posterior, over unconstrained vectors; its ratio is the log likelihood."""
    empty = joint.without_data()
    assert joint.log_prior is not None and joint.log_likelihood is not None and empty.log_likelihood is not None
    where = joint.coordinates
    rests = [AtTheta(likelihood, where) for likelihood in (empty.log_likelihood, joint.log_likelihood)]
    return Path(Ends((End((), rests[0]), End((), rests[1])), (Density(joint.log_prior, where),)))
