"""Standard errors against closed forms, and their calibration over repeats."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng

from crossfade.analysis.diagnostics import partial_integrals
from crossfade.analysis.errors import Replicates, combine, jackknife, paper_variance, replicates, replicates_of
from crossfade.analysis.estimators import mbar, stepping_stone, trapezoid
from crossfade.analysis.moments import controlled
from crossfade.papers.statistics import relaxation
from crossfade.types import CrossfadeError, Estimate, Trace

PATH, TAU = GaussianPath(), np.linspace(0, 1, 4)


def calibrated(z: list[float]) -> bool:
    """Whether the mean square of the z-scores is 1 within 4 of its standard errors (a little above for t)."""
    return bool(abs(np.mean(np.square(z)) - 1.05) < 0.05 + 4 * np.sqrt(2 / len(z)))


def test_the_jackknife_of_a_linear_estimator_is_the_standard_error() -> None:
    trace = PATH.sweep(rng(500), TAU, 12, 0.5)
    each = partial_integrals(trace)[:, -1]
    estimate = jackknife(trace, trapezoid, "mine")
    assert estimate.value == pytest.approx(each.mean(), abs=1e-12)
    assert estimate.error == pytest.approx(each.std(ddof=1) / np.sqrt(12), rel=1e-12)
    assert (estimate.dof, estimate.name) == (11, "mine")
    left_out = replicates(trace, trapezoid).left_out
    forgetful = np.sqrt(np.sum((left_out - left_out.mean()) ** 2))  # twin: without the factor (n - 1)/n
    assert estimate.error == pytest.approx(forgetful * np.sqrt(11 / 12), rel=1e-12) != forgetful


def test_the_jackknife_is_calibrated_for_a_nonlinear_estimator() -> None:
    """Draws with a short memory within chains that are independent of each other."""
    z, independent = [], []
    for i in range(200):
        trace = PATH.equilibrium(rng(1000 + i), TAU, 24, 40, rho=0.5)
        estimate = jackknife(trace, stepping_stone)
        z.append((estimate.value - PATH.truth) / estimate.error)
        weights = [np.exp(d * trace.log_ratio[:, k]) for k, d in enumerate(np.diff(TAU))]
        error = np.sqrt(sum(w.var() / w.mean() ** 2 / w.size for w in weights))
        independent.append((estimate.value - PATH.truth) / error)
    assert calibrated(z)
    assert not calibrated(independent)  # the wrong twin: all draws are independent


def test_strata_of_a_linear_statistic_add_their_variances() -> None:
    """Halves of different means and spreads: the mean of both has variance (s_1^2 + s_2^2) / (4 n), s as given."""
    n, spread, offset, random = 8, np.array([1.0, 2.0]), np.array([0.0, 1.0]), rng(520)
    truth = float(np.sum(spread**2) / (4 * n))
    stratified, together = [], []
    for _ in range(2000):
        x = offset[:, None] + spread[:, None] * random.normal(size=(2, n))
        means = x.mean(axis=1)
        less = (n * means[:, None] - x) / (n - 1)  # the mean of a half without each of its own
        left_out = ((less + means[::-1, None]) / 2).reshape(-1)
        own = Replicates(float(means.mean()), left_out, 2)
        assert own.variance == pytest.approx(np.sum(x.var(axis=1, ddof=1)) / (4 * n), rel=1e-9)  # the theory
        stratified.append(own.variance)
        together.append(own._replace(n_strata=1).variance)  # the twin: one stratum of 2 n groups

    def mean_of(values: list[float]) -> Estimate:
        return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))), len(values) - 1)

    assert_estimate(mean_of(stratified), truth, max_error=0.003)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(mean_of(together), truth, max_error=0.003)
    assert (own.estimate("both").dof, own.estimate("both").name) == (14, "both")


def test_replicates_subtract_group_by_group() -> None:
    x, y = Replicates(3.0, np.array([1.0, 2.0, 4.0, 5.0]), 2), Replicates(1.0, np.array([0.0, 1.0, 3.0, 4.0]), 2)
    assert x.minus(y).estimate() == Estimate(2.0, 0.0, 2)  # they move together
    assert x.minus(y).n_strata == 2


def test_the_short_cut_of_mbar_is_close_to_solving_anew() -> None:
    """One Newton step: its error is of second order in 1/n_chains, and hardly moves the error bar."""
    for tau, n_chains in ((np.array([0.0, 1.0]), 16), (np.linspace(0, 1, 5), 24)):
        trace = PATH.equilibrium(rng(521), tau, n_chains, 100)
        quick, slow = replicates_of(trace, "mbar"), replicates(trace, mbar)
        assert quick.value == pytest.approx(slow.value, abs=1e-9)
        np.testing.assert_allclose(quick.left_out, slow.left_out, atol=0.01 * np.ptp(slow.left_out))
        assert quick.estimate().error == pytest.approx(slow.estimate().error, rel=0.01)
        short = quick.value + 0.9 * (quick.left_out - quick.value)  # twin: a step a tenth too short
        assert np.abs(short - slow.left_out).max() > 0.02 * np.ptp(slow.left_out)
    apart = GaussianPath(m=5.0, s=0.6).equilibrium(rng(522), np.array([0.0, 1.0]), 4, 200)
    np.testing.assert_allclose(replicates_of(apart, "mbar").left_out, replicates(apart, mbar).left_out)
    with pytest.raises(CrossfadeError, match="2 chains or more"):
        replicates_of(trace.take(chains=[0]), "mbar")


def test_controls_are_fitted_before_chains_are_left_out() -> None:
    trace = PATH.equilibrium(rng(523), np.linspace(0, 1, 9), 8, 100)
    found = replicates_of(trace, "controlled").estimate("controlled")
    assert_estimate(found, PATH.truth, max_error=0.01)
    with pytest.raises(AssertionError, match="sigma"):  # the plain trapezoid of nine rungs
        assert_estimate(jackknife(trace, partial(trapezoid, moments=controlled)), PATH.truth, max_error=0.01)


def test_one_chain_is_refused() -> None:
    with pytest.raises(CrossfadeError, match="needs 2 chains or more: run more, or use within_chain"):
        jackknife(PATH.equilibrium(rng(501), TAU, 1, 50), trapezoid)


def test_combine_signs_values_adds_variances_and_counts_freedom() -> None:
    first, second = Estimate(3.0, 0.3, 10), Estimate(1.0, 0.4, 5)
    total = combine([(1, first), (-1, second)], "difference")
    assert (total.value, total.error, total.name) == (2.0, pytest.approx(0.5), "difference")
    assert total.dof == pytest.approx(0.25**2 / (0.09**2 / 10 + 0.16**2 / 5))
    assert combine([(-1, first)]).dof == pytest.approx(10)
    assert combine([(1, first._replace(error=0.0)), (1, second._replace(error=0.0))]).dof == pytest.approx(15)


def test_relaxation_reads_the_line_at_infinite_length() -> None:
    lengths, errors = [100, 200, 400, 800], [0.1, 0.2, 0.05, 0.3]
    runs = [(n, Estimate(2.5 - 40 / n, e, 9)) for n, e in zip(lengths, errors, strict=True)]
    estimate = relaxation(runs)
    design = np.stack([np.ones(4), 1 / np.array(lengths)], axis=1)
    covariance = np.linalg.inv(design.T @ np.diag(1 / np.square(errors)) @ design)
    assert estimate.value == pytest.approx(2.5, abs=1e-10)
    assert estimate.error == pytest.approx(np.sqrt(covariance[0, 0]))
    assert 9 <= estimate.dof <= 36
    two = relaxation(runs[:2])  # a line through two points, extrapolated by hand
    assert two.error == pytest.approx(np.hypot(2 * 0.2, 0.1))
    assert two.dof == pytest.approx((0.16 + 0.01) ** 2 / ((0.16**2 + 0.01**2) / 9))


def test_relaxation_removes_the_lag_of_short_sweeps() -> None:
    def run(n: int) -> Estimate:
        return jackknife(PATH.sweep(rng(3000 + n), np.linspace(0, 1, n), 400, 0.9), trapezoid)

    runs = [(n, run(n)) for n in (100, 200, 400, 800)]
    assert_estimate(relaxation(runs), PATH.truth, max_error=0.04)
    with pytest.raises(AssertionError, match="sigma"):  # the wrong twin: the shortest run as it is
        assert_estimate(runs[0][1], PATH.truth, max_error=0.08)


def test_relaxation_refuses_what_it_cannot_extrapolate() -> None:
    one = Estimate(1.0, 0.1, 9)
    for runs in ([], [(100, one)], [(100, one), (100, one)]):
        with pytest.raises(CrossfadeError, match="2 lengths or more"):
            relaxation(runs)
    with pytest.raises(CrossfadeError, match="positive errors"):
        relaxation([(100, one), (200, Estimate(1.0, 0.0, 9))])


def independent_sweeps(seed: int, tau: np.ndarray, rho: float = 0.0) -> Trace:
    """N x 1 draws in equilibrium at every rung, AR(1) along the ladder."""
    along = PATH.equilibrium(rng(seed), np.array([0.0]), 300, len(tau), rho).extra["theta"][:, 0, :, 0]
    x = PATH.centre(tau) + along / np.sqrt(PATH.precision(tau))
    return Trace(tau, PATH.ratio(x)[..., None], np.ones(x.shape), False)


def test_the_variance_of_the_paper() -> None:
    """Right for independent draws on a ladder with fine ends; two draws on a linear one; blind to memory."""
    half = (np.arange(501) / 1000) ** 3 * 4
    sigmoid = np.concatenate([half, 1 - half[-2::-1]])
    trace = independent_sweeps(510, sigmoid)
    true = partial_integrals(trace)[:, -1].var(ddof=1)
    guess = paper_variance(trace)
    assert guess.shape == (300,)
    assert guess.mean() == pytest.approx(true, rel=0.35)  # 4 sigma of the variance of 300 runs
    assert guess.std() < 0.2 * guess.mean()
    linear = independent_sweeps(511, np.linspace(0, 1, 1001))
    ends = linear.log_ratio[:, -1, 0] - linear.log_ratio[:, 0, 0]
    np.testing.assert_allclose(paper_variance(linear), ends / 1000, rtol=1e-9)
    assert paper_variance(linear).std() > 0.5 * paper_variance(linear).mean()
    assert (paper_variance(linear) < 0).any()
    sticky = independent_sweeps(512, sigmoid, rho=0.95)
    assert partial_integrals(sticky)[:, -1].var(ddof=1) > 8 * paper_variance(sticky).mean()
    with pytest.raises(CrossfadeError, match="sweeps of N x 1"):
        paper_variance(PATH.equilibrium(rng(513), TAU, 2, 5))
