"""Gaussian graphical models: wildtype against mutant network of seven genes, by the strength of two edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas

from crossfade.papers import charts
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import AUTO, NETI_DIFF, Problem, default_method, neti_diff
from crossfade.worlds import graphical

TITLE = "Gaussian graphical models"
BETAS = tuple(round(0.1 * i, 1) for i in range(11))
N_DATA_SETS = 10
LENGTH = {False: 10_000, True: 100_000}
GIBBS_LENGTH = {False: 4_000, True: 20_000}
GIBBS = "NETI-DIFF, Gibbs"
N_POPULATION = 2_000  # data sets over which the exact answer is averaged


def problem(beta: float, data_set: int) -> Problem:
    m1, m2 = graphical.pair(beta, seed=data_set)
    return Problem(m1, m2, graphical.metropolis, graphical.log_bayes_factor(m1, m2))


def sweep(beta: float, n_iter: int, n_runs: int) -> Rows:
    return _sweeps(beta, n_iter, n_runs, NETI_DIFF, graphical.metropolis, 0)


def sweep_by_gibbs(beta: float, n_iter: int, n_runs: int) -> Rows:
    """The same with exact conditionals instead of the paper's walk, which lags behind."""
    return _sweeps(beta, n_iter, n_runs, GIBBS, graphical.gibbs, 100)


def _sweeps(beta: float, n_iter: int, n_runs: int, method: str, kernel: Any, seed: int) -> Rows:
    found: Rows = []
    for data_set in range(N_DATA_SETS):
        ours = problem(beta, data_set)._replace(kernel=kernel)
        key = jax.random.fold_in(jax.random.key(seed + data_set), round(10 * beta))
        own = neti_diff(ours, n_iter, n_runs, key)
        found += [{"beta": beta, "data_set": data_set, **row, "method": method} for row in own]
    return found


def default(beta: float, n_runs: int) -> Rows:
    found = default_method(problem(beta, 0), n_runs, 1, 0.01)
    return [{"beta": beta, "data_set": 0, **row} for row in found]


def population(beta: float) -> Rows:
    """The exact log Bayes factors of many data sets: what the paper's ten are a sample of."""
    exact = [graphical.log_bayes_factor(*graphical.pair(beta, seed=10_000 + i)) for i in range(N_POPULATION)]
    about = {"beta": beta, "method": "exact", "estimate": float(np.mean(exact))}
    return [{**about, "spread": float(np.std(exact, ddof=1)), "error": float(np.std(exact) / np.sqrt(len(exact)))}]


def jobs(full: bool, n_runs: int) -> list[Job]:
    found = [Job(f"default-{b}", f"{__name__}:default", {"beta": b, "n_runs": 1}) for b in BETAS]
    for beta in BETAS:
        own = {"beta": beta}
        settings = {**own, "n_iter": LENGTH[full], "n_runs": max(n_runs, 8)}
        found.append(Job(f"sweep-{beta}", f"{__name__}:sweep", settings))
        exact = {**settings, "n_iter": GIBBS_LENGTH[full]}
        found.append(Job(f"gibbs-{beta}", f"{__name__}:sweep_by_gibbs", exact))
        found.append(Job(f"population-{beta}", f"{__name__}:population", own))
    return found


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """Per data set: mean over runs, its error and its distance from the exact answer; and the means over data sets."""
    sweeps = runs[runs["method"].isin([NETI_DIFF, GIBBS])]
    sets = sweeps.groupby(["beta", "method", "data_set"]).agg(
        estimate=("estimate", "mean"), sd=("estimate", "std"), runs=("run", "size"), exact=("truth", "first")
    )
    sets["error"] = sets["sd"] / np.sqrt(sets["runs"])
    sets["sigmas"] = (sets["estimate"] - sets["exact"]) / sets["error"]
    sets = sets.reset_index()
    by_beta = sets.groupby(["beta", "method"]).agg(
        estimate=("estimate", "mean"),
        sd=("estimate", "std"),
        exact=("exact", "mean"),
        worst_sigmas=("sigmas", lambda z: z.abs().max()),
        worst_error=("error", "max"),
    )
    many = runs[runs["method"] == "exact"].set_index("beta")
    ours = runs[runs["method"] == AUTO].groupby("beta").first()
    by_beta = by_beta.reset_index("method")
    by_beta["population"], by_beta["population_error"] = many["estimate"], many["error"]
    by_beta["auto_off"], by_beta["auto_error"] = ours["estimate"] - ours["truth"], ours["error"]
    by_beta["auto_verdict"] = ours["verdict"]
    return {"summary": by_beta.reset_index(), "data-sets": sets}


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    written: list[Path] = []
    found = tables(runs)
    both, sets = found["summary"], found["data-sets"]
    table = both[both["method"] == NETI_DIFF]
    text = f"{TITLE}: log Bayes factor of wildtype over mutant, {N_DATA_SETS} data sets of 100"
    with charts.figure(folder, "graphical", (8.8, 4.0), text, written) as drawn:
        left, right = drawn.subplots(1, 2, width_ratios=(3, 2))
        left.axhline(0, color=charts.INK, lw=0.9, ls=":")
        left.plot(
            table["beta"], table["population"], color=charts.INK, lw=1.2, label=f"exact, {N_POPULATION:,} data sets"
        )
        left.plot(table["beta"], table["exact"], "x", color=charts.INK, ms=7, label="exact, these data sets")
        left.errorbar(
            table["beta"], table["estimate"], table["sd"], fmt="o", color=charts.COLOURS[NETI_DIFF], ms=4, capsize=2,
            label="NETI-DIFF, sd over data sets",
        )  # fmt: skip
        left.set(xlabel="coefficient of the two edges in dispute", ylabel="log Bayes factor")
        left.legend()
        inset = left.inset_axes((0.08, 0.36, 0.36, 0.3))
        near = table[table["beta"] <= 0.31]
        inset.axhline(0, color=charts.INK, lw=0.9, ls=":")
        inset.plot(near["beta"], near["population"], color=charts.INK, lw=1.2)
        inset.plot(near["beta"], near["estimate"], "o", color=charts.COLOURS[NETI_DIFF], ms=4)
        inset.set_title("the sign changes between 0.1 and 0.2", fontsize=8, loc="left")
        inset.tick_params(labelsize=8)
        right.axhspan(-2, 2, color=charts.PALE, alpha=0.6, lw=0)
        for i, (method, part) in enumerate(sets.groupby("method", sort=False)):
            label = "the paper's walk" if method == NETI_DIFF else "Gibbs"
            at = part["beta"] + 0.03 * (i - 0.5)
            right.plot(at, part["sigmas"], charts.MARKERS[i], color=charts.MORE[i], ms=3, alpha=0.7, label=label)
        right.legend(loc="upper right", ncols=2, fontsize=8)
        right.set(xlabel="coefficient", ylabel="(estimate - exact) / standard error", ylim=(-6, 6))
        right.set_title("each data set against its exact answer", loc="left")
    return written
