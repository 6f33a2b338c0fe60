"""Regressions that differ in their terms: a list of formulas, all subsets of one formula, polynomials of all orders.

NumPy only, like the regressions themselves.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import comb, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

from crossfade.bridges.design import INTERCEPT, designs
from crossfade.bridges.formula import Prior, regressions, statement
from crossfade.density.regression import LOG_2PI, Regression
from crossfade.methods.progress import Say
from crossfade.ranking.record import prior_of
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

MOST = 14  # terms of which all subsets are computed
ALL_BUT = 1e-3  # of the posterior mass of the models that a search has seen, that it may leave aside
MOST_SEEN = 50_000  # models that a search looks at
Terms = frozenset[str]


class Space(NamedTuple):
    """Regressions by name, and the terms of each; what was only looked at, or not at all, is said."""

    models: dict[str, Regression]
    terms: dict[str, Terms]
    said: dict[str, str] = {}


def from_many_formulas(
    table: pandas.DataFrame,
    *formulas: str,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
) -> Space:
    """The models of formulas with one response, for `rank`."""
    if len(formulas) < 2:
        raise CrossfadeError("a ranking needs two formulas or more")
    found = designs(table, *formulas, family=family, scaling=scaling)
    names = [" ".join(formula.split()) for formula in formulas]
    models = dict(zip(names, regressions(found, family, prior), strict=True))
    terms = {name: frozenset(own.terms) - {"1"} for name, own in zip(names, found, strict=True)}
    return Space(models, terms, {"scale": found[0].scale, "prior": statement(prior, family)})


def orders(
    table: pandas.DataFrame,
    formula: str,
    low: int,
    high: int,
    *,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
) -> Space:
    """Polynomials in one covariate of every order from `low` to `high`: "y ~ x" and 1 to 10.

    Their columns are orthogonal polynomials, so that a coefficient means the same in all of them.
    """
    if not 0 <= low <= high:
        raise CrossfadeError(f"orders {low}:{high}: give two whole numbers, the lower one first, such as 1:10")
    response, tilde, covariate = (part.strip() for part in formula.partition("~"))
    if not tilde or not covariate.strip("`").replace("_", "").replace(".", "").isalnum():
        raise CrossfadeError(f"orders are of one covariate: write {formula!r} like 'y ~ x'")
    (full,) = designs(table, f"{response} ~ poly({covariate}, {max(high, 1)})", family=family, scaling=scaling)
    (whole,) = regressions([full], family, prior)
    names = (INTERCEPT, *(f"order {k}" for k in range(1, max(high, 1) + 1)))
    whole = whole._replace(names=names)
    models = {f"order {k}": whole.taken(range(k + 1)) for k in range(low, high + 1)}
    said = {"scale": f"orthogonal polynomials in {covariate}, {full.scale}", "prior": statement(prior, family)}
    return Space(models, {}, said)


class Subsets(NamedTuple):
    """All models with some of the terms of one formula; an interaction only with the terms that it is built on."""

    response: str
    full: Regression
    columns: dict[str, list[int]]  # of every term that may be left out
    always: list[int]  # columns of every model: the intercept
    parents: dict[str, Terms]  # what a term is built on
    said: dict[str, str]

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

    def neighbours(self, terms: Terms) -> Iterator[Terms]:
        """One term more, or one less."""
        return filter(self.allowed, (terms ^ {term} for term in self.columns))

    def space(self, say: Say, prior: Mapping[str, float] | str | None) -> Space:
        """All models where there are few terms; else those that a search finds to carry the mass."""
        found = [*self.every()] if self.n_terms <= MOST else None
        said = dict(self.said)
        if found is None:
            found, said["search"] = searched(self, say, prior)
        models = {self.name(terms): self.model(terms) for terms in found}
        return Space(models, {self.name(terms): terms for terms in found}, said)


def all_subsets(
    table: pandas.DataFrame,
    formula: str,
    *,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
) -> Subsets:
    """Every model with some of the terms of a formula, for `rank`.

    An interaction comes with the terms that it is built on, so "y ~ a*b + c" has 10 models.
    """
    (full,) = designs(table, formula, family=family, scaling=scaling)
    (whole,) = regressions([full], family, prior)
    columns = {term: own for term, own in full.terms.items() if term != "1" and own}
    if not columns:
        raise CrossfadeError(f"{formula!r} has no terms to choose from: name some right of the ~")
    factors = {term: frozenset(term.split(":")) for term in columns}
    parents = {a: frozenset(b for b in columns if factors[b] < factors[a]) for a in columns}
    always = [i for term, own in full.terms.items() if term == "1" for i in own]
    said = {"scale": full.scale, "prior": statement(prior, family)}
    return Subsets(formula.partition("~")[0].strip(), whole, columns, always, parents, said)


def screened(model: Regression) -> float:
    """The log evidence: exact where there is a closed form, else Laplace's."""
    if model.conjugate:
        return model.log_evidence()
    mode, curvature = model.mode_and_curvature()
    return float(model.log_joint(mode[None])[0] + len(mode) / 2 * LOG_2PI - np.linalg.slogdet(curvature)[1] / 2)


