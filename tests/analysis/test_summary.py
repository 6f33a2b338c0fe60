"""From traces to answers, opinions and checks."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng

from crossfade.analysis.errors import replicates
from crossfade.analysis.estimators import ESTIMATORS, mbar, stepping_stone
from crossfade.analysis.summary import (
    HALVES,
    HYSTERESIS,
    SLOPE,
    expected_error,
    headline_of_halves,
    of_fixed_fits,
    reversed_trace,
    summarise,
    summarise_halves,
)
from crossfade.types import CrossfadeError, Leg, Trace

PATH, NEAR = GaussianPath(), GaussianPath(m=0.5, s=0.9)
ENDS, LADDER = np.array([0.0, 1.0]), np.linspace(0, 1, 6)


def leg(seed: int, tau: np.ndarray, sign: float = 1.0, n_chains: int = 16, back: bool = False) -> Leg:
    there = PATH.equilibrium(rng(seed), tau, n_chains, 200)
    again = PATH.equilibrium(rng(seed + 1), tau, n_chains, 200)
    return Leg("M1 to M2", sign, there, reversed_trace(again) if back else None)


def halves(seed: int, path: GaussianPath = NEAR, tau: np.ndarray = ENDS, n_draws: int = 100) -> tuple[Leg, ...]:
    return tuple(Leg(f"half {h}", 0.5, path.equilibrium(rng(seed + h), tau, 8, n_draws), None) for h in (0, 1))


def test_two_rungs_have_no_sum_over_rungs() -> None:
    """The trapezoid of these two would be 1.1 off."""
    found = summarise((leg(900, ENDS),), "mbar")
    assert set(found.opinions) == {"bar", "stepping_stone"} == set(found.differences)
    assert_estimate(found.headline, PATH.truth, max_error=0.05)
    for opinion in found.opinions.values():
        assert_estimate(opinion, PATH.truth, max_error=0.2)
    for name in ("trapezoid", "corrected_trapezoid", "controlled"):
        for tau in (ENDS, np.array([0, 0.5, 1.0]), np.array([0, 0, 0.5, 1.0, 1.0])):
            with pytest.raises(CrossfadeError, match=f"^{name}: needs 4 rungs .*: stepping_stone, bar, mbar$"):
                summarise((leg(900, tau),), name)
        assert np.isfinite(summarise((leg(900, np.linspace(0, 1, 4)),), name).headline.error)


def test_every_leg_must_be_fine_enough() -> None:
    legs = leg(902, LADDER, -1.0), leg(904, ENDS)
    with pytest.raises(CrossfadeError, match="trapezoid: needs 4 rungs"):
        summarise(legs, "trapezoid")
    assert set(summarise(legs, "mbar").opinions) == {"bar", "stepping_stone"}


def test_legs_enter_with_their_signs() -> None:
    same = leg(906, LADDER), leg(908, LADDER, -1.0)
    found = summarise(same, "mbar")
    assert_estimate(found.headline, 0.0, max_error=0.05)
    assert found.headline.value == pytest.approx(mbar(same[0].forward) - mbar(same[1].forward), abs=1e-9)
    with pytest.raises(AssertionError, match="sigma"):  # twin: the sign is forgotten
        assert_estimate(summarise((same[0], same[1]._replace(sign=1.0)), "mbar").headline, 0.0, max_error=0.05)


def test_differences_are_on_the_same_chains() -> None:
    found = summarise((leg(910, LADDER),), "mbar")
    apart = np.hypot(found.headline.error, found.opinions["bar"].error)
    assert found.differences["bar"].error < 0.3 * apart  # twin: the errors of both, as if they were independent
    assert_estimate(found.differences["bar"], 0.0, max_error=0.01)
    value = found.opinions["bar"].value - found.headline.value
    assert found.differences["bar"].value == pytest.approx(value, abs=1e-12)


def test_hysteresis_is_forward_minus_reverse() -> None:
    both = leg(912, LADDER, back=True)
    gap = summarise((both,), "mbar").checks[HYSTERESIS]
    assert both.reverse is not None
    assert gap.value == pytest.approx(mbar(both.forward) + mbar(both.reverse), abs=1e-9)
    assert_estimate(gap, 0.0, max_error=0.06)
    assert summarise((leg(912, LADDER),), "mbar").checks == {}
    x = reversed_trace(both.reverse).extra["theta"][..., 0] + 0.1  # twin: draws of the way back a tenth off
    wrong = reversed_trace(both.reverse._replace(log_ratio=-PATH.ratio(x)[:, ::-1]))
    with pytest.raises(AssertionError, match="sigma"):
        off = summarise((both._replace(reverse=reversed_trace(wrong)),), "mbar").checks[HYSTERESIS]
        assert_estimate(off, 0.0, max_error=0.06)


def test_sweeps_have_crooks_where_there_is_a_way_back() -> None:
    tau = np.linspace(0, 1, 21)
    both = Leg("", 1.0, PATH.sweep(rng(914), tau, 200, 0.5), PATH.reverse_sweep(rng(915), tau, 200, 0.5))
    found = summarise((both,), "crooks")
    assert_estimate(found.headline, PATH.truth, max_error=0.06)
    assert set(found.opinions) == {"trapezoid", "jarzynski"}
    assert set(summarise((both._replace(reverse=None),), "trapezoid").opinions) == {"jarzynski"}
    with pytest.raises(CrossfadeError, match="needs the run back"):
        summarise((both._replace(reverse=None),), "crooks")
    with pytest.raises(CrossfadeError, match="unknown estimator 'simpson'"):
        summarise((both,), "simpson")


def test_a_reversed_trace_estimates_the_opposite() -> None:
    trace = PATH.equilibrium(rng(916), np.array([0, 0.1, 0.5, 1.0]), 4, 100)
    back = reversed_trace(trace)
    np.testing.assert_allclose(back.tau, [0, 0.5, 0.9, 1])
    assert mbar(back) == pytest.approx(-mbar(trace), abs=1e-9)
    controlled = [ESTIMATORS["controlled"].function(ESTIMATORS["controlled"].prepare(t)) for t in (trace, back)]
    assert controlled[0] == pytest.approx(-controlled[1], abs=1e-9)  # theta and score turn as well
    again = reversed_trace(back)
    np.testing.assert_array_equal(again.log_ratio, trace.log_ratio)
    np.testing.assert_array_equal(again.extra["theta"], trace.extra["theta"])


def test_statistics_of_halves() -> None:
    legs = halves(920)
    found = summarise_halves(legs, (), "mbar")
    each = [mbar(own.forward) for own in legs]
    assert found.headline.value == pytest.approx(sum(each) / 2) and found.headline.name == "mbar"
    assert found.checks[HALVES].value == pytest.approx(each[0] - each[1])
    there = [stepping_stone(own.forward) + stepping_stone(reversed_trace(own.forward)) for own in legs]
    assert found.checks[HYSTERESIS].value == pytest.approx(sum(there) / 2)
    assert set(found.opinions) == set(found.differences) == {"stepping_stone"}  # bar is mbar, between two rungs
    longer = summarise_halves(halves(920, PATH, LADDER), (), "mbar")
    assert set(longer.opinions) - {"stepping_stone"} == {"bar", "trapezoid", "corrected_trapezoid"}


def test_impossible_draws_leave_the_two_sided_statistics() -> None:
    legs = halves(922)
    ratio = legs[1].forward.log_ratio.copy()
    ratio[0, 1, 0] = np.inf
    legs = legs[0], legs[1]._replace(forward=legs[1].forward._replace(log_ratio=ratio))
    found = summarise_halves(legs, (), "mbar")
    assert found.opinions == {} and set(found.checks) == {HALVES, SLOPE}
    with pytest.raises(CrossfadeError, match="stepping_stone"):  # but the headline may not be missing
        summarise_halves(legs, (), "stepping_stone")


def test_weights_with_heavy_tails_have_no_one_sided_average() -> None:
    legs = []
    for leg_ in halves(930, n_draws=400):
        heavy = rng(931).exponential(size=leg_.forward.log_ratio.shape) * 1.2
        heavy[:, 1] *= -1
        legs.append(leg_._replace(forward=leg_.forward._replace(log_ratio=heavy)))
    found = summarise_halves(tuple(legs), (), "mbar")
    assert found.opinions == {} and HYSTERESIS not in found.checks


def test_answers_and_checks_of_halves() -> None:
    legs = halves(924)
    found = summarise_halves(legs, (), "mbar")
    assert_estimate(found.headline, NEAR.truth, max_error=0.02)
    assert_estimate(found.opinions["stepping_stone"], NEAR.truth, max_error=0.03)
    assert_estimate(found.checks[SLOPE], 1.0, max_error=0.15)
    assert_estimate(found.checks[HALVES], 0.0, max_error=0.04)
    assert_estimate(found.checks[HYSTERESIS], 0.0, max_error=0.04)
    # The larger of two errors: that over chains, which the difference of the halves has too, and that of the overlap.
    assert found.headline.error == pytest.approx(max(found.checks[HALVES].error / 2, expected_error(legs)))


def test_the_expected_error_is_that_over_many_repeats() -> None:
    values = [summarise_halves(halves(7000 + 2 * i), (), "mbar").headline.value for i in range(60)]
    assert expected_error(halves(7000)) == pytest.approx(np.std(values), rel=0.3)
    slow = [
        own._replace(forward=NEAR.equilibrium(rng(7200 + h), ENDS, 8, 400, 0.8)) for h, own in enumerate(halves(7000))
    ]
    # Four times as many draws, each worth a ninth: a twin that takes them for independent would halve the error.
    assert expected_error(tuple(slow)) > 1.2 * expected_error(halves(7000))


K = np.array([[1.5, 0.4, 0.0], [-0.2, 1.5, 0.3], [0.0, 0.1, 1.5]])  # not quite symmetric


def bilinear_halves(
    seed: int, n_groups: int = 4, size: int = 2
) -> tuple[tuple[Leg, ...], list[tuple[Leg, ...]], float]:
    """Halves whose readings are L_A + x_A'K x_B and L_B + x_B'K x_A, with and without each group; and their mean.

    x is the mean over chains of three normals, of variance 1 in all: what fits to one half do to the other.
    """
    random = rng(seed)
    n = n_groups * size
    x = [np.sqrt(n) * random.normal(size=(n, 3)) for _ in range(2)]
    linear = [np.sqrt(n) * random.normal(size=n) for _ in range(2)]

    def read(kept: list[np.ndarray]) -> tuple[Leg, ...]:
        means = [own[k].mean(axis=0) for own, k in zip(x, kept, strict=True)]
        found = []
        for h, own in enumerate(kept):
            ratio = linear[h][own] + x[h][own] @ K @ means[1 - h]
            both = np.tile(1e-3 * ratio[:, None, None], (1, 2, 1))  # so small that BAR is the mean
            found.append(Leg(f"half {h}", 0.5, Trace(ENDS, both, np.ones((len(own), 2)), True), None))
        return tuple(found)

    whole = [np.arange(n)] * 2
    without = []
    for h in (0, 1):
        for group in np.split(np.arange(n), n_groups):
            kept = list(whole)
            kept[h] = np.setdiff1d(kept[h], group)
            without.append(read(kept))
    legs = read(whole)
    return legs, without, 1e3 * float(np.mean([own.forward.log_ratio.mean() for own in legs]))


@pytest.mark.slow
def test_the_covariance_of_halves_that_were_fitted_to_each_other() -> None:
    """Var(mean) = (1 + 1)/4 + |K + K'|^2 / 4; fits held fixed miss <K, K'> / 2, refitting alone counts too much."""
    truth = 0.5 + float(((K + K.T) ** 2).sum()) / 4
    fixed, honest, values = [], [], []
    for seed in range(100):
        legs, without, value = bilinear_halves(5000 + seed)
        values.append(value)
        fixed.append((1e3 * summarise_halves(legs, (), "mbar").headline.error) ** 2)
        honest.append((1e3 * summarise_halves(legs, without, "mbar").headline.error) ** 2)
    assert np.var(values) == pytest.approx(truth, rel=0.4)
    error = np.std(honest) / 10
    # A covariance below 0 is cut off, which adds a little.
    assert abs(np.mean(honest) - truth) < 4 * error + 0.05 * truth
    missing = float((K * K.T).sum()) / 2
    assert np.mean(fixed) == pytest.approx(truth - missing, abs=4 * np.std(fixed) / 10)
    assert abs(np.mean(fixed) - truth) > 4 * error  # the wrong twin


def test_halves_whose_fits_stay_are_taken_to_be_as_correlated_as_they_can_be() -> None:
    legs, _, _ = bilinear_halves(5001)
    halves_ = [replicates(own.forward, mbar) for own in legs]
    a, b = (float(np.sqrt(own.variance)) for own in halves_)
    for share, error in ((0.0, np.hypot(a, b) / 2), (1.0, (a + b) / 2)):
        assert of_fixed_fits(halves_, share, "mbar").error == pytest.approx(error, rel=1e-12)
        assert headline_of_halves(legs, "mbar", share).headline.error == pytest.approx(error, rel=1e-12)
        assert summarise_halves(legs, (), "mbar", share).headline.error == pytest.approx(error, rel=1e-12)
    # Here most of the noise is what the fits do to each other (K is nearly symmetric).
    truth = 0.5 + float(((K + K.T) ** 2).sum()) / 4
    found = [bilinear_halves(5000 + seed)[0] for seed in range(60)]
    for share, low, high in ((1.0, 0.85, 1.2), (0.0, 0.4, 0.7)):  # the twin without it is too sure
        squares = [(1e3 * headline_of_halves(own, "mbar", share).headline.error) ** 2 for own in found]
        assert low * truth < np.mean(squares) < high * truth
