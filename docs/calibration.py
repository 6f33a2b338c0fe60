"""Draws docs/calibration.png: are Bayes factors right on average, for one pair of every kind, and one that is wrong?

python docs/calibration.py [--sets 200]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpyro
import pandas
from numpyro import distributions as dist

import crossfade
from crossfade.app.plots.style import COLOURS, GREY, INK, PALE, drawn
from crossfade.bridges.formula import Prior
from crossfade.calibration import Calibration

X = np.linspace(-1.5, 1.5, 20)


def level(y: Any) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sd = numpyro.sample("sd", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mu, sd), obs=y)


def line(x: Any, y: Any) -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sd = numpyro.sample("sd", dist.HalfNormal(1))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu + slope * x, sd), obs=y)


def in_pymc(with_slope: bool) -> Any:
    import pymc

    with pymc.Model() as model:
        rate = pymc.Normal("level", 0, 1)
        if with_slope:
            rate = rate + pymc.Normal("slope", 0, 1) * X
        pymc.Poisson("y", pymc.math.exp(rate + np.zeros(len(X))), observed=np.zeros(len(X), int))
    return model


def without_a_constant() -> tuple[Any, Any, Any]:
    """Functions of the data, the second with log(2 pi) too much, and how to make up data."""

    def make(scale: float, extra: float) -> Any:
        def of(y: np.ndarray) -> Any:
            def likelihood(theta: Any) -> Any:
                return dist.Normal(theta["mu"], 1.0).log_prob(y).sum() + extra

            return crossfade.Model({"mu": dist.Normal(0.0, scale)}, likelihood, data=y)

        return of

    def simulate(scale: float) -> Any:
        def draw(seed: int) -> np.ndarray:
            random = np.random.default_rng(seed)
            return random.normal(random.normal(0, scale), 1, size=10)

        return draw

    return make(0.3, 0.0), make(2.0, np.log(2 * np.pi)), (simulate(0.3), simulate(2.0))


def calibrations(n_sets: int) -> dict[str, Calibration]:
    random = np.random.default_rng(1)
    table = pandas.DataFrame({"x": random.normal(size=30), "z": random.normal(size=30)})
    table = table.assign(measured=random.normal(size=30), yes=np.arange(30) % 2, count=np.arange(30) % 5)
    found = {}
    for response, family in (("measured", "gaussian"), ("yes", "logistic"), ("count", "poisson")):
        prior = Prior() if family == "gaussian" else Prior(sd=1.0)
        pair = crossfade.from_formulas(table, f"{response} ~ x", f"{response} ~ x + z", family=family, prior=prior)
        found[f"formulas, {family}"] = crossfade.calibrate(*pair, n_sets=n_sets)
    zeros = np.zeros(len(X))
    found["NumPyro: level or line"] = crossfade.calibrate((level, zeros), (line, X, zeros), n_sets=n_sets)
    found["PyMC: counts, level or trend"] = crossfade.calibrate(in_pymc(False), in_pymc(True), n_sets=n_sets)
    m1, m2, simulate = without_a_constant()
    found["log(2 pi) too much in M2"] = crossfade.calibrate(m1, m2, simulate=simulate, n_sets=n_sets)
    return found


def main(n_sets: int, out: Path) -> None:
    found = calibrations(n_sets)

    def draw(figure: Any) -> None:
        figure.set_size_inches(9.6, 6.4)
        figure.set_dpi(160)
        for axis, (name, own) in zip(figure.subplots(2, 3, sharex=True, sharey=True).flat, found.items(), strict=True):
            bins = own.bins
            p, share, sd = bins["probability"], bins["made_by_2"], bins["sd"]
            axis.plot([0, 1], [0, 1], color=GREY, linewidth=1)
            reach = [p - np.maximum(p - 2 * sd, 0), np.minimum(p + 2 * sd, 1) - p]
            axis.errorbar(p, p, reach, fmt="none", ecolor=PALE, elinewidth=9, zorder=0)
            colour = COLOURS[0] if own.calibrated else COLOURS[1]
            axis.scatter(p, share, s=18 + 220 * bins["sets"] / bins["sets"].sum(), color=colour, zorder=3)
            axis.set_xlim(-0.04, 1.04)
            axis.set_ylim(-0.04, 1.04)
            axis.set_aspect("equal")
            axis.set_title(f"{name}\n{'calibrated' if own.calibrated else 'not calibrated'}", fontsize=10, color=INK)
            print(f"{name}: chance {own.chance:.2g}, offset {own.offset.value:+.2f} +- {own.offset.error:.2f}")
        figure.supxlabel("p(M2 | data), mean of a bin (grey: where its share lies 95 times in 100)")
        figure.supylabel("share of the data sets that M2 made")

    drawn(draw, out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    main(parser.parse_args().sets, Path(__file__).with_name("calibration.png"))
