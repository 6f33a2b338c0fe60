"""`crossfade paper NAME`: the experiments of the paper, from runs to tables and figures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from crossfade.app.machine import print_json
from crossfade.app.options import Json, Quiet
from crossfade.app.terminal import console, keep_compiled
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

NAMES = ("radiata", "pima", "radiocarbon", "biopathway", "graphical", "galaxy", "future", "runtime")
SHOWN = 24  # rows of a table on the terminal


def paper(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}, or all.", metavar="NAME")],
    quick: Annotated[bool, typer.Option("--quick", help="Short runs, minutes in all (the default).")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The paper's own grid: hours; can be stopped and resumed.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes that share the jobs.", min=1)] = 1,
    repeats: Annotated[int, typer.Option(help="Independent runs of every setting (the paper: 5).", min=2)] = 5,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: tables and figures of the jobs that are done.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = Path("paper-results"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper: its tables as CSV, its figures as PNG and SVG."""
    if name not in (*NAMES, "all"):
        raise CrossfadeError(f"there is no experiment {name!r}: choose one of {', '.join(NAMES)}, or all")
    if quick and full:
        raise CrossfadeError("give --quick or --full, not both")
    names, folder = NAMES if name == "all" else (name,), out / ("full" if full else "quick")
    written = {each: _run(each, full, repeats, workers, finished, folder, as_json, quiet) for each in names}
    if as_json:
        print_json("paper", files={each: list(map(str, paths)) for each, paths in written.items()})


def _run(
    name: str, full: bool, repeats: int, workers: int, finished: bool, folder: Path, as_json: bool, quiet: bool
) -> list[Path]:
    from crossfade.papers.jobs import finished_jobs, run_jobs

    experiment: Any = import_module(f"crossfade.papers.{name}")
    out = console()
    keep_compiled()
    if not as_json:
        out.rule(f"{experiment.TITLE} ({name})", align="left")
    # Jobs run alone, where times are what is measured, whatever was asked.
    alone = getattr(experiment, "ALONE", False)
    jobs, kept = experiment.jobs(full, repeats), folder / "jobs" / name
    if finished and not (jobs := finished_jobs(jobs, kept)):
        raise CrossfadeError(f"no job of {name} is done in {kept}: leave --finished out to run them")

    def say(text: str) -> None:
        if not (as_json or quiet):
            console(stderr=True).print(text, style="dim")

    runs = run_jobs(jobs, kept, 1 if alone else workers, say)
    runs.to_csv(folder / f"{name}-runs.csv", index=False)
    written = [folder / f"{name}-runs.csv"]
    for key, table in experiment.tables(runs).items():
        path = folder / f"{name}-{key}.csv"
        table.to_csv(path, index=False, float_format="%.6g")
        written.append(path)
        if not as_json:
            out.print(_shown(key, table))
    written += experiment.figures(runs, folder)
    for path in () if as_json else written:
        out.print(f"  {path}", highlight=False)
    return written


def _shown(title: str, table: pandas.DataFrame) -> Table:
    """The table in short: as many rows and columns as can be read."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        shown.add_column(str(column), justify="right" if table[column].dtype.kind in "if" else "left")
    for _, row in table.head(SHOWN).iterrows():
        shown.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row))
    if len(table) > SHOWN:
        shown.caption = f"{len(table) - SHOWN} more rows in the CSV file"
    return shown
