"""`crossfade compare`: two formulas on the data of a CSV file, or two models in Python files."""

from __future__ import annotations

import shutil
from functools import partial
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
from crossfade.app.output import ended, first, written
from crossfade.app.page import of_sensitivity, page
from crossfade.app.request import (
    STORED,
    check_file,
    check_method,
    check_names,
    check_not_data,
    check_numbers,
    check_picture,
)
from crossfade.app.runs import check_plan, planned, remember
from crossfade.app.stopped import unanswered
from crossfade.app.terminal import aside, console, keep_compiled, show
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
    check_not_data(given)
    lost: dict[str, str] = {}  # what could not be written, and why
    if by is not None:
        single = {"n_iter": n_iter, "share": share, "sensitivity": sensitivity, "plot": plot, "report": report}
        _refuse_with_by(method=method != "auto", **single)
        from crossfade.app.by import compared_by, groups_of, of_many
        from crossfade.many import UNFINISHED

        groups = groups_of(given)
        if directory is not None:
            remember(directory, "compare", given)
            if plan:
                planned(directory, as_json)
                return
        # Written here, so that a full disk does not take the answer along; until then the rows are kept as ever.
        rows = out.with_name(out.name + UNFINISHED) if out is not None and directory is None else directory
        found = compared_by({**given, "out": None, "directory": rows}, groups, progress=not quiet)
        if (stored := written(out, found.save, lost)) and rows is not None and directory is None:
            shutil.rmtree(rows)
        if as_json:
            more: dict[str, Any] = {"not_written": lost} if lost else {}
            more |= {**groups.about, "notes": groups.notes, "rows": found.rows, "verdicts": found.verdicts}
            print_json("comparisons", by=by, **more, stored_in=str(out) if stored else None)
        else:
            show(*of_many(found, by, out if stored else None, groups))
        ended("" if any(row["log_bayes_factor"] is not None for row in found.rows) else DO_NOT_USE, lost)
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
            run = unanswered(legs, {**settings, **about, "unfinished": True}, reason)
            kept = written(out, run.save, lost)
            said = f"The unfinished run is kept in {out}." if kept else lost[str(out)]
            raise KeyboardInterrupt(said) from stop
        raise
    except NoAnswer as error:
        if out is None:
            raise
        kept = written(out, unanswered(error.legs, {**error.about, **about}, str(error)).save, lost)
        said = f"The draws are kept in {out}: crossfade estimate {out} --with ..." if kept else lost[str(out)]
        raise CrossfadeError(f"{error} {said}") from error
    result = result._replace(about={**result.about, **about})
    if not as_json:
        first(*page(result))
    stored = written(out, result.save, lost)
    usable = result.verdict != DO_NOT_USE
    curve = _curve(m1, m2, result, sensitivity) if sensitivity is not None and usable else None
    if usable:  # that curve, or the run along tau, where there was one
        kind = "integrand" if result.legs else "differs"
        written(plot, partial(result.plot, kind) if curve is None else curve.plot, lost)
    reported = written(report, partial(result.report, sensitivity=curve), lost)
    if as_json:
        more = {"stored_in": str(out)} if stored else {}
        more |= {"report": str(report)} if reported else {}
        more |= {} if curve is None else {"sensitivity": machine.curve(curve)}
        more |= {"not_written": lost} if lost else {}
        print_json("comparison", **machine.comparison(result), **more)
    elif curve is not None:
        show(*of_sensitivity(curve))
    if stored and not as_json:
        console().print(f"\nStored in {out}; look at it again with: crossfade estimate {out}")
    if reported and not as_json:
        console().print(f"\nThe report is in {report}.")
    ended(result.verdict, lost)


def _refuse_with_by(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise CrossfadeError(f"--{name.replace('_', '-')} is for one comparison: leave it out, or leave --by out")


def _curve(m1: Any, m2: Any, result: Result, name: str) -> Sensitivity:
    """The answer by the scale of a prior."""
    keep_compiled()
    from crossfade.methods.sensitivity import prior_sensitivity

    with aside():
        return prior_sensitivity(m1, m2, result, name)
