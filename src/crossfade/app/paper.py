"""`crossfade paper NAME`: the experiments of the paper, from runs to tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from crossfade.app.machine import print_json
from crossfade.app.options import Json, Quiet
from crossfade.app.runs import remember
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
    directory: Annotated[
        Path, typer.Option("--dir", "--out", help="Folder for runs, tables and figures; see crossfade resume, status.")
    ] = Path("paper-results"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper: its tables as CSV, its figures as PNG and SVG."""
    given = dict(locals())
    if name not in (*NAMES, "all"):
        raise CrossfadeError(f"there is no experiment {name!r}: choose one of {', '.join(NAMES)}, or all")
    if quick and full:
        raise CrossfadeError("give --quick or --full, not both")
    if not finished:
        remember(directory, "paper", given)
    folder = _folder(directory, full)
    written = {
        each: _run(each, full, repeats, workers, finished, folder, as_json, quiet) for each in _experiments(name)
    }
    if as_json:
        print_json("paper", files={each: list(map(str, paths)) for each, paths in written.items()})


def so_far(given: Mapping[str, Any]) -> dict[str, Any]:
    """How many jobs of every experiment are done; array jobs that share the folder do what nobody works on."""
    from crossfade.papers.jobs import finished_jobs, run_jobs
    from crossfade.runs.leases import WorkDone, leases

    every = {name: import_module(f"crossfade.papers.{name}") for name in _experiments(given["name"])}
    jobs_of = {name: experiment.jobs(given["full"], given["repeats"]) for name, experiment in every.items()}
    folder = _folder(given["directory"], given["full"]) / "jobs"
    if (own := leases()) is not None:
        shared = []
        for name, jobs in jobs_of.items():
            if not getattr(every[name], "ALONE", False):  # times are measured by who resumes
                try:
                    run_jobs(jobs, folder / name, say=own.say)
                except WorkDone as done:
                    shared.append(f"{name}: {done}")
        raise WorkDone("; ".join(shared))
    n_done = {name: len(finished_jobs(jobs, folder / name)) for name, jobs in jobs_of.items()}
    said = "\n".join(f"{name}: {n} of {len(jobs_of[name])} jobs are done" for name, n in n_done.items())
    return {"said": said, "jobs": {name: len(jobs) for name, jobs in jobs_of.items()}, "done": n_done}


def _experiments(name: str) -> tuple[str, ...]:
    return NAMES if name == "all" else (name,)


def _folder(directory: Path, full: bool) -> Path:
    return directory / ("full" if full else "quick")


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
