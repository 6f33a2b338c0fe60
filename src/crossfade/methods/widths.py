"""How much an answer near 1 : 1 owes to the priors of what one model has and the other has not: half and twice as wide.

A Bayes factor of little evidence is the one whose side may change with the priors, so this is said without being asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from crossfade.density.regression import Regression
from crossfade.methods.budget import Asked
from crossfade.methods.regressions import by_regression
from crossfade.types import DO_NOT_USE, CrossfadeError, Result

NEAR = math.log(10)  # log Bayes factors up to here are looked at
FACTORS = (0.5, 2.0)
COARSE = 0.02  # the standard error that is enough here
MOST_POINTS = 2**18
MOST = 2  # parameters that are looked at one by one

_asked: ContextVar[bool] = ContextVar("asked", default=True)


class Width(NamedTuple):
    """The answer with the priors of these parameters `factor` times as wide; None where the draws cannot tell."""

    names: tuple[str, ...]
    factor: float
    value: float | None
    error: float | None


@contextmanager
def answers_alone() -> Iterator[None]:
    """Within, nothing is computed but answers: tables of them have no room for more."""
    token = _asked.set(False)
    try:
        yield
    finally:
        _asked.reset(token)


def with_widths(result: Result, m1: Any, m2: Any) -> Result:
    """The result with the answers of other widths among what it is `about`, where they are worth knowing."""
    _, only_1, only_2, *_ = result.sharing
    differ = (*only_1, *only_2)
    evidence_alone = result.about.get("evidence")
    if not _asked.get() or result.verdict == DO_NOT_USE or evidence_alone or not differ:
        return result
    if not abs(result.log_bayes_factor.value) < NEAR:
        return result
    if isinstance(m1, Regression) and isinstance(m2, Regression):
        found = _of_regressions(m1, m2, differ, result)
    else:
        found = [width for name in differ for width in _of_draws(m1, m2, result, name)] if len(differ) <= MOST else []
    widths = [[[*own.names], *own[1:]] for own in found]
    return result._replace(about={**result.about, "widths": widths}) if widths else result


def _of_regressions(r1: Regression, r2: Regression, names: tuple[str, ...], result: Result) -> list[Width]:
    """By the route of the answer, with priors of their own: a closed form, or new points."""
    wanted = Asked(max(COARSE, result.raw_estimate.error), None, MOST_POINTS)
    found = []
    for factor in FACTORS:
        first, second = (_wider(own, names, factor) for own in (r1, r2))
        other = by_regression(first, second, wanted, seed=int(result.about.get("seed", 0)))
        if isinstance(other, Result) and other.verdict != DO_NOT_USE:
            found.append(Width(names, factor, *other.raw_estimate[:2]))
        else:
            found.append(Width(names, factor, None, None))
    return found


def _wider(regression: Regression, names: tuple[str, ...], factor: float) -> Regression:
    chosen = np.array([name in names for name in regression.names])
    return regression._replace(precision=np.where(chosen, regression.precision / factor**2, regression.precision))


def _of_draws(m1: Any, m2: Any, result: Result, name: str) -> list[Width]:
    """From the draws of the run; nothing where the prior has no scale or is not known."""
    from crossfade.methods.sensitivity import prior_sensitivity

    first, second = (model if (own := getattr(model, "model", None)) is None else own for model in (m1, m2))
    try:
        curve = prior_sensitivity(first, second, result, name, factors=FACTORS)
    except CrossfadeError:
        return []
    return [
        Width((name,), float(factor), *(estimate[:2] if fine else (None, None)))
        for factor, estimate, fine in zip(curve.factors, curve.estimates, curve.reliable, strict=True)
        if factor != 1
    ]
