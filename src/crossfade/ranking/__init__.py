"""Many models at once: which, how sure, and which terms matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crossfade.analysis.judge import judge
from crossfade.density.digest import digest
from crossfade.density.regression import Regression, regression_of
from crossfade.methods.budget import asked, check_common
from crossfade.methods.progress import Say, chosen
from crossfade.methods.regressions import AUTO, ROUTES
from crossfade.ranking.points import evidences
from crossfade.ranking.prior import kind_of, prior_of
from crossfade.ranking.record import Ranking, ranked
from crossfade.ranking.search import of_search
from crossfade.ranking.terms import Space, Subsets
from crossfade.types import CrossfadeError

DESIGNS = ("tree", "star", "chain")


def rank(
    models: Mapping[str, Any] | Iterable[Any] | Space | Subsets,
    *,
    target_se: float | None = None,
    target: str = "log evidence",
    prior: Mapping[str, float] | str | None = None,
    budget: float | str | None = None,
    draws: Mapping[str, Any] | None = None,
    design: str = "tree",
    reference: str | None = None,
    evidence: bool = False,
    n_chains: int | None = None,
    seed: int = 0,
    route: str = AUTO,
    directory: str | Path | None = None,
    client: Any = None,
    progress: bool | Say = True,
) -> Ranking:
    """Which of many models of one data set, how sure that is, and which terms matter.

    `models` are those that `compare` takes, by name; or formulas (`from_many_formulas`, `all_subsets`, `orders`).
    Each is sampled once; relative evidences are then read from pairs of draws, along the tree of pairs with the
    smallest error (or a "star" around `reference`, or a "chain" in the order given), and other pairs that overlap
    check it. Regressions take no chains: closed forms, or importance sampling with common random numbers.

    It goes on until the worst error of a log evidence over the best is `target_se` (0.05), or until that of the best
    model's probability is (`target="probability"`), or the `budget` is spent. `prior` weighs the models: by name,
    "uniform", or "size" (every number of terms is as probable). `draws` brings posterior draws along, by name.
    With a `directory` what is sampled is kept there as it comes, and the same call goes on after a kill. With a Dask
    `client` its workers sample the models; the ranking is the same to the last bit.
    With `evidence` the model of nothing is one more model, and the evidences are absolute.
    """
    check_common(seed, 0.0, n_chains)
    wanted, say = asked(target_se, budget), chosen(progress)
    if target not in ("log evidence", "probability"):
        raise CrossfadeError(f"unknown target {target!r}: 'log evidence' or 'probability'")
    if design not in DESIGNS:
        raise CrossfadeError(f"unknown design {design!r}: choose one of {', '.join(DESIGNS)}")
    if route not in ROUTES:
        raise CrossfadeError(f"unknown route {route!r}: choose one of {', '.join(ROUTES)}")
    if isinstance(models, Subsets):
        models = models.space(say, prior)
    space = models if isinstance(models, Space) else None
    named = dict(models.models) if isinstance(models, Space) else _named(models)
    if len(named) < 2:
        raise CrossfadeError("a ranking needs two models or more")
    terms = {} if space is None else space.terms
    said: dict[str, Any] = {} if space is None else dict(space.said)
    if "whole" in said:
        said["whole"] = {**said["whole"], "prior": kind_of(prior)}
    found = {name: regression_of(model) for name, model in named.items()}
    if route == AUTO and not draws and design == "tree" and all(own is not None for own in found.values()):
        given = {name: own for name, own in sorted(found.items()) if own is not None}
        unseen = 0.0 if space is None else space.unseen
        return _by_points(given, terms, said, unseen, prior, wanted, seed, say)._replace(space=space)
    from crossfade.ranking.answer import by_draws
    from crossfade.ranking.network import Settings

    settings = Settings(wanted, target, prior, design, reference, evidence, n_chains, seed, directory)
    return by_draws(named, terms, said, draws or {}, settings, say, client)._replace(space=space)


def _named(models: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    if isinstance(models, Mapping):
        if bad := [name for name in models if not isinstance(name, str)]:
            raise CrossfadeError(f"models are named by text, not by {bad[0]!r}")
        return dict(models)
    return {f"M{k + 1}": model for k, model in enumerate(models)}


def _by_points(
    models: dict[str, Regression],
    terms: Mapping[str, frozenset[str]],
    said: Mapping[str, Any],
    unseen: float,
    prior: Mapping[str, float] | str | None,
    wanted: Any,
    seed: int,
    say: Say,
) -> Ranking:
    names = tuple(models)
    own_terms = tuple(terms[name] for name in names) if terms else ()
    weights = prior_of(prior, names, own_terms, said.get("whole"))
    found = evidences(models, wanted, seed, say)
    data = digest(next(iter(models.values())).y)
    about = {"absolute": True, "target_se": wanted.target_se, "seed": seed, "responses": data, **said, **found.about}
    ranking = Ranking(
        names,
        found.log_evidence,
        found.left_out,
        weights,
        *judge([*found.findings, *of_search(unseen)]),
        {},
        own_terms,
        found.moments,
        about=about,
    )
    return ranked(ranking)


__all__ = ["Ranking", "rank"]
