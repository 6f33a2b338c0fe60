"""One word from many signs: each sign alone lowers it to its level, with its sentence, and no sign leaves it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from analysis.findings import NEAR, says
from analysis.gaussian_path import GaussianPath
from assertions import rng

from crossfade.analysis.judge import (
    Chains,
    Finding,
    Verdict,
    chance,
    judge,
    level,
    of_chains,
    of_checks,
    of_error,
    of_overlap,
    of_ratios,
    of_round_trips,
    of_scores,
)
from crossfade.analysis.mixing import Mixing
from crossfade.analysis.summary import HALVES, HYSTERESIS, SLOPE, Summary, summarise_halves
from crossfade.analysis.weights import pareto_k
from crossfade.types import DO_NOT_USE, TRUSTWORTHY, WEAK, Estimate, Leg, Trace

ENDS, LADDER = np.array([0.0, 1.0]), np.linspace(0, 1, 6)
ERROR = 0.02  # of an answer
FINE = Chains("M1", Mixing(1.005, 0, 3000.0, 0, 3500.0), ("mu", "sigma"), 0.0)
ANSWER = Estimate(1.0, 0.03, 14, "mbar")


def halves(path: GaussianPath, seed: int = 1, tau: np.ndarray = ENDS, rho: float = 0.0) -> tuple[Leg, ...]:
    return tuple(Leg(f"half {h}", 0.5, path.equilibrium(rng(seed + h), tau, 8, 100, rho), None) for h in (0, 1))


def summary_of(legs: tuple[Leg, ...]) -> Summary:
    return summarise_halves(legs, (), "mbar")


def word(legs: tuple[Leg, ...], target_se: float = 0.05) -> Verdict:
    """The word of the default method, as far as the traces tell."""
    found = summary_of(legs)
    findings = of_error(found.headline, target_se, "the budget is used up")
    return judge([*findings, *of_overlap(legs), *of_ratios(legs), *of_checks(found.checks, found.headline)])


def test_the_worst_finding_decides_and_is_said_first() -> None:
    assert judge([]) == Verdict(TRUSTWORTHY, ())
    one, two = Finding(1, "slow"), Finding(2, "wrong")
    assert judge([one]) == Verdict(WEAK, ("slow",))
    assert judge([one, two, one, Finding(0, "nothing")]) == Verdict(DO_NOT_USE, ("wrong", "slow"))


def test_levels_and_chances() -> None:
    assert [level(x, (1.05, 1.2)) for x in (1.0, 1.1, 1.3, np.inf, np.nan)] == [0, 1, 2, 2, 2]
    assert [level(x, (400, 100)) for x in (500, 200, 50, np.nan)] == [0, 1, 2, 2]
    assert chance(Estimate(1.5, 0.2, np.inf), 1.108) == pytest.approx(0.05, abs=1e-3)  # 1.96 errors
    assert chance(Estimate(1.0, 0.0, 5), 1.0) == 1.0
    assert chance(Estimate(1.1, 0.0, 5), 1.0) == 0.0
    assert chance(Estimate(1.5, 0.1, 5)) > 1e3 * chance(Estimate(1.5, 0.1, 50))  # few chains know their error badly


def test_a_healthy_run_has_no_finding() -> None:
    alarms = [word(halves(NEAR, 1000 + 2 * i)) for i in range(25)]
    assert all(found == Verdict(TRUSTWORTHY, ()) for found in alarms), alarms
    assert word(halves(GaussianPath(), 1100, LADDER)) == Verdict(TRUSTWORTHY, ())
    assert of_chains(FINE, ERROR) == []


@pytest.mark.parametrize(
    ("error", "expected", "sentence"),
    [
        (0.06, 1, r"is 0.06, above the asked 0.05: the budget is used up\."),
        (1.1, 2, r"is 1.1: this is no answer yet"),
        (np.inf, 2, "no answer yet"),
        (np.nan, 2, "no answer yet"),
    ],
)
def test_an_error_above_the_target(error: float, expected: int, sentence: str) -> None:
    says(of_error(ANSWER._replace(error=error), 0.05, "the budget is used up"), expected, sentence)
    assert of_error(ANSWER._replace(error=0.05), 0.05, "") == []
    assert of_error(ANSWER._replace(error=1.5), 2.0, "") == []  # a large one that was asked for


@pytest.mark.parametrize(
    ("change", "expected", "sentence"),
    [
        ({"mixing": FINE.mixing._replace(r_hat=1.08, r_hat_of=1)}, 1, r"M1 do not agree about sigma \(R-hat 1.08\)"),
        ({"mixing": FINE.mixing._replace(r_hat=1.6)}, 2, r"do not agree about mu .*Give a larger budget"),
        ({"mixing": FINE.mixing._replace(r_hat=np.nan)}, 2, "R-hat nan"),
        ({"mixing": FINE.mixing._replace(effective=300.0)}, 1, "worth only 300 independent draws of mu"),
        ({"mixing": FINE.mixing._replace(effective=50.0), "brought": True}, 2, r"Bring longer chains\."),
        ({"divergent": 0.01}, 1, r"1.00% of the trajectories in M1 diverged"),
        ({"divergent": 0.2}, 2, "20.00% of the trajectories"),
        ({"saturated": (0.004, "sigma")}, 1, "0.4% of the draws of M1 are closer to the edge of the support of sigma"),
        ({"saturated": (0.05, "sigma")}, 2, "in the logarithm or the logit"),
        ({"elsewhere": "mu = 7"}, 1, "as likely as the draws of M1 and far from all of them: mu = 7"),
    ],
)
def test_each_sign_of_bad_chains(change: dict[str, Any], expected: int, sentence: str) -> None:
    says(of_chains(FINE._replace(**change), ERROR), expected, sentence)


def test_divergences_count_by_the_mass_that_may_be_behind_them() -> None:
    """A share of 0.2 % of trajectories, three of which are worth a draw: 0.006 of the mass, beside the error."""
    chains = FINE._replace(divergent=0.002, n_draws=3000, mixing=FINE.mixing._replace(effective=1000.0))
    assert chains.missing == pytest.approx(0.006)
    assert of_chains(chains, 0.03) == []
    says(of_chains(chains, 0.015), 1, "0.20% of the trajectories")
    slow = chains._replace(mixing=FINE.mixing._replace(effective=500.0))
    says(of_chains(slow, 0.03), 1, "0.20% of the trajectories")
    says(of_chains(chains._replace(divergent=0.06), 1.0), 2, "6.00% of the trajectories")
    assert of_chains(chains._replace(divergent=0.0009), 1e-6) == []  # as few as in any run
    says(of_chains(chains._replace(n_draws=None), 0.03), 1, "0.20% of the trajectories")  # a rung between


# Draws and gradients of posteriors


def student_gradient(x: np.ndarray, nu: float) -> np.ndarray:
    return -(nu + 1) * x / (nu + x**2)


def scored(x: np.ndarray, gradient: np.ndarray, brought: bool = False) -> Chains:
    return FINE._replace(scores=(5 + 2 * x, gradient / 2), brought=brought)


@pytest.mark.parametrize("nu", [np.inf, 5.0, 2.0])
def test_scores_of_exact_draws_raise_no_alarm(nu: float) -> None:
    for i in range(200):
        random, shape = rng(8000 + i), (8, 60, 2)
        x = random.normal(size=shape) if np.isinf(nu) else random.standard_t(nu, size=shape)
        assert of_scores(scored(x, -x if np.isinf(nu) else student_gradient(x, nu))) == []


@pytest.mark.parametrize(
    ("shift", "width", "expected", "sentence"),
    [
        (3.0, 1.0, 2, r"not draws of its posterior: for sigma the mean gradient is -3\.?\d? and should be 0"),
        (0.0, 1.5, 2, r"for sigma the mean of coordinate times gradient is -2\.[123] and should be -1"),
        (0.15, 1.0, 1, r"for sigma the mean gradient is -0\.1\d and should be 0"),
        (0.0, 0.93, 1, r"for sigma the mean of coordinate times gradient is -0\.8\d and should be -1"),
        (0.15, 1.5, 2, "coordinate times gradient"),  # the worse of the two is said
    ],
)
def test_draws_of_another_posterior_are_seen(shift: float, width: float, expected: int, sentence: str) -> None:
    x = rng(8300).normal(size=(8, 4000, 2)) * [1.0, width] + [0.0, shift]
    says(of_scores(scored(x, -x)), expected, sentence)
    says(of_chains(scored(x, -x, brought=True), ERROR), expected, "with these priors and these data")


def test_draws_of_another_shape_are_seen() -> None:
    x = rng(8301).standard_t(5, size=(16, 4000, 2))
    says(of_scores(scored(x, -x)), 2, "coordinate times gradient is -1.4")
    says(of_scores(scored(x, student_gradient(x, 50.0))), 2, "coordinate times gradient is -1.[23]")


def test_a_shift_that_does_no_harm_is_not_told_however_certain() -> None:
    x = rng(8302).normal(size=(8, 20000, 2)) + 0.05
    assert of_scores(scored(x, -x)) == []


def test_scores_that_are_not_numbers_and_too_few_chains() -> None:
    x = rng(8303).normal(size=(8, 50, 2))
    broken = -x.copy()
    broken[3, 4, 1] = np.nan
    says(of_scores(scored(x, broken)), 2, "for sigma the mean gradient is nan")
    assert of_scores(scored(x[:3] + 3, -x[:3] - 3)) == []  # three chains cannot tell
    assert of_scores(FINE._replace(scores=(x, x[:, :0]))) == []


# The traces


def test_ends_that_barely_overlap() -> None:
    assert of_overlap(halves(GaussianPath(m=1.0, s=1.0))) == []
    weak = halves(GaussianPath(m=3.5, s=1.0))
    says(of_overlap(weak), 1, r"tau = 0 and 1 barely overlap \(0\.0\d+ of 0\.5\)")
    gone = halves(GaussianPath(m=8.0, s=1.0))
    says(of_overlap(gone), 2, "barely overlap")
    says(of_overlap((weak[0], gone[1])), 2, "barely overlap")  # the worse leg decides, in either order
    says(of_overlap((gone[0], weak[1])), 2, "barely overlap")
    apart = np.stack([np.full((4, 9), -np.inf), np.full((4, 9), np.inf)], axis=1)
    says(of_overlap((Leg("", 1.0, Trace(ENDS, apart, np.ones((4, 2)), True), None),)), 2, "do not overlap at all")


def test_slow_chains_of_the_ratio() -> None:
    assert of_ratios(halves(NEAR)) == []
    slow = of_ratios(halves(NEAR, 30, rho=0.75))
    assert {finding.level for finding in slow} == {1}
    assert any(re.search(r"tau = 0 rests on only \d{3} independent draws", finding.text) for finding in slow)
    stuck = judge(of_ratios(halves(NEAR, 32, rho=0.98)))
    assert stuck.word == DO_NOT_USE
    assert len(stuck.reasons) == 2  # one sentence each, for however many rungs
    assert any(
        re.search(r"tau = [01] differs between chains \(R-hat .* 1 more tau too\.", own) for own in stuck.reasons
    )


def test_draws_of_halves_count_together_and_those_of_two_ways_do_not() -> None:
    first, second = halves(NEAR)  # some 800 draws each
    short = tuple(leg._replace(forward=leg.forward.take(draws=slice(0, 35))) for leg in (first, second))
    assert of_ratios(short) == []
    apart = short[0]._replace(sign=-1.0), short[1]._replace(sign=1.0)
    assert {finding.level for finding in of_ratios(apart)} == {1}


def test_chains_that_disagree_at_one_rung_of_one_half() -> None:
    first, second = halves(NEAR)
    ratio = second.forward.log_ratio.copy()
    ratio[0, 1] += 1.5 * ratio[:, 1].std()
    found = of_ratios((first, second._replace(forward=second.forward._replace(log_ratio=ratio))))
    says([finding for finding in found if "R-hat" in finding.text], 1, r"tau = 1 differs between chains \(R-hat 1\.")


def test_mixing_of_ratios_that_are_not_numbers() -> None:
    def at(change: float, where: Any) -> list[Finding]:
        legs = halves(NEAR)
        legs[1].forward.log_ratio[where] = change
        return of_ratios(legs)

    assert judge(at(np.nan, (0, 0, 0))).word == DO_NOT_USE  # in the second half only
    assert at(-np.inf, (slice(None), 0, slice(0, 100, 9))) == []  # impossible draws, evenly spread
    one_chain = at(-np.inf, (0, 0, slice(None)))
    assert any("R-hat" in finding.text for finding in one_chain)
    legs = halves(NEAR)
    for leg in legs:
        leg.forward.log_ratio[...] = 0.7  # nothing to average
    assert of_ratios(legs) == []
    for leg in legs:
        leg.forward.log_ratio[:2, 0] = -np.inf  # but whether a draw is possible differs between chains
    assert judge(of_ratios(legs)).word == DO_NOT_USE


@pytest.mark.parametrize(
    ("checks", "expected", "sentence"),
    [
        ({SLOPE: Estimate(1.5, 0.1, 14)}, 1, r"slope 1\.50 ± 0\.1 instead of 1"),
        ({SLOPE: Estimate(0.1, 0.1, 14)}, 2, "not of the density they are read with"),
        ({HALVES: Estimate(0.3, 0.06, 14)}, 1, r"two halves of the chains differ by 0\.3 \(5\.0 standard errors\)"),
        ({HALVES: Estimate(-0.6, 0.06, 14)}, 2, r"two halves .* differ by -0\.6 \(10\.0 standard errors\)"),
    ],
)
def test_each_check_alone(checks: dict[str, Estimate], expected: int, sentence: str) -> None:
    says(of_checks(checks, ANSWER), expected, sentence)


def test_checks_that_pass() -> None:
    fine = {SLOPE: Estimate(1.25, 0.1, 14), HALVES: Estimate(0.12, 0.06, 14)}
    assert of_checks(fine, ANSWER) == []
    assert of_checks({HALVES: Estimate(0.02, 0.001, 14)}, ANSWER) == []  # less than the error bar: no harm
    assert of_checks({}, ANSWER) == []
    assert of_checks({HYSTERESIS: Estimate(3.0, 0.01, 14)}, ANSWER) == []  # one-sided averages discredit themselves


def test_draws_of_one_end_that_are_off_lower_the_word() -> None:
    """Draws at tau = 1 half a standard deviation off: all chains agree, the ends overlap, only the slope tells."""
    legs = halves(NEAR, 40)
    for leg in legs:
        x = leg.forward.extra["theta"][..., 0].copy()
        x[:, 1] += 0.5 * NEAR.s
        leg.forward.log_ratio[...] = NEAR.ratio(x)
    found = word(legs)
    assert found.word != TRUSTWORTHY
    assert len(found.reasons) == 1 and "which model a draw came from" in found.reasons[0]


def test_heavy_tails_of_one_side_do_not_lower_a_two_sided_answer() -> None:
    """q_0 = exp(-x), q_1 = exp(-x / 4) on x > 0: weights from 0 have a tail of shape 3/4, and bar does not mind."""
    tails = [pareto_k(0.75 * rng(9000 + i).exponential(size=4000)) for i in range(30)]
    assert np.mean(tails) > 0.6  # the tail is there
    for seed in range(50, 60, 2):
        legs = []
        for h in (0, 1):
            x = rng(seed + h).exponential(size=(8, 2, 150)) * np.array([1.0, 4.0])[:, None]
            legs.append(Leg(f"half {h}", 0.5, Trace(ENDS, 0.75 * x, np.ones((8, 2)), True), None))
        both = legs[0], legs[1]
        found = summary_of(both)
        assert abs(found.headline.value - np.log(4)) < 4 * found.headline.error < 0.5
        findings = [*of_overlap(both), *of_ratios(both), *of_checks(found.checks, found.headline)]
        assert findings == []


@pytest.mark.parametrize(("fewest", "expected"), [(39, 1), (4, 2), (0, 2)])
def test_few_round_trips(fewest: int, expected: int) -> None:
    says(of_round_trips(fewest), expected, f"Only {fewest} states travelled .*Give a larger budget")
    assert of_round_trips(40) == []
