"""`crossfade compare`: two formulas on the data of a CSV file, or two models in Python files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crossfade.app import machine
from crossfade.app.arguments import sharing
from crossfade.app.compared import compared, models_of
from crossfade.app.machine import print_json
from crossfade.app.options import (
    METHODS,
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
    What,
    Workers,
)
from crossfade.app.output import NO_ANSWER, answer
from crossfade.app.page import of_sensitivity
from crossfade.app.request import STORED, check_file, check_method, check_names, check_numbers, check_picture
from crossfade.app.runs import check_plan, planned, remember
from crossfade.app.stopped import unanswered
from crossfade.app.terminal import console, keep_compiled, show
from crossfade.types import DO_NOT_USE, CrossfadeError, NoAnswer, Result

if TYPE_CHECKING:
    from crossfade.methods.sensitivity import Sensitivity


def compare(
    what: What,
    target_se: Annotated[float | None, typer.Option(help="The standard error to stop at. (default 0.05)")] = None,
    budget: Annotated[str | None, typer.Option(help="At most '90 s', '5 min' or '20000 draws'.")] = None,
    family: Family = "gaussian",
    method: Annotated[str, typer.Option(help=f"auto, or one of {METHODS}.")] = "auto",
    n_iter: Annotated[int | None, typer.Option(help="Of these: iterations per chain and direction.")] = None,
    n_chains: Annotated[int | None, typer.Option(help="Independent chains; the error bar comes from them.")] = None,
    seed: Seed = 0,
    share: Annotated[
        list[str] | None, typer.Option(help="Shared parameters: NAME, NAME1=NAME2, or 'none'. (default: equal names)")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Of formulas: compare on every group of rows with one value here.", metavar="COLUMN"),
    ] = None,
    directory: Folder = None,
    plan: OnlyPlan = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    scheduler_file: SchedulerFile = None,
    out: Annotated[
        Path | None, typer.Option(help="Store the run here (netCDF); with --by a table: .csv, .jsonl, .parquet.")
    ] = None,
    route: Annotated[
        str, typer.Option(help="auto: the cheapest that is right (formulas need no chains); path: chains in any case.")
    ] = "auto",
    sensitivity: Annotated[
        str | None, typer.Option(help="Also the answer as a curve of this parameter's prior scale.", metavar="NAME")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw that curve, the run, or (without chains) what differs.", metavar="FILE.png"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write one HTML page of it all here, the curve included.", metavar="FILE.html"),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    drop_missing: DropMissing = False,
    scaling: Scaling = "standardise",
    prior_mean: PriorMean = None,
    prior_precision: PriorPrecision = None,
    noise_shape: NoiseShape = 0.1,
    noise_rate: NoiseRate = 0.1,
    prior_sd: PriorSd = None,
    log_prior_odds: Annotated[float, typer.Option(help="log p(M2)/p(M1) before the data.")] = 0.0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two formulas on the data of a CSV file, or two models in Python files."""
    given = dict(locals())
    quiet = quiet or as_json
    check_plan(plan, directory)
    check_numbers(given)
    from crossfade.app import store

    if by is not None:
        single = {"n_iter": n_iter, "share": share, "sensitivity": sensitivity, "plot": plot, "report": report}
        _refuse_with_by(method=method != "auto", **single)
        from crossfade.app.by import compared_by, groups_of, of_many

        groups = groups_of(given)
        if directory is not None:
            remember(directory, "compare", given)
            if plan:
                planned(directory, as_json)
                return
        found = compared_by(given, groups, progress=not quiet)
        if as_json:
            kept = None if out is None else str(out)
            said = {**groups.about, "notes": groups.notes, "rows": found.rows, "verdicts": found.verdicts}
            print_json("comparisons", by=by, **said, stored_in=kept)
        else:
            show(*of_many(found, by, out, groups))
        if all(row["log_bayes_factor"] is None for row in found.rows):
            raise typer.Exit(NO_ANSWER)
        return
    check_method(given)
    check_file("--out", out, *STORED)
    check_picture(plot)
    check_file("--report", report, ".html")
    m1, m2, about = models_of(given)
    sensitivity = check_names(m1, m2, sharing(share), sensitivity)
    if directory is not None:
        remember(directory, "compare", given)
        if plan:
            planned(directory, as_json)
            return
    settings: dict[str, Any] = {"method": method, "n_iter": n_iter, "seed": seed, "n_chains": n_chains}
    try:
        result = compared(m1, m2, given, progress=not quiet)
    except KeyboardInterrupt as stop:
        legs = getattr(stop, "legs", ())
        if out is not None and any(len(leg.forward.tau) for leg in legs):
            reason = "The run was stopped before its end, so there is no answer in it. Compare again."
            store.save(unanswered(legs, {**settings, **about, "unfinished": True}, reason), out)
            raise KeyboardInterrupt(f"The unfinished run is kept in {out}.") from stop
        raise
    except NoAnswer as error:
        if out is None:
            raise
        store.save(unanswered(error.legs, {**error.about, **about}, str(error)), out)
        raise CrossfadeError(f"{error} The draws are kept in {out}: crossfade estimate {out} --with ...") from error
    result = result._replace(about={**result.about, **about})
    if out is not None:
        store.save(result, out)
    usable = result.verdict != DO_NOT_USE
    stored = "" if out is None else f"\nStored in {out}; look at it again with: crossfade estimate {out}"
    if not usable and report is not None:
        result.report(report)
    if not as_json:  # before anything else that may fail
        answer(result, stored)
    curve = _curve(m1, m2, result, sensitivity, plot) if sensitivity is not None and usable else None
    if curve is None and plot is not None and usable:
        # the run along tau, where there was one
        result.plot("integrand" if result.legs else "differs", plot)
    if report is not None and usable:
        result.report(report, sensitivity=curve)
    if as_json:
        more: dict[str, Any] = {} if out is None else {"stored_in": str(out)}
        more |= {} if report is None else {"report": str(report)}
        more |= {} if curve is None else {"sensitivity": machine.curve(curve)}
        answer(result, as_json=True, **more)
    elif curve is not None:
        show(*of_sensitivity(curve))
    if report is not None and not as_json:
        console().print(f"\nThe report is in {report}.")


def _refuse_with_by(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise CrossfadeError(f"--{name.replace('_', '-')} is for one comparison: leave it out, or leave --by out")


def _curve(m1: Any, m2: Any, result: Result, name: str, plot: Path | None) -> Sensitivity:
    """The answer by the scale of a prior, drawn where that is asked for."""
    keep_compiled()
    from crossfade.methods.sensitivity import prior_sensitivity

    curve = prior_sensitivity(m1, m2, result, name)
    if plot is not None:
        curve.plot(plot)
    return curve
