"""The package beside exact answers: estimates, errors, and variances over the thermodynamic limit.

python benchmarks/accuracy.py
"""

from __future__ import annotations

import jax
import numpy as np

from crossfade.analysis.errors import jackknife, paper_variance
from crossfade.analysis.estimators import mbar, trapezoid
from crossfade.analysis.moments import controlled_values
from crossfade.density.precision import float64
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, Score, anneal, chain_keys
from crossfade.sampling.ladder import sigmoid
from crossfade.sampling.placed import measured_length
from crossfade.types import Estimate
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic

LENGTHS = {"radiata": 6.718, "radiocarbon 4-6": 15.75}  # exact thermodynamic lengths of the direct paths


def show(name: str, estimate: Estimate, truth: float, more: str = "") -> None:
    z = (estimate.value - truth) / estimate.error
    print(f"{name:34s} {estimate.value:10.4f} +- {estimate.error:.4f}  exact {truth:10.4f}  z {z:+5.2f}  {more}")


def linear_pairs() -> None:
    pairs = {
        "radiata": (linear.radiata(), 64_000, 64),
        "radiocarbon 1-9": ((linear.radiocarbon(1), linear.radiocarbon(9)), 16_000, 32),
        "radiocarbon 4-6": ((linear.radiocarbon(4), linear.radiocarbon(6)), 16_000, 32),
    }
    for name, (pair, n_iter, n_chains) in pairs.items():
        trace, _ = anneal(direct(*pair), linear.gibbs(*pair), sigmoid(n_iter), chain_keys(jax.random.key(1), n_chains))
        estimate = jackknife(trace, trapezoid)
        truth = linear.log_evidence(pair[1]) - linear.log_evidence(pair[0])
        show(f"{name}, NETI-DIFF, Gibbs", estimate, truth, f"sd over chains {estimate.error * n_chains**0.5:.4f}")
        if name in LENGTHS:
            near_the_limit(name, pair)


def near_the_limit(name: str, pair: tuple) -> None:
    n, n_chains = 4000, 400
    path, kernel = direct(*pair), linear.gibbs(*pair)
    ladders = {
        "equal length": measured_length(path, kernel, chain_keys(jax.random.key(2), 16)),
        "sigmoid": sigmoid,
    }
    for ladder_name, ladder in ladders.items():
        trace, _ = anneal(path, kernel, ladder(n), chain_keys(jax.random.key(3), n_chains))
        variance = np.trapezoid(trace.log_ratio[:, :, 0], trace.tau, axis=1).var(ddof=1)
        ratio = variance * n / LENGTHS[name] ** 2
        print(f"    {ladder_name}: variance {ratio:.2f} +- {ratio * (2 / n_chains) ** 0.5:.2f} Lambda^2/N")


def pima() -> None:
    pair, truth = logistic.pima(), -2.625013
    path, kernel = direct(*pair), logistic.hmc(*pair)
    tau = measured_length(path, kernel, chain_keys(jax.random.key(4), 16))(30)
    trace, _ = anneal(path, kernel, tau, chain_keys(jax.random.key(5), 64), schedule=Schedule(1400, 50))
    show("pima, 30 rungs, HMC, MBAR", jackknife(trace, mbar), truth)
    walk = logistic.paper_metropolis(*pair)
    trace, _ = anneal(path, walk, sigmoid(64_000), chain_keys(jax.random.key(6), 32))
    estimate = jackknife(trace, trapezoid)
    over = estimate.error**2 * 32 / paper_variance(trace).mean()
    show("pima, NETI-DIFF, Metropolis", estimate, truth, f"variance over the paper's formula {over:.0f}")
    keys = chain_keys(jax.random.key(7), 16)
    trace, _ = anneal(path, kernel, sigmoid(30), keys, schedule=Schedule(200, 40), observe=Score())
    weight = np.gradient(trace.tau) ** 2
    before = weight @ trace.log_ratio.var(axis=(0, 2))
    gains = [before / (weight @ controlled_values(trace, degree).var(axis=(0, 2))) for degree in (1, 2)]
    print(f"    control variates cut the variance of the integrand {gains[0]:.1f}x (degree 1), {gains[1]:.1f}x (2)")


if __name__ == "__main__":
    with float64():
        linear_pairs()
        pima()
