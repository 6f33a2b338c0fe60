"""Radiata pine: two regressions that share only the intercept and the variance (exact log Bayes factor 8.8571)."""

from __future__ import annotations

from pathlib import Path

import pandas

from crossfade.papers import regressions
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import Problem
from crossfade.worlds import linear

TITLE = "Radiata pine"
RUNGS = (10, 20, 50, 100)


def problem() -> Problem:
    m1, m2 = linear.radiata()
    return Problem(m1, m2, linear.gibbs, linear.log_evidence(m2) - linear.log_evidence(m1))


def run(kind: str, **settings: int) -> Rows:
    return regressions.run(problem(), kind, **settings)


def jobs(full: bool, n_runs: int) -> list[Job]:
    return regressions.jobs(f"{__name__}:run", regressions.LENGTHS[full], RUNGS, n_runs, target_se=0.002)


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    return regressions.tables(runs)


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    return regressions.figures(runs, folder, "radiata", TITLE)
