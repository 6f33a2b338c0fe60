"""Fitting the short path to draws: linking densities, and how each end reads the shared coordinates.

Every fit is regularised by what the draws can tell apart from noise: with a thousand shared coordinates and two
thousand draws, means and slopes taken at face value cost more variance than they save.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from crossfade.density.sharing import Union
from crossfade.paths.link import Link, LinkFactor, Noise, Read, Warp, link, warp
from crossfade.paths.path import End, Ends, Path
from crossfade.types import Array

DENSE = 100  # up to so many coordinates a spread is a full matrix, beyond it a vector
ORDERED = 400  # up to so many, each coordinate is tied to a few before it
NEIGHBOURS = 8  # of a coordinate, at most
WARPS = ("identity", "shift", "affine")
GAUSSIAN = 1e6  # degrees of freedom at which Student's t is a Gaussian for our purposes, and still normalised
DOFS = (3.0, 5.0, 8.0, 15.0, 30.0, GAUSSIAN)


class Fit(NamedTuple):
    """What was fitted to draws: a warp per end, the link of M1's own coordinates, the link of M2's own."""

    warps: tuple[Warp, Warp]
    links: tuple[Link, Link]


def fitted_path(densities: tuple[Callable[[Array], Array], Callable[[Array], Array]], union: Union, fit: Fit) -> Path:
    """The path over the union's coordinates with these links; what was fitted is an argument of compiled programs."""
    ends = []
    for k in (0, 1):
        read = Read(densities[k], fit.warps[k], union.where[k], union.n_shared)
        other = union.only[1 - k]
        ends.append(End((LinkFactor(fit.links[1 - k], (other.start, other.stop), union.n_shared),), read))
    return Path(Ends((ends[0], ends[1])))


def completed(union: Union, fit: Fit, k: int, u: np.ndarray, noise: Noise) -> np.ndarray:
    """Draws u [.., size of k] of model k's posterior as draws of end k: the other's own come from its link."""
    v = np.zeros((*u.shape[:-1], union.size))
    v[..., union.where[k]] = u
    v[..., : union.n_shared] = fit.warps[k].inverse(v[..., : union.n_shared])
    v[..., union.only[1 - k]] = fit.links[1 - k].draw(noise, v[..., : union.n_shared])
    return v


def other_point(union: Union, fit: Fit, k: int, v: np.ndarray) -> np.ndarray:
    """The coordinates of model k at points v [.., union]."""
    whole = v.copy()
    whole[..., : union.n_shared] = fit.warps[k](v[..., : union.n_shared])
    return whole[..., union.where[k]]


def links_and_volumes(union: Union, fit: Fit, k: int, v: np.ndarray) -> np.ndarray:
    """log q_k at points v, but for model k's own log density."""
    shared = v[..., : union.n_shared]
    return fit.links[1 - k].log_density(v[..., union.only[1 - k]], shared) + fit.warps[k].log_volume


def fit(joined: Union, u: tuple[np.ndarray, np.ndarray], n_effective: tuple[float, float], kind: str) -> Fit:
    """Warps and links from draws [n, size] of each model; n_effective says how many independent ones they are worth."""
    own = [_in_union(joined, k, u[k]) for k in (0, 1)]
    s = joined.n_shared
    warps = fit_warps(kind, own[0][:, :s], own[1][:, :s], n_effective)
    links = []
    for k in (0, 1):
        shared = warps[k].inverse(own[k][:, :s])
        links.append(fit_link(own[k][:, joined.only[k]], shared, n_effective[k]))
    return Fit(warps, (links[0], links[1]))


def _in_union(joined: Union, k: int, u: np.ndarray) -> np.ndarray:
    whole = np.zeros((len(u), joined.size))
    whole[:, joined.where[k]] = u
    return whole


def fit_warps(kind: str, s1: np.ndarray, s2: np.ndarray, n_effective: tuple[float, float]) -> tuple[Warp, Warp]:
    """Each end's map of common coordinates v to its shared ones: nothing, their means, or means and spreads."""
    size = s1.shape[1]
    middle = (s1.mean(axis=0) + s2.mean(axis=0)) / 2
    if kind == "identity" or size == 0:
        same = warp(np.zeros(size), _diagonal(np.ones(size)))
        return same, same
    if kind == "affine" and size <= DENSE:
        first, second = (warp(s.mean(axis=0), root_covariance(s)) for s in (s1, s2))
        return first, second
    # In high dimension only what stands out: of `size` pure noise differences none is expected above the threshold.
    threshold = 1 + np.sqrt(2 * np.log(max(size, 2)))
    sd1, sd2 = (np.maximum(s.std(axis=0), 1e-10) for s in (s1, s2))
    if size <= DENSE:
        threshold = 0.0
    gap = s2.mean(axis=0) - s1.mean(axis=0)
    gap = np.where(np.abs(gap) > threshold * np.sqrt(sd1**2 / n_effective[0] + sd2**2 / n_effective[1]), gap, 0.0)
    stretch = np.zeros(size)
    if kind == "affine":
        noise = np.sqrt(0.5 / n_effective[0] + 0.5 / n_effective[1])
        stretch = np.log(sd2 / sd1)
        stretch = np.where(np.abs(stretch) > threshold * noise, stretch, 0.0)
    return (
        warp(middle - gap / 2, _diagonal(np.exp(-stretch / 2))),
        warp(middle + gap / 2, _diagonal(np.exp(stretch / 2))),
    )


def _diagonal(scale: np.ndarray) -> np.ndarray:
    """Small ones as matrices: all kinds of warp then share one compiled program."""
    return np.diag(scale) if len(scale) <= DENSE else scale


