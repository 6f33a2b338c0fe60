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
from crossfade.ranking.prior import kind_of, prior_of
from crossfade.ranking.whole import BY_NAME, Whole
from crossfade.types import CrossfadeError, Estimate, Float, Theta

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
    log_evidence: Float[np.ndarray, " model"]  # absolute where `absolute`, else relative to one of them
    left_out: Float[np.ndarray, "group model"]  # without each group of chains or block of points, in all models at once
    prior: Float[np.ndarray, " model"]  # probabilities, of a search among all its models and not only those listed
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

    def each(self, function: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
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
    def whole(self) -> Whole | None:
        """What a search tells of all models; with weights by name, those that are listed are all."""
        found = Whole(**self.about["whole"]) if "whole" in self.about else None
        return None if found is None or found.prior == BY_NAME else found

    @property
    def log_prior(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.prior))

    @property
    def posterior(self) -> np.ndarray:
        """Probabilities of the models, in their order; what a search has left aside has the rest."""
        return self.posterior_of(self.log_evidence)

    def posterior_of(self, log_z: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_z + self.log_prior - self.log_total(log_z)))

    def log_total(self, log_z: np.ndarray) -> float:
        """Log of evidence times prior, summed over all models that are known of."""
        return float(np.logaddexp(logsumexp(log_z + self.log_prior), self.log_aside(log_z)))

    def log_aside(self, log_z: np.ndarray) -> float:
        """The same over models that a search has seen and left aside."""
        return -np.inf if self.whole is None else self.whole.log_aside(self.shift(log_z))

    def shift(self, log_z: np.ndarray) -> float:
        return -np.inf if self.whole is None else self.whole.shift(self.names, log_z + self.log_prior, log_z)

    @property
    def probabilities(self) -> dict[str, Estimate]:
        """p(model | data) with its Monte-Carlo error."""
        values, errors = self.each(self.posterior_of)
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
        log_p = self.log_evidence + self.log_prior
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
        weights = prior_of(prior, self.names, self.terms, self.about.get("whole"))
        network = self.network and self.network._replace(settings=self.network.settings._replace(prior=prior))
        return ranked(self._replace(prior=weights, network=network)._of_whole(prior=kind_of(prior)))

    def _of_whole(self, **said: Any) -> Ranking:
        """Where it is from a search, with this said of all models; whoever goes on knows it too."""
        if "whole" not in self.about:
            return self
        whole = {**self.about["whole"], **said}
        network = self.network and self.network._replace(said={**self.network.said, "whole": whole})
        return self._replace(about={**self.about, "whole": whole}, network=network)

    def taken(self, order: np.ndarray) -> Ranking:
        """Some of the models, in this order."""
        prior = self.prior[order]
        return self._replace(
            names=tuple(self.names[i] for i in order),
            log_evidence=self.log_evidence[order],
            left_out=self.left_out[:, order],
            prior=prior / prior.sum() if self.whole is None else prior / (1 - self.prior.sum() + prior.sum()),
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
        rest = self._replace(network=network).taken(np.delete(np.arange(len(self.names)), out))
        if "whole" not in self.about:
            return rest
        return rest._of_whole(gone=[*Whole(**self.about["whole"]).gone, sorted(self.terms[out])])

    # Tables -----------------------------------------------------------------------------------------------------

    @property
    def table(self) -> pandas.DataFrame:
        """A row for each model, best first; log Bayes factors are over the best."""
        import pandas

        relative, error = self.each(lambda log_z: log_z - log_z[0])
        probability, its_error = self.each(self.posterior_of)
        columns: dict[str, Any] = {"log_bayes_factor": relative, "error": error}
        if self.about.get("absolute"):
            columns["log_evidence"] = self.log_evidence
        prior = self.prior if self.whole is None or self.whole.known else np.full(len(self.names), np.nan)
        columns |= {"prior": prior, "probability": probability, "probability_error": its_error}
        columns["log_bayes_factor_over_rest"] = import_module("crossfade.ranking.odds").over_rest(self)
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="model"))

    @property
    def inclusion(self) -> pandas.DataFrame:
        """A row for each term: how probable it is that it belongs in, over all models and over matched ones.

        Matched: models with the term against the same models without it, where no other term is built on it.
        """
        return import_module("crossfade.ranking.odds").inclusion(self)

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
        return answer.with_model(self._made_from(), name, model, draws, chosen(progress))._replace(space=self.space)

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


def ranked(ranking: Ranking) -> Ranking:
    """Best first; equal ones by name, so that the order in which they were given has no say."""
    log_z, names, log_p = ranking.log_evidence, ranking.names, ranking.log_evidence + ranking.log_prior
    return ranking.taken(np.array(sorted(range(len(names)), key=lambda i: (-log_p[i], -log_z[i], names[i])), int))
