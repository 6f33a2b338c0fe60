"""Every estimator against the closed form of the Gaussian path."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath, sweep_of_works
from assertions import assert_estimate, jackknife_pair, rng

from crossfade.analysis.bennett import bar_difference
from crossfade.analysis.errors import jackknife
from crossfade.analysis.estimators import (
    ESTIMATORS,
    corrected_trapezoid,
    crooks,
    jarzynski,
    legal,
    stepping_stone,
    trapezoid,
    work,
)
from crossfade.analysis.moments import plain
from crossfade.types import Trace

PATH = GaussianPath()
COARSE = np.linspace(0, 1, 6)
EQUILIBRIUM = ("corrected_trapezoid", "stepping_stone", "bar", "mbar")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return PATH.equilibrium(rng(100), COARSE, n_chains=32, n_draws=1000)


def test_the_toy_is_right() -> None:
    tau, h = np.linspace(0.01, 0.99, 9), 1e-4
    slope = (PATH.log_z(tau + h) - PATH.log_z(tau - h)) / (2 * h)
    np.testing.assert_allclose(PATH.moments(tau).mean, slope, rtol=1e-6)
    curvature = (PATH.moments(tau + h).mean - PATH.moments(tau - h).mean) / (2 * h)
    np.testing.assert_allclose(PATH.moments(tau).variance, curvature, rtol=1e-6)
    assert PATH.log_z(np.array(1.0)) == pytest.approx(PATH.truth, abs=1e-12)


@pytest.mark.parametrize("name", EQUILIBRIUM)
def test_equilibrium_estimators_on_a_coarse_ladder(trace: Trace, name: str) -> None:
    assert_estimate(jackknife(trace, ESTIMATORS[name].function, name), PATH.truth, max_error=0.012)


def test_the_trapezoid_is_the_wrong_twin_on_a_coarse_ladder(trace: Trace) -> None:
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife(trace, trapezoid), PATH.truth, max_error=0.012)


@pytest.mark.parametrize("name", EQUILIBRIUM)
def test_draws_of_another_density_are_noticed(name: str) -> None:
    """Wrong twin: draws of a path with another mean, read with this path's ratio."""
    wrong = PATH.equilibrium(rng(101), COARSE, 32, 1000)
    shifted = wrong._replace(log_ratio=PATH.ratio(wrong.extra["theta"][..., 0] + 0.1))
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife(shifted, ESTIMATORS[name].function), PATH.truth, max_error=0.012)


def test_the_trapezoid_on_a_fine_ladder() -> None:
    fine = PATH.equilibrium(rng(102), np.linspace(0, 1, 201), 32, 50)
    assert_estimate(jackknife(fine, trapezoid), PATH.truth, max_error=0.012)


def test_discretisation_errors_have_their_orders() -> None:
    """With exact moments the trapezoid errs as h^2, the corrected one as h^4."""

    def errors(n: int) -> tuple[float, float]:
        empty = Trace(np.linspace(0, 1, n + 1), np.zeros((2, n + 1, 2)), np.ones((2, n + 1)), True)
        rules = (trapezoid, corrected_trapezoid)
        first, second = (rule(empty, moments=lambda t: PATH.moments(t.tau)) - PATH.truth for rule in rules)
        return first, second

    (rough, rough_corrected), (fine, fine_corrected) = errors(100), errors(200)
    assert rough / fine == pytest.approx(4, rel=0.01)
    assert rough_corrected / fine_corrected == pytest.approx(16, rel=0.02)


def test_formulas_by_hand() -> None:
    tau = np.array([0.0, 0.25, 1.0])
    ratio = np.array([[[1.0, 3.0], [2.0, 5.0], [4.0, 4.0]]])
    tiny = Trace(tau, ratio, np.ones((1, 3)), True)
    area = 0.25 * (2 + 3.5) / 2 + 0.75 * (3.5 + 4) / 2
    assert trapezoid(tiny) == pytest.approx(area)
    assert corrected_trapezoid(tiny) == pytest.approx(area - 0.25**2 / 12 * (4.5 - 2) - 0.75**2 / 12 * (0 - 4.5))
    stones = np.log(np.mean(np.exp([0.25, 0.75]))) + np.log(np.mean(np.exp([1.5, 3.75])))
    assert stepping_stone(tiny) == pytest.approx(stones)
    sweep = tiny._replace(log_ratio=ratio[:, :, :1], equilibrium=False)
    assert work(sweep) == pytest.approx([0.25 * 1 + 0.75 * 2])
    assert jarzynski(sweep) == pytest.approx(0.25 * 1 + 0.75 * 2)
    np.testing.assert_allclose(plain(tiny).variance, [2, 4.5, 0])


