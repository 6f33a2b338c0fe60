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
    found: dict[str, Conditional] = {}
    for rv in model.free_RVs:
        values, make = _parameters(rv)
        if (own := conditional_on(values, make, model, inputs, jaxified)) is not None:
            found[rv.name] = own
    return found


def conditional_on(
    values: list[Any], make: Callable[..., Any], model: Any, inputs: list[Any], jaxified: Callable[..., Any]
) -> Conditional | None:
    """What is made from values that depend on free variables; None if they depend on none."""
    from pytensor.graph.replace import graph_replace
    from pytensor.graph.traversal import ancestors

    above = set(ancestors(values, blockers=model.free_RVs))
    parents = {rv: own for rv, own in zip(model.free_RVs, inputs, strict=True) if rv in above}
    if not parents:
        return None
    function = jaxified(list(parents.values()), graph_replace(values, parents))
    return Conditional(function, tuple(rv.name for rv in parents), make)


def _parameters(rv: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The parameters of a variable that say where it is, and what to make of them; none if there are no such."""
    node = rv.owner
    kind = type(node.op).__name__
    if kind in LOCATION_SCALE:
        return list(node.op.dist_params(node)[-2:]), dist.Normal  # only the location and the scale are asked for
    if kind == "RandomWalkRV" and type(node.inputs[1].owner.op).__name__ == "NormalRV":
        return [*_start(node.inputs[0]), *_parameters(node.inputs[1])[0]], _walk
    if kind == "AutoRegressiveRV" and node.op.ar_order == 1:
        return [*_start(node.inputs[2]), *node.inputs[:2]], _autoregressive
    return [], dist.Normal


def _start(rv: Any) -> list[Any]:
    from pytensor.tensor import constant

    # Any others: a scale that depends on nothing leaves the start as it is.
    return _parameters(rv)[0] if type(rv.owner.op).__name__ in LOCATION_SCALE else [constant(0.0), constant(1.0)]


def _walk(start: Array, start_scale: Array, loc: Array, scale: Array) -> Series:
    return Series(jnp.mean(start), _usual(start_scale), jnp.mean(loc), jnp.ones(()), _usual(scale))


def _autoregressive(start: Array, start_scale: Array, rho: Array, scale: Array) -> Series:
    """With a constant, it comes before the coefficient."""
    rho = rho.reshape(-1, rho.shape[-1]).mean(axis=0)
    shift = rho[0] if len(rho) == 2 else jnp.zeros(())
    return Series(jnp.mean(start), _usual(start_scale), shift, rho[-1], _usual(scale))


def _usual(scale: Array) -> Array:
    return jnp.exp(jnp.mean(jnp.log(scale)))
