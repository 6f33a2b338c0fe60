"""Regressions that differ in their terms: a list of formulas, all subsets of one formula, polynomials of all orders.

NumPy only, like the regressions themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.bridges.design import INTERCEPT, Design, Recipe, designs
from crossfade.bridges.formula import Prior, regressions, statement
from crossfade.bridges.products import factors
from crossfade.density.regression import Regression
from crossfade.methods.progress import Say
from crossfade.ranking.search import searched
from crossfade.ranking.whole import Terms
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

MOST = 14  # terms of which all subsets are computed


class Rows(NamedTuple):
    """From other rows of a table to the columns of all models, and from their responses back to its units."""

    recipes: tuple[tuple[Recipe, tuple[str, ...]], ...]  # each with the names of its columns

    @property
    def response(self) -> tuple[float, float]:
        return self.recipes[0][0].response

    def columns(self, table: pandas.DataFrame) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for recipe, names in self.recipes:
            found |= dict(zip(names, recipe.columns(table).T, strict=True))
        return found


class Space(NamedTuple):
    """Regressions by name, and the terms of each; what was only looked at, or not at all, is said."""

    models: dict[str, Regression]
    terms: dict[str, Terms]
    said: dict[str, Any] = {}  # kept with the ranking; "whole" is what a search tells of all models
    unseen: float = 0.0  # about how much of the mass of all models is in others
    rows: Rows | None = None


def from_many_formulas(
    table: pandas.DataFrame,
    *formulas: str,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
    drop_missing: bool = False,
) -> Space:
    """The models of two formulas or more with one response, for `rank`; they are named by their formulas.

    `family`, `prior` and `scaling` are those of `from_formulas`.
    """
    if len(formulas) < 2:
        raise CrossfadeError("a ranking needs two formulas or more")
    found = designs(table, *formulas, family=family, scaling=scaling, drop_missing=drop_missing)
    names = [" ".join(formula.split()) for formula in formulas]
    models = dict(zip(names, regressions(found, family, prior), strict=True))
    _check_twins(models)
    terms = {name: frozenset(own.terms) - {"1"} for name, own in zip(names, found, strict=True)}
    rows = Rows(tuple((own.recipe, own.names) for own in found))
    return Space(models, terms, _said(found[0], statement(prior, family)), rows=rows)


def _check_twins(models: Mapping[str, Regression]) -> None:
    """No two models are one under other names, which would have its prior probability twice."""
    seen: dict[Any, str] = {}
    for name, own in models.items():
        columns = zip(own.design.T, own.mean, own.precision, strict=True)
        same = seen.setdefault(frozenset((values.tobytes(), *numbers) for values, *numbers in columns), name)
        if same != name:
            raise CrossfadeError(f"{same!r} and {name!r} are one model, with the same columns: leave one of them out")


def orders(
    table: pandas.DataFrame,
    formula: str,
    low: int,
    high: int,
    *,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
    drop_missing: bool = False,
) -> Space:
    """Polynomials in one covariate of every order from `low` to `high`: "y ~ x" and 1 to 10.

    Their columns are orthogonal polynomials, so that a coefficient means the same in all of them.
    """
    if not 0 <= low <= high:
        raise CrossfadeError(f"orders {low}:{high}: give two whole numbers, the lower one first, such as 1:10")
    response, tilde, covariate = (part.strip() for part in formula.partition("~"))
    if not tilde or not re.fullmatch(r"[\w. ]+", covariate.strip("`")):
        raise CrossfadeError(f"orders are of one covariate: write {formula!r} like 'y ~ x'")
    highest = f"{response} ~ poly({covariate}, {max(high, 1)})"
    (full,) = designs(table, highest, family=family, scaling=scaling, drop_missing=drop_missing)
    (whole,) = regressions([full], family, prior)
    names = (INTERCEPT, *(f"order {k}" for k in range(1, max(high, 1) + 1)))
    whole = whole._replace(names=names)
    models = {f"order {k}": whole.taken(range(k + 1)) for k in range(low, high + 1)}
    said = _said(full, statement(prior, family))
    said["scale"] = f"orthogonal polynomials in {covariate}, {full.scale}"
    return Space(models, {}, said, rows=Rows(((full.recipe, names),)))


def _said(design: Design, prior: str) -> dict[str, Any]:
    """What the page says of all models: the rows that they are of, the scale of the columns, the priors, notes."""
    notes = {"note": "; ".join(design.notes)} if design.notes else {}
    return {"rows": str(len(design.y)), "scale": design.scale, "prior": prior, **notes}


class Subsets(NamedTuple):
    """All models with some of the terms of one formula; an interaction only with the terms that it is built on."""

    response: str
    full: Regression
    columns: dict[str, list[int]]  # of every term that may be left out
    always: list[int]  # columns of every model: the intercept
    parents: dict[str, Terms]  # what a term is built on
    said: dict[str, Any]
    rows: Rows

    @property
    def n_terms(self) -> int:
        return len(self.columns)

    def allowed(self, terms: Terms) -> bool:
        return all(self.parents[term] <= terms for term in terms)

    def model(self, terms: Terms) -> Regression:
        return self.full.taken(
            [*self.always, *(i for term in self.columns if term in terms for i in self.columns[term])]
        )

    def name(self, terms: Terms) -> str:
        return f"{self.response} ~ {' + '.join(term for term in self.columns if term in terms) or '1'}"

    def every(self) -> Iterator[Terms]:
        for size in range(self.n_terms + 1):
            yield from filter(self.allowed, map(frozenset, combinations(self.columns, size)))

    def flipped(self, terms: Terms, term: str) -> Terms | None:
        """With one term more, or one less; None if there is no such model."""
        return found if self.allowed(found := terms ^ {term}) else None

    def space(self, say: Say, prior: Mapping[str, float] | str | None) -> Space:
        """All models where there are few terms; else those that a search finds to carry the mass."""
        if self.n_terms <= MOST:
            found, said, unseen = [*self.every()], dict(self.said), 0.0
        else:
            found, told, unseen = searched(self, say, prior)
            said = {**self.said, **told}
        models = {self.name(terms): self.model(terms) for terms in found}
        return Space(models, {self.name(terms): terms for terms in found}, said, unseen, self.rows)


def all_subsets(
    table: pandas.DataFrame,
    formula: str,
    *,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
    drop_missing: bool = False,
) -> Subsets:
    """Every model with some of the terms of a formula, for `rank`; of too many, those that a search finds.

    An interaction comes with the terms that it is built on, so "y ~ a*b + c" has 10 models. `family`, `prior` and
    `scaling` are those of `from_formulas`.
    """
    (full,) = designs(table, formula, family=family, scaling=scaling, drop_missing=drop_missing)
    if "1" not in full.terms:  # the columns of a factor would depend on what else a model has
        raise CrossfadeError(
            f"subsets need an intercept, which every model keeps, and {formula!r} has none: take the 0 or -1 out of it"
        )
    (whole,) = regressions([full], family, prior)
    columns = {term: own for term, own in full.terms.items() if term != "1" and own}
    if not columns:
        raise CrossfadeError(f"{formula!r} has no terms to choose from: name some right of the ~")
    parents = {a: frozenset(b for b in columns if factors(b) < factors(a)) for a in columns}
    always = [i for term, own in full.terms.items() if term == "1" for i in own]
    said = _said(full, statement(prior, family))
    return Subsets(
        formula.partition("~")[0].strip(), whole, columns, always, parents, said, Rows(((full.recipe, full.names),))
    )
