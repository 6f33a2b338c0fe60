"""From traces to answers, opinions and checks."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng

from crossfade.analysis.errors import Replicates
from crossfade.analysis.estimators import ESTIMATORS, mbar, stepping_stone
from crossfade.analysis.summary import (
    HALVES,
    HYSTERESIS,
    SLOPE,
    from_statistics,
    reversed_trace,
    statistics,
    summarise,
)
from crossfade.types import CrossfadeError, Leg

PATH, NEAR = GaussianPath(), GaussianPath(m=0.5, s=0.9)
ENDS, LADDER = np.array([0.0, 1.0]), np.linspace(0, 1, 6)


def leg(seed: int, tau: np.ndarray, sign: float = 1.0, n_chains: int = 16, back: bool = False) -> Leg:
    there = PATH.equilibrium(rng(seed), tau, n_chains, 200)
    again = PATH.equilibrium(rng(seed + 1), tau, n_chains, 200)
    return Leg("M1 to M2", sign, there, reversed_trace(again) if back else None)


def halves(seed: int, path: GaussianPath = NEAR, tau: np.ndarray = ENDS, n_draws: int = 100) -> tuple[Leg, ...]:
    return tuple(Leg(f"half {h}", 0.5, path.equilibrium(rng(seed + h), tau, 8, n_draws), None) for h in (0, 1))


def parts(legs: tuple[Leg, ...]) -> list[dict[str, float]]:
    """Statistics with each chain of each half left out of its half."""
    found = []
    for h, own in enumerate(legs):
        for i in range(own.forward.n_chains):
            less = own._replace(forward=own.forward.take(chains=np.arange(own.forward.n_chains) != i))
            found.append(statistics((*legs[:h], less, *legs[h + 1 :]), "mbar"))
    return found


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
    found = statistics(legs, "mbar")
    assert set(found) == {"mbar", "stepping_stone", HALVES, SLOPE, HYSTERESIS}  # bar is mbar, between two rungs
    each = [mbar(own.forward) for own in legs]
    assert found["mbar"] == pytest.approx(sum(each) / 2)
    assert found[HALVES] == pytest.approx(each[0] - each[1])
    there = [stepping_stone(own.forward) + stepping_stone(reversed_trace(own.forward)) for own in legs]
    assert found[HYSTERESIS] == pytest.approx(sum(there) / 2)
    longer = statistics(halves(920, PATH, LADDER), "mbar")
    assert set(longer) - set(found) == {"bar", "trapezoid", "corrected_trapezoid"}
    one_leg = statistics((legs[0]._replace(sign=1.0),), "mbar")
    assert not {HALVES, SLOPE} & set(one_leg)


def test_impossible_draws_leave_the_two_sided_statistics() -> None:
    legs = halves(922)
    ratio = legs[1].forward.log_ratio.copy()
    ratio[0, 1, 0] = np.inf
    legs = legs[0], legs[1]._replace(forward=legs[1].forward._replace(log_ratio=ratio))
    assert set(statistics(legs, "mbar")) == {"mbar", HALVES, SLOPE}
    with pytest.raises(CrossfadeError, match="stepping_stone"):  # but the headline may not be missing
        statistics(legs, "stepping_stone")


def test_answers_and_checks_from_statistics() -> None:
    legs = halves(924)
    found = from_statistics(statistics(legs, "mbar"), parts(legs), 2, "mbar")
    assert found.headline.name == "mbar" and found.headline.dof == 14
    assert set(found.opinions) == set(found.differences) == {"stepping_stone"}
    assert set(found.checks) == {HALVES, SLOPE, HYSTERESIS}
    assert_estimate(found.headline, NEAR.truth, max_error=0.02)
    assert_estimate(found.opinions["stepping_stone"], NEAR.truth, max_error=0.03)
    assert_estimate(found.checks[SLOPE], 1.0, max_error=0.15)
    assert_estimate(found.checks[HALVES], 0.0, max_error=0.04)
    assert_estimate(found.checks[HYSTERESIS], 0.0, max_error=0.04)
    # The difference of two halves has twice the error of their mean; a twin that takes both for one run has it wrong.
    assert found.checks[HALVES].error == pytest.approx(2 * found.headline.error)
    one = from_statistics(statistics(legs, "mbar"), parts(legs), 1, "mbar")
    assert one.checks[HALVES].error > 1.02 * found.checks[HALVES].error


def test_statistics_that_a_part_does_not_have_are_dropped() -> None:
    whole = {"mbar": 1.0, "bar": 1.1, SLOPE: 1.0, HALVES: 0.1, HYSTERESIS: 0.0}
    left_out = [{key: value + 0.01 * i for key, value in whole.items()} for i in range(4)]
    del left_out[2]["bar"], left_out[3][HYSTERESIS]
    left_out[1][SLOPE] = np.nan
    left_out[0]["stepping_stone"] = 3.0  # of no use without a value from all chains
    found = from_statistics(whole, left_out, 2, "mbar")
    assert found.opinions == {} == found.differences
    assert set(found.checks) == {HALVES}  # a slope that does not always exist is none
    spread = np.array([0.0, 0.01, 0.02, 0.03])
    assert found.headline == Replicates(1.0, 1 + spread, 2).estimate("mbar")
    assert found.headline.error == pytest.approx(0.01 * np.sqrt(0.5))  # each half: (2 - 1)/2 (0.005^2 + 0.005^2)
