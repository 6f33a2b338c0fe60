"""Priors of a PyMC model whose location or scale depends on other parameters: samplers choose coordinates by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from numpyro import distributions as dist

from crossfade.density.series import Series
from crossfade.types import Array, Theta

# PyMC's operations whose last two parameters are a location and a scale.
LOCATION_SCALE = ("NormalRV", "StudentTRV", "CauchyRV", "LaplaceRV", "LogisticRV", "GumbelRV")


class Conditional(eqx.Module):
    """A prior from values that depend on other parameters: a JAX function of these, in this order."""

    function: Callable[..., Any] = eqx.field(static=True)
    parents: tuple[str, ...] = eqx.field(static=True)
    make: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Any:
        return self.make(*(jnp.asarray(own, float) for own in self.function(*(theta[name] for name in self.parents))))


def conditional_priors(
    model: Any, inputs: list[Any], jaxified: Callable[[list[Any], list[Any]], Any]
) -> dict[str, Conditional]:
    """By name; `inputs` stand for the free variables, and `jaxified` makes a JAX function of a graph."""
    from pytensor.graph.replace import graph_replace
    from pytensor.graph.traversal import ancestors

    found: dict[str, Conditional] = {}
    by_variable = dict(zip(model.free_RVs, inputs, strict=True))
    for rv in model.free_RVs:
        values, make = _parameters(rv)
        above = set(ancestors(values, blockers=model.free_RVs))
        if parents := {parent: by_variable[parent] for parent in model.free_RVs if parent in above}:
            function = jaxified(list(parents.values()), graph_replace(values, parents))
            found[rv.name] = Conditional(function, tuple(parent.name for parent in parents), make)
    return found


def _parameters(rv: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The parameters of a variable that say where it is, and what to make of them; none if there are no such."""
    node = rv.owner
    kind = type(node.op).__name__
    if kind in LOCATION_SCALE:
        return list(node.op.dist_params(node)[-2:]), dist.Normal  # only the location and the scale are asked for
    if kind == "RandomWalkRV" and type(node.inputs[1].owner.op).__name__ == "NormalRV":
        return _parameters(node.inputs[1])[0], _walk
    if kind == "AutoRegressiveRV" and node.op.ar_order == 1:
        return list(node.inputs[:2]), _autoregressive
    return [], dist.Normal


def _walk(loc: Array, scale: Array) -> Series:
    return Series(None, jnp.mean(loc), jnp.ones(()), _mean_scale(scale))


def _autoregressive(rho: Array, scale: Array) -> Series:
    """With a constant, it comes before the coefficient."""
    rho = rho.reshape(-1, rho.shape[-1]).mean(axis=0)
    return Series(None, rho[0] if len(rho) == 2 else jnp.zeros(()), rho[-1], _mean_scale(scale))


def _mean_scale(scale: Array) -> Array:
    return jnp.exp(jnp.mean(jnp.log(scale)))
