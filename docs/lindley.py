"""Draws docs/pictures/lindley-*.png: what a Bayes factor depends on, with answers of crossfade in closed form.

n measurements with known noise of standard deviation 1. M1: their mean is 0. M2: it is theta, with theta ~ N(0, sd^2).

Run with: .venv/bin/python docs/lindley.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from drawing import COLOURS, GREY, INK, PICTURES, figure_to
from scipy.stats import norm

import crossfade
from crossfade.density.regression import Regression

P_VALUES = (0.05, 0.01, 0.001)
PRIOR_SDS = (0.3, 1.0, 10.0)
N = 50
LABEL = "log Bayes factor of M2 over M1"


def pair(n: int, mean: float, sd: float) -> tuple[Regression, Regression]:
    """Both models of n measurements with that mean; of all else only their scatter matters, and to both alike."""
    y = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
    nothing = Regression("gaussian", y + mean, np.zeros((n, 0)), (), np.zeros(0), np.zeros(0), 1.0)
    column = Regression("gaussian", y + mean, np.ones((n, 1)), ("theta",), np.zeros(1), np.array([sd**-2.0]), 1.0)
    return nothing, column


def log_bayes_factor(n: int, mean: float, sd: float) -> float:
    return crossfade.compare(*pair(n, mean, sd)).log_bayes_factor.value


def mean_at(p: float, n: int) -> float:
    """The mean of n measurements whose two-sided p-value is p."""
    return float(norm.isf(p / 2) / np.sqrt(n))


def predictions(path: Path) -> None:
    """What each model says of the mean, before it is seen."""
    seen, means = mean_at(0.01, N), np.linspace(-2.2, 2.2, 801)
    with figure_to(path, (7.2, 3.9)) as figure:
        axis = figure.subplots()
        spread = 1 / np.sqrt(N)
        axis.fill_between(means, norm.pdf(means, 0, spread), color=GREY, alpha=0.4, linewidth=0, label="M1: 0")
        for sd, colour in zip(PRIOR_SDS, COLOURS, strict=True):
            density = norm.pdf(means, 0, np.hypot(sd, spread))
            value = log_bayes_factor(N, seen, sd)
            axis.plot(means, density, color=colour, linewidth=1.8, label=f"M2, prior sd {sd:g}: log BF {value:+.2f}")
        axis.axvline(seen, color=INK, linewidth=1, linestyle=(0, (5, 4)))
        axis.text(seen + 0.04, 2.9, "observed, p = 0.01", color=INK, va="top")
        axis.set(xlabel=f"mean of {N} measurements", ylabel="density before the data", xlim=(-2.2, 2.2), ylim=(0, 3))
        axis.legend(loc="upper left")


def by_prior(path: Path) -> None:
    """The same data, another prior."""
    sds = np.geomspace(0.01, 100, 161)
    with figure_to(path, (7.2, 3.9)) as figure:
        axis = figure.subplots()
        for p, colour in zip(P_VALUES, COLOURS, strict=True):
            values = [log_bayes_factor(N, mean_at(p, N), sd) for sd in sds]
            axis.plot(sds, values, color=colour, linewidth=1.8, label=f"p = {p:g}")
        _sides(axis)
        axis.set(xscale="log", xlabel="standard deviation of the prior of theta", ylabel=LABEL)
        axis.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        axis.legend()


def by_size(path: Path) -> None:
    """The same p-value, another number of measurements."""
    sizes = np.unique(np.geomspace(2, 100_000, 60).astype(int))
    with figure_to(path, (7.2, 3.9)) as figure:
        axis = figure.subplots()
        for p, colour in zip(P_VALUES, COLOURS, strict=True):
            values = [log_bayes_factor(int(n), mean_at(p, int(n)), 1.0) for n in sizes]
            axis.plot(sizes, values, color=colour, linewidth=1.8, label=f"p = {p:g}")
        _sides(axis)
        axis.set(xscale="log", xlabel="number of measurements", ylabel=LABEL)
        axis.legend()


def by_effect(path: Path) -> None:
    """The same effect, another number of measurements: what data do when there is something to find."""
    sizes = np.unique(np.geomspace(2, 1000, 60).astype(int))
    with figure_to(path, (7.2, 3.9)) as figure:
        axis = figure.subplots()
        for effect, colour in zip((0.0, 0.2, 0.5), COLOURS, strict=True):
            values = [log_bayes_factor(int(n), effect, 1.0) for n in sizes]
            axis.plot(sizes, values, color=colour, linewidth=1.8, label=f"observed mean {effect:g}")
        _sides(axis)
        axis.set(xscale="log", xlabel="number of measurements", ylabel=LABEL, ylim=(-5, 20))
        axis.legend()


def _sides(axis: Any) -> None:
    axis.axhline(0, color=INK, linewidth=0.9, zorder=0)
    for y, said, va in ((0.98, "for M2", "top"), (0.02, "for M1", "bottom")):
        axis.text(0.01, y, said, transform=axis.transAxes, color=GREY, va=va)


DRAWN = {"predictions": predictions, "prior": by_prior, "size": by_size, "effect": by_effect}


def main() -> None:
    for name, draw in DRAWN.items():
        draw(PICTURES / f"lindley-{name}.png")


if __name__ == "__main__":
    main()