def test_rungs_of_equal_tau_change_nothing() -> None:
    """Ladders may repeat 0 and 1, where increments underflow: those rungs are more draws of one state."""
    repeated = PATH.equilibrium(rng(103), np.array([0, 0, 0.3, 0.6, 1, 1, 1]), 32, 500)
    for name in legal(repeated):
        if name not in ("trapezoid", "corrected_trapezoid"):  # four rungs are too few for those
            assert_estimate(jackknife(repeated, ESTIMATORS[name].function, name), PATH.truth, max_error=0.02)


def test_jarzynski_and_crooks_on_gaussian_works() -> None:
    """W_F ~ N(x - s^2/2, s^2) and W_R ~ N(-x - s^2/2, s^2) obey Crooks' theorem for the difference x."""
    truth, s = 2.3, 1.2
    forward = sweep_of_works(rng(104).normal(truth - s**2 / 2, s, 1600))
    reverse = sweep_of_works(rng(105).normal(-truth - s**2 / 2, s, 800))
    thinned = forward.take(chains=slice(0, 600)), reverse.take(chains=slice(0, 300))
    assert_estimate(jackknife(forward, jarzynski), truth, max_error=0.09)
    assert_estimate(-jackknife(reverse, jarzynski), truth, max_error=0.15)
    assert_estimate(jackknife_pair(*thinned, crooks), truth, max_error=0.08)

    def even(a: Trace, b: Trace) -> float:
        """Bennett's equation as if both sides had as many sweeps."""
        return bar_difference(work(a), work(b)) - float(np.log(b.n_chains / a.n_chains))

    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife_pair(*thinned, even), truth, max_error=0.08)


def test_jarzynski_and_crooks_on_short_sweeps() -> None:
    """Reversible kernels from exact starts: both are exact at any speed, the paper's trapezoid is not."""
    tau = np.linspace(0, 1, 21) ** 2
    forward, reverse = (run(rng(106 + i), tau, 400, 0.8) for i, run in enumerate((PATH.sweep, PATH.reverse_sweep)))
    assert_estimate(jackknife(forward, jarzynski), PATH.truth, max_error=0.08)
    assert_estimate(jackknife_pair(forward, reverse, crooks), PATH.truth, max_error=0.06)
    quick = PATH.sweep(rng(109), tau[::2], 2000, 0.8)
    assert_estimate(jackknife(quick, jarzynski), PATH.truth, max_error=0.08)
    late = quick._replace(log_ratio=np.roll(quick.log_ratio, -1, axis=1))  # the right point of every step
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife(late, jarzynski), PATH.truth, max_error=0.08)
    for wrong in (jackknife(forward, trapezoid), -jackknife(reverse, trapezoid)):
        with pytest.raises(AssertionError, match="sigma"):
            assert_estimate(wrong, PATH.truth, max_error=0.1)


def test_bar_solves_its_equation_for_unequal_counts_and_distant_works() -> None:
    generator = rng(108)
    for gap in (0.0, 5.0, 100.0, 3000.0):  # the expits underflow from about 700
        forward, reverse = generator.normal(1 - gap, 2, 50), generator.normal(-1 - gap, 2, 700)
        x = bar_difference(forward, reverse)
        shift = np.log(700 / 50)
        left = np.logaddexp.reduce(-np.logaddexp(0, -(forward - x + shift)))
        right = np.logaddexp.reduce(-np.logaddexp(0, -(reverse + x - shift)))
        assert left == pytest.approx(right, abs=1e-9)
        assert bar_difference(reverse, forward) == pytest.approx(-x, abs=1e-9)
