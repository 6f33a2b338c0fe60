"""Independent jobs whose finished results stay on disk, so that nothing is done twice after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas

from crossfade.runs.workers import Task, cluster, worked

Rows = list[dict[str, Any]]

PACKAGE = Path(__file__).parents[1]
# What decides the numbers, besides the file that defines a job and what that uses of this folder.
CODE = ("*.py", "data/*", "density/*", "paths/*", "sampling/*", "analysis/*", "methods/*", "worlds/**/*")
# Behind tables and figures alone: may be changed without computing anything anew.
AFTERWARDS = {f"{__package__}.{name}" for name in ("charts", "biopathway_figures", "statistics")}


@cache
def code(module: str) -> str:
    """A digest of the code behind the numbers of the jobs that `module` defines."""
    files = {path for pattern in CODE for path in PACKAGE.glob(pattern) if path.suffix in (".py", ".csv")}
    files |= {Path(str(import_module(name).__file__)) for name in used_by(module)}
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()


def used_by(module: str) -> set[str]:
    """The module and all modules of this folder from which it has a name, or one of those has, and so on."""
    found, waiting = set(), {module}
    while waiting:
        found.add(name := waiting.pop())
        values = vars(import_module(name)).values()
        names = {str(getattr(value, "__module__", getattr(value, "__name__", ""))) for value in values}
        waiting |= {other for other in names if other.startswith(f"{__package__}.")} - found - AFTERWARDS
    return found


class Job(NamedTuple):
    """A function of this package by name and its arguments (plain values): all that a worker needs to know."""

    name: str
    function: str  # "crossfade.papers.radiata:neti", which returns rows
    arguments: dict[str, Any]

    @property
    def file_name(self) -> str:
        """Another function, other arguments or other code are another job, and never read the results of this one."""
        text = json.dumps([self.function, self.arguments, code(self.function.split(":")[0])], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.csv"

    def run(self) -> Rows:
        module, function = self.function.split(":")
        return getattr(import_module(module), function)(**self.arguments)


def finished_jobs(jobs: list[Job], folder: Path) -> list[Job]:
    """Those that have a result in `folder`."""
    return [job for job in jobs if (folder / job.file_name).exists()]


def run_jobs(jobs: list[Job], folder: Path, workers: int = 1, say: Callable[[str], None] = print) -> pandas.DataFrame:
    """The rows of all jobs in one table, in the order of the jobs; those with a result in `folder` are not run."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not (folder / job.file_name).exists()]
    n_kept = len(jobs) - len(waiting)
    if n_kept:
        say(f"{n_kept} of {len(jobs)} jobs are done already")
    tasks: list[Task] = [(job.file_name, _work, (job, folder)) for job in waiting]
    with cluster(min(workers, len(tasks)) if min(workers, len(tasks)) > 1 else None) as client:
        for i, (_, name) in enumerate(worked(client, tasks), start=n_kept + 1):
            say(f"{i} of {len(jobs)}: {name}")
    tables = [pandas.read_csv(folder / job.file_name) for job in jobs]
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame()


def _work(job: Job, folder: Path) -> str:
    """Run a job and keep its rows: first under another name, so that a killed job leaves no half a file."""
    table = pandas.DataFrame(job.run())
    side = folder / f".{job.file_name}.{os.getpid()}"
    table.to_csv(side, index=False)
    side.replace(folder / job.file_name)
    return job.name
