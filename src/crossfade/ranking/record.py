"""A ranking: evidences of many models with their common noise, and all that follows from them. NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from crossfade.analysis.errors import Replicates, variance_of
from crossfade.methods.progress import Say, chosen
from crossfade.ranking.prior import prior_of
from crossfade.types import CrossfadeError, Estimate, Theta

if TYPE_CHECKING:
    import pandas

Quantity = Callable[[Theta], Any] | Mapping[str, Callable[[Theta], Any]]  # of one draw, in all models or in each
N_WINNERS = 20_000  # draws of the Monte-Carlo noise, to see how often another model would have won


class Closure(NamedTuple):
    """An edge that the answer does not use: what it says minus what the answer says. 0 but for chance."""

    first: str
    second: str
    residual: Estimate


class Moments(NamedTuple):
    """Mean and variance of every number of a parameter, under the posterior of one model."""

    mean: np.ndarray
    variance: np.ndarray


class Ranking(NamedTuple):
    """What `rank` returns: models, best first, with log evidences and the same without each group of draws."""

    names: tuple[str, ...]
    log_evidence: np.ndarray  # [model]; absolute where `absolute`, else relative to one of them
    left_out: np.ndarray  # [group, model]: without each group of chains or block of points, in all models at once
    prior: np.ndarray  # [model]: probabilities
    verdict: str
    reasons: tuple[str, ...]
    missing: dict[str, str]  # models without an answer, and why
    terms: tuple[frozenset[str], ...] = ()  # of each model, where they are known
    moments: tuple[dict[str, Moments], ...] = ()  # of each model's parameters
    closure: tuple[Closure, ...] = ()
    n_strata: int = 1  # of the groups
    about: dict[str, Any] = {}
    network: Any = None  # what it was made from, to go on with; not kept in files
    space: Any = None  # the formulas that it is of, to predict with; not kept in files

    # Numbers ----------------------------------------------------------------------------------------------------

    def _of(self, function: Callable[[np.ndarray], float], name: str = "") -> Estimate:
        """A function of all log evidences, with its error."""
        left_out = np.array([function(own) for own in self.left_out])
        return Replicates(function(self.log_evidence), left_out, self.n_strata).estimate(name)

    def _each(self, function: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The same for many numbers at once: values and errors."""
        left_out = np.array([function(own) for own in self.left_out])
        return function(self.log_evidence), np.sqrt(variance_of(left_out, self.n_strata))

    def where(self, name: str) -> int:
        if name in self.missing:
            raise CrossfadeError(f"model {name!r} has no answer: {self.missing[name]}")
        if name not in self.names:
            raise CrossfadeError(f"there is no model {name!r}: choose from {', '.join(self.names[:20])}")
        return self.names.index(name)

    def log_bayes_factor(self, first: str, second: str) -> Estimate:
        """Of `second` over `first`, as in `compare(first, second)`."""
        i, j = self.where(first), self.where(second)
        return self._of(lambda log_z: float(log_z[j] - log_z[i]))

    @property
    def posterior(self) -> np.ndarray:
        """Probabilities of the models, in their order."""
        return self.posterior_of(self.log_evidence)

    def posterior_of(self, log_z: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            log_p = log_z + np.log(self.prior)
        return np.asarray(np.exp(log_p - logsumexp(log_p)))

    @property
    def probabilities(self) -> dict[str, Estimate]:
        """p(model | data) with its Monte-Carlo error."""
        values, errors = self._each(self.posterior_of)
        dof = self.left_out.shape[0] - self.n_strata
        return {n: Estimate(float(v), float(e), dof) for n, v, e in zip(self.names, values, errors, strict=True)}

    @property
    def covariance(self) -> np.ndarray:
        """Of the Monte-Carlo noise of the log evidences, relative to the best model."""
        relative = self.left_out - self.left_out[:, :1]
        strata = relative.reshape(self.n_strata, -1, relative.shape[1])
        off = (strata - strata.mean(axis=1, keepdims=True)).reshape(relative.shape)
        n = strata.shape[1]
        return np.asarray((n - 1) / n * off.T @ off)

    @property
    def chance_of_winner(self) -> float:
        """That the first model has the highest posterior probability, as far as Monte-Carlo noise goes."""
        log_p = self.log_evidence + np.log(np.maximum(self.prior, 1e-300))
        near = np.flatnonzero(log_p > log_p[0] - 60)[:200]
        spread, vectors = np.linalg.eigh(self.covariance[np.ix_(near, near)])
        random = np.random.default_rng(0)
        dof = max(self.left_out.shape[0] - self.n_strata, 1)
        width = np.sqrt(dof / random.chisquare(dof, size=N_WINNERS))
        normal = random.standard_normal((N_WINNERS, len(near))) * np.sqrt(np.maximum(spread, 0.0))
        other = log_p[near] + width[:, None] * (normal @ vectors.T)
        return float(np.mean(other.argmax(axis=1) == 0))

    def with_prior(self, prior: Mapping[str, float] | str | None) -> Ranking:
        """The same evidences under other probabilities of the models."""
        weights = prior_of(prior, self.names, self.terms)
        order = _order(self.names, self.log_evidence + np.log(np.maximum(weights, 1e-300)))
        network = self.network and self.network._replace(settings=self.network.settings._replace(prior=prior))
        return self._replace(prior=weights, network=network).taken(order)

    def taken(self, order: np.ndarray) -> Ranking:
        """Some of the models, in this order."""
        prior = self.prior[order]
        return self._replace(
            names=tuple(self.names[i] for i in order),
            log_evidence=self.log_evidence[order],
            left_out=self.left_out[:, order],
            prior=prior / prior.sum(),
            terms=tuple(self.terms[i] for i in order) if self.terms else (),
            moments=tuple(self.moments[i] for i in order) if self.moments else (),
        )

    def without(self, name: str) -> Ranking:
        """The ranking of the others."""
        network = self.network and self.network.without(name)
        if name in self.missing:
            missing = {other: why for other, why in self.missing.items() if other != name}
            return self._replace(missing=missing, network=network)
        out = self.where(name)
        if len(self.names) == 1:
            raise CrossfadeError(f"{name!r} is the only model left: a ranking needs one")
        return self._replace(network=network).taken(np.delete(np.arange(len(self.names)), out))

    # Tables -----------------------------------------------------------------------------------------------------

    @property
    def table(self) -> pandas.DataFrame:
        """A row for each model, best first; log Bayes factors are over the best."""
        import pandas

        relative, error = self._each(lambda log_z: log_z - log_z[0])
        probability, its_error = self._each(self.posterior_of)
        with np.errstate(divide="ignore"):
            odds = _log_odds(self.log_evidence + np.log(self.prior)) - _log_odds(np.log(self.prior))
        columns: dict[str, Any] = {"log_bayes_factor": relative, "error": error}
        if self.about.get("absolute"):
            columns["log_evidence"] = self.log_evidence
        columns |= {"prior": self.prior, "probability": probability, "probability_error": its_error}
        columns["log_bayes_factor_over_rest"] = odds
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="model"))

    @property
    def inclusion(self) -> pandas.DataFrame:
        """A row for each term: how probable it is that it belongs in, over all models and over matched ones.

        Matched: models with the term against the same models without it, where no other term is built on it.
        """
        import pandas

        if not self.terms:
            raise CrossfadeError("these models have no terms: inclusion is for formulas")
        # What all have was not asked about, unless a search has left the models without it aside.
        common = frozenset[str]() if "search" in self.about else self.terms[0].intersection(*self.terms)
        every = sorted(frozenset().union(*self.terms) - common, key=_by_order)
        where = {own: i for i, own in enumerate(self.terms)}
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.prior)
        rows = []
        for term in every:
            has = np.array([term in own for own in self.terms])
            inside = self._of(lambda log_z, has=has: float(self.posterior_of(log_z)[has].sum()))  # type: ignore[misc]
            pairs = [(i, where[own - {term}]) for own, i in where.items() if term in own and own - {term} in where]
            with_it, without = (list(side) for side in zip(*pairs, strict=True)) if pairs else ([], [])
            rows.append(
                (
                    term,
                    self.prior[has].sum(),
                    inside.value,
                    inside.error,
                    self._odds(np.flatnonzero(has), np.flatnonzero(~has), log_prior),
                    self._odds(with_it, without, log_prior) if pairs else np.nan,
                )
            )
        columns = ["term", "prior", "probability", "error", "log_bayes_factor", "matched_log_bayes_factor"]
        return pandas.DataFrame(rows, columns=columns).set_index("term")

    def _odds(self, some: Any, others: Any, log_prior: np.ndarray) -> float:
        """The log Bayes factor of some models, taken together, over others."""
        if not len(others):
            return np.inf
        after = self.log_evidence + log_prior
        gained = [logsumexp(after[own]) - logsumexp(log_prior[own]) for own in (some, others)]
        return float(gained[0] - gained[1])

    def average(self, what: str | Quantity, given: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a parameter over all models, 0 in those without it.

        With `given`, over the models that have it. `what` may also be a function of one draw (a dict of parameters, in
        JAX), such as a prediction, or a function for each model by name.
        """
        averages = import_module("crossfade.ranking.averages")
        return averages.averaged(self, what, given) if isinstance(what, str) else averages.computed(self, what)

    def predict(self, table: pandas.DataFrame) -> pandas.DataFrame:
        """The expected response in each row of a table, averaged over the models of formulas and their posteriors.

        Columns: mean, sd (what is not known of it), error (of the mean, by Monte Carlo).
        """
        return import_module("crossfade.ranking.averages").predicted(self, table)

    # Going on ---------------------------------------------------------------------------------------------------

    def more(self, target_se: float, *, budget: float | None = None, progress: bool | Say = True) -> Ranking:
        """The same models with a smaller error, from where the draws stopped."""
        answer = import_module("crossfade.ranking.answer")
        return answer.more(self._made_from(), target_se, budget, chosen(progress))._replace(space=self.space)

    def with_model(self, name: str, model: Any, *, draws: Any = None, progress: bool | Say = True) -> Ranking:
        """With one model more; the others are not sampled again."""
        answer = import_module("crossfade.ranking.answer")
        return answer.with_model(self._made_from(), name, model, draws, chosen(progress))

    def _made_from(self) -> Any:
        if self.network is None:
            raise CrossfadeError("this ranking has no draws to go on with: rank again, with route='path' for formulas")
        return self.network

    def save(self, path: str | Path) -> None:
        """Write the ranking to a JSON file, which `crossfade.load_ranking` reads."""
        import_module("crossfade.app.rankings").save(self, path)

    def plot(self, kind: str, path: str | Path | None = None) -> Any:
        """A picture, "probabilities" or "network", as matplotlib's Figure; also written to the path if there is one."""
        return import_module("crossfade.app.plots").of_ranking(self, kind, path)

    def report(self, path: str | Path) -> None:
        """Write one HTML page with all of it, which needs nothing else."""
        import_module("crossfade.app.report").report_ranking(self, path)

    def cite(self) -> str:
        """BibTeX of crossfade and of the methods that this ranking used."""
        return import_module("crossfade.app.report.methods").cite_ranking(self)

    def __repr__(self) -> str:
        """One line; `print` shows the page."""
        return f"Ranking({len(self.names)} models, best {self.names[0]!r}, verdict={self.verdict!r})"

    def __str__(self) -> str:
        return import_module("crossfade.app.rankings").text(self)

    def _repr_html_(self) -> str:
        return import_module("crossfade.app.rankings").fragment(self)


def _log_odds(log_weight: np.ndarray) -> np.ndarray:
    """Of each over all others together; that of the heaviest from the others themselves, since 1 - p would be lost."""
    p = np.exp(log_weight - logsumexp(log_weight))
    top = int(np.argmax(log_weight))
    rest = logsumexp(log_weight) + np.log1p(-np.where(np.arange(len(p)) == top, 0.0, p))
    rest[top] = logsumexp(np.delete(log_weight, top)) if len(p) > 1 else -np.inf
    return np.asarray(log_weight - rest)


def _by_order(term: str) -> tuple[int, str]:
    """Main effects first, then interactions."""
    return term.count(":"), term


def _order(names: tuple[str, ...], log_p: np.ndarray) -> np.ndarray:
    """Best first; equal ones by name, so that the order in which they were given has no say."""
    return np.array(sorted(range(len(names)), key=lambda i: (-log_p[i], names[i])), int)


def ranked(ranking: Ranking) -> Ranking:
    """Best first."""
    return ranking.taken(_order(ranking.names, ranking.log_evidence + np.log(np.maximum(ranking.prior, 1e-300))))
