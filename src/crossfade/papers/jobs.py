"""Independent jobs whose rows are kept in the folder of a run, so that nothing is done twice after an interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas

from crossfade.runs.plan import in_directory, looking, read_plan
from crossfade.runs.rows import Rows, rows_of
from crossfade.runs.workers import Task, cluster

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
    def made_from(self) -> str:
        """Another function, other arguments or other code are another job, and never read the rows of this one."""
        text = json.dumps([self.function, self.arguments, code(self.function.split(":")[0])], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def task(self) -> str:
        """A name that no other job has."""
        return f"{self.name}-{self.made_from[:10]}"

    def run(self) -> Rows:
        module, function = self.function.split(":")
        return getattr(import_module(module), function)(**self.arguments)


def finished_jobs(jobs: list[Job], folder: Path) -> list[Job]:
    """Those whose rows are kept in `folder`."""
    if read_plan(folder) is None:
        return []
    with looking(), in_directory(folder, {}, {}, print):
        done = {name for name, _, _ in rows_of(*_tasks(jobs), None, print)}
    return [job for job in jobs if job.task in done]


def run_jobs(jobs: list[Job], folder: Path, workers: int = 1, say: Callable[[str], None] = print) -> pandas.DataFrame:
    """The rows of all jobs in one table, in their order; those that are kept in `folder` are not made again."""
    if n_kept := len(finished_jobs(jobs, folder)):
        say(f"{n_kept} of {len(jobs)} jobs are done already")
    n_workers = min(workers, len(jobs) - n_kept)
    rows: dict[str, Rows] = {}
    with cluster(n_workers if n_workers > 1 else None) as client, in_directory(folder, {}, {}, say):
        for name, own, kept in rows_of(*_tasks(jobs), client, say):
            rows[name] = own
            if not kept:
                say(f"{len(rows)} of {len(jobs)}: {name}")
    return pandas.DataFrame([row for job in jobs for row in rows[job.task]])


def _tasks(jobs: list[Job]) -> tuple[list[Task], dict[str, str]]:
    return [(job.task, job.run, ()) for job in jobs], {job.task: job.made_from for job in jobs}
