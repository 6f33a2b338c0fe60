"""Do the error bars tell the truth? 200 repeats of every estimator on a pair with an exact answer."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import jackknife_pair
from linear_pairs import KINDS, key, log_bayes_factor, nested

from crossfade.analysis.errors import jackknife, replicates_of
from crossfade.analysis.estimators import ESTIMATORS, crooks, trapezoid
from crossfade.density.precision import float64
from crossfade.papers.statistics import relaxation
from crossfade.paths.path import direct, reverse, union_coordinates
from crossfade.sampling.anneal import Schedule, Score, anneal, chain_keys
from crossfade.sampling.kernel import Diagonal, Metropolis
from crossfade.sampling.ladder import sigmoid
from crossfade.worlds import linear

pytestmark = pytest.mark.slow

N_REPEATS, N_CHAINS = 200, 32
PAIR = nested(**KINDS["scaled"])
TRUTH = log_bayes_factor(PAIR)
EQUILIBRIUM = ("trapezoid", "corrected_trapezoid", "stepping_stone", "bar", "mbar")


@cache
def sweeps(n_rungs, direction=1):
    """6,400 chains of N x 1."""
    with float64():
        path = direct(*PAIR) if direction == 1 else reverse(direct(*PAIR))
        kernel = linear.gibbs(*PAIR[::direction])
        keys = chain_keys(key(n_rungs + direction), N_REPEATS * N_CHAINS)
        return anneal(path, kernel, sigmoid(n_rungs), keys)[0]


@cache
def rungs():
    """6,400 chains of 40 rungs x 40 draws."""
    with float64():
        keys = chain_keys(key(0), N_REPEATS * N_CHAINS)
        schedule = Schedule(n_draws=40, n_burn=10)
        return anneal(direct(*PAIR), linear.gibbs(*PAIR), sigmoid(40, 3), keys, schedule=schedule)[0]


@cache
def few_rungs_with_scores():
    with float64():
        keys = chain_keys(key(1), N_REPEATS * N_CHAINS)
        schedule = Schedule(n_draws=40, n_burn=10)
        path, kernel = direct(*PAIR), linear.gibbs(*PAIR)
        return anneal(path, kernel, sigmoid(12, 3), keys, schedule=schedule, observe=Score(union_coordinates(*PAIR)))[0]


def repeats(trace):
    for i in range(N_REPEATS):
        yield trace.take(chains=slice(i * N_CHAINS, (i + 1) * N_CHAINS))


def noise_free_trapezoid(tau, corrected):
    """What the rule gives on the exact moments: its own truth, discretisation included."""
    with float64():
        log_z = linear.pair(*PAIR).log_normaliser
        mean = np.array([float(jax.grad(log_z)(jnp.array(t))) for t in tau])
        variance = np.array([float(jax.grad(jax.grad(log_z))(jnp.array(t))) for t in tau])
    step = np.diff(tau)
    return step @ (mean[1:] + mean[:-1]) / 2 - corrected * (step**2 @ np.diff(variance)) / 12


def assert_calibrated(estimates, truth):
    z = np.array([(e.value - truth) / e.error for e in estimates])
    assert len(z) == N_REPEATS
    assert abs(z.mean()) < 4 / np.sqrt(N_REPEATS), f"mean z = {z.mean():.2f}"
    assert 0.7 < z.var(ddof=1) < 1.4, f"variance of z = {z.var(ddof=1):.2f}"


@pytest.mark.parametrize("name", EQUILIBRIUM)
def test_equilibrium(name):
    trace = rungs()
    truth = TRUTH
    if "trapezoid" in name:
        truth = noise_free_trapezoid(trace.tau, name != "trapezoid")
    # MBAR's own way to leave a chain out is twenty times faster, and what results report.
    one = (lambda part: replicates_of(part, name).estimate()) if name == "mbar" else None
    found = [one(part) if one else jackknife(part, ESTIMATORS[name].function) for part in repeats(trace)]
    assert_calibrated(found, truth)


def test_controlled():
    trace = few_rungs_with_scores()
    truth = noise_free_trapezoid(trace.tau, True)
    assert_calibrated([replicates_of(part, "controlled").estimate() for part in repeats(trace)], truth)


@pytest.mark.parametrize("name", ["trapezoid", "jarzynski"])
def test_sweeps(name):
    assert_calibrated([jackknife(part, ESTIMATORS[name].function) for part in repeats(sweeps(2000))], TRUTH)


def test_crooks():
    pairs = zip(repeats(sweeps(400)), repeats(sweeps(400, -1)), strict=True)
    assert_calibrated([jackknife_pair(*pair, crooks) for pair in pairs], TRUTH)


def test_relaxation():
    lengths = (100, 200, 400)
    runs = zip(*(repeats(sweeps(n)) for n in lengths), strict=True)
    fits = [
        relaxation([(n, jackknife(part, trapezoid)) for n, part in zip(lengths, parts, strict=True)]) for parts in runs
    ]
    assert_calibrated(fits, TRUTH)
    # the wrong twin: the shortest sweep alone is too low by its dissipated work
    with pytest.raises(AssertionError, match="mean z"):
        assert_calibrated([jackknife(part, trapezoid) for part in repeats(sweeps(12))], TRUTH)


def test_an_error_bar_that_lies_is_caught():
    """The wrong twin: the draws of one Metropolis chain taken for independent."""
    with float64():
        step = Diagonal({name: np.asarray(0.3) for name in ("variance", "one", "a", "b")})
        keys = chain_keys(key(2), N_REPEATS)
        schedule = Schedule(n_draws=400, n_burn=50)
        trace, _ = anneal(direct(*PAIR), Metropolis(step), sigmoid(10, 3), keys, schedule=schedule)
    naive = []
    for one in (trace.take(chains=[i]) for i in range(N_REPEATS)):
        apart = one._replace(
            log_ratio=one.log_ratio[0].T[:, :, None], acceptance=np.repeat(one.acceptance, one.n_draws, axis=0)
        )
        naive.append(jackknife(apart, trapezoid))
    z = np.array([(e.value - np.mean([e.value for e in naive])) / e.error for e in naive])
    assert z.var(ddof=1) > 4
