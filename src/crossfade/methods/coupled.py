"""Coupled importance sampling: the direct path in its shortest form, for small smooth models.

Each model has a Student's t fitted to its posterior, the shared coordinates first, and log Z is the log mean of
p / t over its points. What is shared is drawn with the same random numbers in both models, so its noise cancels in
log Z_2 - log Z_1. NumPy only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, gammaln, logsumexp, ndtri

from crossfade.analysis.errors import Replicates
from crossfade.analysis.weights import weight_share
from crossfade.types import Float

N_BLOCKS = 16  # each with random numbers of its own: the error comes from their differences
FIRST_DOF = 8.0  # of the t around a mode, more where there are more coordinates: tails heavier than the posterior's
DOFS = (4.0, 8.0, 16.0, 50.0, 200.0)
ROUNDS = 6  # of fitting
PER_COORDINATE = 256  # points for fitting
EVEN = 0.9  # share of the weights that count, at which there is nothing left to fit
FEW = 5  # points that carry the weight, per coordinate, below which nothing is fitted
STEEPEST = 1.0  # largest difference of two widths (0.44 and 1.44): a narrower side would cut mass off
LEVELS = 30  # binary digits of the random numbers

LogDensity = Callable[[np.ndarray], np.ndarray]  # of points [n, size]


class Student(NamedTuple):
    """Student's t with scale root root' (lower triangular), in each axis of it wider on one side of the centre.

    A point is centre + root (w n) / width: n normal, w_j = widths[0, j] below the centre and widths[1, j] above it, on
    either side as often as its share of the two, so that the density has no step (a split t: Geweke 1989).
    """

    centre: Float[np.ndarray, " size"]
    root: Float[np.ndarray, "size size"]
    widths: Float[np.ndarray, "2 size"]  # below and above
    dof: float

    def drawn(self, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points, and their log density, from uniform numbers [n, 1 + size]; the first is for the width of the t."""
        below, above = self.widths
        low = below / (below + above)  # the share of points below the centre
        u = uniform[:, 1:]
        under = u < low
        normal = ndtri(np.where(under, u / low / 2, (1 + (u - low) / (1 - low)) / 2))
        width = np.sqrt(chdtri(self.dof, uniform[:, 0]) / self.dof)[:, None]
        points = self.centre + (normal * np.where(under, below, above) / width) @ self.root.T
        return points, self._log_density(normal / width)

    def log_density(self, points: np.ndarray) -> np.ndarray:
        z = np.linalg.solve(self.root, (points - self.centre).T).T
        return self._log_density(z / np.where(z < 0, *self.widths))

    def _log_density(self, standard: np.ndarray) -> np.ndarray:
        d, dof = len(self.centre), self.dof
        constant = gammaln((dof + d) / 2) - gammaln(dof / 2) - d / 2 * np.log(dof * np.pi)
        constant -= np.log(np.diag(self.root)).sum() + np.log(self.widths.mean(axis=0)).sum()
        return constant - (dof + d) / 2 * np.log1p((standard**2).sum(axis=1) / dof)


class Side(NamedTuple):
    """One model: its log density (unnormalised), and the t that its points are drawn from; shared coordinates first."""

    log_density: LogDensity
    proposal: Student


class Weighted(NamedTuple):
    """Points of one model and their log weights, log p - log t."""

    points: Float[np.ndarray, "block point size"]
    log_weight: Float[np.ndarray, "block point"]

    def log_means(self) -> np.ndarray:
        """log Z by each block alone."""
        return np.asarray(logsumexp(self.log_weight, axis=1)) - np.log(self.log_weight.shape[1])

    def joined(self, more: Weighted) -> Weighted:
        return Weighted(*(np.concatenate(both, axis=1) for both in zip(self, more, strict=True)))


def around_mode(mode: np.ndarray, curvature: np.ndarray) -> Student:
    """The first t: mode and curvature of the log density."""
    return Student(mode, root_of_inverse(curvature), np.ones((2, len(mode))), max(FIRST_DOF, len(mode)))


def root_of_inverse(curvature: np.ndarray) -> np.ndarray:
    """R, lower triangular, with R R' = curvature^-1.

    Without the inverse: of columns of very different sizes that are nearly collinear, such as powers of a year, it is
    lost in rounding where the root is not. With J, which turns the order round: J C J = L L', R = (J L J)^-1'.
    """
    return np.linalg.inv(np.linalg.cholesky(curvature[::-1, ::-1])[::-1, ::-1]).T


def weighted(side: Side, uniform: np.ndarray) -> Weighted:
    """Points from uniform numbers [block, point, 1 + size]."""
    shape, size = uniform.shape[:2], uniform.shape[2] - 1
    points, log_density = side.proposal.drawn(uniform.reshape(shape[0] * shape[1], 1 + size))
    log_weight = side.log_density(points) - log_density
    return Weighted(points.reshape(*shape, size), log_weight.reshape(shape))


