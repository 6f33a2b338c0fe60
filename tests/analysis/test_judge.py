"""One word from many signs: each sign alone must be enough to lower it."""

import re

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng

from crossfade.analysis.judge import (
    Posterior,
    expected_error,
    hysteresis,
    judge,
    pareto_k,
    reversed_trace,
    weight_share,
)
from crossfade.analysis.mixing import Mixing
from crossfade.analysis.summary import summarise
from crossfade.types import Leg

NEAR = GaussianPath(m=0.5, s=0.9, log_c=0.7)  # ends that overlap
FAR = GaussianPath(m=8.0, s=0.6, log_c=0.7)  # ends that do not
ENDS = np.array([0.0, 1.0])
FINE = Posterior("M1", Mixing(1.005, 0, 3000.0, 0, 3500.0), ("mu", "sigma"), 0.0, False)


def halves(path, tau=ENDS, n_chains=16, n_draws=100, rho=0.0, offset=1):
    return tuple(
        Leg(f"half {h}", 0.5, path.equilibrium(rng(offset + h), tau, n_chains, n_draws, rho), None) for h in (0, 1)
    )


def word(legs, posteriors=(FINE,), target_se=0.05, **more):
    verdict = judge(legs, summarise(legs, "mbar").headline, posteriors, target_se, **more)
    assert (verdict.word == "trustworthy") == (not verdict.reasons)
    return verdict


def test_a_healthy_run_is_trustworthy_and_right():
    legs = halves(NEAR)
    verdict = word(legs)
    assert verdict.word == "trustworthy", verdict.reasons
    assert_estimate(summarise(legs, "mbar").headline, NEAR.truth, max_error=0.02)


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        ({"mixing": FINE.mixing._replace(r_hat=1.08, r_hat_of=1)}, "weak", r"R-hat 1.08 for sigma"),
        ({"mixing": FINE.mixing._replace(r_hat=1.6)}, "do not use", r"have not found the same place"),
        ({"mixing": FINE.mixing._replace(effective=300.0)}, "weak", r"worth only 300 independent ones of mu"),
        ({"mixing": FINE.mixing._replace(effective=50.0), "brought": True}, "do not use", r"Bring longer chains"),
        ({"divergent": 0.01}, "weak", r"1.00% of the trajectories in M1 diverged"),
        ({"divergent": 0.2}, "do not use", r"diverged"),
        ({"mixing": FINE.mixing._replace(r_hat=np.nan)}, "do not use", r"R-hat nan"),
    ],
)
def test_each_sign_of_a_bad_posterior_lowers_the_word(change, expected, reason):
    verdict = word(halves(NEAR), (FINE, FINE._replace(**change)))
    assert verdict.word == expected
    assert any(re.search(reason, text) for text in verdict.reasons), verdict.reasons


def test_a_missed_target_is_weak_and_a_large_error_is_no_answer():
    assert word(halves(NEAR), target_se=1e-4, stopped="the budget is used up").word == "weak"
    legs = halves(FAR, offset=5)
    assert word(legs, target_se=0.05).word == "do not use"


def test_ends_that_do_not_overlap_are_no_answer():
    verdict = word(halves(FAR, offset=5))
    assert verdict.word == "do not use"
    assert any("overlap" in reason for reason in verdict.reasons)


def test_slow_chains_of_the_ratio_are_seen():
    verdict = word(halves(NEAR, rho=0.98, offset=7))
    assert verdict.word == "do not use"
    assert any("independent draws" in reason or "between chains" in reason for reason in verdict.reasons)


def test_halves_that_disagree_are_seen():
    first, second = halves(NEAR)
    shifted = second.forward._replace(log_ratio=second.forward.log_ratio + 0.3)
    verdict = word((first, second._replace(forward=shifted)))
    assert verdict.word == "do not use" and any("two halves" in reason for reason in verdict.reasons)


def test_the_way_back_disagrees_where_one_end_was_sampled_wrongly():
    """Draws at tau = 1 that are too narrow: each way is consistent with itself, the two are not with each other."""
    legs = []
    for leg in halves(NEAR):
        ratio = leg.forward.log_ratio.copy()
        centre = ratio[:, 1].mean()
        ratio[:, 1] = centre + 0.5 * (ratio[:, 1] - centre) + 0.1
        legs.append(leg._replace(forward=leg.forward._replace(log_ratio=ratio)))
    gap = hysteresis(tuple(legs))
    assert abs(gap.value) > 4 * gap.error
    assert any("way back" in reason for reason in word(tuple(legs)).reasons)
    healthy = hysteresis(halves(NEAR))
    assert abs(healthy.value) < 4 * healthy.error
    wider = hysteresis(halves(NEAR), correlation=0.44)
    assert wider.error == pytest.approx(1.2 * healthy.error)


def test_the_expected_error_is_that_over_many_repeats_and_catches_one_too_small():
    values = [summarise(halves(NEAR, offset=100 + 2 * i), "mbar").headline.value for i in range(60)]
    legs = halves(NEAR)
    assert expected_error(legs) == pytest.approx(np.std(values), rel=0.3)
    slow = halves(NEAR, rho=0.8, offset=300, n_draws=400)
    assert expected_error(slow) > 1.2 * expected_error(legs) * np.sqrt(100 / 400) * 2
    headline = summarise(legs, "mbar").headline
    lying = judge(legs, headline._replace(error=headline.error / 4), (FINE,), 0.05)
    assert lying.word == "weak" and "below half of what" in lying.reasons[0]


def test_a_reversed_trace_estimates_the_opposite():
    trace = halves(NEAR)[0].forward
    back = reversed_trace(trace)
    one_leg = (Leg("there", 1.0, trace, None),), (Leg("back", 1.0, back, None),)
    there, again = (summarise(legs, "mbar").headline.value for legs in one_leg)
    assert there == pytest.approx(-again, abs=1e-9)


def test_pareto_k_knows_tails():
    random = rng(11)
    assert pareto_k(random.exponential(size=4000) * 1.5) > 1.1  # weights with a Pareto tail of shape 1.5
    assert 0.2 < pareto_k(random.exponential(size=4000) * 0.5) < 0.7
    assert pareto_k(-random.exponential(size=4000)) < 0.2  # bounded weights: the sign of the convention
    assert pareto_k(np.zeros(1000)) == -np.inf
    lonely = np.full(1000, -800.0)
    lonely[:3] = 0.0
    lonely += 1e-3 * random.normal(size=1000)
    assert pareto_k(lonely) == np.inf
    assert weight_share(np.zeros(10)) == pytest.approx(1.0)


def test_heavy_tails_both_ways_are_weak():
    """log ratios with exponential tails at both ends: weights without a variance in either direction."""
    random = rng(12)
    legs = []
    for leg in halves(NEAR, n_draws=400):
        heavy = random.exponential(size=leg.forward.log_ratio.shape) * 1.2
        heavy[:, 1] *= -1
        legs.append(leg._replace(forward=leg.forward._replace(log_ratio=heavy)))
    assert any("heavy tails both ways" in reason for reason in word(tuple(legs)).reasons)


def test_two_legs_along_different_ladders_are_judged_apart():
    legs = tuple(
        Leg(f"no data to M{k}", sign, NEAR.equilibrium(rng(20 + k), np.linspace(0, 1, n), 16, 100), None)
        for k, sign, n in ((1, -1.0, 4), (2, 1.0, 5))
    )
    verdict = word(legs, ())
    assert verdict.word == "trustworthy", verdict.reasons
