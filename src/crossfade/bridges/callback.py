"""A NumPy function inside compiled programs: JAX calls back to Python, one point at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.coordinates import Coordinates
from crossfade.types import Array, CrossfadeError, Theta

# The error of a central difference is h^2 in the formula and eps/h in the rounding; this balances the two.
STEP = float(np.finfo(float).eps) ** (1 / 3)


@dataclass(eq=False)
class Host:
    """The user's functions of NumPy arrays; compared by identity, so that nobody else's program is served."""

    function: Callable[[Any], Any]
    gradient: Callable[[Any], Any] | None
    shapes: dict[str, tuple[int, ...]]
    bare: bool  # the functions take one array, not a dict

    def value(self, theta: Theta) -> float:
        found = self._call(self.function, theta, "the log joint")
        if np.size(found) != 1:
            raise CrossfadeError(f"the log joint has shape {np.shape(found)} and must be one number: sum it")
        return float(np.reshape(found, ()))

    def derivatives(self, theta: Theta) -> np.ndarray:
        """The user's gradient, all parameters in one vector."""
        assert self.gradient is not None
        found = self._call(self.gradient, theta, "the gradient")
        by_name = dict.fromkeys(self.shapes, found) if self.bare else found
        if not isinstance(by_name, dict) or set(by_name) != set(self.shapes):
            raise CrossfadeError(f"the gradient must be a dict with the names {', '.join(self.shapes)}")
        for name, shape in self.shapes.items():
            if np.shape(by_name[name]) != shape:
                raise CrossfadeError(f"the gradient of {name!r} has shape {np.shape(by_name[name])}, not {shape}")
        return np.concatenate([np.ravel(np.asarray(by_name[name], float)) for name in self.shapes])

    def values(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.value(self._theta(row)) for row in rows])

    def value_and_derivatives(self, rows: np.ndarray) -> np.ndarray:
        theta = self._theta(rows[0])
        return np.concatenate([[self.value(theta)], self.derivatives(theta)])

    def _theta(self, row: np.ndarray) -> Theta:
        parts = np.split(row, np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])[:-1])
        return {name: part.reshape(self.shapes[name]) for name, part in zip(self.shapes, parts, strict=True)}

    def _call(self, function: Callable[[Any], Any], theta: Theta, what: str) -> Any:
        argument = next(iter(theta.values())) if self.bare else theta
        try:
            return function(argument)
        except Exception as error:
            raise CrossfadeError(f"{what} failed at {argument}: {type(error).__name__}: {error}") from error


class Called(eqx.Module):
    """log p(theta) by the host, with its derivatives, or with central differences if it has none.

    Differences are taken in unconstrained coordinates, where every neighbour of a point is in the support.
    """

    host: Host = eqx.field(static=True)
    coordinates: Coordinates
    scale: Array  # how far each coordinate typically is from 0, unconstrained

    def __call__(self, theta: Theta) -> Array:
        return _log_density(theta, called=self)

    def row(self, theta: Theta) -> Array:
        """All parameters in one row."""
        return jnp.concatenate([jnp.ravel(jnp.asarray(theta[name], float)) for name in self.host.shapes])[None]


@eqx.filter_custom_jvp
def _log_density(theta: Theta, *, called: Called) -> Array:
    return _on_host(called.host.values, called.row(theta), 1)[0]


@_log_density.def_jvp
def _log_density_jvp(primals: tuple[Theta], tangents: tuple[Theta], *, called: Called) -> tuple[Array, Array]:
    (theta,), (tangent,) = primals, tangents
    moves = {name: jnp.zeros_like(theta[name]) if move is None else move for name, move in tangent.items()}
    row = called.row(theta)
    if called.host.gradient is not None:
        found = _on_host(called.host.value_and_derivatives, row, 1 + row.size)
        return found[0], found[1:] @ called.row(moves)[0]
    u, velocity = jax.jvp(called.coordinates.inverse, (theta,), (moves,))
    step = STEP * jnp.maximum(called.scale, jnp.abs(u))
    around = jax.vmap(called.coordinates.theta)(u + jnp.concatenate([jnp.diag(step), -jnp.diag(step)]))
    rows = jnp.concatenate([row, jax.vmap(called.row)(around)[:, 0]])
    found = _on_host(called.host.values, rows, 1 + 2 * u.size)
    above, below = jnp.split(found[1:], 2)
    return found[0], ((above - below) / (2 * step)) @ velocity


def _on_host(function: Callable[[np.ndarray], np.ndarray], rows: Array, size: int) -> Array:
    """function(rows), a vector, computed by Python.

    Doubles travel as pairs of 32-bit words: the thread that calls back need not be in our float64 context, and there
    JAX would round them to single precision.
    """

    def call(words: Any) -> np.ndarray:
        found = function(np.ascontiguousarray(words).view(np.float64)[..., 0])
        return np.asarray(found, np.float64)[:, None].view(np.uint32)

    words = jax.lax.bitcast_convert_type(rows, jnp.uint32)
    result = jax.ShapeDtypeStruct((size, 2), jnp.uint32)
    return jax.lax.bitcast_convert_type(jax.pure_callback(call, result, words, vmap_method="sequential"), jnp.float64)
