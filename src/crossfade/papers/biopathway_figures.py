"""The five figures of the biopathway experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas

from crossfade.papers import charts
from crossfade.papers.rows import NETI_DIFF

NETWORKS = {"wildtype": "data of the wildtype", "mutant": "data of the PRR7/PRR9 mutant"}


def draw(whole: pandas.DataFrame, table: pandas.DataFrame, folder: Path) -> list[Path]:
    written: list[Path] = []
    n_runs = int(table["runs"].max())
    _ladders(table, folder, n_runs, written)
    _boxes(whole, folder, n_runs, written)
    _means(table, folder, n_runs, written)
    _ratios(table, folder, n_runs, written)
    _convergence(table, folder, n_runs, written)
    return written


def _neti(table: pandas.DataFrame, ladder: str = "sigmoid") -> pandas.DataFrame:
    return table[(table["method"] == NETI_DIFF) & (table["ladder"] == ladder)]


def _optimal(table: pandas.DataFrame, rungs: float) -> pandas.DataFrame:
    return table[(table["method"] == "TI-optimal") & (table["rungs"] == rungs)]


def _rungs(table: pandas.DataFrame) -> list[float]:
    return sorted(table.loc[table["method"] == "TI-optimal", "rungs"].unique())


def _over_instances(part: pandas.DataFrame, column: str) -> tuple[Any, Any, Any, Any]:
    """Mean over data sets by length, and the standard deviation over them."""
    found = part.groupby("n_iter")[column].agg(["mean", "std"])
    mean, sd = found["mean"], found["std"].fillna(0)
    return found.index, mean, np.maximum(mean - sd, mean / 20), mean + sd


def _ladders(table: pandas.DataFrame, folder: Path, n_runs: int, written: list[Path]) -> None:
    text = f"Biopathway: NETI-DIFF on two ladders ({n_runs} runs; mean and sd over data sets)"
    with charts.figure(folder, "biopathway-ladders", (8.8, 6.4), text, written) as drawn:
        axes = drawn.subplots(2, 2, sharex=True, sharey="row")
        for j, (network, title) in enumerate(NETWORKS.items()):
            own = table[table["network"] == network]
            for i, (column, label) in enumerate((("mae", "mean |error|"), ("variance", "variance over runs"))):
                series = {ladder: _over_instances(_neti(own, ladder), column) for ladder in ("power", "sigmoid")}
                charts.lines(axes[i, j], series)
                axes[i, 0].set_ylabel(label)
            axes[0, j].set_title(title, loc="left")
            axes[1, j].set_xlabel("iterations $N_{iter}$")
        charts.legend_below(drawn, axes[0, 0])


def _boxes(whole: pandas.DataFrame, folder: Path, n_runs: int, written: list[Path]) -> None:
    first = whole[(whole["instance"] == 1) & whole["kind"].isin(["neti", "ti"])]
    lengths = sorted(first["n_iter"].unique())
    rungs = _rungs(first)
    text = f"Biopathway: log Bayes factors of {n_runs} runs on the first data set of each network"
    with charts.figure(folder, "biopathway-boxes", (8.8, 2.4 * len(rungs)), text, written) as drawn:
        axes = drawn.subplots(len(rungs), 2, sharex=True, squeeze=False)
        for i, k in enumerate(rungs):
            for j, (network, title) in enumerate(NETWORKS.items()):
                axis, own = axes[i, j], first[first["network"] == network]
                for shift, label, part in ((-0.2, "TI-optimal", _optimal(own, k)), (0.2, NETI_DIFF, _neti(own))):
                    values = [part.loc[part["n_iter"] == n, "estimate"].to_numpy() for n in lengths]
                    at = np.arange(len(lengths)) + shift
                    paint = {"facecolor": charts.COLOURS[label], "alpha": 0.75}
                    line = {"color": charts.INK}
                    axis.boxplot(values, positions=at, widths=0.32, patch_artist=True, boxprops=paint, medianprops=line,
                                 flierprops={"ms": 3})  # fmt: skip
                axis.axhline(own["truth"].iloc[0], color=charts.INK, lw=0.9, ls="--")
                axis.set_xticks(np.arange(len(lengths)), [charts.thousands(n) for n in lengths])
                axis.set_title(f"TI with K = {k:g}, {title}", loc="left", fontsize=9)
                axis.grid(axis="y", color=charts.PALE, lw=0.7)
            axes[i, 0].set_ylabel("log Bayes factor")
        for axis in axes[-1]:
            axis.set_xlabel("iterations $N_{iter}$; dashed: the default method's answer")
        handles = [_patch(label) for label in ("TI-optimal", NETI_DIFF)]
        drawn.legend(handles=handles, loc="outside lower center", ncols=2)


def _patch(label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=charts.COLOURS[label], alpha=0.75, label=label)


def _means(table: pandas.DataFrame, folder: Path, n_runs: int, written: list[Path]) -> None:
    for column, name, text in (
        ("variance", "variances", "variance over runs"),
        ("mae", "errors", "mean |error|"),
    ):
        full = f"Biopathway: {text} ({n_runs} runs; mean and sd over data sets)"
        with charts.figure(folder, f"biopathway-{name}", (8.8, 3.9), full, written) as drawn:
            axes = drawn.subplots(1, 2, sharey=True)
            for axis, (network, title) in zip(axes, NETWORKS.items(), strict=True):
                own = table[table["network"] == network]
                series = {f"TI-optimal, K = {k:g}": _over_instances(_optimal(own, k), column) for k in _rungs(own)}
                charts.lines(axis, {NETI_DIFF: _over_instances(_neti(own), column), **series})
                axis.set_title(title, loc="left")
                axis.set_xlabel("iterations $N_{iter}$")
            axes[0].set_ylabel(text)
            charts.legend_below(drawn, axes[0])


def _ratios(table: pandas.DataFrame, folder: Path, n_runs: int, written: list[Path]) -> None:
    text = f"Biopathway: variance of TI-optimal over that of NETI-DIFF; above 1 NETI-DIFF wins ({n_runs} runs)"
    with charts.figure(folder, "biopathway-ratios", (8.8, 6.6), text, written) as drawn:
        axes = drawn.subplots(2, 2, sharey=True)
        for j, (network, title) in enumerate(NETWORKS.items()):
            own = table[table["network"] == network]
            ours = _neti(own)[["instance", "n_iter", "variance"]]
            means, spread = {}, {}
            for k in _rungs(own):
                both = _optimal(own, k).merge(ours, on=["instance", "n_iter"], suffixes=("", "_neti"))
                by = both.groupby("n_iter")[["variance", "variance_neti"]].mean()
                ratio = by["variance"] / by["variance_neti"]
                means[f"K = {k:g}"] = (ratio.index, ratio, ratio, ratio)
                spread[k] = both.assign(ratio=both["variance"] / both["variance_neti"])
            charts.lines(axes[0, j], means)
            axes[0, j].set_title(f"{title}: of mean variances", loc="left", fontsize=9.5)
            lengths = sorted(own["n_iter"].unique())
            for i, part in enumerate(spread.values()):
                at = np.searchsorted(lengths, part["n_iter"]) + 0.15 * (i - 1.5)
                axes[1, j].plot(at, part["ratio"], charts.MARKERS[i], color=charts.MORE[i], ms=4.5, alpha=0.8)
            axes[1, j].set_xticks(np.arange(len(lengths)), [charts.thousands(n) for n in lengths])
            axes[1, j].set_title("each data set", loc="left", fontsize=9.5)
            axes[1, j].grid(axis="y", color=charts.PALE, lw=0.7)
            for axis in axes[:, j]:
                axis.axhline(1, color=charts.INK, lw=0.9)
            axes[1, j].set_xlabel("iterations $N_{iter}$")
        for axis in axes[:, 0]:
            axis.set_ylabel("variance ratio")
        charts.legend_below(drawn, axes[0, 0])


def _convergence(table: pandas.DataFrame, folder: Path, n_runs: int, written: list[Path]) -> None:
    text = f"Biopathway: variance of NETI-DIFF over {n_runs} runs, data set by data set"
    with charts.figure(folder, "biopathway-convergence", (8.8, 6.4), text, written) as drawn:
        axes = drawn.subplots(2, 2, sharex=True, sharey=True)
        for j, (network, title) in enumerate(NETWORKS.items()):
            for i, ladder in enumerate(("power", "sigmoid")):
                own = _neti(table[table["network"] == network], ladder)
                series = {
                    f"data set {instance}": (part["n_iter"], part["variance"], part["variance"], part["variance"])
                    for instance, part in own.groupby("instance")
                }
                charts.lines(axes[i, j], series)
                axes[i, j].set_title(f"{ladder} ladder, {title}", loc="left", fontsize=9.5)
            axes[1, j].set_xlabel("iterations $N_{iter}$")
        for axis in axes[:, 0]:
            axis.set_ylabel("variance over runs")
        charts.legend_below(drawn, axes[0, 0])
