"""From what the command line is given to an answer: for the page, and for what a folder holds so far."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from crossfade.app.tables import Reading
from crossfade.app.terminal import aside, keep_compiled
from crossfade.types import Result

PRIORS = ("prior_mean", "prior_precision", "noise_shape", "noise_rate", "prior_sd")
SETTINGS = ("method", "n_iter", "seed", "n_chains", "target_se", "budget", "route", "log_prior_odds", "directory")


def models_of(given: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Two models, and what the page says about them."""
    from crossfade.app.arguments import pair

    priors = tuple(given[name] for name in PRIORS)
    return pair(given["what"], given["family"], given["scaling"], priors, reading_of(given))


def reading_of(given: Mapping[str, Any]) -> Reading:
    """How the table is to be read; folders of runs may be older than these options."""
    return Reading(**{name: given[name] for name in Reading._fields if name in given})


def compared(m1: Any, m2: Any, given: Mapping[str, Any], progress: bool) -> Result:
    """By `compare`; two formulas do not wait for JAX where no chains are asked for."""
    from crossfade.app.arguments import sharing
    from crossfade.methods.regressions import Regression, without_chains
    from crossfade.methods.widths import with_widths

    settings: dict[str, Any] = {name: given[name] for name in SETTINGS} | {"share": sharing(given["share"])}
    if isinstance(m1, Regression):
        plain = {name: value for name, value in settings.items() if name != "directory"}
        if isinstance(found := without_chains(m1, m2, plain), Result):
            return with_widths(found, m1, m2)
    keep_compiled()
    from crossfade.api import compare as run

    with client_of(given) as client, aside():
        return run(m1, m2, **settings, client=client, progress=progress)


def models_to_rank(given: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """Many models, and what the page says about them."""
    from crossfade.app.arguments import many_models

    priors = tuple(given[name] for name in PRIORS)
    kind = given["all_subsets"], given["orders"], given["family"], given["scaling"]
    return many_models(given["what"], *kind, priors, reading_of(given))


def ranked(given: Mapping[str, Any], progress: bool, models: tuple[Any, dict[str, str]] | None = None) -> Any:
    """By `rank`, with what the page says about the models."""
    models, about = models_to_rank(given) if models is None else models
    from crossfade.ranking import rank as run

    if not about or given["route"] != "auto":
        keep_compiled()
    names = ("target_se", "budget", "seed", "n_chains", "route", "design", "directory")
    settings: dict[str, Any] = {name: given[name] for name in names} | {"prior": given["model_prior"]}
    with client_of(given) as client, aside():
        found = run(models, **settings, client=client, progress=progress)
    return found._replace(about={**found.about, **about})


def client_of(given: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Of the workers that the options ask for, or None."""
    from crossfade.runs.workers import cluster

    file = given["scheduler_file"]
    return cluster(given["workers"], given["scheduler"], None if file is None else str(file))


def written_out(text: str) -> str:
    """A file, or FILE.py:NAME, by its full path; anything else, such as a formula, as it is."""
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py"):
        return f"{Path(file).resolve()}:{name}"
    return str(Path(text).resolve()) if os.path.isfile(text) else text  # a long formula is too long for a Path
