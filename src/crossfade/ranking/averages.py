"""Averages over models: of parameters, of functions of them, and of the responses that formulas predict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from crossfade.analysis.errors import variance_of
from crossfade.density.regression import Regression
from crossfade.methods.coupled import N_BLOCKS, Side, Stream, around_mode, refined, weighted
from crossfade.ranking.record import Moments, Quantity, Ranking
from crossfade.types import CrossfadeError, Posterior

if TYPE_CHECKING:
    import pandas

NEGLIGIBLE = 1e-8  # posterior probability of all models together that are left out of a prediction
N_POINTS = 64  # of a block, for the responses of one model
MOST_DRAWS = 2000  # of one model, at which a function is computed
STORED = (
    "this ranking was read from a file, which keeps its numbers but neither models nor draws: rank the models again "
    "(same seed, same numbers), and predict or average with what rank returns"
)


def moments_of(draws: Posterior) -> dict[str, Moments]:
    """From draws [chain, draw, ...] by parameter."""
    return {name: Moments(own.mean(axis=(0, 1)), own.var(axis=(0, 1))) for name, own in draws.items()}


def averaged(ranking: Ranking, parameter: str, given: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a parameter, 0 in models without it (or, `given`, only of those with it)."""
    has = np.array([parameter in own for own in ranking.moments])
    if not has.any():
        known = sorted({name for own in ranking.moments for name in own})
        raise CrossfadeError(f"no model has a parameter {parameter!r}: choose from {', '.join(known[:20])}")
    own = [moments.get(parameter) for moments in ranking.moments]
    shapes = {found.mean.shape for found in own if found is not None}
    if len(shapes) > 1:
        raise CrossfadeError(f"{parameter!r} has other shapes in other models, {sorted(shapes)}: no average")
    zero = Moments(*(np.zeros(next(iter(shapes))),) * 2)
    log_p = np.where(has | (not given), ranking.log_evidence + ranking.log_prior, -np.inf)
    if log_p.max() == -np.inf:
        raise CrossfadeError(
            f"all models with a parameter {parameter!r} have a prior weight of 0: give one of them some (with_prior)"
        )
    return _mixed(np.exp(log_p - logsumexp(log_p)), [moments if moments is not None else zero for moments in own])


def _mixed(p: np.ndarray, moments: Iterable[Moments]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a mixture with weights p."""
    found = list(moments)
    mean = sum(w * own.mean for w, own in zip(p, found, strict=True))
    square = sum(w * (own.variance + own.mean**2) for w, own in zip(p, found, strict=True))
    return np.asarray(mean), np.sqrt(np.maximum(np.asarray(square) - np.asarray(mean) ** 2, 0.0))


def computed(ranking: Ranking, what: Quantity) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a function of the draws, over models and their posteriors."""
    import jax

    if ranking.space is None and ranking.network is None:
        raise CrossfadeError(STORED)
    if ranking.network is None:
        raise CrossfadeError(
            "functions are averaged over draws, and this ranking has none: rank the models by chains "
            "(route='path' for formulas), or use predict(table)"
        )
    found = []
    for name in ranking.names:
        function = what if callable(what) else what.get(name)
        if function is None:
            raise CrossfadeError(f"there is no function for model {name!r}: give one for every model")
        theta = ranking.network.draws[name].theta()
        flat = {own: value.reshape(-1, *value.shape[2:]) for own, value in theta.items()}
        n = len(next(iter(flat.values())))
        some = {own: value[:: -(-n // MOST_DRAWS)] for own, value in flat.items()}
        try:
            values = np.asarray(jax.vmap(function)(some), float)
        except KeyError as error:
            raise CrossfadeError(
                f"the function asks for {error}, which {name!r} has not: it has {', '.join(flat)}. Give a function for "
                "each model, by name"
            ) from None
        found.append(Moments(values.mean(axis=0), values.var(axis=0)))
    if len({own.mean.shape for own in found}) > 1:
        raise CrossfadeError("the function has other shapes in other models: no average")
    return _mixed(ranking.posterior / ranking.posterior.sum(), found)


def predicted(ranking: Ranking, table: pandas.DataFrame) -> pandas.DataFrame:
    """Expected responses in rows of a table, over the models that carry the mass."""
    import pandas

    if ranking.space is None and ranking.network is None:
        raise CrossfadeError(STORED)
    if ranking.space is None or ranking.space.rows is None:
        raise CrossfadeError(
            "predict(table) is for formulas: average a function of the draws, ranking.average(lambda theta: ...)"
        )
    if not len(table):
        return pandas.DataFrame({"mean": [], "sd": [], "error": []}, index=table.index, dtype=float)
    columns = ranking.space.rows.columns(table)
    p = ranking.posterior / ranking.posterior.sum()
    heavy = np.argsort(-p, kind="stable")
    heavy = heavy[: int(np.searchsorted(np.cumsum(p[heavy]), 1 - NEGLIGIBLE)) + 1]
    weight = p[heavy] / p[heavy].sum()
    moments, moved = [], np.zeros((N_BLOCKS, len(table)))
    for i, share in zip(heavy, weight, strict=True):
        model = ranking.space.models.get(ranking.names[i])
        if model is None:
            raise CrossfadeError(f"{ranking.names[i]!r} was added later and is no formula: take it away to predict")
        rows = np.column_stack([columns[name] for name in model.names])
        own, without = _expected(model, rows, ranking.about.get("seed", 0))
        moments.append(own)
        moved += share * (without - own.mean)
    mean, sd = _mixed(weight, moments)
    left_out = np.array([own[heavy] / own[heavy].sum() for own in map(ranking.posterior_of, ranking.left_out)])
    by_weights = variance_of(left_out @ np.array([own.mean for own in moments]), ranking.n_strata)
    # All models take the same random numbers, so that their errors add up instead of cancelling.
    error = np.sqrt(by_weights + variance_of(moved))
    shift, scale = ranking.space.rows.response
    return pandas.DataFrame({"mean": shift + scale * mean, "sd": scale * sd, "error": scale * error}, index=table.index)


def _expected(model: Regression, rows: np.ndarray, seed: int) -> tuple[Moments, np.ndarray]:
    """Of the responses in these rows, under the posterior of one model; and the means without each block of points."""
    if model.conjugate:
        mean, variance = model.expected(rows)
        return Moments(mean, variance), np.tile(mean, (N_BLOCKS, 1))
    side = Side(model.log_joint, around_mode(*model.mode_and_curvature()))
    side = refined(side, seed, N_POINTS * N_BLOCKS)
    own = weighted(side, Stream(1 + len(model.names), (seed, 5)).more(N_POINTS))
    weight = np.exp(own.log_weight - own.log_weight.max())
    response = model.response(own.points @ rows.T)  # [block, point, row]
    total, first = weight.sum(axis=1), np.einsum("bp,bpr->br", weight, response)
    second = np.einsum("bp,bpr->r", weight, response**2) / total.sum()
    mean = first.sum(axis=0) / total.sum()
    left_out = (first.sum(axis=0) - first) / (total.sum() - total)[:, None]
    return Moments(mean, np.maximum(second - mean**2, 0.0)), left_out
