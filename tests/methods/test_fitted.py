"""The default method end to end: pairs with exact answers, runs as data, budgets, the user's own draws."""

from itertools import pairwise

import jax
import lines
import numpy as np
import pytest
from assertions import assert_estimate
from linear_pairs import KINDS, crossed, log_bayes_factor
from pairs import PAIRS
from traps import galaxy

from crossfade.api import compare, evidence
from crossfade.density.joint import as_joint
from crossfade.methods import answer, drive, fitted, pilot
from crossfade.methods.budget import asked
from crossfade.sampling import hmc
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic, mixed

LONG_TO_COMPILE = ("noise", "one_parameter", "positive", "correlation", "simplex", "ordered")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG_TO_COMPILE else name for name in PAIRS]
)
def test_pairs_of_every_kind_meet_their_exact_answers(name):
    m1, m2, truth = PAIRS[name]()
    result = compare(m1, m2, target_se=0.01, route="path")
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth, max_error=0.01)
    with pytest.raises(AssertionError):  # the wrong twin: the answer with a constant dropped
        assert_estimate(result.log_bayes_factor, truth + np.log(2), max_error=0.01)


@pytest.mark.slow
def test_unshared_and_unequally_shared_parameters_in_one_pair():
    pair = crossed(**KINDS["scaled"])
    result = compare(*pair, target_se=0.01, route="path")
    assert result.sharing.shared == ("variance", "a") and result.sharing.tempered == ("a",)
    assert result.sharing.only_1 == ("b",) and result.sharing.only_2 == ("c",)
    assert_estimate(result.log_bayes_factor, log_bayes_factor(pair), max_error=0.01)


@pytest.fixture(scope="module")
def joints():
    return tuple(as_joint(model) for model in lines.in_numpyro())


def begun(joints, target_se=0.02, budget="100000 draws"):
    return fitted.begin(joints, asked(target_se, budget), seed=3, n_chains=16)


@pytest.fixture(scope="module")
def by_hand(joints):
    """Every state of a run, driven by a loop."""
    runs = [begun(joints)]
    while not runs[-1].finished:
        runs.append(fitted.step(runs[-1]))
    return runs


def arrays(run):
    """All numbers of a run."""
    return [
        leaf for leaf in jax.tree.leaves((run.draws, run.edge, run.summary)) if isinstance(leaf, np.ndarray | float)
    ]


def copies(run):
    return [np.array(leaf) for leaf in arrays(run)]


def test_a_step_is_a_pure_function_of_the_run(by_hand):
    for run, next_run in pairwise(by_hand):
        before = copies(run)
        again = fitted.step(run)
        assert fitted.due(again) == fitted.due(next_run) and again.finished == next_run.finished
        for a, b in zip(arrays(again), arrays(next_run), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(arrays(run), before, strict=True):  # what went in is as it was
            np.testing.assert_array_equal(a, b)


def test_driving_by_hand_is_compare(by_hand):
    said = [fitted.due(run) for run in by_hand]
    assert any("warming up" in words for words in said) and any("fitting links" in words for words in said)
    found = answer.result_of(by_hand[-1])
    messages = []
    result = compare(
        *lines.in_numpyro(), target_se=0.02, budget="100000 draws", seed=3, n_chains=16, progress=messages.append
    )
    assert result.raw_estimate == found.raw_estimate and result.checks == found.checks
    np.testing.assert_array_equal(result.legs[0].forward.log_ratio, found.legs[0].forward.log_ratio)
    assert any("warming up" in words for words in messages)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=0.02)


def test_ctrl_c_after_the_first_look_is_a_weak_answer(joints, monkeypatch):
    real, seen = fitted._grown, []

    def pressed(run):
        seen.append(run)
        if len(seen) == 1:
            raise KeyboardInterrupt
        return real(run)

    monkeypatch.setattr(fitted, "_grown", pressed)
    result = answer.result_of(drive.drive(begun(joints, target_se=1e-5), lambda words: None))
    assert result.verdict == "weak" and "it was stopped by hand" in result.reasons[0]
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=0.1)


def test_ctrl_c_before_there_is_anything_says_what_is_missing(joints, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pilot, "continued", pressed)
    with pytest.raises(KeyboardInterrupt, match=r"stopped by hand: .*Draws of M1 are missing"):
        drive.drive(begun(joints), lambda words: None)


def test_time_that_is_up_gives_an_answer_from_the_first_draws_on(by_hand):
    """With draws of both models there is an answer with its real error, before that one sentence."""
    for run in by_hand[:-1]:
        late = run._replace(asked=asked(1e-4, 1e-9))
        both = all(draws is not None and draws.n_draws for draws in run.draws)
        if not both:
            with pytest.raises(CrossfadeError, match=r"no answer yet.*1e-09 s is used up.*Draws of M\d are missing"):
                drive.drive(late, lambda words: None)
            continue
        result = answer.result_of(drive.drive(late, lambda words: None))
        assert result.verdict != "trustworthy" and any("1e-09 s is used up" in said for said in result.reasons)
        assert_estimate(result.raw_estimate, lines.truth(), max_error=0.2)


