"""`crossfade rank`: many formulas, all subsets of one, polynomials of all orders, or models in Python files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crossfade.app import machine
from crossfade.app.compared import models_to_rank, ranked
from crossfade.app.machine import print_json
from crossfade.app.options import (
    Decimal,
    DropMissing,
    Family,
    Folder,
    Json,
    NoiseRate,
    NoiseShape,
    OnlyPlan,
    PriorMean,
    PriorPrecision,
    PriorSd,
    Quiet,
    Scaling,
    Scheduler,
    SchedulerFile,
    Seed,
    Sep,
    Workers,
)
from crossfade.app.output import ended, first, written
from crossfade.app.request import check_file, check_not_data, check_numbers
from crossfade.app.runs import check_plan, planned, remember
from crossfade.app.terminal import console
from crossfade.files import appearing
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    from crossfade.ranking.record import Ranking

MODEL_PRIORS = ("uniform", "size")
Many = Annotated[
    list[str],
    typer.Argument(
        help="A CSV file and formulas like 'y ~ x', or models like models.py:m1.",
        metavar="DATA FORMULA ... | FILE.py:M1 FILE.py:M2 ...",
    ),
]


def rank(
    what: Many,
    all_subsets: Annotated[
        str | None, typer.Option(help="Every model with some of the terms of this formula.", metavar="FORMULA")
    ] = None,
    orders: Annotated[
        str | None, typer.Option(help="With one formula 'y ~ x': polynomials of these orders.", metavar="LOW:HIGH")
    ] = None,
    target_se: Annotated[float | None, typer.Option(help="The worst standard error to stop at. (default 0.05)")] = None,
    budget: Annotated[str | None, typer.Option(help="At most '90 s', '5 min' or '20000 draws'.")] = None,
    family: Family = "gaussian",
    model_prior: Annotated[
        str, typer.Option(help="uniform: all models alike; size: every number of terms alike.")
    ] = "uniform",
    seed: Seed = 0,
    n_chains: Annotated[int | None, typer.Option(help="Independent chains of each model.")] = None,
    route: Annotated[str, typer.Option(help="auto: formulas need no chains; path: chains in any case.")] = "auto",
    design: Annotated[str, typer.Option(help="Of chains: tree, star or chain.")] = "tree",
    directory: Folder = None,
    plan: OnlyPlan = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    scheduler_file: SchedulerFile = None,
    out: Annotated[Path | None, typer.Option(help="Store the ranking here: .json, or its table as .csv.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write one HTML page of it all here.", metavar="FILE.html")
    ] = None,
    top: Annotated[int, typer.Option(help="Models on the page.")] = 15,
    as_json: Json = False,
    sep: Sep = None,
    decimal: Decimal = None,
    drop_missing: DropMissing = False,
    scaling: Scaling = "standardise",
    prior_mean: PriorMean = None,
    prior_precision: PriorPrecision = None,
    noise_shape: NoiseShape = 0.1,
    noise_rate: NoiseRate = 0.1,
    prior_sd: PriorSd = None,
    quiet: Quiet = False,
) -> None:
    """Rank many models of one data set: which, how sure, and which terms matter."""
    given = dict(locals())
    check_plan(plan, directory)
    from crossfade.app import rankings
    from crossfade.ranking import DESIGNS

    check_numbers(given)
    check_not_data(given)
    check_file("--out", out, ".json", ".csv")
    check_file("--report", report, ".html")
    for option, value, known in (("design", design, DESIGNS), ("model-prior", model_prior, MODEL_PRIORS)):
        if value not in known:
            raise CrossfadeError(f"--{option} {value}: choose one of {', '.join(known)}")
    if top < 1:
        raise CrossfadeError(f"--top {top}: show at least 1 model")
    models = models_to_rank(given)
    if directory is not None:
        remember(directory, "rank", given)
        if plan:
            planned(directory, as_json)
            return
    found = ranked(given, progress=not quiet and not as_json, models=models)
    lost: dict[str, str] = {}
    if not as_json:
        first(*rankings.of_ranking(found, top))
    stored = written(out, partial(_save, found), lost)
    reported = written(report, found.report, lost)
    if as_json:
        more: dict[str, Any] = {"report": str(report)} if reported else {}
        more |= {"not_written": lost} if lost else {}
        print_json("ranking", **machine.ranking(found), stored_in=str(out) if stored else None, **more)
    if stored and not as_json:
        console().print(f"Stored in {out}.")
    if reported and not as_json:
        console().print(f"The report is in {report}.")
    ended(found.verdict, lost)


def _save(found: Ranking, path: Path) -> None:
    """All of it, or its table."""
    if path.suffix.lower() != ".csv":
        found.save(path)
        return
    with appearing(path) as unfinished:
        found.table.to_csv(unfinished)
