"""A posterior in several pieces beside a density that is known: a mixture of Student's t fitted to it.

Tempering finds the pieces; a mixture fitted to what it found is nearer to the posterior than the prior is, so that
Bennett's ratio between the two tells the evidence from fewer draws. The mixture is fitted to weighted points of its
own, and the draws that it is read with have had no say in it but for the first guess.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, gammaln, logsumexp, ndtri

from crossfade.analysis.weights import weight_share
from crossfade.methods.coupled import LogDensity
from crossfade.types import Float, Trace

SMALL = 30  # coordinates up to which a mixture can be fitted to a few thousand points
N_PIECES = 16  # at first: those that hold too few points are dropped
DOF = 8.0
ROUNDS = 3  # of fitting to points of its own
N_STEPS = 10  # of expectation and maximisation in a round
PER_COORDINATE = 2000  # points for a fit
PER_DRAW = 4  # points of the mixture beside each draw of the posterior


class Pieces(NamedTuple):
    """A mixture of Student's t with DOF degrees of freedom."""

    weight: Float[np.ndarray, " piece"]
    centre: Float[np.ndarray, "piece size"]
    root: Float[np.ndarray, "piece size size"]  # lower triangular

    def squares(self, points: np.ndarray) -> np.ndarray:
        """Squared distances [n, piece] of points [n, size]."""
        pairs = zip(self.centre, self.root, strict=True)
        return np.array([(np.linalg.solve(root, (points - centre).T) ** 2).sum(axis=0) for centre, root in pairs]).T

    def log_parts(self, squares: np.ndarray) -> np.ndarray:
        """log(weight x density) of every piece [n, piece]."""
        size = self.centre.shape[1]
        constant = gammaln((DOF + size) / 2) - gammaln(DOF / 2) - size / 2 * np.log(DOF * np.pi)
        constant = constant - np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1) + np.log(self.weight)
        return np.asarray(constant - (DOF + size) / 2 * np.log1p(squares / DOF))

    def log_density(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(logsumexp(self.log_parts(self.squares(points)), axis=1))

    def drawn(self, uniform: np.ndarray) -> np.ndarray:
        """Points from uniform numbers [n, 1 + size]; the first tells the piece, and what is left of it the width."""
        upper = np.cumsum(self.weight) / self.weight.sum()
        which = np.minimum(np.searchsorted(upper, uniform[:, 0], side="right"), len(upper) - 1)
        share = np.diff(upper, prepend=0.0)[which]
        rest = np.clip(1 - (upper[which] - uniform[:, 0]) / share, 1e-12, 1 - 1e-12)
        normal = ndtri(uniform[:, 1:]) / np.sqrt(chdtri(DOF, rest) / DOF)[:, None]
        return self.centre[which] + np.einsum("nij,nj->ni", self.root[which], normal)


def spread_out(points: np.ndarray, random: np.random.Generator) -> Pieces:
    """A first guess: pieces around points far from each other."""
    sd = np.maximum(points.std(axis=0), 1e-10)
    chosen, near = [int(random.integers(len(points)))], np.full(len(points), np.inf)
    for _ in range(N_PIECES - 1):
        near = np.minimum(near, (((points - points[chosen[-1]]) / sd) ** 2).sum(axis=1))
        chosen.append(int(random.choice(len(points), p=near / near.sum())))
    root = np.linalg.cholesky(0.3 * np.cov(points, rowvar=False).reshape(len(sd), -1) + 1e-10 * np.diag(sd**2))
    return Pieces(np.full(N_PIECES, 1 / N_PIECES), points[chosen], np.repeat(root[None], N_PIECES, axis=0))


def fitted(points: np.ndarray, weight: np.ndarray, pieces: Pieces) -> Pieces:
    """Nearer to weighted points [n, size]: expectation and maximisation for mixtures of t (Peel & McLachlan 2000)."""
    size = points.shape[1]
    weight = weight / weight.sum()
    n = 1 / (weight**2).sum()
    away = points - weight @ points
    whole = (away * weight[:, None]).T @ away
    for _ in range(N_STEPS):
        squares = pieces.squares(points)
        parts = pieces.log_parts(squares)
        share = np.exp(parts - logsumexp(parts, axis=1)[:, None]) * weight[:, None]
        held = share.sum(axis=0)
        enough = held * n > 2 * size
        if not enough.any():
            return pieces
        share, held, squares = share[:, enough], held[enough], squares[:, enough]
        narrow = share * (DOF + size) / (DOF + squares)
        centre = (narrow.T @ points) / narrow.sum(axis=0)[:, None]
        root = []
        for k in range(len(held)):
            off = points - centre[k]
            prior = size / (held[k] * n)  # a piece of few points leans on the spread of all
            own = ((narrow[:, k, None] * off).T @ off / held[k] + 0.1 * prior * whole) / (1 + prior)
            root.append(np.linalg.cholesky(own + 1e-10 * np.diag(np.diag(whole))))
        pieces = Pieces(held / held.sum(), centre, np.array(root))
    return pieces


def adapted(log_density: LogDensity, draws: np.ndarray, seed: int) -> Pieces:
    """Fitted to draws [n, size] first and then to weighted points of its own; the round with the most even weights."""
    random = np.random.default_rng([seed, 7])
    size = draws.shape[1]
    pieces = fitted(draws, np.ones(len(draws)), spread_out(draws, random))
    best, evenness = pieces, 0.0
    for i in range(ROUNDS + 1):
        points = pieces.drawn(random.uniform(size=(PER_COORDINATE * size, 1 + size)))
        log_weight = log_density(points) - pieces.log_density(points)
        now = weight_share(log_weight)
        if i and now > evenness:  # that of the draws themselves fits them too well
            best, evenness = pieces, now
        weight = np.exp(log_weight - log_weight.max())
        # a single point that carries all of the weight would become a piece
        pieces = fitted(points, np.minimum(weight, weight.mean() * np.sqrt(len(weight))), pieces)
    return best


def trace_by_pieces(log_density: LogDensity, u: np.ndarray, seed: int) -> Trace:
    """From the mixture to the posterior: log p - log q at points of the mixture and at the draws u [chain, draw, size].

    The points are in as many blocks as there are chains.
    """
    n_chains, n_draws, size = u.shape
    pieces = adapted(log_density, u.reshape(-1, size), seed)
    random = np.random.default_rng([seed, 8])
    points = pieces.drawn(random.uniform(size=(n_chains * PER_DRAW * n_draws, 1 + size)))
    there = (log_density(points) - pieces.log_density(points)).reshape(n_chains, PER_DRAW, n_draws)
    draws = u.reshape(-1, size)
    here = (log_density(draws) - pieces.log_density(draws)).reshape(n_chains, n_draws)
    ratio = np.concatenate([there, here[:, None]], axis=1)
    tau = np.array([0.0] * PER_DRAW + [1.0])
    return Trace(tau, ratio, np.ones(ratio.shape[:2]), True)
