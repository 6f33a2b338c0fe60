"""Run times per 100,000 iterations beside the paper's table: one chain, and per chain when 64 run together."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pandas

from crossfade.density.model import without_data
from crossfade.density.precision import float64
from crossfade.papers import biopathway, charts, pima, radiata, radiocarbon
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import NETI_DIFF, Problem
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.sampling.ladder import power, sigmoid
from crossfade.sampling.placed import anneal_at_tangents

TITLE = "Run times"
ALONE = True  # nothing else may run beside what is timed
UNIT = 100_000
RUNGS = 10
# Seconds per 100,000 iterations, one chain, Matlab on an Intel i7-6700HQ; the biopathway is one response.
PAPER: dict[str, dict[str, float]] = {
    "Radiata": {NETI_DIFF: 81.6, "TI-standard": 85.6, "TI-optimal": 85.6},
    "Pima": {NETI_DIFF: 9.3, "TI-standard": 9.5, "TI-optimal": 10.3},
    "Radiocarbon": {NETI_DIFF: 19.5, "TI-optimal": 35.4},
    "Biopathway": {NETI_DIFF: 54.1, "TI-standard": 53.6, "TI-optimal": 58.7},
}
WORLDS: dict[str, Callable[[], Problem]] = {
    "Radiata": radiata.problem,
    "Pima": pima.problem,
    "Radiocarbon": lambda: radiocarbon.problem(4, 6),
    # The response with most regulators, all rows kept: n = 143, as in the paper's table.
    "Biopathway": lambda: biopathway.problem("wildtype", 1, "LHY", drop_knocked_out=False),
}


def runner(problem: Problem, method: str, n_chains: int, n_iter: int) -> Callable[[], object]:
    """One run of a method without burn-in, ready to start; of TI, the leg to M2."""
    keys = chain_keys(jax.random.key(0), n_chains)
    a, b = (problem.m1, problem.m2) if method == NETI_DIFF else (without_data(problem.m2), problem.m2)
    path, kernel = problem.path(a, b), problem.kernel(a, b)
    if method == NETI_DIFF:
        tau = sigmoid(n_iter)
        return lambda: anneal(path, kernel, tau, keys, schedule=Schedule(n_warm_up=0))
    schedule = Schedule(n_draws=n_iter // RUNGS, n_burn=0, n_warm_up=0)
    if method == "TI-standard":
        return lambda: anneal(path, kernel, power(RUNGS), keys, schedule=schedule)
    return lambda: anneal_at_tangents(path, kernel, RUNGS, keys, schedule)


def measure(world: str, method: str, n_chains: int) -> Rows:
    """Best of five after compilation: wall and CPU seconds per 100,000 iterations of one chain."""
    problem, n_iter = WORLDS[world](), UNIT if n_chains == 1 else UNIT // 10
    with float64():
        run = runner(problem, method, n_chains, n_iter)
        run()
        best = (np.inf, np.inf)
        for _ in range(5):
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    unit = UNIT / n_iter / n_chains
    n = len(problem.m2.data) if problem.m2.data is not None else 0
    paper = PAPER[world][method]
    about = {"world": world, "n": n, "method": method, "chains": n_chains, "paper": paper}
    return [{**about, "seconds": best[0] * unit, "cpu": best[1] * unit, "times_faster": paper / best[0] / unit}]


def jobs(full: bool, n_runs: int) -> list[Job]:
    return [
        Job(
            f"{world}-{method}-{n_chains}",
            f"{__name__}:measure",
            {"world": world, "method": method, "n_chains": n_chains},
        )
        for world, methods in PAPER.items()
        for method in (methods if full else (NETI_DIFF,))
        for n_chains in (1, 64)
    ]


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    return {"seconds": runs}


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    written: list[Path] = []
    text = "Seconds per 100,000 iterations of NETI-DIFF"
    with charts.figure(folder, "runtime", (7.6, 3.8), text, written) as drawn:
        axis = drawn.subplots()
        worlds = list(PAPER)
        ours = runs[runs["method"] == NETI_DIFF]
        series = {"the paper": [PAPER[world][NETI_DIFF] for world in worlds]}
        for n_chains, label in ((1, "one chain"), (64, "per chain of 64")):
            series[label] = list(ours[ours["chains"] == n_chains].set_index("world").loc[worlds, "seconds"])
        charts.bars(axis, worlds, {label: (v, v, v) for label, v in series.items()}, log=True)
        axis.set_ylabel("seconds (log axis)")
        charts.legend_below(drawn, axis)
    return written
