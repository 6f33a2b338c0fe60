"""Terms of a PyMC model's log joint as functions of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from crossfade.types import Array, CrossfadeError, Theta


class Jaxified(eqx.Module):
    """Some terms of a PyMC model's log joint: a JAX function of its parameters in this order, with the data inside.

    The function gives all terms at once; those that are not asked for are not computed once it is compiled.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    terms: tuple[int, ...] = eqx.field(static=True)
    constant: float = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Array:
        try:
            found = self.function(*(jnp.asarray(theta[name]) for name in self.names))
        except Exception as error:  # JAX's, while it traces what PyTensor has made; a shape that is no constant, say
            raise CrossfadeError(
                f"JAX cannot trace what PyTensor makes of this model ({first_line(error)}): PyTensor's JAX side does "
                "not know all of PyMC's distributions (CAR and GARCH11 are among those), so write it with others, or "
                "bring the model with from_numpyro or from_numpy_log_joint"
            ) from error
        return sum(found[term] for term in self.terms) + self.constant


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
