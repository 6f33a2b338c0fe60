"""The command `crossfade`. Whatever is slow to import is imported by the command that needs it."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from crossfade import __version__
from crossfade.app.compared import client_of, compared, models_of
from crossfade.app.options import (
    Family,
    Folder,
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
    What,
    Workers,
)
from crossfade.app.page import of_checkup, of_sensitivity, page
from crossfade.app.paper import paper
from crossfade.app.rank import rank
from crossfade.app.report_command import report
from crossfade.app.runs import COMMANDS, check_plan, extend, gather, remember, resume, status, work
from crossfade.app.stopped import kept, unanswered
from crossfade.app.terminal import console, keep_compiled, show
from crossfade.app.words import number, with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, NoAnswer, Result

# Spelt out for --help, which must not wait for JAX and SciPy; a test holds them to the tables they name.
METHODS = (
    "TI-standard, TI-optimal, CTI, NETI, NETI-DIFF, NETI-DIFF-length, CTI-DIFF, AIS, Crooks, stepping-stone, BAR, MBAR"
)
ESTIMATORS = "trapezoid, corrected_trapezoid, stepping_stone, bar, mbar, jarzynski, crooks, controlled"


class Commands(typer.core.TyperGroup):
    """The one place where errors become messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CrossfadeError as error:
            console(stderr=True).print(Text(f"Error: {error}", style="red"))
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            console(stderr=True).print(Text(f"Stopped. {kept(stop)}", style="yellow"))
            raise typer.Exit(130) from None


app = typer.Typer(
    name="crossfade",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Bayes factors by fading one posterior into the other.",
)


def print_version(asked: bool) -> None:
    if asked:
        print(f"crossfade {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without a plus-minus sign gets a question mark


@app.command()
def demo() -> None:
    """Compare two regressions whose Bayes factor is known exactly (42 pine boards)."""
    keep_compiled()
    from crossfade.api import compare as run
    from crossfade.worlds import linear

    out = console()
    out.print(
        "The strength of 42 boards of radiata pine was measured. Does their density predict it better (M1), or their "
        "density adjusted for the resin in them (M2)? crossfade draws parameters of both models given the data, and "
        "computes from the draws how much better M2 predicts the data than M1: the Bayes factor.\n"
    )
    m1, m2 = linear.radiata()
    result = run(m1, m2, target_se=0.005, seed=0, route="path")
    about = {
        "M1": "strength ~ density",
        "M2": "strength ~ density adjusted for resin",
        "data": "radiata, 42 rows, gaussian family",
        "scale": "covariates centred",
        "prior": "intercept ~ N(3000, variance/0.06), slope ~ N(185, variance/6); 1/variance ~ Gamma(3, rate 180000)",
    }
    _print(result._replace(about={**result.about, **about}))
    exact = linear.log_evidence(m2) - linear.log_evidence(m1)
    estimate = result.log_bayes_factor
    off = abs(estimate.value - exact) / estimate.error
    out.print(
        f"\nFor these two models the exact log Bayes factor can be computed: it is {number(exact, 1e-3)}. "
        f"The estimate above, {with_error(estimate)}, is {off:.1f} standard errors away from it."
    )


@app.command()
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
    plot: Annotated[Path | None, typer.Option(help="Draw the run (or that curve) here.", metavar="FILE.png")] = None,
    scaling: Scaling = "standardise",
    prior_mean: PriorMean = None,
    prior_precision: PriorPrecision = None,
    noise_shape: NoiseShape = 0.1,
    noise_rate: NoiseRate = 0.1,
    prior_sd: PriorSd = None,
    log_prior_odds: Annotated[float, typer.Option(help="log p(M2)/p(M1) before the data.")] = 0.0,
    quiet: Quiet = False,
) -> None:
    """Compare two formulas on the data of a CSV file, or two models in Python files."""
    given = dict(locals())
    check_plan(plan, directory)
    from crossfade.app import store

    priors = (prior_mean, prior_precision, noise_shape, noise_rate, prior_sd)
    if by is not None:
        single = {"n_iter": n_iter, "share": share, "sensitivity": sensitivity, "plot": plot, "dir": directory}
        _refuse_with_by(method=method != "auto", **single)
        from crossfade.app.by import compared_by, of_many

        asked: dict[str, Any] = {"target_se": target_se, "budget": budget, "seed": seed, "scaling": scaling}
        asked |= {"log_prior_odds": log_prior_odds, "progress": not quiet, "out": out}
        asked |= {"route": route} if route != "auto" else {}
        with client_of(given) as client:
            found = compared_by(by, what, family, priors, **asked, client=client)
        show(*of_many(found, by, out))
        return
    if out is not None:
        store.check_folder(out)
    m1, m2, about = models_of(given)
    if plot is not None and sensitivity is None:
        given["route"] = "path"  # which is what is to be drawn
    if directory is not None:
        remember(directory, "compare", given)
        if plan:
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
    stored = "" if out is None else f"\nStored in {out}; look at it again with: crossfade estimate {out}"
    _print(result, stored)
    _look_further(m1, m2, result, sensitivity, plot)


