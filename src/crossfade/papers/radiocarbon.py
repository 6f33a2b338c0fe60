"""Radiocarbon dating: polynomials of two orders, by two ladders and three ways of going from one to the other."""

from __future__ import annotations

import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas
from scipy.integrate import cumulative_trapezoid

from crossfade.papers import charts
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import AUTO, LADDERS, NETI_DIFF, WARM_UP, Problem, default_method, neti_diff, rows, two_legs
from crossfade.papers.statistics import ABOUT, of_runs, ratio_interval, ratios
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.worlds import linear

TITLE = "Radiocarbon dating"
PAIRS = ((1, 9), (2, 8), (3, 7), (4, 6))
RUNGS = (20, 50, 100, 200)
LENGTH = {False: 32_000, True: 1_024_000}
ROUTES = ("direct", "via one", "staggered")
HERE = __name__
N_GRID = 400  # points at which partial integrals are kept


def problem(low: int, high: int) -> Problem:
    m1, m2 = linear.radiocarbon(low), linear.radiocarbon(high)
    return Problem(m1, m2, linear.gibbs, linear.log_evidence(m2) - linear.log_evidence(m1))


def stops(low: int, high: int, route: str) -> list[int]:
    """The orders that a route visits: none between, the middle one, or all."""
    middle = {"direct": [], "via one": [(low + high) // 2], "staggered": list(range(low + 1, high))}
    return [low, *middle[route], high]


def integrate(low: int, high: int, n_iter: int, n_runs: int, seed: int) -> Rows:
    found = two_legs(problem(low, high), n_iter, RUNGS, n_runs, jax.random.key(seed))
    return [{"pair": f"{low}-{high}", "route": "no data", **row} for row in found]


def sweep(low: int, high: int, route: str, ladder: str, n_iter: int, n_runs: int, seed: int) -> Rows:
    """NETI-DIFF along a route; all routes spend the same number of iterations."""
    edges = list(pairwise(stops(low, high, route)))
    total, cpu, evaluations = np.zeros(n_runs), 0.0, 0
    for i, (a, b) in enumerate(edges):
        key = jax.random.fold_in(jax.random.key(seed), i)
        found = neti_diff(problem(a, b), n_iter // len(edges), n_runs, key, ladder)
        total += [row["estimate"] for row in found]
        cpu, evaluations = cpu + found[0]["cpu"], evaluations + found[0]["evaluations"]
    about = {"pair": f"{low}-{high}", "route": route, "method": NETI_DIFF, "ladder": ladder, "start": "M1"}
    cost = {"truth": problem(low, high).truth, "cpu": cpu, "evaluations": evaluations}
    return rows(total, **about, rungs=n_iter, n_iter=n_iter, **cost)


def partial(low: int, high: int, ladder: str, n_iter: int, n_runs: int, seed: int) -> Rows:
    """The integral up to tau of every run, at a grid of tau that is even in the index of the sigmoid ladder."""
    ours, tau = problem(low, high), LADDERS[ladder](n_iter)
    keys = chain_keys(jax.random.key(seed), n_runs)
    path, kernel = direct(ours.m1, ours.m2), linear.gibbs(ours.m1, ours.m2)
    trace, _ = anneal(path, kernel, tau, keys, schedule=Schedule(n_warm_up=WARM_UP))
    sums = cumulative_trapezoid(trace.log_ratio[:, :, 0], tau, axis=1, initial=0)
    grid = LADDERS["sigmoid"](N_GRID)
    at = np.searchsorted(tau, grid, side="right") - 1
    about = {"pair": f"{low}-{high}", "method": "partial", "ladder": ladder, "n_iter": n_iter}
    return [
        {**about, "run": run, "tau": float(t), "estimate": float(sums[run, i])}
        for run in range(n_runs)
        for t, i in zip(grid, at, strict=True)
    ]


def default(low: int, high: int, n_runs: int, seed: int) -> Rows:
    found = default_method(problem(low, high), min(n_runs, 8), seed % 10_000, 0.02)
    return [{"pair": f"{low}-{high}", **row} for row in found]


def jobs(full: bool, n_runs: int) -> list[Job]:
    def job(function: str, low: int, high: int, **settings: Any) -> Job:
        name = "-".join([function, f"{low}v{high}", *(str(v).replace(" ", "_") for v in settings.values())])
        seed = zlib.crc32(name.encode()) % 2**31
        return Job(name, f"{HERE}:{function}", {"low": low, "high": high, "n_runs": n_runs, "seed": seed, **settings})

    n_iter = LENGTH[full]
    # The long ones first, so that no worker waits for the other at the end.
    found = [job("default", *pair) for pair in (PAIRS if full else PAIRS[-1:])]
    found += [job("integrate", *pair, n_iter=n_iter) for pair in PAIRS]
    for pair in PAIRS:
        found += [job("sweep", *pair, route=route, ladder="sigmoid", n_iter=n_iter) for route in reversed(ROUTES)]
        found.append(job("sweep", *pair, route="direct", ladder="power", n_iter=n_iter))
    return [*found, *(job("partial", 1, 9, ladder=ladder, n_iter=n_iter) for ladder in LADDERS)]


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    summary = of_runs(runs[runs["method"] != "partial"], ["pair", "route", *ABOUT])
    straight = summary[summary["route"].isin(["direct", "no data"])]
    return {"summary": summary, "ratios": ratios(straight, ["pair", "n_iter"])}


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    written: list[Path] = []
    summary = tables(runs)["summary"]
    summary = summary[summary["method"] != AUTO]
    n_runs, n_iter = int(summary["runs"].max()), int(summary["n_iter"].max())
    about = f"({n_runs} runs, {charts.thousands(n_iter)} iterations)"
    pairs = [f"{a}-{b}" for a, b in PAIRS]
    straight = summary[(summary["method"] == NETI_DIFF) & (summary["route"] == "direct")]

    def series(part: pandas.DataFrame, column: str = "mae") -> tuple[Any, Any, Any]:
        part = part.set_index("pair").loc[pairs]
        if column == "variance":
            bounds = [ratio_interval(n, 1e9, v) for n, v in zip(part["runs"], part["variance"], strict=True)]
            return part["variance"], *np.array(bounds).T
        half = 2 * part["mae_sd"] / np.sqrt(part["runs"])
        return part["mae"], np.maximum(part["mae"] - half, part["mae"] / 20), part["mae"] + half

    def by_k(name: str, column: str, text: str, label: str) -> None:
        with charts.figure(folder, f"radiocarbon-{name}", (8.6, 6.4), f"{TITLE}: {text} {about}", written) as drawn:
            axes = drawn.subplots(2, 2, sharex=True, sharey=True)
            for axis, k in zip(axes.flat, RUNGS, strict=True):
                ti = {
                    method: series(summary[(summary["method"] == method) & (summary["rungs"] == k)], column)
                    for method in ("TI-standard", "TI-optimal")
                }
                charts.bars(axis, pairs, {**ti, NETI_DIFF: series(_on(straight, "sigmoid"), column)}, log=True)
                axis.set_title(f"TI with K = {k} rungs", loc="left")
            charts.label_outer(axes, "orders of the two polynomials", label)
            charts.legend_below(drawn, axes[0, 0])

    by_k("errors", "mae", "mean absolute error of the log Bayes factor", "mean |error|")
    by_k("variances", "variance", "variance of the log Bayes factor", "variance over runs")
    _ratio_figure(tables(runs)["ratios"], pairs, folder, about, written)
    text = f"{TITLE}: NETI-DIFF by ladder and by route {about}"
    with charts.figure(folder, "radiocarbon-paths", (8.6, 3.9), text, written) as drawn:
        left, right = drawn.subplots(1, 2, sharey=True)
        charts.bars(left, pairs, {ladder: series(_on(straight, ladder)) for ladder in LADDERS})
        by_route = summary[(summary["method"] == NETI_DIFF) & (summary["ladder"] == "sigmoid")]
        charts.bars(right, pairs, {route: series(by_route[by_route["route"] == route]) for route in ROUTES})
        left.set(xlabel="orders of the two polynomials", ylabel="mean |error|, with 2 standard errors")
        right.set(xlabel="orders of the two polynomials")
        left.legend(title="ladder, straight from M1 to M2")
        right.legend(title="route, sigmoid ladder")
    _partial_figure(runs[runs["method"] == "partial"], folder, written)
    return written


def _on(straight: pandas.DataFrame, ladder: str) -> pandas.DataFrame:
    return straight[straight["ladder"] == ladder]


def _ratio_figure(table: pandas.DataFrame, pairs: list[str], folder: Path, about: str, written: list[Path]) -> None:
    text = f"{TITLE}: variance of TI over that of NETI-DIFF {about}"
    with charts.figure(folder, "radiocarbon-ratios", (8.6, 6.4), text, written) as drawn:
        axes = drawn.subplots(2, 2, sharex=True, sharey=True)
        for axis, k in zip(axes.flat, RUNGS, strict=True):
            both = {}
            for method in ("TI-standard", "TI-optimal"):
                part = table[(table["method"] == method) & (table["rungs"] == k)].set_index("pair").loc[pairs]
                both[method] = (part["ratio"], part["low"], part["high"])
            charts.bars(axis, pairs, both, log=True)
            axis.axhline(1, color=charts.INK, lw=0.9)
            axis.set_title(f"TI with K = {k} rungs", loc="left")
        charts.label_outer(axes, "orders of the two polynomials", "variance ratio")
        charts.legend_below(drawn, axes[0, 0])


def _partial_figure(runs: pandas.DataFrame, folder: Path, written: list[Path]) -> None:
    spread = runs.groupby(["ladder", "tau"])["estimate"].std(ddof=1).reset_index()
    text = f"{TITLE}, orders 1 and 9: standard deviation of the integral from 0 to tau ({runs['run'].nunique()} runs)"
    with charts.figure(folder, "radiocarbon-partial", (8.6, 3.8), text, written) as drawn:
        left, right = drawn.subplots(1, 2)
        for axis in (left, right):
            for ladder, style in (("sigmoid", "-"), ("power", "--")):
                part = spread[spread["ladder"] == ladder]
                axis.plot(
                    part["tau"], part["estimate"], style, color=charts.colour(ladder, ladder == "power"), label=ladder
                )
            axis.set(xlabel="tau", ylabel="standard deviation")
            axis.grid(color=charts.PALE, lw=0.7)
        left.legend(title="ladder")
        left.set_title("whole path", loc="left")
        right.set_title("near M1 (log axis)", loc="left")
        right.set_xscale("log")
        right.set_xlim(1e-9, 1)
