"""The log joint and its gradient are numbers, and belong together, at draws of the prior and of the posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.joint import Flat, Joint
from crossfade.doctor.finding import Finding
from crossfade.sampling.anneal import chain_keys
from crossfade.types import Array, Theta

BLOCK = 256  # points that are evaluated at once: one compiled shape
BATCH = 16  # of them side by side, as the sampler does
N_COMPARED = 4  # points at which the gradient is compared with differences
N_COORDINATES = 50  # that are compared, at most
STEPS = (1e-3, 1e-5)  # of differences, in units of the spread: one is safe from rounding, one from curvature
AGREEMENT = 1e-3  # relative error of a derivative that is taken for rounding
EPS = float(np.finfo(float).eps)


class Points(NamedTuple):
    """Where the log joint was looked at, and what it was there."""

    where: str  # "prior", "starts" or "posterior"
    u: np.ndarray  # [point, size], unconstrained
    value: np.ndarray  # [point]
    slope: np.ndarray  # [point, size]

    @property
    def kind(self) -> str:
        return "starting points" if self.where == "starts" else f"draws of the {self.where}"

    @property
    def usable(self) -> np.ndarray:
        return np.isfinite(self.value) & np.isfinite(self.slope).all(axis=1) & np.isfinite(self.u).all(axis=1)


@eqx.filter_jit
def _starts(density: Flat, start: Any, keys: Array) -> Array:
    return jax.lax.map(lambda key: density.inverse(start(key)), keys)


@eqx.filter_jit
def _values(density: Flat, u: Array) -> Array:
    return jax.lax.map(density, u, batch_size=BATCH)


@eqx.filter_jit
def _slopes(density: Flat, u: Array) -> Any:
    return jax.lax.map(jax.value_and_grad(density), u, batch_size=BATCH)


def values(density: Flat, u: np.ndarray) -> np.ndarray:
    """The log density at points [n, size]."""
    return np.concatenate([np.asarray(_values(density, block))[:n] for block, n in _blocks(u)])


def points(density: Flat, u: np.ndarray, where: str) -> Points:
    found = [[np.asarray(part)[:n] for part in _slopes(density, block)] for block, n in _blocks(u)]
    value, slope = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Points(where, u, value, slope)


def starts(density: Flat, joint: Joint, key: Array) -> np.ndarray:
    """BLOCK places to start, unconstrained."""
    return np.asarray(_starts(density, joint.start, chain_keys(key, BLOCK)))


def _blocks(u: np.ndarray) -> list[tuple[np.ndarray, int]]:
    parts = [u[first : first + BLOCK] for first in range(0, len(u), BLOCK)]
    return [(np.pad(part, [(0, BLOCK - len(part)), (0, 0)], mode="edge"), len(part)) for part in parts]


def finite(density: Flat, joint: Joint, at: Points, which: str) -> list[Finding]:
    """A number or -inf everywhere, with derivatives where it is a number."""
    name = f"finite ({at.where})"
    n = len(at.value)
    impossible = np.isneginf(at.value)
    broken = ~np.isfinite(at.value) & ~impossible
    if broken.any():
        worst = int(np.argmax(broken))
        said = (
            f"the log joint is NaN or +inf at {broken.sum()} of {n} {at.kind}, e.g. "
            f"{_culprit(joint, density.theta(at.u[worst]))} at {shown(density, at.u[worst])}: it must be a number or "
            "-inf. Guard the operation that fails (log of 0, division by 0, overflow), or narrow the prior"
        )
        return [Finding(name, which, False, said)]
    if impossible.all():
        said = f"the log joint is -inf at all {n} {at.kind}: the prior never is where the data are possible"
        return [Finding(name, which, False, said)]
    lost = ~impossible & ~np.isfinite(at.slope).all(axis=1)
    if lost.any():
        worst = int(np.argmax(lost))
        label = density.labels()[int(np.argmin(np.isfinite(at.slope[worst])))]
        said = (
            f"the log joint is a number but its derivative by {label} is not, at {lost.sum()} of {n} {at.kind}, e.g. "
            f"{shown(density, at.u[worst])}: both sides of a jnp.where must have derivatives, also the one not taken"
        )
        return [Finding(name, which, False, said)]
    rest = f", -inf at {impossible.mean():.0%} (impossible there, which is allowed)" if impossible.any() else ""
    return [Finding(name, which, True, f"log joint and gradient are finite at {n - impossible.sum()} of {n}{rest}")]


def _culprit(joint: Joint, theta: Theta) -> str:
    """Which part of the joint is not a number."""
    parts = {"the log prior": joint.log_prior, "the log likelihood": joint.log_likelihood}
    for words, part in parts.items():
        if part is not None and not (np.isfinite(found := float(part(theta))) or np.isneginf(found)):
            return f"{words} is {found}"
    return "it fails"


def gradients(density: Flat, at: Points, which: str) -> list[Finding]:
    """Derivatives against central differences: a rule written by hand may be that of another function."""
    name = f"gradient ({at.where})"
    usable = np.flatnonzero(at.usable)
    if len(usable) == 0:
        return [Finding(name, which, True, "could not be checked: nowhere are log joint and gradient finite")]
    rows = usable[np.unique(np.linspace(0, len(usable) - 1, N_COMPARED).astype(int))]
    columns = _coordinates(density)
    u, exact = at.u[rows], at.slope[np.ix_(rows, columns)]
    step = np.array(STEPS)[:, None] * _spread(at.u[usable])[columns]  # [step, coordinate]
    moves = np.zeros((len(STEPS), len(columns), density.size))
    moves[:, np.arange(len(columns)), columns] = step
    around = u[:, None, None, None] + np.stack([moves, -moves])  # [point, side, step, coordinate, size]
    there = values(density, around.reshape(-1, density.size)).reshape(around.shape[:-1])
    with np.errstate(invalid="ignore"):
        slope = (there[:, 0] - there[:, 1]) / (2 * step)  # [point, step, coordinate]
        gap = np.abs(slope - exact[:, None])
        size = np.maximum(np.abs(slope), np.abs(exact[:, None])) + 1e-3 / _spread(at.u[usable])[columns]
        rounding = 8 * EPS * (1 + np.abs(at.value[rows]))[:, None, None] / step
        excess = np.nanmin((gap - rounding) / size, axis=1)  # [point, coordinate]: the step that agrees best
        relative = float(np.nanmax(np.nanmin(gap / size, axis=1)))
        unsure = np.abs(slope[:, 0] - slope[:, 1]) > gap.min(axis=1)  # a kink, or noise: differences cannot tell
    excess = np.where(unsure | np.isnan(excess), 0.0, excess)
    p, c = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[p, c] > AGREEMENT:
        said = (
            f"the derivative by {density.labels()[columns[c]]} is {exact[p, c]:.5g}, but differences of the log joint "
            f"give {slope[p, 1, c]:.5g}, at {shown(density, u[p])} (unconstrained): mend the gradient that you wrote "
            "(gradient=, custom_jvp, custom_vjp), or leave it out"
        )
        return [Finding(name, which, False, said)]
    some = "" if len(columns) == density.size else f" for {len(columns)} of {density.size} coordinates"
    said = f"agrees with differences at {len(rows)} of them{some} (to {relative:.0e}, relatively)"
    return [Finding(name, which, True, said)]


def _coordinates(density: Flat) -> np.ndarray:
    """All of them, or some of every parameter."""
    if density.size <= N_COORDINATES:
        return np.arange(density.size)
    firsts = [density.offset(name) for name, shape in density.shapes.items() if np.prod(shape) > 0]
    spread = np.linspace(0, density.size - 1, N_COORDINATES).astype(int)
    return np.unique(np.concatenate([firsts[:N_COORDINATES], spread]))


def _spread(u: np.ndarray) -> np.ndarray:
    """Half of the central 68 % of every coordinate."""
    low, high = np.quantile(u, [0.16, 0.84], axis=0)
    return np.clip((high - low) / 2, 1e-6, 1e6)


def shown(density: Flat, u: np.ndarray) -> str:
    """A point as parameter = value; of many parameters the first six."""
    theta = {name: np.asarray(value) for name, value in density.theta(jnp.asarray(u)).items()}
    words = [f"{name} = {np.array2string(x, precision=4, threshold=6, edgeitems=2)}" for name, x in theta.items()]
    return ", ".join(words[:6]) + (", ..." if len(words) > 6 else "")
