"""What the Radiata and Pima experiments have in common: the grid of runs, their tables and their four figures."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas

from crossfade.papers import charts
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import AUTO, NETI_DIFF, Problem, default_method, neti_diff, two_legs
from crossfade.papers.statistics import of_runs, pooled_ratios, ratio_interval, ratios

LENGTHS = {False: (16_000, 32_000), True: (64_000, 128_000, 256_000, 512_000, 1_024_000)}
WAYS = [(ladder, back) for ladder in ("sigmoid", "power") for back in (False, True)]


def run(problem: Problem, kind: str, seed: int, n_runs: int, **settings: Any) -> Rows:
    """One job: `kind` is "ti", "neti" or "auto"."""
    if kind == "auto":
        return default_method(problem, n_runs, seed % 10_000, **settings)
    key = jax.random.key(seed)
    if kind == "ti":
        return two_legs(problem, settings["n_iter"], tuple(settings["n_rungs"]), n_runs, key)
    return neti_diff(problem, n_runs=n_runs, key=key, **settings)


def jobs(
    function: str, lengths: tuple[int, ...], n_rungs: tuple[int, ...], n_runs: int, *, target_se: float
) -> list[Job]:
    def job(name: str, **settings: Any) -> Job:
        seed = zlib.crc32(f"{function} {name}".encode()) % 2**31
        return Job(name, function, {"seed": seed, "n_runs": n_runs, **settings})

    found = [job("auto", kind="auto", target_se=target_se)]
    for n in lengths:
        for ladder, back in WAYS:
            name = f"neti-{ladder}-{'M2' if back else 'M1'}-{n}"
            found.append(job(name, kind="neti", n_iter=n, ladder=ladder, back=back))
        found.append(job(f"ti-{n}", kind="ti", n_iter=n, n_rungs=list(n_rungs)))
    return found


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    summary = of_runs(runs)
    return {"summary": summary, "ratios": ratios(summary, ["n_iter"]), "pooled": pooled_ratios(summary)}


def figures(runs: pandas.DataFrame, folder: Path, name: str, title: str) -> list[Path]:
    written: list[Path] = []
    summary = of_runs(runs)
    n_runs = int(summary["runs"].max())
    n_rungs = sorted(summary.loc[summary["method"] == "TI-optimal", "rungs"].unique())
    main = _main(summary)

    def per_k(axis: Any, k: float, column: str, spread: Any) -> None:
        series = {}
        for method in ("TI-standard", "TI-optimal", NETI_DIFF):
            part = main[(main["method"] == method) & ((main["rungs"] == k) | (method == NETI_DIFF))]
            series[method] = (part["n_iter"], part[column], *spread(part))
        charts.lines(axis, series)
        axis.set_title(f"TI with K = {k:g} rungs", loc="left")

    def by_k(suffix: str, text: str, label: str, column: str, spread: Any) -> None:
        with charts.figure(
            folder, f"{name}-{suffix}", (8.6, 6.4), f"{title}: {text} ({n_runs} runs)", written
        ) as drawn:
            axes = drawn.subplots(2, 2, sharex=True, sharey=True)
            for axis, k in zip(axes.flat, n_rungs, strict=True):
                per_k(axis, k, column, spread)
            charts.label_outer(axes, "iterations $N_{iter}$", label)
            charts.legend_below(drawn, axes[0, 0])

    by_k("errors", "mean absolute error of the log Bayes factor", "mean |error|", "mae", _mae_spread)
    by_k("variances", "variance of the log Bayes factor", "variance over runs", "variance", _variance_spread)
    _ratio_figure(main, n_rungs, folder, name, title, n_runs, written)
    _ladder_figure(summary, folder, name, title, n_runs, written)
    return written


def _main(summary: pandas.DataFrame) -> pandas.DataFrame:
    """The runs that all methods are compared by: both TI, and NETI-DIFF on the sigmoid ladder from M1."""
    other = (summary["method"] == NETI_DIFF) & ((summary["ladder"] != "sigmoid") | (summary["start"] != "M1"))
    return summary[~other & (summary["method"] != AUTO)]


def _mae_spread(part: pandas.DataFrame) -> tuple[Any, Any]:
    """The standard error of the mean, twice."""
    half = 2 * part["mae_sd"] / np.sqrt(part["runs"])
    return np.maximum(part["mae"] - half, part["mae"] / 20), part["mae"] + half


def _variance_spread(part: pandas.DataFrame) -> tuple[Any, Any]:
    bounds = [ratio_interval(n, 1e9, v) for n, v in zip(part["runs"], part["variance"], strict=True)]
    low, high = np.array(bounds).reshape(-1, 2).T
    return low, high


def _ratio_figure(
    main: pandas.DataFrame, n_rungs: list[float], folder: Path, name: str, title: str, n_runs: int, written: list[Path]
) -> None:
    table = ratios(main, ["n_iter"])
    text = f"{title}: variance of TI over that of NETI-DIFF; above 1 NETI-DIFF wins ({n_runs} runs, 95 % intervals)"
    with charts.figure(folder, f"{name}-ratios", (8.6, 6.4), text, written) as drawn:
        axes = drawn.subplots(2, 2, sharex=True, sharey=True)
        for axis, k in zip(axes.flat, n_rungs, strict=True):
            part = table[table["rungs"] == k]
            series = {
                method: (own["n_iter"], own["ratio"], own["low"], own["high"])
                for method in ("TI-standard", "TI-optimal")
                if len(own := part[part["method"] == method])
            }
            charts.lines(axis, series)
            axis.axhline(1, color=charts.INK, lw=0.9)
            axis.set_title(f"TI with K = {k:g} rungs", loc="left")
        charts.label_outer(axes, "iterations $N_{iter}$", "variance ratio")
        charts.legend_below(drawn, axes[0, 0])


def _ladder_figure(
    summary: pandas.DataFrame, folder: Path, name: str, title: str, n_runs: int, written: list[Path]
) -> None:
    text = f"{title}: NETI-DIFF by ladder and direction ({n_runs} runs)"
    with charts.figure(folder, f"{name}-ladders", (8.6, 3.8), text, written) as drawn:
        left, right = drawn.subplots(1, 2)
        series: dict[str, dict[str, Any]] = {"mae": {}, "bias": {}}
        for ladder, back in WAYS:
            start, end = ("M2", "M1") if back else ("M1", "M2")
            part = summary[
                (summary["method"] == NETI_DIFF) & (summary["ladder"] == ladder) & (summary["start"] == start)
            ]
            label = f"{ladder}, {start} to {end}"
            series["mae"][label] = (part["n_iter"], part["mae"], *_mae_spread(part))
            half = 2 * part["bias_error"]
            series["bias"][label] = (part["n_iter"], part["bias"], part["bias"] - half, part["bias"] + half)
        charts.lines(left, series["mae"])
        charts.lines(right, series["bias"], log=False)
        right.axhline(0, color=charts.INK, lw=0.9)
        left.set(xlabel="iterations $N_{iter}$", ylabel="mean |error|")
        right.set(xlabel="iterations $N_{iter}$", ylabel="bias, with 2 standard errors")
        charts.legend_below(drawn, left)
