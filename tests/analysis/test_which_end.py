"""Which rung did a draw come from: slopes and scores of exact draws, and of draws that are a little off."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng
from scipy.optimize import minimize
from scipy.stats import norm, truncnorm
from scipy.stats import t as student

from crossfade.analysis.errors import Replicates
from crossfade.analysis.estimators import ratios
from crossfade.analysis.which_end import scores, slope
from crossfade.types import Estimate, Trace

NEAR, PATH = GaussianPath(m=0.5, s=0.9), GaussianPath()
ENDS, LADDER = np.array([0.0, 1.0]), np.array([0, 0.2, 0.6, 1.0])


def of_halves(first: Trace, second: Trace) -> Estimate:
    """The mean slope of two halves with its error, as a run has it: a chain leaves its own half only."""

    def one(trace: Trace) -> float:
        return slope(*ratios(trace))

    whole = [one(half) for half in (first, second)]
    left_out = []
    for half, other in ((first, whole[1]), (second, whole[0])):
        n = half.n_chains
        left_out += [(one(half.take(chains=np.arange(n) != i)) + other) / 2 for i in range(n)]
    return Replicates(sum(whole) / 2, np.array(left_out), 2).estimate("slope")


def halves_of(path: GaussianPath, tau: np.ndarray, seed: int, n_draws: int = 40, shift: float = 0.0) -> list[Trace]:
    """Exact draws of 2 x 8 chains; those at tau = 1 are shifted by so many of their standard deviations."""
    halves = []
    for trace in (path.equilibrium(rng(seed + h), tau, 8, n_draws) for h in (0, 1)):
        x = trace.extra["theta"][..., 0].copy()
        x[:, -1] += shift * path.s
        halves.append(trace._replace(log_ratio=path.ratio(x), extra={}))
    return halves


def scored(estimates: list[Estimate], truth: float = 1.0) -> np.ndarray:
    """z-scores, brought from Student's t to the normal distribution."""
    return np.array([norm.ppf(student.cdf((own.value - truth) / own.error, own.dof)) for own in estimates])


def pooled(values: list[float]) -> Estimate:
    """Their mean, with the error that independent values have."""
    return Estimate(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))), len(values) - 1)


@pytest.mark.parametrize(
    ("path", "tau", "ceiling"), [(NEAR, ENDS, 0.015), pytest.param(PATH, LADDER, 0.006, marks=pytest.mark.slow)]
)
def test_the_slope_of_exact_draws_is_one_and_knows_its_error(
    path: GaussianPath, tau: np.ndarray, ceiling: float
) -> None:
    found = [of_halves(*halves_of(path, tau, 7000 + 2 * i)) for i in range(200)]
    z = scored(found)
    assert np.abs(z).max() < 4.5
    assert 0.7 < z.var() < 1.4
    assert_estimate(pooled([own.value for own in found]), 1.0, max_error=ceiling)
    shifted = [half for i in range(200) for half in halves_of(path, tau, 7000 + 2 * i, shift=0.1)]
    with pytest.raises(AssertionError, match="sigma"):  # twin: draws of one end a tenth of their spread off
        assert_estimate(pooled([slope(*ratios(half)) for half in shifted]), 1.0, max_error=ceiling)


@pytest.mark.parametrize(("path", "tau"), [(NEAR, ENDS), (PATH, LADDER)])
def test_draws_of_one_end_that_are_shifted_are_seen(path: GaussianPath, tau: np.ndarray) -> None:
    assert_estimate(of_halves(*halves_of(path, tau, 7500, 400)), 1.0, max_error=0.06)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(of_halves(*halves_of(path, tau, 7500, 400, shift=0.3)), 1.0, max_error=0.08)


def test_draws_that_lag_behind_their_rung_are_seen() -> None:
    """Drawn at tau = 0.9 and read as drawn at 1: the log odds are a tenth too steep."""
    for last, right in ((1.0, True), (0.9, False)):
        halves = [NEAR.equilibrium(rng(7510 + h), np.array([0, last]), 16, 1500)._replace(tau=ENDS) for h in (0, 1)]
        found = pooled([slope(*ratios(half.take(chains=[i]))) for half in halves for i in range(16)])
        if right:
            assert_estimate(found, 1.0, max_error=0.03)
        else:
            with pytest.raises(AssertionError, match="sigma"):
                assert_estimate(found, 1.0, max_error=0.03)


def test_ratios_that_hardly_vary_have_a_slope_and_a_large_error() -> None:
    """Nearly equal models: the slope is far from 1 by chance, and must not be cut off where its error cannot see it."""
    tiny = GaussianPath(m=1e-4, s=1.0)
    found = [of_halves(*halves_of(tiny, ENDS, 7600 + 2 * i)) for i in range(60)]
    assert min(own.error for own in found) > 100
    z = scored(found)
    assert np.abs(z).max() < 4.5 and 0.5 < z.var() < 1.8


