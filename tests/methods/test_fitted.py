"""The default method end to end: pairs with exact answers, the user's own draws, budgets, the fallback."""

import jax
import numpy as np
import pytest
import xarray
from assertions import assert_estimate
from linear_pairs import KINDS, crossed, log_bayes_factor
from numpyro import distributions as dist
from pairs import PAIRS
from traps import TRAPS, galaxy

from crossfade.api import compare, evidence
from crossfade.density.model import Model
from crossfade.methods.fitted import asked
from crossfade.methods.laplace import first_look
from crossfade.sampling import hmc as posterior
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic, mixed

LONG_TO_COMPILE = ("one_parameter", "positive", "correlation")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG_TO_COMPILE else name for name in PAIRS]
)
def test_pairs_of_every_kind_meet_their_exact_answers(name):
    m1, m2, truth = PAIRS[name]()
    result = compare(m1, m2, target_se=0.01)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth, max_error=0.01)
    with pytest.raises(AssertionError):  # the wrong twin: the answer with a constant dropped
        assert_estimate(result.log_bayes_factor, truth + np.log(2), max_error=0.01)


@pytest.mark.slow
def test_unshared_and_unequally_shared_parameters_in_one_pair():
    pair = crossed(**KINDS["scaled"])
    result = compare(*pair, target_se=0.01)
    assert result.sharing.shared == ("variance", "a") and result.sharing.tempered == ("a",)
    assert result.sharing.only_1 == ("b",) and result.sharing.only_2 == ("c",)
    assert_estimate(result.log_bayes_factor, log_bayes_factor(pair), max_error=0.01)


@pytest.fixture(scope="module")
def pima():
    return compare(*logistic.pima(), target_se=0.002)


def test_pima(pima):
    assert pima.verdict == "trustworthy", pima.reasons
    assert_estimate(pima.log_bayes_factor, -2.625013, max_error=0.002)
    for name, opinion in pima.opinions.items():
        assert_estimate(opinion, -2.625013, n_sigma=5, max_error=0.01), name
    assert abs(pima.hysteresis.value) < 4.5 * pima.hysteresis.error


def test_own_draws_are_not_sampled_again(pima, monkeypatch):
    """Arrays, or an xarray posterior under .posterior; nothing may be run when the overlap is good."""

    def never(*_, **__):
        raise AssertionError("a chain was run")

    monkeypatch.setattr(posterior, "_segment", never)
    first, second = pima.posteriors
    names = {name: (("chain", "draw"), values) for name, values in second.items()}
    tree = xarray.DataTree.from_dict({"/posterior": xarray.Dataset(names)})
    result = compare(*logistic.pima(), draws=(first, tree), target_se=0.01)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, -2.625013, max_error=0.01)


def test_own_draws_are_looked_at(pima):
    first, second = pima.posteriors
    short = {name: values[:2, :60] for name, values in second.items()}
    result = compare(*logistic.pima(), draws=(first, short), target_se=0.001)
    assert result.verdict != "trustworthy" and any("brought" in reason for reason in result.reasons)
    for draws, message in (
        ({k: v for k, v in second.items() if k != "age"}, "no 'age'"),
        ({**second, "age": second["age"][:, :, None]}, "'age' for M2 have shape"),
        ({**second, "age": second["age"][:, :-1]}, "differ in number"),
        (7, "bring a posterior or a dict"),
    ):
        with pytest.raises(CrossfadeError, match=message):
            compare(*logistic.pima(), draws=(first, draws))


def test_the_same_seed_gives_the_same_answer():
    m1, m2, _ = PAIRS["priors"]()
    first, again, other = (compare(m1, m2, seed=seed).log_bayes_factor.value for seed in (3, 3, 4))
    assert first == again != other


def test_the_answer_changes_sign_with_the_order():
    m1, m2, truth = PAIRS["priors"]()
    assert_estimate(-compare(m2, m1, target_se=0.01).log_bayes_factor, truth, max_error=0.01)


def test_the_evidence_of_one_model_two_ways():
    model = linear.radiata()[0]
    exact = linear.log_evidence(model)
    result = evidence(model, target_se=0.02)
    assert_estimate(result.log_bayes_factor, exact, max_error=0.02)
    look = first_look(model)
    assert look.reliable and look.laplace == pytest.approx(exact, abs=0.1)
    assert_estimate(look.importance, exact, max_error=0.02)


def test_a_first_look_refuses_what_has_no_peak():
    ridge = Model({"a": dist.Uniform(0.0, 1.0)}, lambda p: 0.0 * p["a"])
    with pytest.raises(CrossfadeError, match="50 coordinates"):
        first_look(mixed.pair(100)[0])
    assert np.isfinite(first_look(ridge).laplace)


def test_budgets():
    assert asked(0.05, None).seconds == 600
    assert asked(0.05, "5 min").seconds == 300 and asked(0.05, 7).seconds == 7
    assert asked(0.05, "20,000 draws").max_draws == 20_000
    for bad in ("soon", -1, 0, "5 parsecs"):
        with pytest.raises(CrossfadeError, match="budget"):
            asked(0.05, bad)
    with pytest.raises(CrossfadeError, match="target_se"):
        asked(0.0, None)


def test_a_spent_budget_gives_the_best_answer_and_says_so():
    m1, m2, truth = PAIRS["priors"]()
    result = compare(m1, m2, target_se=1e-5, budget="6400 draws")
    assert result.verdict == "weak" and "6,400 draws" in result.reasons[0]
    assert result.about["n_draws"]["0"] <= 6400 and "needs about" in result.about["forecast"]
    assert_estimate(result.log_bayes_factor, truth, max_error=0.01)


def test_arguments_of_other_methods_are_refused():
    m1, m2, _ = PAIRS["priors"]()
    with pytest.raises(CrossfadeError, match="n_iter= is for"):
        compare(m1, m2, n_iter=100)
    with pytest.raises(CrossfadeError, match="target_se= is for"):
        compare(m1, m2, method="MBAR", target_se=0.1)
    with pytest.raises(CrossfadeError, match="even number"):
        compare(m1, m2, n_chains=5)


@pytest.mark.slow
def test_separate_modes_are_tempered_from_the_prior():
    trap = TRAPS["separated"]()
    result = compare(trap.m1, trap.m2, budget=120)
    assert "because the chains of M1 stay in separate places" in result.about["path"]
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, trap.truth, max_error=0.05)
    assert set(np.sign(result.posteriors[0]["mu"].mean(axis=1))) <= {-1.0, 1.0}
    # every replicate crosses between the modes, which no untempered chain does
    assert (np.ptp(np.sign(result.posteriors[0]["mu"]), axis=1) == 2).all()


def test_data_that_differ_are_refused():
    m1, m2, _ = PAIRS["priors"]()
    other = Model(dict(m2.priors), m2.log_likelihood, data=np.append(m2.data, 1.0))
    with pytest.raises(CrossfadeError, match=r"different data \(5 and 6 responses"):
        compare(m1, other)


def test_precision_is_not_left_switched():
    before = jax.config.jax_enable_x64
    m1, m2, _ = PAIRS["priors"]()
    compare(m1, m2)
    assert jax.config.jax_enable_x64 == before


@pytest.mark.slow
def test_galaxy_is_right_or_says_that_it_is_not():
    result = compare(galaxy(3), galaxy(4), share=[], budget="5 min")
    if result.verdict != "do not use":
        assert_estimate(result.log_bayes_factor, 0.492, max_error=0.2)


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
