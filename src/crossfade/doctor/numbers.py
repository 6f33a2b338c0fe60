"""The log joint and its gradient are numbers, and belong together, at draws of the prior and of the posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossfade.density.coordinates import Coordinates, Density
from crossfade.density.joint import Joint
from crossfade.doctor.finding import Finding
from crossfade.sampling.evaluate import values, values_and_slopes
from crossfade.sampling.starts import spread
from crossfade.types import Float, Theta

N_COMPARED = 16  # points at which the gradient is compared with differences
N_COORDINATES = 50  # that are compared, at most
STEPS = (1e-3, 1e-5)  # of differences, in units of the spread: one is safe from rounding, one from curvature
AGREEMENT = 1e-3  # relative error of a derivative that is taken for rounding
EPS = float(np.finfo(float).eps)


class Points(NamedTuple):
    """Where the log joint was looked at, and what it was there."""

    density: Density
    where: str  # "prior", "starts" or "posterior"
    u: Float[np.ndarray, "point size"]  # unconstrained
    value: Float[np.ndarray, " point"]
    slope: Float[np.ndarray, "point size"]

    @property
    def kind(self) -> str:
        return "starting points" if self.where == "starts" else f"draws of the {self.where}"

    def example(self, which: np.ndarray) -> tuple[int, str]:
        """The first of these points, and what it is in the model's own parameters."""
        first = int(np.argmax(which))
        return first, self.density.coordinates.describe(self.u[first])


def points(density: Density, u: np.ndarray, where: str) -> Points:
    return Points(density, where, u, *values_and_slopes(density, u))


def finite(joint: Joint, at: Points, which: str) -> list[Finding]:
    """A number or -inf everywhere, with derivatives where it is a number."""
    name, n = f"finite ({at.where})", len(at.value)
    impossible = np.isneginf(at.value)
    broken = ~np.isfinite(at.value) & ~impossible
    lost = np.isfinite(at.value) & ~np.isfinite(at.slope).all(axis=1)
    if broken.any():
        first, point = at.example(broken)
        said = (
            f"the log joint is NaN or +inf at {broken.sum()} of {n} {at.kind}, e.g. "
            f"{_culprit(joint, at.density.coordinates.theta(at.u[first]))} at {point}: it must be a number or -inf. "
            "Guard the operation that fails (log of 0, division by 0, overflow), or narrow the prior"
        )
    elif impossible.all():
        said = (
            f"the log joint is -inf at all {n} {at.kind}: check the likelihood there, or move the prior to where the "
            "data are possible"
        )
    elif lost.any():
        first, point = at.example(lost)
        label = at.density.coordinates.labels()[int(np.argmin(np.isfinite(at.slope[first])))]
        said = (
            f"the log joint is a number but its derivative by {label} is not, at {lost.sum()} of {n} {at.kind}, e.g. "
            f"{point}: give both sides of every jnp.where a derivative, also the side that is not taken"
        )
    else:
        rest = f", -inf at {impossible.mean():.0%} (impossible there, which is allowed)" if impossible.any() else ""
        said = f"the log joint and its gradient are finite at {n - impossible.sum()} of {n} {at.kind}{rest}"
    return [Finding(name, which, not (broken.any() or impossible.all() or lost.any()), said)]


def _culprit(joint: Joint, theta: Theta) -> str:
    """Which part of the joint is not a number."""
    parts = {"the log prior": joint.log_prior, "the log likelihood": joint.log_likelihood}
    for words, part in parts.items():
        if part is not None and not (np.isfinite(found := float(part(theta))) or np.isneginf(found)):
            return f"{words} is {found}"
    return "it fails"


def gradients(at: Points, which: str) -> list[Finding]:
    """Derivatives against central differences: a rule written by hand may be that of another function."""
    name, coordinates = f"gradient ({at.where})", at.density.coordinates
    usable = np.flatnonzero(np.isfinite(np.column_stack([at.value, at.slope, at.u])).all(axis=1))
    if len(usable) == 0:
        return [Finding(name, which, True, "not checked: nowhere are the log joint and its gradient finite")]
    rows = usable[np.unique(np.linspace(0, len(usable) - 1, N_COMPARED).astype(int))]
    columns = _compared(coordinates)
    u, exact, unit = at.u[rows], at.slope[np.ix_(rows, columns)], spread(at.u[usable])[columns]
    step = np.array(STEPS)[:, None] * unit  # [step, coordinate]
    moves = np.zeros((len(STEPS), len(columns), coordinates.size))
    moves[:, np.arange(len(columns)), columns] = step
    there = values(at.density, u[:, None, None, None] + np.stack([moves, -moves]))  # [point, side, step, coordinate]
    with np.errstate(invalid="ignore"):
        slope = (there[:, 0] - there[:, 1]) / (2 * step)  # [point, step, coordinate]
        gap = np.abs(slope - exact[:, None])
        size = np.maximum(np.abs(slope), np.abs(exact[:, None])) + 1e-3 / unit
        rounding = 8 * EPS * (1 + np.abs(at.value[rows]))[:, None, None] / step
        excess = np.nanmin((gap - rounding) / size, axis=1)  # [point, coordinate]: the step that agrees best
        relative = float(np.nanmax(np.nanmin(gap / size, axis=1)))
        unsure = np.abs(slope[:, 0] - slope[:, 1]) > gap.min(axis=1)  # a kink, or noise: differences cannot tell
    excess = np.where(unsure | np.isnan(excess), 0.0, excess)
    p, c = np.unravel_index(int(np.argmax(excess)), excess.shape)
    agrees = bool(excess[p, c] <= AGREEMENT)
    some = "" if len(columns) == coordinates.size else f" for {len(columns)} of {coordinates.size} coordinates"
    said = f"the gradient agrees with differences at {len(rows)} of them{some} (relative error {relative:.0e})"
    if not agrees:
        said = (
            f"the derivative by {coordinates.labels()[columns[c]]} (unconstrained) is {exact[p, c]:.5g}, but "
            f"differences of the log joint give {slope[p, 1, c]:.5g}, at {coordinates.describe(u[p])}: correct the "
            "gradient that you wrote (gradient=, custom_jvp, custom_vjp), or leave it out"
        )
    return [Finding(name, which, agrees, said)]


def _compared(coordinates: Coordinates) -> np.ndarray:
    """All coordinates, or some of every parameter."""
    if coordinates.size <= N_COORDINATES:
        return np.arange(coordinates.size)
    firsts = [own[0] for name in coordinates.shapes if len(own := coordinates.stretch(name))]
    evenly = np.linspace(0, coordinates.size - 1, N_COORDINATES).astype(int)
    return np.unique(np.concatenate([firsts[:N_COORDINATES], evenly]))
