"""Probabilities of models before the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crossfade.ranking.whole import BY_NAME, BY_SIZE, UNIFORM, Whole
from crossfade.types import CrossfadeError

Prior = Mapping[str, float] | str | None


def kind_of(given: Prior) -> str:
    return BY_NAME if isinstance(given, Mapping) else given or UNIFORM


def prior_of(
    given: Prior,
    names: tuple[str, ...],
    terms: tuple[frozenset[str], ...] = (),
    whole: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Probabilities of the models: equal ("uniform"), equal for every number of terms ("size"), or weights by name.

    Of models that a search has kept (`whole` tells of all), the first two are shares of all models.
    """
    if isinstance(given, str) and given not in (UNIFORM, BY_SIZE):
        raise CrossfadeError(f"unknown prior {given!r} over models: 'uniform', 'size' or weights by name")
    if not isinstance(given, Mapping) and whole is not None:
        log_weights = Whole(**whole)._replace(prior=kind_of(given)).log_weights
        return np.exp(log_weights[[len(own) for own in terms]])
    if given is None or given == UNIFORM:
        return np.full(len(names), 1 / len(names))
    if isinstance(given, str):
        if not terms:
            raise CrossfadeError("prior 'size' is for formulas, whose terms can be counted: give weights by name")
        sizes = np.array([len(own) for own in terms])
        counts = {int(size): int((sizes == size).sum()) for size in set(sizes)}
        weights = np.array([1 / counts[int(size)] for size in sizes])
        return np.asarray(weights / weights.sum())
    if unknown := [name for name in given if name not in names]:
        raise CrossfadeError(f"the prior names {unknown[0]!r}, which is no model: choose from {', '.join(names[:20])}")
    weights = np.array([float(given.get(name, 0.0)) for name in names])
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise CrossfadeError(f"prior weights {dict(given)} must be numbers of at least 0, and not all 0")
    return np.asarray(weights / weights.sum())
