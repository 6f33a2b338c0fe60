"""What a set of independent runs says: bias and variance apart, each with its error, and ratios of variances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas
from scipy.stats import f as fisher

from crossfade.analysis.errors import satterthwaite
from crossfade.types import CrossfadeError, Estimate

ABOUT = ["method", "ladder", "start", "rungs", "n_iter"]


def of_runs(runs: pandas.DataFrame, by: list[str] = ABOUT) -> pandas.DataFrame:
    """One row per setting: bias, variance and mean absolute error over its runs, and the cost of a run."""

    def one(group: pandas.DataFrame) -> pandas.Series:
        off = group["estimate"] - group["truth"]
        n = len(group)
        variance = float(group["estimate"].var(ddof=1))
        found = {
            "runs": n,
            "mean": group["estimate"].mean(),
            "bias": off.mean(),
            "bias_error": np.sqrt(variance / n),
            "variance": variance,
            "mae": off.abs().mean(),
            "mae_sd": off.abs().std(ddof=1),
            "cpu": group["cpu"].mean(),
        }
        if "evaluations" in group:
            found["evaluations"] = group["evaluations"].mean()
        # The mean square error times the cost does not depend on the length of a run that has converged.
        return pandas.Series({**found, "mse_x_cpu": (off**2).mean() * found["cpu"]})

    by = [column for column in by if column in runs]
    return runs.groupby(by, dropna=False, sort=False)[list(runs.columns)].apply(one).reset_index()


def ratio_interval(n_above: float, n_below: float, ratio: float, level: float = 0.95) -> tuple[float, float]:
    """Of a ratio of two variances of normal runs: Fisher's F with n - 1 degrees of freedom each."""
    half = (1 - level) / 2
    low, high = fisher.ppf([half, 1 - half], n_above - 1, n_below - 1)
    return ratio / float(high), ratio / float(low)


def ratios(summary: pandas.DataFrame, by: list[str]) -> pandas.DataFrame:
    """Variance of each method over that of NETI-DIFF (sigmoid ladder, from M1) with the same settings `by`."""
    ours = (summary["method"] == "NETI-DIFF") & (summary["ladder"] == "sigmoid") & (summary["start"] == "M1")
    pairs = summary[summary["method"].str.startswith("TI")].merge(summary[ours], on=by, suffixes=("", "_neti"))
    table = pairs[[*by, "method", "rungs"]].copy()
    table["ratio"] = pairs["variance"] / pairs["variance_neti"]
    bounds = [
        ratio_interval(a, b, r) for a, b, r in zip(pairs["runs"], pairs["runs_neti"], table["ratio"], strict=True)
    ]
    table[["low", "high"]] = np.array(bounds).reshape(-1, 2)
    table["at_equal_cpu"] = table["ratio"] * pairs["cpu"] / pairs["cpu_neti"]
    table["at_equal_evaluations"] = table["ratio"] * pairs["evaluations"] / pairs["evaluations_neti"]
    table["mse_ratio"] = (pairs["variance"] + pairs["bias"] ** 2) / (pairs["variance_neti"] + pairs["bias_neti"] ** 2)
    return table


def pooled_ratios(summary: pandas.DataFrame) -> pandas.DataFrame:
    """The same ratio over all lengths at once: variances times lengths are averaged, their degrees of freedom added."""
    table = summary.assign(unit=summary["variance"] * summary["n_iter"], dof=summary["runs"] - 1)
    ours = (table["method"] == "NETI-DIFF") & (table["ladder"] == "sigmoid") & (table["start"] == "M1")
    lengths = set(table.loc[ours, "n_iter"]) & set(table.loc[table["method"] == "TI-optimal", "n_iter"])
    table = table[table["n_iter"].isin(lengths)]
    below = table[ours.reindex(table.index)]
    found = []
    for (method, rungs), part in table[table["method"].str.startswith("TI")].groupby(["method", "rungs"]):
        ratio = part["unit"].mean() / below["unit"].mean()
        low, high = ratio_interval(part["dof"].sum() + 1, below["dof"].sum() + 1, ratio)
        about = {"method": method, "rungs": rungs, "lengths": len(part), "ratio": ratio, "low": low, "high": high}
        cost = {name: (part[name].mean() / below[name].mean()) * ratio for name in ("cpu", "evaluations")}
        found.append({**about, "at_equal_cpu": cost["cpu"], "at_equal_evaluations": cost["evaluations"]})
    return pandas.DataFrame(found)


def relaxation(runs: Sequence[tuple[float, Estimate]], name: str = "relaxation") -> Estimate:
    """(length, estimate) pairs, value = a + b / length, read at a (Husmeier & Schlitter 1992).

    Least squares with weights 1 / error^2; the error is that of the normal equations.
    """
    length, value, error = np.array([(n, x.value, x.error) for n, x in runs], dtype=float).reshape(-1, 3).T
    if len(set(length)) < 2:
        raise CrossfadeError("relaxation extrapolates over sweep lengths: give 2 lengths or more")
    if not (np.isfinite([length, value, error]).all() and (length > 0).all() and (error > 0).all()):
        raise CrossfadeError("relaxation needs positive lengths and finite estimates with positive errors")
    design = np.stack([1 / error, 1 / (length * error)], axis=1)
    weight = np.linalg.pinv(design)[0]  # of value / error in a
    variances = weight**2
    dof = satterthwaite(variances, [estimate.dof for _, estimate in runs])
    return Estimate(float(weight @ (value / error)), float(np.sqrt(variances.sum())), dof, name)
