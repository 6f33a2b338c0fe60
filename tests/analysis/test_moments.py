"""Plain and controlled moments against closed forms and quadrature."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng

from crossfade.analysis.errors import jackknife
from crossfade.analysis.estimators import corrected_trapezoid, trapezoid
from crossfade.analysis.moments import controlled, controlled_values, plain
from crossfade.types import CrossfadeError, Trace

PATH = GaussianPath()
TAU = np.linspace(0, 1, 5)


def at_one_rung(x: np.ndarray, score: np.ndarray, ratio: np.ndarray) -> Trace:
    """Draws [chain, draw, dimension] at tau = 0 only: all that moments need."""
    extra = {"theta": x[:, None], "score": score[:, None]}
    return Trace(np.array([0.0]), ratio[:, None], np.ones((len(x), 1)), True, extra)


def tailed(seed: int, n_chains: int = 32, n_draws: int = 300) -> Trace:
    """A ratio that no polynomial is: log cosh(x) + x/2 under N(0, 1)."""
    x = rng(seed).normal(size=(n_chains, n_draws, 1))
    return at_one_rung(x, -x, np.log(np.cosh(x[..., 0])) + x[..., 0] / 2)


def quadrature() -> tuple[float, float]:
    x, w = np.polynomial.hermite_e.hermegauss(80)
    f = np.log(np.cosh(x)) + x / 2
    mean = w @ f / w.sum()
    return float(mean), float(w @ (f - mean) ** 2 / w.sum())


@pytest.mark.parametrize("k", range(len(TAU)))
def test_plain_moments(k: int) -> None:
    trace, exact = PATH.equilibrium(rng(300), TAU, 32, 400), PATH.moments(TAU)
    assert_estimate(jackknife(trace, lambda t: plain(t).mean[k]), exact.mean[k], max_error=0.06)
    assert_estimate(jackknife(trace, lambda t: plain(t).variance[k]), exact.variance[k], max_error=0.6)
    x = trace.extra["theta"][..., 0]
    off = trace._replace(log_ratio=PATH.ratio(x + 0.1 * x.std(axis=(0, 2))[:, None]))  # twin: a tenth of their spread
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife(off, lambda t: plain(t).mean[k]), exact.mean[k], max_error=0.06)


def test_a_quadratic_ratio_of_a_gaussian_is_left_without_variance() -> None:
    trace, exact = PATH.equilibrium(rng(301), TAU, 8, 50), PATH.moments(TAU)
    assert controlled_values(trace).var(axis=(0, 2)).max() < 1e-20
    np.testing.assert_allclose(controlled(trace).mean, exact.mean, atol=1e-10)
    assert controlled_values(trace, degree=1).var(axis=(0, 2)).min() > 1e-3  # the square needs degree 2
    exact_rule = trapezoid(trace, moments=lambda t: PATH.moments(t.tau))
    assert_estimate(jackknife(trace, partial(trapezoid, moments=controlled)), exact_rule, max_error=1e-10)


def test_cross_terms_of_two_dimensions() -> None:
    """x ~ N(mu, S) correlated, r = x1 x2 + x1^2 - x2: E r = S12 + mu1 mu2 + S11 + mu1^2 - mu2."""
    mu, root = np.array([0.5, -1.0]), np.array([[1.0, 0.0], [0.8, 0.5]])
    cov = root @ root.T
    x = mu + rng(302).normal(size=(4, 40, 2)) @ root.T
    ratio = x[..., 0] * x[..., 1] + x[..., 0] ** 2 - x[..., 1]
    trace = at_one_rung(x, -(x - mu) @ np.linalg.inv(cov), ratio)
    truth = cov[0, 1] + mu[0] * mu[1] + cov[0, 0] + mu[0] ** 2 - mu[1]
    assert controlled(trace).mean[0] == pytest.approx(truth, abs=1e-10)


def test_a_score_of_the_wrong_sign_is_noticed() -> None:
    trace = PATH.equilibrium(rng(303), TAU, 8, 50)
    wrong = trace._replace(extra={"theta": trace.extra["theta"], "score": -trace.extra["score"]})
    exact_rule = trapezoid(trace, moments=lambda t: PATH.moments(t.tau))
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife(wrong, partial(trapezoid, moments=controlled)), exact_rule, max_error=0.1)


@pytest.mark.parametrize("degree", [1, 2])
def test_controlled_moments_are_unbiased_and_tighter(degree: int) -> None:
    trace, (mean, variance) = tailed(304), quadrature()
    ceiling = {1: 0.007, 2: 0.0015}[degree]  # about 0.0045 and 0.0008; plain moments have 0.0068
    assert_estimate(jackknife(trace, lambda t: controlled(t, degree).mean[0]), mean, max_error=ceiling)
    assert_estimate(jackknife(trace, lambda t: controlled(t, degree).variance[0]), variance, max_error=0.02)
    gain = controlled_values(trace, degree).std() / trace.log_ratio.std()
    assert gain < {1: 0.7, 2: 0.15}[degree]
    assert controlled_values(trace, degree).mean() == pytest.approx(controlled(trace, degree).mean[0])


def test_coefficients_come_from_the_other_chains() -> None:
    """A ratio that theta says nothing about: a fit on its own draws would shrink it, on others not."""
    x, ratio = rng(305).normal(size=(20, 20, 8)), rng(306).normal(size=(20, 20))
    trace = at_one_rung(x, -x, ratio)  # 44 controls, fitted on 200 draws
    assert controlled_values(trace).var() > ratio.var()
    assert_estimate(jackknife(trace, lambda t: controlled(t).mean[0]), 0.0, max_error=0.15)


def test_controls_that_carry_nothing_leave_the_plain_moments() -> None:
    trace = PATH.equilibrium(rng(307), TAU, 4, 30)
    silent = trace._replace(extra={key: np.zeros_like(value) for key, value in trace.extra.items()})
    np.testing.assert_allclose(controlled(silent), plain(silent), rtol=1e-12)


def test_the_corrected_trapezoid_and_blocks_take_controlled_moments() -> None:
    trace = PATH.equilibrium(rng(308), np.linspace(0, 1, 9), 8, 400)
    rule = partial(corrected_trapezoid, moments=controlled)
    assert_estimate(jackknife(trace, rule), PATH.truth, max_error=0.002)


def test_refusals() -> None:
    trace = PATH.equilibrium(rng(310), TAU, 4, 10)
    with pytest.raises(CrossfadeError, match="degree 1 or 2, not 3"):
        controlled(trace, degree=3)
    with pytest.raises(CrossfadeError, match="record them when sampling"):
        controlled(trace._replace(extra={}))
    with pytest.raises(CrossfadeError, match="run 2 chains or more"):
        controlled(trace.take(chains=slice(0, 1)))
    with pytest.raises(CrossfadeError, match=r"2 control variates .* need 6 draws .* has 4: draw more"):
        controlled(trace.take(draws=slice(0, 2)))
    broken = {"theta": trace.extra["theta"], "score": np.full_like(trace.extra["score"], np.inf)}
    with pytest.raises(CrossfadeError, match="score is not finite"):
        controlled(trace._replace(extra=broken))
    ratio = trace.log_ratio.copy()
    ratio[1, 2, 3] = -np.inf
    for moments in (plain, controlled):
        with pytest.raises(CrossfadeError, match=r"not finite at tau = 0.5.*'bar' or 'mbar'"):
            moments(trace._replace(log_ratio=ratio))


def test_a_single_draw_has_a_mean_and_no_variance() -> None:
    one = PATH.equilibrium(rng(311), TAU, 1, 1)
    np.testing.assert_array_equal(plain(one).mean, one.log_ratio[0, :, 0])
    assert np.isnan(plain(one).variance).all()
