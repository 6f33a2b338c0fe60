"""Priors of a PyMC model in words, and where each begins when it is made wider or narrower."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from crossfade.bridges.scales import LOCATION_SCALE, Conditional, conditional_on
from crossfade.bridges.supports import in_python
from crossfade.density.precision import float64

# PyTensor keeps a scale, where users of PyMC (and of NumPyro) give the rate.
RATES = ("Exponential", "Gamma")
# Scales of distributions on the positive numbers: they begin at 0.
FROM_ZERO = ("HalfNormalRV", "HalfCauchyRV", "HalfStudentTRV", "ExponentialRV")


def in_words(rv: Any, free: list[Any]) -> str:
    """The prior in the arguments that users give: Normal(0, 10), Exponential(2), Normal(mu, f(tau))."""
    node = rv.owner
    try:
        name = node.op._print_name[0].lstrip("_")
        values = [_in_words(value, free) for value in node.op.dist_params(node)]
    except Exception:  # PyMC cannot put every distribution into words
        return type(node.op).__name__.removesuffix("RV")
    if name in RATES:
        values[-1] = _in_words(1 / node.op.dist_params(node)[-1], free)
    if name.startswith("Half") and len(values) > 1 and values[0] == "0" and name != "HalfStudentT":
        values = values[1:]  # the location that PyTensor adds
    return f"{name}({', '.join(values)})"


def _in_words(value: Any, free: list[Any]) -> str:
    """A number, the name of a variable, or the names of those that it is computed from."""
    from pytensor.graph.traversal import ancestors

    above = set(ancestors([value], blockers=free))
    if not (names := [rv.name for rv in free if rv in above]):
        found = np.unique(np.asarray(value.eval(mode=in_python()), float))
        return f"{found[0]:g}" if len(found) == 1 else "<constant>"
    while value not in free and type(value.owner.op).__name__ == "DimShuffle":
        value = value.owner.inputs[0]
    return value.name if value.name else f"f({', '.join(names)})"


def origin(
    name: str, *, model: Any, inputs: list[Any], jaxified: Callable[[list[Any], list[Any]], Any]
) -> Conditional | None:
    """The point from which the prior of a variable is stretched, given the others; None if it has no scale.

    `inputs` stand for the free variables, and `jaxified` makes a JAX function of a graph.
    """
    from pytensor import config

    node = model[name].owner
    if type(node.op).__name__ in FROM_ZERO:
        return Conditional(partial(_known, 0.0), (), _itself)
    if type(node.op).__name__ not in LOCATION_SCALE:
        return None
    place = node.op.dist_params(node)[-2]
    with float64(), config.change_flags(cxx=""):
        if (found := conditional_on([place], _itself, model, inputs, jaxified)) is not None:
            return found
        return Conditional(partial(_known, np.asarray(place.eval(mode=in_python()), float)), (), _itself)


def _known(value: Any) -> tuple[Any]:
    return (value,)


def _itself(value: Any) -> Any:
    return value