class Coupled:
    """Two models sampled together; `more` goes on, and never changes what was drawn before."""

    def __init__(self, sides: tuple[Side, Side], n_shared: int, seed: int):
        self.sides, self.n_shared = sides, n_shared
        self.sizes = [len(side.proposal.centre) for side in sides]
        self.stream = Stream(1 + sum(self.sizes) - n_shared, (seed, 1))
        self.weighted: list[Weighted] = []

    def more(self, n: int) -> None:
        """n points more in every block, for both models."""
        uniform = self.stream.more(n)
        found = [weighted(side, self._of_side(k, uniform)) for k, side in enumerate(self.sides)]
        self.weighted = (
            [old.joined(new) for old, new in zip(self.weighted, found, strict=True)] if self.weighted else found
        )

    def _of_side(self, k: int, uniform: np.ndarray) -> np.ndarray:
        """The numbers of one model: the width first, then what is shared, then what it alone has."""
        common = 1 + self.n_shared
        own = slice(common, 1 + self.sizes[0]) if k == 0 else slice(1 + self.sizes[0], None)
        return np.concatenate([uniform[..., :common], uniform[..., own]], axis=-1)

    @property
    def n_points(self) -> int:
        """Of each model, over all blocks."""
        return self.weighted[0].log_weight.size if self.weighted else 0

    def answer(self) -> Replicates:
        """log Z_2 - log Z_1, and the same without each block."""
        return of_blocks(*(own.log_means() for own in self.weighted))


def of_blocks(first: np.ndarray, second: np.ndarray) -> Replicates:
    """From log Z of both models by block [block]."""
    whole, left_out = 0.0, np.zeros(len(first))
    for sign, logs in ((-1, first), (1, second)):
        top = logs.max()
        mean = np.exp(logs - top)
        whole += sign * (top + np.log(mean.mean()))
        left_out += sign * (top + np.log((mean.sum() - mean) / (len(mean) - 1)))
    return Replicates(float(whole), left_out)


class Stream:
    """Uniform numbers in every block: a scrambled Sobol sequence each, which is more even than chance."""

    def __init__(self, size: int, seed: tuple[int, ...], n_blocks: int = N_BLOCKS):
        from scipy.stats.qmc import Sobol  # slow to import

        self.size = size
        self.sequences = [
            Sobol(size, bits=LEVELS, rng=np.random.default_rng([*seed, block])) for block in range(n_blocks)
        ]

    def more(self, n: int) -> np.ndarray:
        """The next n points [block, n, size], none of them 0 or 1."""
        return np.array([own.random(n) for own in self.sequences]) + 2.0 ** -(LEVELS + 1)


def refined(side: Side, seed: int, n_points: int, even: float = EVEN) -> Side:
    """With a t that is fitted to its own weighted points: of several rounds the one with the most even weights."""
    share, found, size = 0.0, side, len(side.proposal.centre)
    for i in range(ROUNDS):
        own = weighted(side, Stream(1 + size, (seed, 4, i), n_blocks=1).more(n_points))
        if (now := weight_share(own.log_weight)) > share:
            found, share = side, now
        if share > even:
            break
        if i == 0:  # what is fitted has many numbers
            n_points = max(n_points, 2 ** int(np.ceil(np.log2(PER_COORDINATE * size))))
            own = weighted(side, Stream(1 + size, (seed, 4, ROUNDS), n_blocks=1).more(n_points))
        side = side._replace(proposal=fitted(own, side.proposal))
    return found


def fitted(own: Weighted, before: Student) -> Student:
    """A t for the weighted points of the one before; wider where they are too few."""
    points, flat = own.points.reshape(-1, own.points.shape[-1]), own.log_weight.ravel()
    weight = np.exp(flat - logsumexp(flat))
    if 1 / (weight**2).sum() < FEW * points.shape[1]:
        # Few points carry the weight: a wider t around their mean finds where to look.
        return Student(weight @ points, 1.5 * before.root, before.widths, DOFS[0])
    return student_of(points, weight, flat + before.log_density(points))


def student_of(points: np.ndarray, weight: np.ndarray, log_p: np.ndarray) -> Student:
    """The t with the mean, spread and skewness of weighted points, and the dof of least variance of p / t."""
    mean = weight @ points
    away = points - mean
    spread = (away * weight[:, None]).T @ away
    root = np.linalg.cholesky(spread + 1e-12 * np.diag(np.diag(spread)))
    shift, widths = split(weight @ np.linalg.solve(root, away.T).T ** 3)
    trials = [Student(mean + root @ shift, root * np.sqrt((dof - 2) / dof), widths, dof) for dof in DOFS]
    # The mean over p of p / t is the second moment of the weights.
    return min(trials, key=lambda trial: float(logsumexp(log_p - trial.log_density(points), b=weight)))


def split(skewness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and widths of two half-normals joined at the centre, with mean 0, variance 1 and this skewness.

    Of widths r below and q above: mean c (q - r) with c = sqrt(2 / pi), variance (1 - c^2)(q - r)^2 + q r, and third
    central moment c (q - r) ((4 / pi - 1)(q - r)^2 + q r).
    """
    c = np.sqrt(2 / np.pi)
    grid = np.linspace(-STEEPEST, STEEPEST, 2001)
    gap = np.interp(skewness, c * grid * (1 + (6 / np.pi - 2) * grid**2), grid)
    product = 1 - (1 - c**2) * gap**2
    above = (gap + np.sqrt(gap**2 + 4 * product)) / 2
    return -c * gap, np.array([above - gap, above])


def _one(points: np.ndarray) -> np.ndarray:
    return np.zeros(len(points))


# The model of nothing, whose evidence is 1: the other's evidence is then the answer.
NOTHING = Side(_one, Student(np.zeros(0), np.zeros((0, 0)), np.zeros((2, 0)), FIRST_DOF))
