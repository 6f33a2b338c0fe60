"""Importance sampling from fits to the draws: a smaller error at less cost, where chains have shown what there is.

Points cost one evaluation each, no gradient and no trajectory; for small smooth models they reach errors that chains
would need a hundred times as long for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossfade.analysis.judge import Finding, of_gap
from crossfade.analysis.weights import pareto_k, weight_share
from crossfade.density.precision import in_float64
from crossfade.methods.budget import Asked
from crossfade.methods.coupled import N_BLOCKS, NOTHING, Coupled, Side, refined, student_of
from crossfade.methods.edge import Edge
from crossfade.sampling.evaluate import values
from crossfade.types import Estimate

SMALL = 30  # coordinates up to which a t can be fitted to a few thousand draws
N_POINTS = 64  # of a block, at first
PER_DRAW = 10  # evaluations that a draw costs
# A posterior with tails that a t does not have shows first in its weights: with a share of 0.7 errors of 0.003 were
# five times too small, though Pareto k was below 0.7.
EVEN = 0.9
PARETO_K = 0.5
NAME = "importance sampling"


class Refined(NamedTuple):
    """An answer by importance sampling, what its chains say of the same, and how heavy the weights' tails are."""

    estimate: Estimate
    difference: Estimate  # from that of the chains
    n_points: int
    pareto_k: float

    def findings(self) -> list[Finding]:
        return of_gap("the chains' answer", -self.difference, ', or use route="path"')


def fits(edge: Edge) -> bool:
    """Whether both models are small and smooth, and their chains our own."""
    return len(edge.rungs) == 2 and all(
        draws.u.shape[2] <= SMALL
        and draws.joint.jumps is None
        and not draws.joint.exchangeable
        and draws.brought is None
        for draws in edge.draws
    )


@in_float64
def by_points(edge: Edge, path: Estimate, asked: Asked, seed: int) -> Refined | None:
    """Points until the asked error; None where more draws would cost less, or weights are uneven."""
    both = Coupled((_side(edge, 0, seed), _side(edge, 1, seed)), edge.union.n_shared, seed)
    n_draws = sum(rung.n_draws * edge.draws[0].n_chains for rung in edge.rungs)
    cost = PER_DRAW * n_draws * (path.error / asked.target_se) ** 2
    both.more(N_POINTS)
    if min(weight_share(own.log_weight) for own in both.weighted) < EVEN:
        return None
    while (answer := both.answer()).variance > asked.target_se**2:
        needed = 2 * both.n_points * answer.variance / asked.target_se**2
        if not needed < cost or (asked.max_draws is not None and 2 * both.n_points > asked.max_draws):
            return None
        both.more(both.n_points // N_BLOCKS)
    tail = max(pareto_k(own.log_weight) for own in both.weighted)
    if not tail < PARETO_K:
        return None
    estimate = answer.estimate(NAME)
    gap = Estimate(estimate.value - path.value, float(np.hypot(estimate.error, path.error)), path.dof, NAME)
    return Refined(estimate, gap, both.n_points, tail)


def _side(edge: Edge, k: int, seed: int) -> Side:
    """Model k over its coordinates, the shared ones first; a t fitted to its draws."""
    draws = edge.draws[k]
    if draws.u.shape[2] == 0:  # of nothing, or of data without parameters: one number
        log_likelihood = float(draws.log_density.flat[0])
        return NOTHING._replace(log_density=lambda points: np.full(len(points), log_likelihood))
    order = np.argsort(edge.union.where[k], kind="stable")
    back = np.argsort(order)

    def log_density(points: np.ndarray) -> np.ndarray:
        found = values(draws.density, points[:, back])
        return np.where(np.isnan(found), -np.inf, found)

    u = draws.u.reshape(-1, draws.u.shape[2])
    weight = np.full(len(u), 1 / len(u))
    side = Side(log_density, student_of(u[:, order], weight, draws.log_density.ravel()))
    return refined(side, seed + k, N_POINTS * N_BLOCKS)
