"""Named parameters as one unconstrained vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform

from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError, Theta

Place = tuple[tuple[int, ...], Constraint]  # the shape of a parameter and its support


class Coordinates(eqx.Module):
    """theta(u): every parameter from its own stretch of u, through the bijection onto its support."""

    transforms: dict[str, Transform]
    # in unconstrained space, in the order of u: two dicts are equal in any order, and programs are found by equality
    ordered: tuple[tuple[str, tuple[int, ...]], ...] = eqx.field(static=True)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return dict(self.ordered)

    def theta_and_jacobian(self, u: Array) -> tuple[Theta, Array]:
        """theta, and log|d theta / du|."""
        theta, log_jacobian, first = {}, jnp.zeros(()), 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            own = u[first : first + size].reshape(shape)
            first += size
            theta[name] = self.transforms[name](own)
            log_jacobian += jnp.sum(self.transforms[name].log_abs_det_jacobian(own, theta[name]))
        return theta, log_jacobian

    def theta(self, u: Array) -> Theta:
        return self.theta_and_jacobian(u)[0]

    def inverse(self, theta: Theta) -> Array:
        """u of a point in the support."""
        parts = [jnp.ravel(self.transforms[name].inv(jnp.asarray(theta[name], float))) for name in self.shapes]
        return jnp.concatenate([*parts, jnp.zeros(0)])

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def labels(self) -> list[str]:
        """A name for every coordinate: b, or b[2], or b[1,0]."""
        found = []
        for name, shape in self.shapes.items():
            for index in np.ndindex(*shape):
                found.append(f"{name}[{','.join(map(str, index))}]" if index else name)
        return found

    def stretch(self, name: str) -> np.ndarray:
        """Where a parameter stands in u."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        k = list(self.shapes).index(name)
        return sum(sizes[:k]) + np.arange(sizes[k])

    def describe(self, u: np.ndarray) -> str:
        """A point by parameter names."""
        values = {name: np.asarray(value) for name, value in self.theta(u).items()}
        shown = [f"{name} = {np.array2string(value, precision=4, threshold=6)}" for name, value in values.items()]
        return ", ".join(shown[:6])

    @in_float64
    def constrained(self, u: np.ndarray) -> dict[str, np.ndarray]:
        """Arrays [chain, draw, ...] by name from [chain, draw, size]."""
        found = {}
        for name, shape in self.shapes.items():
            own = u[:, :, self.stretch(name)].reshape(*u.shape[:2], *shape)
            found[name] = np.asarray(self.transforms[name](own))
        return found

    @in_float64
    def unconstrained(self, theta: dict[str, Any]) -> np.ndarray:
        """[chain, draw, size] from arrays [chain, draw, ...] by name."""
        return np.asarray(_inverses(self, {name: np.asarray(theta[name], float) for name in self.shapes}))

    @in_float64
    def lost(self, u: np.ndarray) -> tuple[float, str]:
        """The fraction of draws that floating point cannot tell from the edge of a support, and whose it is most often.

        There theta(u) no longer determines u, so the density is not what the model says, and mass beyond is lost.
        """
        few = u.reshape(u.shape[0] * u.shape[1], u.shape[2])[:: max(u.shape[0] * u.shape[1] // 2000, 1)][None]
        if few.shape[2] == 0:
            return 0.0, ""
        again = self.unconstrained(self.constrained(few))
        with np.errstate(invalid="ignore"):
            gone = ~(np.abs(again - few) < 1e-2 * (1 + 0.1 * np.abs(few)))[0]
        worst = int(np.argmax(gone.mean(axis=0)))
        return float(gone.any(axis=1).mean()), self.labels()[worst]


@eqx.filter_jit
def _inverses(coordinates: Coordinates, theta: Theta) -> Array:
    return jax.vmap(jax.vmap(coordinates.inverse))(theta)


def coordinates(places: dict[str, Place]) -> Coordinates:
    """The unconstrained coordinates of parameters with these shapes and supports."""
    for name, (shape, support) in places.items():
        if 0 in shape:
            raise CrossfadeError(f"{name!r} has shape {shape}, so it holds no number: leave it out of the model")
        if support.is_discrete:  # a world's own sampler may draw labels; gradients are for numbers
            raise CrossfadeError(f"{name!r} is discrete: sum it out of the likelihood, so that only numbers are left")
    transforms = {}
    for name, (_, support) in places.items():
        try:
            transforms[name] = biject_to(support)
        except NotImplementedError:
            raise CrossfadeError(
                f"there are no unconstrained coordinates for the support of {name!r} ({type(support).__name__}): write "
                "it by parameters on the line, an interval, a simplex or another support of NumPyro's HMC"
            ) from None
    shapes = [(name, tuple(transforms[name].inverse_shape(shape))) for name, (shape, _) in places.items()]
    return Coordinates(transforms, tuple(shapes))


class Density(eqx.Module):
    """A log density of named parameters over unconstrained vectors: log p(theta(u)) + log|d theta / du|."""

    log_density: Callable[[Theta], Array]
    coordinates: Coordinates

    def __call__(self, u: Array, tau: Array | float = 1.0) -> Array:
        """`tau` has no say: it is there so that a posterior and a rung of a path are targets of one kind."""
        theta, log_jacobian = self.coordinates.theta_and_jacobian(u)
        return self.log_density(theta) + log_jacobian
