"""Log Bayes factors of models taken together: of one over all others, of those with a term over those without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from crossfade.ranking.record import Ranking
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas


def over_rest(ranking: Ranking) -> np.ndarray:
    """[model]: of each over all others together. Its own prior cancels, so that it may be 0."""
    whole, log_prior, log_z = ranking.whole, ranking.log_prior, ranking.log_evidence
    if whole is not None and not whole.known:
        return np.full(len(log_z), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # of others without weight nothing is known: NaN
        before = np.log1p(-ranking.prior) if whole is not None else _log_rest(log_prior, -np.inf)
        return np.asarray(log_z - _log_rest(log_z + log_prior, ranking.log_aside(log_z)) + before)


def _log_rest(log_weight: np.ndarray, log_aside: float) -> np.ndarray:
    """Of all but each; that of the heaviest from the others themselves, since 1 - p would be lost."""
    total = np.logaddexp(logsumexp(log_weight), log_aside)
    top = int(np.argmax(log_weight))
    rest = total + np.log1p(-np.where(np.arange(len(log_weight)) == top, 0.0, np.exp(log_weight - total)))
    rest[top] = np.logaddexp(_log_sum(np.delete(log_weight, top)), log_aside)
    return np.asarray(rest)


def _log_sum(logs: np.ndarray) -> float:
    return float(logsumexp(logs)) if len(logs) else -np.inf


def inclusion(ranking: Ranking) -> pandas.DataFrame:
    """A row for each term, as `Ranking.inclusion` says."""
    import pandas

    terms, whole, log_prior = ranking.terms, ranking.whole, ranking.log_prior
    if not terms:
        raise CrossfadeError("these models have no terms: inclusion is for formulas")
    # What all have was not asked about, unless a search has left the models without it aside.
    common = frozenset[str]() if "search" in ranking.about else terms[0].intersection(*terms)
    every = sorted(frozenset().union(*terms) - common, key=_by_order)
    has = np.array([[term in own for own in terms] for term in every]).reshape(len(every), len(terms))

    def aside(log_z: np.ndarray) -> np.ndarray:
        """[with or without, term]: log mass of models that are not listed."""
        if whole is None:
            return np.full((2, len(every)), -np.inf)
        shift = ranking.shift(log_z)
        total, lacking = whole.log_aside(shift), np.array([whole.log_lacking(term, shift) for term in every])
        share = np.minimum(np.exp(lacking - total), 1.0) if total > -np.inf else np.ones(len(every))
        with np.errstate(divide="ignore"):
            return np.array([total + np.log1p(-share), lacking])

    def inside(log_z: np.ndarray) -> np.ndarray:
        return np.asarray(has @ ranking.posterior_of(log_z) + np.exp(aside(log_z)[0] - ranking.log_total(log_z)))

    values, errors = ranking.each(inside)
    after, (more, less) = ranking.log_evidence + log_prior, aside(ranking.log_evidence)
    where = {own: i for i, own in enumerate(terms)}
    rows = []
    for i, term in enumerate(every):
        pairs = [(k, where[own - {term}]) for own, k in where.items() if term in own and own - {term} in where]
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN where one side has no weight
            gained = np.logaddexp(_log_sum(after[has[i]]), more[i]) - np.logaddexp(_log_sum(after[~has[i]]), less[i])
            if whole is None:
                prior = float(ranking.prior[has[i]].sum())
                gained -= _log_sum(log_prior[has[i]]) - _log_sum(log_prior[~has[i]])
            else:
                prior = whole.prior_with(term)
                gained -= np.log(prior) - np.log1p(-prior)
            matched = np.nan
            if pairs:
                one, other = (np.array(side) for side in zip(*pairs, strict=True))
                matched = _log_sum(after[one]) - _log_sum(log_prior[one])
                matched -= _log_sum(after[other]) - _log_sum(log_prior[other])
        rows.append((term, prior, values[i], errors[i], float(gained), float(matched)))
    columns = ["term", "prior", "probability", "error", "log_bayes_factor", "matched_log_bayes_factor"]
    return pandas.DataFrame(rows, columns=columns).set_index("term")


def _by_order(term: str) -> tuple[int, str]:
    """Main effects first, then interactions."""
    return term.count(":"), term