def searched(space: Subsets, say: Say, prior: Mapping[str, float] | str | None) -> tuple[list[Terms], str]:
    """The models that carry all but ALL_BUT of the mass that was seen, and how far the search went.

    The most probable model that has not been left yet is left for all of its neighbours, until those that have not
    been left carry next to nothing.
    """
    if isinstance(prior, Mapping):
        raise CrossfadeError("a search over more than 14 terms takes prior='uniform' or 'size', not weights by name")
    prior_of(prior, ("",), (frozenset(),))  # refused before the search, not after it
    seen: dict[Terms, float] = {}
    queue: list[tuple[float, tuple[str, ...]]] = []

    def look(terms: Terms) -> None:
        if terms not in seen:
            seen[terms] = screened(space.model(terms)) - _log_count(space, terms, prior)
            heapq.heappush(queue, (-seen[terms], tuple(sorted(terms))))

    look(frozenset())
    look(frozenset(space.columns))
    while queue and len(seen) < MOST_SEEN:
        if len(seen) > 1000 and _share(queue, seen) < ALL_BUT:
            break
        _, best = heapq.heappop(queue)
        for terms in space.neighbours(frozenset(best)):
            look(terms)
        say(f"search: {len(seen):,} models seen, best so far {space.name(max(seen, key=lambda own: seen[own]))}")
    say("")
    order = sorted(seen, key=lambda own: (-seen[own], tuple(sorted(own))))
    log_p = np.array([seen[own] for own in order])
    reached = np.cumsum(np.exp(log_p - logsumexp(log_p)))
    kept = order[: int(np.searchsorted(reached, 1 - ALL_BUT)) + 1]
    how = "by their evidence" if space.full.conjugate else "by Laplace's approximation"
    edge = _share(queue, seen)
    said = (
        f"{len(seen):,} of up to {2**space.n_terms:,} models were looked at {how}; the {len(kept):,} ranked here carry "
        f"{1 - ALL_BUT:.1%} of their mass. Models whose neighbours were not all looked at carry {edge:.2g} of it; the "
        "rest was never visited, and would have to be better than all its visited neighbours to matter."
    )
    return kept, said


def _share(queue: list[tuple[float, tuple[str, ...]]], seen: dict[Terms, float]) -> float:
    """Of the mass seen, that of models that have not been left."""
    if not queue:
        return 0.0
    return float(np.exp(logsumexp([-value for value, _ in queue]) - logsumexp(list(seen.values()))))


def _log_count(space: Subsets, terms: Terms, prior: Mapping[str, float] | str | None) -> float:
    """Minus the log prior probability, but for a constant: with "size", models of one size share what it has."""
    return log(comb(space.n_terms, len(terms))) if prior == "size" else 0.0