def test_the_slope_is_the_most_likely_one_even_where_all_is_wrong() -> None:
    random = rng(7700)
    for spread, shift in ((1.0, 1.0), (0.01, 0.3), (40.0, -0.8), (3.0, -2.0)):
        below, above = spread * random.standard_t(2, 90), spread * (random.standard_t(3, 150) + shift)
        x, is_above = np.concatenate([below, above]) / spread, np.repeat([0.0, 1.0], [90, 150])

        def misfit(at: np.ndarray, x: np.ndarray = x, is_above: np.ndarray = is_above) -> float:
            return float(np.logaddexp(0, at[0] + at[1] * x).sum() - is_above @ (at[0] + at[1] * x))

        best = minimize(misfit, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        assert slope(ENDS, [below, above]) * spread == pytest.approx(best.x[1], abs=1e-5)


def test_there_is_no_slope_of_constants_and_of_rungs_without_overlap() -> None:
    assert np.isnan(slope(ENDS, [np.full(50, 1.3), np.full(70, 1.3)]))
    assert np.isnan(slope(ENDS, [rng(7701).normal(-8, 1, 50), rng(7702).normal(8, 1, 50)]))  # any steep one would do


def truncated(seed: int) -> Trace:
    """q_0 = N(0, 1) below 1, q_1 = N(0.5, 1) above -1: some draws of each are impossible under the other."""
    x = np.empty((8, 2, 300))
    x[:, 0] = truncnorm.rvs(-np.inf, 1.0, 0, 1, (8, 300), random_state=rng(seed))
    x[:, 1] = truncnorm.rvs(-1.5, np.inf, 0.5, 1, (8, 300), random_state=rng(seed + 1))
    ratio = x**2 / 2 - (x - 0.5) ** 2 / 2
    return Trace(ENDS, np.where(x < -1, -np.inf, np.where(x > 1, np.inf, ratio)), np.ones((8, 2)), True)


def test_infinite_ratios_have_no_say() -> None:
    first, second = truncated(7710), truncated(7720)
    assert_estimate(of_halves(first, second), 1.0, max_error=0.15)
    read = [half._replace(log_ratio=np.clip(half.log_ratio, -0.75, 0.5)) for half in (first, second)]
    with pytest.raises(AssertionError, match="sigma"):  # twin: they are given the ratio at the edge
        assert_estimate(of_halves(read[0], read[1]), 1.0, max_error=0.15)


@pytest.mark.parametrize("nu", [np.inf, 5.0, 3.0])
def test_scores_of_exact_draws_vanish(nu: float) -> None:
    """A standard normal and Student's t, moved and stretched: mean gradient 0, coordinate times gradient -1."""
    random = rng(7800)
    x = random.normal(size=(40, 500, 1)) if np.isinf(nu) else random.standard_t(nu, size=(40, 500, 1))
    gradient = -x if np.isinf(nu) else -(nu + 1) * x / (nu + x**2)

    def estimates(shift: float, width: float) -> list[Estimate]:
        each = scores(3 + 2 * (shift + width * x), gradient_at(shift + width * x) / 2)
        return [Estimate(float(own.mean()), float(own.std(ddof=1) / np.sqrt(40)), 39) for own in each]

    def gradient_at(y: np.ndarray) -> np.ndarray:
        return -y if np.isinf(nu) else -(nu + 1) * y / (nu + y**2)

    np.testing.assert_allclose(gradient_at(x), gradient)
    for own in estimates(0.0, 1.0):
        assert_estimate(own, 0.0, max_error=0.02)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(estimates(0.1, 1.0)[0], 0.0, max_error=0.02)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(estimates(0.0, 1.1)[1], 0.0, max_error=0.02)


def test_scores_do_not_depend_on_units() -> None:
    x = rng(7801).normal(size=(4, 50, 2))
    in_metres, in_miles = scores(x, -x), scores(x * 1e-8 + 7, -x * 1e8)
    for one, other in zip(in_metres, in_miles, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_ratios_beyond_all_measure_do_not_spoil_the_slope():
    """A draw of a link far out has a log ratio of -1e155, whose square is no number."""
    first, second = (rng(k).normal(loc=k, size=500) - 0.5 for k in (0, 1))
    alone = slope(ENDS, [first, second])
    with_far = slope(ENDS, [np.append(first, -1e155), second])
    assert alone == pytest.approx(1.0, abs=0.3) and with_far == pytest.approx(alone, abs=0.02)
    # the twin: one such draw at the wrong end speaks against the slope
    assert slope(ENDS, [first, np.append(second, -1e155)]) < 0.2
