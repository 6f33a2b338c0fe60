"""The default method beside others, in one run: cost in CPU seconds after compilation, errors against the truth.

python benchmarks/short_path.py pima radiata mixed [--groups 10 100 1000 10000] [--seeds 20]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import crossfade
from crossfade.worlds import linear
from crossfade.worlds.glm import mixed

PIMA = -2.625013
COLUMNS = ("npreg", "glu", "bmi", "ped", "age")


def cpu(function, *arguments, **settings):
    began = time.process_time()
    value = function(*arguments, **settings)
    return value, time.process_time() - began


def _table():
    table = crossfade.data.load("pima")
    x = table[list(COLUMNS)].to_numpy(float)
    return table["y"].to_numpy(int), (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def pima_numpyro():
    import numpyro
    from numpyro import distributions as dist

    y, x = _table()

    def model(x, y):
        eta = numpyro.sample("intercept", dist.Normal(0.0, 10.0))
        for j, name in enumerate(COLUMNS[: x.shape[1]]):
            eta = eta + numpyro.sample(name, dist.Normal(0.0, 10.0)) * x[:, j]
        numpyro.sample("y", dist.Bernoulli(logits=eta), obs=y)

    return crossfade.from_numpyro(model, x[:, :4], y), crossfade.from_numpyro(model, x, y)


def pima_pymc():
    import pymc

    y, x = _table()

    def model(k):
        with pymc.Model() as built:
            eta = pymc.Normal("intercept", 0, 10)
            for j, name in enumerate(COLUMNS[:k]):
                eta = eta + pymc.Normal(name, 0, 10) * x[:, j]
            pymc.Bernoulli("y", logit_p=eta, observed=y)
        return crossfade.from_pymc(built)

    return model(4), model(5)


def pima_formula():
    right = " + ".join(COLUMNS[:4])
    table = crossfade.data.load("pima")
    return crossfade.from_formulas(table, f"y ~ {right}", f"y ~ {right} + age", family="logistic")


def pima(seeds: int) -> None:
    print("Pima, truth -2.625013, asked for a standard error of 0.002")
    for name, make in (("NumPyro", pima_numpyro), ("PyMC", pima_pymc), ("formula", pima_formula)):
        pair = make()
        crossfade.compare(*pair, target_se=0.002, route="path")  # compiles
        result, seconds = cpu(crossfade.compare, *pair, target_se=0.002, seed=1, route="path")
        estimate = result.log_bayes_factor
        z = (estimate.value - PIMA) / estimate.error
        value = f"{estimate.value:9.5f} +- {estimate.error:.5f}"
        print(f"  {name:8s} {value}  z {z:+.2f}  {seconds:5.2f} CPU s  {result.verdict}")


def radiata(seeds: int) -> None:
    """Variance x CPU seconds of the default method and of NETI-DIFF with its exact Gibbs kernel."""
    pair = linear.radiata()
    truth = linear.log_evidence(pair[1]) - linear.log_evidence(pair[0])
    rows = {
        "auto, target 0.001": {"target_se": 0.001, "route": "path"},
        "NETI-DIFF, 16 x 16,000": {"method": "NETI-DIFF", "n_iter": 16_000},
    }
    cost = {}
    print(f"Radiata, truth {truth:.6f}, {seeds} seeds")
    for name, settings in rows.items():
        crossfade.compare(*pair, **settings)
        off, spent, errors = [], [], []
        for seed in range(1, seeds + 1):
            result, seconds = cpu(crossfade.compare, *pair, **settings, seed=seed)
            off.append(result.log_bayes_factor.value - truth)
            errors.append(result.log_bayes_factor.error)
            spent.append(seconds)
        variance = float(np.mean(np.square(off)))
        cost[name] = variance * np.mean(spent)
        print(
            f"  {name:24s} rms error {np.sqrt(variance):.5f}  reported {np.mean(errors):.5f}  "
            f"{np.mean(spent):.2f} CPU s  variance x CPU {cost[name]:.3g}"
        )
    first, second = cost.values()
    print(f"  at equal CPU the default method has {second / first:.0f} x less variance")


def mixed_model(groups: list[int]) -> None:
    print("Mixed logistic model, one coefficient apart; asked for 0.01; beside it the difference of two evidences")
    print("  groups  coordinates  log BF              z    Var(ratio)  CPU s  | evidences apart     CPU s  verdict")
    for n_groups in groups:
        pair = mixed.pair(n_groups)
        truth, _ = mixed.REFERENCE[n_groups]
        crossfade.compare(*pair, target_se=1.0, seed=9)  # compiles
        result, seconds = cpu(crossfade.compare, *pair, target_se=0.01, budget="60 min")
        estimate = result.log_bayes_factor
        variance = np.mean([np.var(leg.forward.log_ratio) for leg in result.legs])
        ends = np.mean([leg.forward.log_ratio.var(axis=(0, 2)).mean() for leg in result.legs])
        line = (
            f"  {n_groups:6d}  {n_groups + 4:11d}  {estimate.value:8.4f} +- {estimate.error:.4f}  "
            f"{(estimate.value - truth) / estimate.error:+.1f}  {min(ends, variance):10.3f}  {seconds:5.1f}"
        )
        apart, seconds = cpu(lambda pair=pair: [crossfade.evidence(m, target_se=0.05, budget="3 min") for m in pair])
        first, second = (result.log_bayes_factor for result in apart)
        error = np.hypot(first.error, second.error)
        words = "/".join(result.verdict for result in apart)
        print(f"{line}  | {second.value - first.value:8.3f} +- {error:.3f}  {seconds:5.1f}  {words}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["pima", "radiata", "mixed"])
    parser.add_argument("--groups", nargs="*", type=int, default=[10, 100, 1000])
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    for name in arguments.what:
        if name == "mixed":
            mixed_model(arguments.groups)
        else:
            {"pima": pima, "radiata": radiata}[name](arguments.seeds)
