"""All models that a search is about: how many there are, their prior, and the mass of those that it saw but left aside.

A ranking lists what a search has kept, but the probability of a model or a term before the data is one among all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from crossfade.types import Float

Terms = frozenset[str]
MOST_STEPS = 4000  # of counting models with interactions: ten covariates with all products of two take half
UNIFORM, BY_SIZE, BY_NAME = "uniform", "size", "by name"  # priors over models


class Counts(NamedTuple):
    """How many models there are."""

    every: Float[np.ndarray, " size"]  # by their number of terms
    having: dict[str, Float[np.ndarray, " size"]]  # those with a term; none where they are too many to count


class TooMany(Exception):
    pass


@lru_cache(maxsize=16)
def _counted(parents: tuple[tuple[str, Terms], ...]) -> Counts:
    """Sets of terms that have what each of them is built on."""
    below = dict(parents)
    tied = {term: below[term] | {other for other in below if term in below[other]} for term in below}
    steps = 0

    def of(left: Terms) -> Counts:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise TooMany
        free = frozenset(term for term in left if not tied[term] & left)
        m = len(free)
        found = Counts(_ways(m), {term: np.append(0.0, _ways(m - 1)) for term in sorted(free)})
        rest = left - free
        while rest:  # what has nothing to do with each other multiplies
            part, near = frozenset[str](), frozenset([min(rest)])
            while near - part:
                part |= near
                near = frozenset().union(*(tied[term] & left for term in part))
            found, rest = _both(found, of_part(part)), rest - part
        return found

    def of_part(left: Terms) -> Counts:
        """With or without the term that has most to do with others."""
        term = max(left, key=lambda name: (len(tied[name] & left), name))
        taken = {term, *below[term]} & left
        more, less = of(left - taken), of(frozenset(own for own in left - {term} if term not in below[own]))

        def sized(one: Any, other: Any) -> np.ndarray:
            total = np.zeros(len(left) + 1)
            total[len(taken) : len(taken) + np.size(one)] += one
            total[: np.size(other)] += other
            return total

        having = {
            own: sized(more.every if own in taken else more.having[own], less.having.get(own, 0.0)) for own in left
        }
        return Counts(sized(more.every, less.every), having)

    return of(frozenset(below))


def _ways(n: int) -> np.ndarray:
    return np.array([float(comb(n, k)) for k in range(n + 1)])


def _both(one: Counts, other: Counts) -> Counts:
    having = {term: np.convolve(own, other.every) for term, own in one.having.items()}
    having |= {term: np.convolve(own, one.every) for term, own in other.having.items()}
    return Counts(np.convolve(one.every, other.every), having)


def counts_of(parents: Mapping[str, Collection[str]]) -> Counts:
    """Of the models with some of these terms, of which each comes with those that it is built on."""
    try:
        return _counted(tuple((term, frozenset(own)) for term, own in parents.items()))
    except TooMany:
        return Counts(_ways(len(parents)), {})  # as if no term needed another: as weights of sizes they serve


def log_weights(prior: str, counts: Counts) -> np.ndarray:
    """[size]: log prior probability of one model, all models or all sizes being equal."""
    log_n = np.log(counts.every)
    return -log_n - np.log(len(log_n)) if prior == BY_SIZE else np.full(len(log_n), -logsumexp(log_n))


class Whole(NamedTuple):
    """What a search tells of all models, as files keep it: lists, and None for -inf."""

    parents: dict[str, list[str]]  # every term, and those that it is built on
    screened: dict[str, float]  # log evidences of the models that are listed, as the search has them
    aside: list[float | None]  # [size]: log of the summed evidence of models that were seen and are not listed
    lacking: dict[str, list[float | None]]  # [size]: of these, of those without a term
    prior: str = UNIFORM
    gone: list[list[str]] = []  # terms of models that were taken away since

    @property
    def counts(self) -> Counts:
        return counts_of(self.parents)

    @property
    def known(self) -> bool:
        """Whether models could be counted; weights are else right but for a factor."""
        return bool(self.counts.having)

    @property
    def log_weights(self) -> np.ndarray:
        """[size]: log prior probability of one model."""
        own = log_weights(self.prior, self.counts)
        return np.asarray(own - np.log1p(-np.exp([own[len(terms)] for terms in self.gone]).sum()))

    def prior_with(self, term: str) -> float:
        """Prior probability of the models with a term."""
        if not self.known:
            return np.nan
        weights, having = np.exp(self.log_weights), self.counts.having[term]
        return float(having @ weights - sum(weights[len(own)] for own in self.gone if term in own))

    def shift(self, names: tuple[str, ...], log_p: np.ndarray, log_z: np.ndarray) -> float:
        """From log evidences of the search to those of a ranking, by the models that both know."""
        screened = np.array([self.screened.get(name, np.nan) for name in names])
        both = np.isfinite(screened) & (log_p > -np.inf)
        if not both.any():
            return -np.inf  # nothing to compare with: what was left aside is not counted
        p = np.exp(log_p[both] - logsumexp(log_p[both]))
        return float(p @ (log_z - screened)[both])

    def log_aside(self, shift: float) -> float:
        """Log of evidence times prior, summed over models left aside."""
        return self._summed(self.aside, shift)

    def log_lacking(self, term: str, shift: float) -> float:
        """The same of those without a term."""
        return self._summed(self.lacking[term], shift)

    def _summed(self, by_size: list[float | None], shift: float) -> float:
        own = np.array([-np.inf if value is None else value for value in by_size])
        return float(logsumexp(own + self.log_weights)) + shift
