"""Log densities and gradients at many points, in pieces of one shape: one compiled program for each model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.coordinates import Density
from crossfade.density.precision import in_float64
from crossfade.types import Array

PIECE = 128  # points at which values and gradients are taken at once
STEP_SIZE = 0.05  # of the spread of a coordinate, over which steps are looked for
FEWEST_STEPS = 0.04  # of such moves, that must cross one
N_MOVES = 512  # such moves: with a hundred, chance would hide a step that one in twelve crosses
CHUNK = 1600  # points that are evaluated at once: one compiled shape


@in_float64
def values_and_slopes(density: Density, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log densities and gradients at points [point, size], in pieces of one shape."""
    n = -(-len(u) // PIECE) * PIECE
    pieces = np.resize(u, (n // PIECE, PIECE, u.shape[1]))
    found = [_values_and_slopes(density, piece) for piece in pieces]
    value, slope = (np.concatenate([np.asarray(own[i]) for own in found])[: len(u)] for i in (0, 1))
    return value, slope


@eqx.filter_jit
def _values_and_slopes(density: Density, u: Array) -> Any:
    return jax.lax.map(jax.value_and_grad(density), u, batch_size=16)


@in_float64
def seconds_per_gradient(density: Density, u: np.ndarray) -> float:
    """Of one chain at points u, measured after compilation."""
    u = np.resize(u, (PIECE, u.shape[1]))
    values_and_slopes(density, u)
    began = time.perf_counter()
    values_and_slopes(density, u)
    return (time.perf_counter() - began) / PIECE


@in_float64
def values(density: Callable[[Array], Array], u: np.ndarray) -> np.ndarray:
    """Log densities at points [.., size], in chunks of one shape: one compiled program for each model."""
    if u.shape[-1] == 0:  # the model of nothing has one value
        return np.full(u.shape[:-1], float(density(jnp.zeros(0))))
    flat = u.reshape(-1, u.shape[-1])
    n = -(-max(len(flat), 1) // CHUNK) * CHUNK
    padded = np.concatenate([flat, np.tile(flat[-1:], (n - len(flat), 1))])
    found = [np.asarray(_values(density, part)) for part in padded.reshape(-1, CHUNK, flat.shape[1])]
    return np.concatenate(found)[: len(flat)].reshape(u.shape[:-1])


@eqx.filter_jit
def _values(density: Callable[[Array], Array], u: Array) -> Array:
    return jax.lax.map(density, u, batch_size=32)


@in_float64
def undefined(density: Density, u: np.ndarray) -> tuple[float, str]:
    """The share of points among draws u [chain, draw, size] at which the log density is NaN or +inf, and one by name.

    The points are spread 1.1 times as wide as the draws: a draw plus about a third of the difference of two others.
    """
    flat = u.reshape(-1, u.shape[2])
    random = np.random.default_rng(0)
    here, plus, minus = (flat[random.integers(len(flat), size=CHUNK)] for _ in range(3))
    points = here + 0.35 * (plus - minus)
    value = values(density, points)
    bad = np.isnan(value) | np.isposinf(value)
    if not bad.any():
        return 0.0, ""
    return float(bad.mean()), density.coordinates.describe(points[np.argmax(bad)])


@in_float64
def steps(density: Density, u: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Those of the columns in which the log density has steps: it changes by more than its gradients say.

    Between draws u [chain, draw, size] and points a twentieth of a spread beside them.
    """
    flat = u.reshape(-1, u.shape[2])
    here = flat[np.random.default_rng(0).integers(len(flat), size=N_MOVES)]
    found = []
    for column in columns:
        there = here.copy()
        there[:, column] += (width := STEP_SIZE * flat[:, column].std())
        value, slope = values_and_slopes(density, np.concatenate([here, there]))
        first, second = np.split(slope[:, column], 2)
        missing = np.abs(np.subtract(*np.split(value, 2)) + width * (first + second) / 2)
        if (missing > 0.05 + width * np.abs(second - first)).mean() > FEWEST_STEPS:
            found.append(column)
    return np.array(found, int)
