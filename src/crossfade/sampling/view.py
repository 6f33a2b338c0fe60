"""Draws of a posterior in coordinates in which it is nearest to a Gaussian, for fits to them.

Effects with a scale that the data leave open lie in a funnel, to which no link fits; standardised they do not.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import numpy as np

from crossfade.density.coordinates import Density
from crossfade.sampling.draws import Draws
from crossfade.sampling.frame import Frame, frame_of
from crossfade.types import Array, Float

WORTH_IT = 0.1  # how far a coordinate must be standardised, for a program of its own


class Framed(eqx.Module):
    """A log density in the coordinates of a frame."""

    density: Density
    frame: Frame
    away: np.ndarray

    def __call__(self, w: Array) -> Array:
        u, log_jacobian = self.frame.u_and_jacobian(w, self.away)
        return self.density(u) + log_jacobian


class View(NamedTuple):
    """Draws as they are seen: the model's own coordinates, or those of a frame."""

    density: Density | Framed
    u: Float[np.ndarray, "chain draw size"]
    log_density: Float[np.ndarray, "chain draw"]

    def model_point(self, u: np.ndarray) -> np.ndarray:
        """A point [size] in the model's coordinates."""
        density = self.density
        return np.asarray(density.frame.u_and_jacobian(u, density.away)[0]) if isinstance(density, Framed) else u

    def again(self, draws: Draws) -> View:
        """More draws of the same model, seen in the same way."""
        if isinstance(self.density, Framed):
            return _framed(draws, self.density)
        return View(draws.density, draws.u, draws.log_density)


def view(draws: Draws, own: np.ndarray) -> View:
    """Standardised if the draws ask for it: of the parameters whose coordinates are `own` [size], shared with none."""
    plain = View(draws.density, draws.u, draws.log_density)
    names = [name for name in draws.coordinates.shapes if own[draws.coordinates.stretch(name)].all()]
    frame = frame_of(draws.joint) if names else None
    frame = None if frame is None else frame.only(names)
    if frame is None:
        return plain
    away = frame.measured(draws.u.reshape(-1, draws.u.shape[2]))
    return _framed(draws, Framed(draws.density, frame, away)) if away.max() > WORTH_IT else plain


def _framed(draws: Draws, density: Framed) -> View:
    shape = draws.u.shape
    w, log_jacobian = density.frame.seen(draws.u.reshape(-1, shape[2]), density.away)
    return View(density, w.reshape(shape), draws.log_density + log_jacobian.reshape(shape[:2]))