def test_what_is_said_meanwhile(joints):
    said = []
    drive.drive(begun(joints)._replace(asked=asked(0.0005, 100)), said.append)
    assert said[0].startswith("compiling both models") and said[1].startswith("warming up the chains of M1")
    assert said[-1] == ""
    assert any("log Bayes factor" in line and "0.0005 asked" in line and "left" in line for line in said)


def test_a_spent_budget_gives_the_best_answer_and_says_so():
    result = compare(*lines.in_numpyro(), target_se=1e-4, budget="6400 draws", n_chains=16)
    assert result.verdict == "weak" and "6,400 draws per rung is used up" in result.reasons[0]
    assert 0.9 * 6400 < result.about["n_draws"]["0"] <= 6400
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=0.02)


def test_own_draws_are_not_sampled_again(monkeypatch):
    """Nothing may be run when the overlap is good."""

    def never(*_, **__):
        raise AssertionError("a chain was run")

    random = np.random.default_rng(2)
    draws = tuple(lines.posterior(k, random) for k in (0, 1))
    monkeypatch.setattr(hmc, "_segment", never)
    result = compare(*lines.in_numpyro(), draws=draws, target_se=0.03)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=0.03)
    short = tuple({name: values[:2, :60] for name, values in own.items()} for own in draws)
    result = compare(*lines.in_numpyro(), draws=short, target_se=0.001)
    assert result.verdict != "trustworthy" and any("brought" in reason for reason in result.reasons)


def test_own_draws_of_any_number_of_chains():
    random = np.random.default_rng(3)
    for first, second in (((5, 1000), (4, 1000)), ((4, 1000), (100, 100)), ((1, 4000), (4, 1000))):
        draws = lines.posterior(0, random, shape=first), lines.posterior(1, random, shape=second)
        result = compare(*lines.in_numpyro(), draws=draws)
        assert result.verdict == "trustworthy", (first, second, result.reasons)
        assert_estimate(result.log_bayes_factor, lines.truth(), max_error=0.05)


def test_the_same_seed_gives_the_same_answer():
    m1, m2 = lines.in_numpyro()
    first, again, other = (compare(m1, m2, seed=seed).log_bayes_factor.value for seed in (3, 3, 4))
    assert first == again != other


def test_the_answer_changes_sign_with_the_order():
    m1, m2 = lines.in_numpyro()
    assert_estimate(-compare(m2, m1, target_se=0.02).log_bayes_factor, lines.truth(), max_error=0.02)


@pytest.mark.slow
def test_pima():
    pima = compare(*logistic.pima(), target_se=0.002, route="path")
    assert pima.verdict == "trustworthy", pima.reasons
    assert_estimate(pima.log_bayes_factor, -2.625013, max_error=0.002)
    for opinion in pima.opinions.values():
        assert_estimate(opinion, -2.625013, n_sigma=5, max_error=0.01)
    assert abs(pima.hysteresis.value) < 4.5 * pima.hysteresis.error


@pytest.mark.slow
def test_the_evidence_of_one_model():
    model = linear.radiata()[0]
    result = evidence(model, target_se=0.02)
    assert_estimate(result.log_bayes_factor, linear.log_evidence(model), max_error=0.02)


def test_chains_come_in_even_numbers():
    with pytest.raises(CrossfadeError, match="even number"):
        compare(*lines.in_numpyro(), n_chains=5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_galaxy_is_right_and_trusted(seed):
    """Three or four components: pieces within one numbering, found by tempering and fitted by mixtures."""
    result = compare(galaxy(3), galaxy(4), seed=seed)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, 0.492, max_error=0.05)
    with pytest.raises(AssertionError):  # the wrong twin: numberings of a component too few
        assert_estimate(result.log_bayes_factor, 0.492 - np.log(4), max_error=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [10, 100, 1000])
def test_mixed_model_with_many_shared_effects(n_groups):
    truth, error = mixed.REFERENCE[n_groups]
    result = compare(*mixed.pair(n_groups), target_se=0.01)
    assert result.verdict == "trustworthy", result.reasons
    estimate = result.log_bayes_factor
    assert_estimate(estimate._replace(error=float(np.hypot(estimate.error, error))), truth, max_error=0.0101)
    ends = [leg.forward.log_ratio.var(axis=(0, 2)) for leg in result.legs]
    assert np.max(ends) < 0.4  # does not grow with the number of groups
