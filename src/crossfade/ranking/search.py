"""Regressions with some of many terms, too many to compute them all: which carry the mass, and what was not seen."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import exp
from typing import Any

import numpy as np
from scipy.special import logsumexp

from crossfade.analysis.judge import Finding, level
from crossfade.density.regression import LOG_2PI, Regression
from crossfade.methods.progress import Say
from crossfade.ranking.prior import kind_of, prior_of
from crossfade.ranking.whole import UNIFORM, Terms, counts_of, log_weights
from crossfade.types import CrossfadeError

ALL_BUT = 1e-3  # of the posterior mass of the models that a search has seen, that it may leave aside
MOST_SEEN = 50_000  # models that a search looks at
N_STEPS = 20_000  # of a random walk over all models, which tells what the search has not seen
N_WALKS = 8
MISSED = (0.05, 0.5)  # shares of the mass at which a ranking is weak, and not to be used


def of_search(unseen: float) -> list[Finding]:
    if now := level(unseen, MISSED):
        said = f"Models that were not looked at hold about {unseen:.0%} of the probability"
        return [
            Finding(now, f"{said}: probabilities are those among the models looked at. Leave terms out, or group them.")
        ]
    return []


def screened(model: Regression) -> float:
    """The log evidence: exact where there is a closed form, else Laplace's."""
    if model.conjugate:
        return model.log_evidence()
    mode, curvature = model.mode_and_curvature()
    return float(model.log_joint(mode[None])[0] + len(mode) / 2 * LOG_2PI - np.linalg.slogdet(curvature)[1] / 2)


class Search:
    """Models that were looked at, and the mass of those that have not been left for their neighbours."""

    def __init__(self, space: Any, prior: str | None):
        self.space = space
        self.log_prior = log_weights(prior or UNIFORM, counts_of(space.parents))  # [size]: of one model
        self.seen: dict[Terms, float] = {}  # log evidence + log prior
        self.queue: list[tuple[float, tuple[str, ...]]] = []
        self.best: Terms = frozenset()
        self.all = self.edge = 0.0  # masses over that of the best model

    def value(self, terms: Terms) -> float:
        return screened(self.space.model(terms)) + float(self.log_prior[len(terms)])

    def look(self, terms: Terms) -> None:
        if terms in self.seen:
            return
        value = self.seen[terms] = self.value(terms)
        heapq.heappush(self.queue, (-value, tuple(sorted(terms))))
        if (more := value - self.seen.get(self.best, value)) > 0 or len(self.seen) == 1:
            self.best, self.all, self.edge = terms, self.all * exp(-more), self.edge * exp(-more)
        mass = exp(value - self.seen[self.best])
        self.all, self.edge = self.all + mass, self.edge + mass

    def leave(self) -> None:
        """The most probable model that has not been left yet, for all of its neighbours."""
        value, names = heapq.heappop(self.queue)
        self.edge -= exp(-value - self.seen[self.best])
        for term in self.space.columns:
            if (terms := self.space.flipped(frozenset(names), term)) is not None:
                self.look(terms)

    @property
    def share(self) -> float:
        """Of the mass seen, that of models that have not been left."""
        return max(self.edge, 0.0) / self.all

    def unseen(self) -> tuple[float, float]:
        """The share of all mass that was not seen, and its standard error: the time that random walks spend there.

        Walks begin at models drawn from those seen, and change one term at a time or exchange two.
        """
        models = sorted(self.seen, key=lambda own: (-self.seen[own], tuple(sorted(own))))
        weights = np.exp([self.seen[own] - self.seen[self.best] for own in models])
        known, columns = dict(self.seen), list(self.space.columns)
        outside = []
        for random in np.random.default_rng(0).spawn(N_WALKS):
            here, time = models[random.choice(len(models), p=weights / weights.sum())], 0
            for step in range(N_STEPS // N_WALKS):
                terms: Terms | None = here
                for term in random.choice(columns, 1 + step % 2, replace=False):
                    terms = None if terms is None else self.space.flipped(terms, str(term))
                if terms is not None:
                    if terms not in known:
                        known[terms] = self.value(terms)
                    if -random.exponential() < known[terms] - known[here]:
                        here = terms
                time += here not in self.seen
            outside.append(time / (N_STEPS // N_WALKS))
        return float(np.mean(outside)), float(np.std(outside, ddof=1) / np.sqrt(N_WALKS))


def searched(
    space: Any, say: Say, prior: Mapping[str, float] | str | None
) -> tuple[list[Terms], dict[str, Any], float]:
    """The models that carry all but ALL_BUT of the mass that was seen, what is said of all, and the share not seen.

    The most probable model that has not been left yet is left for all of its neighbours, until those that have not
    been left carry next to nothing.
    """
    if isinstance(prior, Mapping):
        raise CrossfadeError("a search over more than 14 terms takes prior='uniform' or 'size', not weights by name")
    prior_of(prior, ("",), (frozenset(),))  # refused before the search, not after it
    search = Search(space, kind_of(prior))
    search.look(frozenset())
    search.look(frozenset(space.columns))
    while search.queue and len(search.seen) < MOST_SEEN and (len(search.seen) < 1000 or search.share > ALL_BUT):
        search.leave()
        say(f"search: {len(search.seen):,} models seen, best so far {space.name(search.best)}")
    say("search: random walks over all models")
    share, error = search.unseen()
    say("")
    seen = search.seen
    order = sorted(seen, key=lambda own: (-seen[own], tuple(sorted(own))))
    log_p = np.array([seen[own] for own in order])
    reached = np.cumsum(np.exp(log_p - logsumexp(log_p)))
    kept = order[: max(int(np.searchsorted(reached, 1 - ALL_BUT)) + 1, 2)]  # a ranking needs two
    how = "by their evidence" if space.full.conjugate else "by Laplace's approximation"
    said = (
        f"{len(seen):,} of up to {2**space.n_terms:,} models were looked at {how}; the {len(kept):,} ranked here carry "
        f"{1 - ALL_BUT:.1%} of their mass. Random walks over all models spent {share:.1%} ± {error:.1%} of their time "
        "on models that were not looked at: about as much of the mass is missing here."
    )
    return kept, {"search": said, "whole": _of_all(search, order, len(kept))}, share


def _of_all(search: Search, order: list[Terms], n_kept: int) -> dict[str, Any]:
    """What a ranking of the first of these models is told of all others: a `Whole` but for the prior."""
    space = search.space
    log_z = np.array([search.seen[own] - search.log_prior[len(own)] for own in order])
    size = np.array([len(own) for own in order])
    left = np.arange(len(order)) >= n_kept

    def by_size(some: np.ndarray) -> list[float | None]:
        each = [log_z[some & (size == k)] for k in range(space.n_terms + 1)]
        return [float(logsumexp(own)) if len(own) else None for own in each]

    return {
        "parents": {term: sorted(own) for term, own in space.parents.items()},
        "screened": {space.name(own): float(value) for own, value in zip(order[:n_kept], log_z, strict=False)},
        "aside": by_size(left),
        "lacking": {term: by_size(left & np.array([term not in own for own in order])) for term in space.columns},
    }
