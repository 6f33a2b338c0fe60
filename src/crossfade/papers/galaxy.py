"""Galaxy velocities: mixtures of three and four normals, which share nothing (log Bayes factor 0.492 +- 0.003)."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pandas

from crossfade.api import compare
from crossfade.data import load
from crossfade.papers import charts
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import AUTO, NETI_DIFF, Problem, neti_diff, two_legs
from crossfade.papers.statistics import of_runs, ratios
from crossfade.worlds import mixture

TITLE = "Galaxy velocities"
TRUTH = 0.492  # bridge sampling over label-symmetrised proposals; error 0.003
PAPER = 0.4685  # a long run of thermodynamic integration
RUNGS = (100,)
LENGTHS = {False: (40_000, 80_000), True: (1_000_000, 2_000_000)}
BUDGET = {False: 300.0, True: 600.0}  # seconds for the default method


def problem() -> Problem:
    return Problem(*mixture.galaxy(), mixture.gibbs, TRUTH)


def sweep(n_iter: int, n_runs: int, seed: int) -> Rows:
    """Both mixtures move in every iteration, so that half as many cost as much as those of one mixture at a time."""
    found = neti_diff(problem(), n_iter // 2, n_runs, jax.random.key(seed))
    return [{**row, "n_iter": n_iter} for row in found]


def integrate(n_iter: int, n_runs: int, seed: int) -> Rows:
    """Half of the iterations on each mixture."""
    found = two_legs(problem(), n_iter // 2, RUNGS, n_runs, jax.random.key(seed))
    return [{**row, "n_iter": n_iter} for row in found]


def default(n_runs: int, budget: float) -> Rows:
    """The mixtures with their allocations summed out; labels switch, so a careful answer is a weak one."""
    y = load("galaxy")["velocity"].to_numpy(float)
    m1, m2 = (mixture.summed(y, k) for k in (3, 4))
    found: Rows = []
    for run in range(n_runs):
        result = compare(m1, m2, target_se=0.05, budget=budget, seed=run)
        value, error = result.log_bayes_factor.value, result.log_bayes_factor.error
        about = {"method": AUTO, "truth": TRUTH, "run": run, "cpu": result.about["seconds"]}
        found.append({**about, "estimate": value, "error": error, "verdict": result.verdict})
    return found


def jobs(full: bool, n_runs: int) -> list[Job]:
    n_runs = max(n_runs, 10)  # as many as in the paper
    found = [Job("default", f"{__name__}:default", {"n_runs": 5 if full else 1, "budget": BUDGET[full]})]
    for i, n in enumerate(LENGTHS[full]):
        settings = {"n_iter": n, "n_runs": n_runs}
        found.append(Job(f"integrate-{n}", f"{__name__}:integrate", {**settings, "seed": 10 + i}))
        found.append(Job(f"sweep-{n}", f"{__name__}:sweep", {**settings, "seed": 20 + i}))
    return found


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    summary = of_runs(runs, ["method", "ladder", "start", "n_iter"])
    summary["rungs"] = np.where(summary["method"] == NETI_DIFF, np.nan, RUNGS[0])
    return {"summary": summary, "ratios": ratios(summary, ["n_iter"])}


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    written: list[Path] = []
    summary = tables(runs)["summary"]
    lengths = sorted(summary["n_iter"].dropna().unique())
    n_runs = int(summary["runs"].max())
    text = f"{TITLE}: log Bayes factor of four over three components (mean and sd of {n_runs} runs)"
    with charts.figure(folder, "galaxy", (7.6, 4.6), text, written) as drawn:
        axis = drawn.subplots()
        axis.axhline(TRUTH, color=charts.INK, lw=1, label=f"reference {TRUTH}")
        axis.axhline(PAPER, color=charts.GREY, lw=1, ls=":", label=f"the paper's gold standard {PAPER}")
        methods = ("TI-standard", "TI-optimal", NETI_DIFF)
        for i, method in enumerate(methods):
            part = summary[summary["method"] == method].set_index("n_iter").loc[lengths]
            at = np.arange(len(lengths)) + 0.22 * (i - 1)
            sd = np.sqrt(part["variance"])
            kind = {"fmt": charts.MARKERS[i], "color": charts.colour(method, i), "capsize": 3, "ms": 6}
            axis.errorbar(at, part["mean"], sd, label=method, **kind)
        ticks = [f"{charts.thousands(n)} iterations" for n in lengths]
        places = [float(i) for i in range(len(lengths))]
        ours = runs[runs["method"] == AUTO]
        if len(ours):
            at = len(lengths) + 0.15 * np.arange(len(ours))
            own = {"fmt": "D", "color": charts.COLOURS[AUTO], "capsize": 3, "label": "default"}
            axis.errorbar(at, ours["estimate"], ours["error"], **own)
            ticks.append(f"default method\n({', '.join(sorted(set(ours['verdict'])))})")
            places.append(float(np.mean(at)))
        axis.set_xticks(places, ticks)
        axis.set_ylabel("log Bayes factor")
        axis.grid(axis="y", color=charts.PALE, lw=0.7)
        charts.legend_below(drawn, axis)
    return written