def _refuse_with_by(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise CrossfadeError(f"--{name.replace('_', '-')} is for one comparison: leave it out, or leave --by out")


def _print(result: Result, after: str = "") -> None:
    """The page; exit code 3 if there is no answer on it."""
    show(*page(result))
    if after:
        console().print(after)
    if result.verdict == DO_NOT_USE:
        raise typer.Exit(3)


def _look_further(m1: Any, m2: Any, result: Result, name: str | None, plot: Path | None) -> None:
    if name is not None:
        keep_compiled()
        from crossfade.methods.sensitivity import prior_sensitivity

        curve = prior_sensitivity(m1, m2, result, name)
        show(*of_sensitivity(curve))
        if plot is not None:
            curve.plot(plot)
    elif plot is not None:
        result.plot("integrand", plot)


@app.command()
def doctor(
    what: What,
    family: Family = "gaussian",
    seed: Seed = 0,
    scaling: Scaling = "standardise",
    prior_mean: PriorMean = None,
    prior_precision: PriorPrecision = None,
    noise_shape: NoiseShape = 0.1,
    noise_rate: NoiseRate = 0.1,
    prior_sd: PriorSd = None,
    quiet: Quiet = False,
) -> None:
    """Examine two models before comparing them: data, gradients, normalisation, a placebo parameter."""
    from crossfade.app.arguments import pair

    keep_compiled()
    m1, m2, _ = pair(what, family, scaling, prior_mean, prior_precision, noise_shape, noise_rate, prior_sd)
    from crossfade.doctor import check

    found = check(m1, m2, seed=seed, progress=not quiet)
    show(*of_checkup(found))
    if not found.ok:
        raise typer.Exit(3)


@app.command()
def estimate(
    run: Annotated[Path, typer.Argument(help="A run stored with --out.", metavar="RUN")],
    with_: Annotated[str | None, typer.Option("--with", help=f"One of {ESTIMATORS}.", metavar="ESTIMATOR")] = None,
) -> None:
    """Read a stored run again, with its own estimator or another one."""
    from crossfade.app import store

    result = store.load(run)
    if result.about.get("unfinished") or (with_ is None and math.isnan(result.raw_estimate.value)):
        raise CrossfadeError(f"{run}: {' '.join(result.reasons)}")
    if with_ is not None:
        from crossfade.app.again import read_with

        result = read_with(result, with_)
    _print(result)


for command in (rank, report, resume, status, extend, gather, work, paper):
    app.command()(command)
COMMANDS |= {"compare": compare, "rank": rank}


def main() -> None:
    app(prog_name="crossfade")


if __name__ == "__main__":
    main()