def fit_link(own: np.ndarray, shared: np.ndarray, n_effective: float) -> Link:
    """Student's t of own [n, p] given shared [n, s]: regression on the shared coordinates that matter."""
    p, s = own.shape[1], shared.shape[1]
    if p == 0:
        return link(np.zeros(0), np.zeros((0, s)), np.zeros(0), GAUSSIAN)
    centre, middle = own.mean(axis=0), shared.mean(axis=0)
    slopes = np.zeros((p, s))
    used = relevant(own - centre, shared - middle, n_effective)
    if len(used):
        x = shared[:, used] - middle[used]
        unit = np.maximum(x.std(axis=0), 1e-300)
        slopes[:, used] = np.linalg.lstsq(x / unit, own - centre, rcond=1e-8)[0].T / unit
    residual = own - centre - (shared - middle) @ slopes.T
    root = _root(residual, n_effective)
    z = residual / root if root.ndim == 1 else np.linalg.solve(root, residual.T).T
    dof = _best_dof((z**2).sum(axis=1), p)
    return link(centre - slopes @ middle, slopes, root * np.sqrt((dof - 2) / dof), dof)


def _root(residual: np.ndarray, n_effective: float) -> np.ndarray:
    p = residual.shape[1]
    if p <= DENSE:
        return root_covariance(residual)
    return root_of_neighbours(residual, n_effective) if p <= ORDERED else np.maximum(residual.std(axis=0), 1e-10)


def root_of_neighbours(residual: np.ndarray, n_effective: float) -> np.ndarray:
    """A root [p, p] of the covariance, each coordinate given the few before it that tell most about it.

    States of a series depend on their neighbours: a full matrix of a hundred of them would be mostly noise, and
    standard deviations alone would forget that they move together.
    """
    p = residual.shape[1]
    sd = np.maximum(residual.std(axis=0), 1e-10)
    correlation = (residual / sd).T @ (residual / sd) / len(residual)
    slopes, left = np.zeros((p, p)), np.ones(p)
    for j in range(1, p):
        used: list[int] = []
        while len(used) < min(j, NEIGHBOURS):
            # what each earlier coordinate still has to do with this one, given those in use
            known = correlation[np.ix_(used, used)]
            weights = np.linalg.solve(known, correlation[used, : j + 1]) if used else np.zeros((0, j + 1))
            tie = correlation[j, :j] - correlation[j, used] @ weights[:, :j]
            own = 1.0 - np.einsum("ki,ki->i", correlation[used, :j], weights[:, :j])
            explained = np.where(own > 1e-8, tie**2 / np.maximum(own, 1e-8), 0.0) / left[j]
            explained[used] = 0.0
            best = int(np.argmax(explained))
            if -n_effective * np.log1p(-min(explained[best], 1 - 1e-9)) < np.log(n_effective) + 2 * np.log(j):
                break
            used.append(best)
            slopes[j, used] = np.linalg.solve(correlation[np.ix_(used, used)], correlation[used, j])
            left[j] = max(1.0 - slopes[j, used] @ correlation[used, j], 1e-9)
    return sd[:, None] * np.linalg.solve(np.eye(p) - slopes, np.diag(np.sqrt(left)))


def relevant(own: np.ndarray, shared: np.ndarray, n_effective: float) -> np.ndarray:
    """The shared coordinates worth a slope: all if they are few, else picked one by one while BIC says yes."""
    s, p = shared.shape[1], own.shape[1]
    if s == 0 or s <= n_effective / 50:
        return np.arange(s)
    unit = shared / np.maximum(shared.std(axis=0), 1e-300) / np.sqrt(len(shared))
    left = own / np.maximum(own.std(axis=0), 1e-300) / np.sqrt(len(own))
    used: list[int] = []
    basis = np.zeros((len(own), 0))
    while len(used) < min(s, n_effective / 20):
        explained = ((left.T @ unit) ** 2).sum(axis=0) / np.maximum((left**2).sum(), 1e-300)
        explained[used] = 0.0
        best = int(np.argmax(explained))
        # variance explained, as a likelihood ratio, against the price of p slopes and of choosing among s
        if n_effective * explained[best] * p < p * np.log(n_effective) + 2 * np.log(s):
            break
        column = unit[:, best] - basis @ (basis.T @ unit[:, best])
        column /= np.maximum(np.linalg.norm(column), 1e-300)
        basis = np.column_stack([basis, column])
        left = left - np.outer(column, column @ left)
        used.append(best)
    return np.array(used, int)


def _best_dof(squares: np.ndarray, p: int) -> float:
    """The degrees of freedom with the highest likelihood of squared distances, at a fixed covariance."""

    def score(dof: float) -> float:
        shrunk = squares * dof / (dof - 2)
        constant = gammaln((dof + p) / 2) - gammaln(dof / 2) - p / 2 * np.log(dof - 2)
        return float(constant - (dof + p) / 2 * np.mean(np.log1p(shrunk / dof)))

    return max(DOFS, key=score)


def root_covariance(u: np.ndarray, dense: int = DENSE) -> np.ndarray:
    """A root of the covariance of draws [n, size]: Cholesky in low dimension, standard deviations in high."""
    n, size = u.shape
    sd = np.maximum(u.std(axis=0), 1e-10)
    if size > dense or size == 0:
        return sd
    correlation = np.atleast_2d(np.corrcoef(u / sd, rowvar=False)) if size > 1 else np.ones((1, 1))
    correlation = np.nan_to_num(correlation, nan=0.0)
    # shrinking widens directions in which coordinates are tightly tied, so it is for few draws only
    weight = n / (n + size) if n < 20 * size else 1.0
    shrunk = weight * correlation + (1 - weight) * np.eye(size)
    np.fill_diagonal(shrunk, 1.0)
    return sd[:, None] * np.linalg.cholesky(shrunk + 1e-9 * np.eye(size))
