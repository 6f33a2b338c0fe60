"""Exchangeable components: a density that does not change when they are renumbered is sampled in one numbering.

With K components there are K! copies of every mode. The integral over one numbering (the first parameter in rising
order), times K!, is the integral over all of them, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lgamma
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import constraints

from crossfade.density.joint import Joint
from crossfade.density.model import elementwise
from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError, Theta

POSITIVE = constraints.positive_ordered_vector
N_TRIED = 5  # places at which components are renumbered
MOST_TRIED = 50  # draws of the prior, while the model takes all for impossible: chains will tell
MOST = 10  # components that are looked for without being named


class Sorted(eqx.Module):
    """A start whose components are numbered by the first of them."""

    start: Any
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        return in_order(self.start(key), self.names)


class Times(eqx.Module):
    """A log density plus a constant."""

    function: Any
    log_factor: float

    def __call__(self, theta: Theta) -> Array:
        return self.function(theta) + self.log_factor


@in_float64
def one_numbering(joint: Joint, names: Sequence[str], which: str) -> Joint:
    """The model over one numbering of its components, with the same evidence; as it is if it has none of them."""
    own = tuple(name for name in names if name in joint.names)
    shapes = {name: joint.places[name][0] for name in own}
    if not any(shapes.values()):  # one component
        return joint
    sizes = {shape[0] if shape else 2 if _is_chance(joint, name) else 1 for name, shape in shapes.items()}
    if len(sizes) > 1:
        raise CrossfadeError(f"exchangeable: {which} has {shapes}; give parameters with one entry per component")
    (n,) = sizes
    first = next((name for name in own if _can_be_ordered(joint, name)), None)
    if first is None:
        raise CrossfadeError(
            f"exchangeable: none of {own} in {which} can be put in order; name one with a number per component on the "
            "real or the positive line"
        )
    own = (first, *(name for name in own if name != first))
    check_numbering(joint, own, (joint.start(jax.random.key(i)) for i in range(MOST_TRIED)), which)
    return _numbered(joint, own, n, which)


@in_float64
def check_numbering(joint: Joint, names: tuple[str, ...], at: Iterable[Theta], which: str) -> None:
    """An error if renumbering changes the log joint at one of these places."""
    if change := _change(joint, names, at):
        raise CrossfadeError(
            f"exchangeable: renumbering {names} changes the log joint of {which} {change}; name all parameters of the "
            "components, and give them equal priors"
        )


@in_float64
def found_numbering(joint: Joint, at: list[Theta], which: str) -> Joint | None:
    """The same for a model of which nobody said that it has exchangeable components, or nothing if it has none.

    Every parameter with one entry for each of K components is renumbered at these places, where the posterior is.
    """
    for n in sorted({joint.places[name][0][0] for name in joint.names if _can_be_ordered(joint, name)}):
        own = [name for name in joint.names if joint.places[name][0][:1] == (n,)]
        chances = [name for name in joint.names if _is_chance(joint, name)] if n == 2 else []
        own.sort(key=lambda name: not _can_be_ordered(joint, name))
        for names in dict.fromkeys(((*own, *chances), tuple(own))):
            if 2 <= n <= MOST and not _change(joint, names, at):
                return _numbered(joint, names, n, which)
    return None


def _numbered(joint: Joint, names: tuple[str, ...], n: int, which: str) -> Joint:
    first, log_factor = names[0], lgamma(n + 1)
    shape, support = joint.places[first]
    support = constraints.ordered_vector if elementwise(support) is constraints.real else POSITIVE
    changed: dict[str, Any] = {
        "places": {**joint.places, first: (shape, support)},
        "start": Sorted(joint.start, names),
        "factors": None,
        "model": None,
        "numbered": names,
    }
    if joint.whole is not None:
        changed["whole"] = Times(joint.whole, log_factor)
    if joint.log_prior is not None:
        changed["log_prior"] = Times(joint.log_prior, log_factor)
    note = f"the {n} components of {which} are numbered by {first}; all {n}! numberings are counted"
    return joint._replace(**changed, notes=(*joint.notes, note))


def _can_be_ordered(joint: Joint, name: str) -> bool:
    """One number per component, on the real or the positive line."""
    shape, support = joint.places[name]
    return len(shape) == 1 and elementwise(support) in (constraints.real, constraints.positive)


def _is_chance(joint: Joint, name: str) -> bool:
    """A number between 0 and 1: the weight of the first of two components, perhaps."""
    shape, support = joint.places[name]
    bounds = [getattr(support, side, np.nan) for side in ("lower_bound", "upper_bound")]
    return shape == () and np.array_equal(bounds, [0, 1])


def in_order(theta: Theta, names: tuple[str, ...]) -> Theta:
    """Parameters [..., component, ...] renumbered so that the first is in rising order."""
    return _renumbered(theta, names, jnp.argsort(jnp.asarray(theta[names[0]]), axis=-1))


def _renumbered(theta: Theta, names: tuple[str, ...], order: Any) -> Theta:
    """`order` is [..., component]; a single number is the weight of the first of two components."""
    order = jnp.asarray(order)

    def own(value: Array) -> Array:
        value, ahead = jnp.asarray(value), order.ndim - 1
        if value.ndim == ahead:
            return jnp.where(order[..., 0] == 1, 1 - value, value)
        index = order.reshape(order.shape + (1,) * (value.ndim - order.ndim))
        return jnp.take_along_axis(value, index, axis=ahead)

    return {name: own(value) if name in names else value for name, value in theta.items()}


def _change(joint: Joint, names: tuple[str, ...], at: Iterable[Theta]) -> str:
    """What renumbering does to the log joint at some of these places, or nothing if it does nothing."""
    log_joint, n = joint.log_joint, joint.places[names[0]][0][0]
    orders = np.roll(np.arange(n), 1), np.r_[1, 0, 2:n]  # from these two, all orders can be made
    n_told = 0
    for i, theta in enumerate(at):
        there = _renumbered(theta, names, orders[i % 2])
        before, after = float(log_joint(theta)), float(log_joint(there))
        size = abs(before) if np.isfinite(before) else 0.0
        # A large log joint may hide what a component says; rounding may show, in sums of 1e9.
        tolerance = 1e-6 + min(1e-6 * size, max(1e-3, 1e-12 * size))
        if not np.isclose(before, after, rtol=0, atol=tolerance, equal_nan=True):
            return f"from {before:.6g} to {after:.6g}"
        n_told += np.isfinite(before)  # impossible either way tells nothing
        if n_told == N_TRIED:
            break
    return ""


def with_hints(joints: list[Joint], steps: Sequence[str], components: Sequence[str]) -> list[Joint]:
    """With what the user, or the model, knows of parameters."""
    known = tuple(dict.fromkeys(name for joint in joints for name in joint.names))
    steps, components = ((names,) if isinstance(names, str) else tuple(names) for names in (steps, components))
    for said, names in (("discontinuous", steps), ("exchangeable", components)):
        for name in names:
            if name not in known:
                raise CrossfadeError(f"{said} names {name!r}, which no model has: choose from {known}")
    found = []
    for k, joint in enumerate(joints):
        joint = one_numbering(joint, components or joint.exchangeable, f"M{k + 1}" if len(joints) > 1 else "the model")
        found.append(joint._replace(discontinuous=tuple(name for name in joint.names if name in steps)))
    return found
