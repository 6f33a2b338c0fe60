"""Diagnostics: quiet on good runs, loud on bad ones."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng
from scipy.special import expit

from crossfade.analysis import (
    acceptance_by_tau,
    bar,
    disagreement,
    hysteresis,
    mbar,
    overlap,
    partial_integrals,
    r_hat,
    stepping_stone,
    trapezoid,
    weakest_overlap,
)
from crossfade.analysis.diagnostics import effective_draws
from crossfade.types import CrossfadeError, Trace

PATH = GaussianPath()


def test_partial_integrals_end_in_the_trapezoid() -> None:
    trace = PATH.equilibrium(rng(600), np.linspace(0, 1, 40), 6, 2000)
    partial = partial_integrals(trace)
    assert partial.shape == (6, 40)
    assert (partial[:, 0] == 0).all()
    assert partial[:, -1].mean() == pytest.approx(trapezoid(trace))
    error = partial.std(axis=0, ddof=1) / np.sqrt(6) + 0.01  # 0.01: discretisation
    assert (np.abs(partial.mean(axis=0) - PATH.log_z(trace.tau)) < 5 * error).all()


def test_acceptance_in_bins_of_equal_numbers_of_rungs() -> None:
    tau = np.linspace(0, 1, 100) ** 3
    trace = Trace(tau, np.zeros((2, 100, 1)), np.stack([tau, tau + 0.2]), False)
    centres, accepted = acceptance_by_tau(trace, n_bins=10)
    np.testing.assert_allclose(centres, tau.reshape(10, 10).mean(axis=1))
    np.testing.assert_allclose(accepted, centres + 0.1)
    assert len(acceptance_by_tau(trace)[0]) == 20
    few = Trace(tau[:3], np.zeros((2, 3, 1)), np.ones((2, 3)), True)
    np.testing.assert_array_equal(acceptance_by_tau(few)[0], tau[:3])


def test_overlap_of_two_rungs_has_a_closed_form() -> None:
    """Equal counts, p = expit(r - log Z): O_01 = sum p (1 - p) / n."""
    trace = PATH.equilibrium(rng(601), np.array([0.0, 1.0]), 4, 500)
    p = expit(trace.log_ratio - bar(trace))
    claimed = overlap(trace)
    np.testing.assert_allclose(claimed[0, 1], (p * (1 - p)).sum() / 2000, rtol=1e-8)
    np.testing.assert_allclose(claimed.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(claimed, claimed.T)


def test_overlap_of_repeated_rungs_is_shared() -> None:
    tau = np.array([0.0, 0.5, 1.0, 1.0])
    trace = PATH.equilibrium(rng(602), tau, 4, 500)
    claimed = overlap(trace)
    np.testing.assert_allclose(claimed.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(claimed[:, 2], claimed[:, 3])
    np.testing.assert_allclose(claimed[2], claimed[3])


def test_the_weakest_overlap_finds_the_gap() -> None:
    tau = np.array([0.0, 0.02, 0.05, 0.8, 0.9, 1.0])
    worst, low, high = weakest_overlap(GaussianPath(m=6.0, s=0.5).equilibrium(rng(603), tau, 4, 500))
    assert (low, high) == (0.05, 0.8)
    assert worst < 0.03
    assert weakest_overlap(PATH.equilibrium(rng(604), np.linspace(0, 1, 8), 4, 500))[0] > 0.05


def test_hysteresis_vanishes_in_equilibrium_and_shows_the_lag_of_a_sweep() -> None:
    tau = np.linspace(0, 1, 101)
    rested = PATH.sweep(rng(605), tau, 100, 0.0), PATH.reverse_sweep(rng(606), tau, 100, 0.0)
    assert_estimate(hysteresis(*rested), 0.0, max_error=0.1)
    hurried = PATH.sweep(rng(607), tau, 100, 0.95), PATH.reverse_sweep(rng(608), tau, 100, 0.95)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(hysteresis(*hurried), 0.0, max_error=0.3)
    assert hysteresis(*hurried).value < 0  # each way is too low in its own direction


def test_disagreement_knows_that_the_estimators_share_their_draws() -> None:
    trace = PATH.equilibrium(rng(609), np.linspace(0, 1, 6), 24, 300)
    assert_estimate(disagreement(trace, bar, mbar), 0.0, max_error=0.01)
    assert disagreement(trace, bar, bar).error == 0
    with pytest.raises(AssertionError, match="sigma"):  # the trapezoid's bias is seen below its own noise
        assert_estimate(disagreement(trace, trapezoid, stepping_stone), 0.0, max_error=0.02)


def test_r_hat() -> None:
    trace = PATH.equilibrium(rng(610), np.linspace(0, 1, 3), 4, 500)
    assert (r_hat(trace) < 1.02).all()
    apart = trace._replace(log_ratio=trace.log_ratio + np.array([0, 0, 0, 30.0])[:, None, None])
    assert (r_hat(apart) > 1.1).all()
    constant = trace._replace(log_ratio=np.ones_like(trace.log_ratio))
    np.testing.assert_array_equal(r_hat(constant), 1)
    with pytest.raises(CrossfadeError, match="2 chains or more"):
        r_hat(trace.take(chains=slice(0, 1)))
    with pytest.raises(CrossfadeError, match="needs equilibrium draws"):
        r_hat(PATH.sweep(rng(611), np.linspace(0, 1, 3), 4, 0.5))
    assert effective_draws(trace).shape == (3,)
