"""Exchangeable components: a density that does not change when they are renumbered is sampled in one numbering.

With K components there are K! copies of every mode. The integral over one numbering (the first parameter in rising
order), times K!, is the integral over all of them, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import constraints

from crossfade.density.joint import Joint
from crossfade.density.model import fresh
from crossfade.density.precision import in_float64
from crossfade.density.sharing import elementwise
from crossfade.types import Array, CrossfadeError, Theta

POSITIVE = constraints.positive_ordered_vector
N_TRIED = 5  # draws of the prior at which components are renumbered


class Sorted(eqx.Module):
    """A start whose components are numbered by the first of them."""

    start: Any
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        theta = self.start(key)
        return _renumbered(theta, self.names, jnp.argsort(theta[self.names[0]]))


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
    if not own:
        return joint
    shapes = {name: joint.places[name][0] for name in own}
    if not any(shapes.values()):  # one component
        return joint
    sizes = {shape[0] if shape else 1 for shape in shapes.values()}
    if len(sizes) > 1:
        raise CrossfadeError(f"exchangeable: {which} has {shapes}; give parameters with one entry per component")
    (n,) = sizes
    first = _orderable(joint, own, which)
    own = (first, *(name for name in own if name != first))
    _check_symmetric(joint, own, n, which)
    log_factor = lgamma(n + 1)
    support = constraints.ordered_vector if elementwise(joint.places[first][1]) is constraints.real else POSITIVE
    places = {**joint.places, first: (joint.places[first][0], support)}
    changed: dict[str, Any] = {"places": places, "start": Sorted(joint.start, own), "factors": None, "model": None}
    if joint.whole is not None:
        changed["whole"] = Times(fresh(joint.whole), log_factor)
    if joint.log_prior is not None:
        changed["log_prior"] = Times(fresh(joint.log_prior), log_factor)
    note = f"the {n} components of {which} are numbered by {first}; all {n}! numberings are counted"
    return joint._replace(**changed, notes=(*joint.notes, note))


def _orderable(joint: Joint, names: tuple[str, ...], which: str) -> str:
    """The first parameter that can be put in order: one number per component, on the real or the positive line."""
    for name in names:
        shape, support = joint.places[name]
        if len(shape) == 1 and elementwise(support) in (constraints.real, constraints.positive):
            return name
    raise CrossfadeError(
        f"exchangeable: none of {names} in {which} can be put in order; name one with a number per component on the "
        "real or the positive line"
    )


def _renumbered(theta: Theta, names: tuple[str, ...], order: Any) -> Theta:
    return {name: value[order] if name in names else value for name, value in theta.items()}


def _check_symmetric(joint: Joint, names: tuple[str, ...], n: int, which: str) -> None:
    log_joint, random = joint.log_joint, np.random.default_rng(0)
    for i in range(N_TRIED):
        theta = joint.start(jax.random.key(i))
        there = _renumbered(theta, names, random.permutation(n))
        before, after = float(log_joint(theta)), float(log_joint(there))
        if not np.isclose(before, after, rtol=1e-6, atol=1e-6) and not (np.isnan(before) or before == after):
            raise CrossfadeError(
                f"exchangeable: renumbering {names} changes the log joint of {which} from {before:.6g} to {after:.6g}; "
                "name all parameters of the components, and give them equal priors"
            )
