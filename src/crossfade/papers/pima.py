"""Pima: nested logistic regressions of diabetes, with and without age (log Bayes factor -2.625013 by quadrature)."""

from __future__ import annotations

from pathlib import Path

import pandas

from crossfade.papers import regressions
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import Problem
from crossfade.worlds.glm import logistic

TITLE = "Pima Indians"
RUNGS = (10, 20, 50, 100)
TRUTH = -2.625013  # Gauss-Hermite, 9 nodes in each dimension


def problem() -> Problem:
    m1, m2 = logistic.pima()
    return Problem(m1, m2, logistic.paper_metropolis, TRUTH)


def run(kind: str, **settings: int) -> Rows:
    return regressions.run(problem(), kind, **settings)


def jobs(full: bool, n_runs: int) -> list[Job]:
    return regressions.jobs(f"{__name__}:run", regressions.LENGTHS[full], RUNGS, n_runs, target_se=0.004)


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    return regressions.tables(runs)


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    return regressions.figures(runs, folder, "pima", TITLE)
