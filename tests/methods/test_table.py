"""The table of methods end to end, on pairs with exact answers; no precision context here, as users have none."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from assertions import assert_estimate
from linear_pairs import KINDS, crossed, log_bayes_factor, nested

from crossfade import compare as module_or_function
from crossfade.api import compare
from crossfade.density.joint import as_joint, nothing
from crossfade.density.model import Model
from crossfade.methods.table import METHODS, Method, moves_of
from crossfade.sampling import anneal as loop
from crossfade.sampling.anneal import Interrupted
from crossfade.sampling.kernel import HMC, Cycle, Diagonal, Gibbs, Metropolis, UniformMetropolis
from crossfade.sampling.ladder import power, sigmoid
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic

CEILINGS = {"TI-standard": 0.15, "TI-optimal": 0.15, "NETI": 0.2, "CTI": 0.05}


def few_rungs(name):
    row = METHODS[name]
    return row if row.n_rungs is None else row._replace(n_rungs=12)


SLOW = ("CTI", "CTI-DIFF", "stepping-stone", "BAR", "TI-standard")  # differ in estimator or ladder alone


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in METHODS]
)
def test_every_method_meets_the_exact_answer(name):
    pair = nested(**KINDS["scaled"])
    result = compare(*pair, method=few_rungs(name), n_iter=2400, n_chains=16, seed=3)
    truth = log_bayes_factor(pair)
    # with 12 rungs the trapezoids have a bias of their own, which they must say; they are then judged by BAR
    biased = any("Add rungs" in reason for reason in result.reasons)
    assert biased == (name in ("TI-standard", "CTI", "CTI-DIFF"))
    assert result.verdict in (("weak",) if biased else ("trustworthy", "weak"))
    estimate = result.opinions["bar"] if biased else result.log_bayes_factor
    assert_estimate(estimate, truth, max_error=CEILINGS.get(name, 0.08))
    for opinion, other in result.opinions.items():
        if not ("trapezoid" in opinion and result.legs[0].forward.equilibrium):
            assert_estimate(other, truth, max_error=0.25)
        assert other.value - result.log_bayes_factor.value == pytest.approx(result.differences[opinion].value, abs=1e-9)
    assert abs(result.hysteresis.value) < 4.5 * result.hysteresis.error
    assert result.about["method"] in (name, "custom")
    assert result.sharing.shared == ("variance", "one", "a") and result.sharing.only_2 == ("b",)
    with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
        assert_estimate(estimate, truth + np.log(2), max_error=10)


@pytest.mark.slow
def test_unequal_priors_of_a_shared_parameter():
    pair = crossed(**KINDS["scaled"])
    result = compare(*pair, method="NETI-DIFF", n_iter=4000, n_chains=16)
    assert result.sharing.tempered == ("a",)
    assert_estimate(result.log_bayes_factor, log_bayes_factor(pair), max_error=0.05)


@pytest.mark.slow
def test_exchanging_the_models_changes_the_sign():
    pair = crossed(**KINDS["scaled"])
    result = compare(pair[1], pair[0], method="NETI-DIFF", n_iter=4000, n_chains=16)
    assert_estimate(result.log_bayes_factor, -log_bayes_factor(pair), max_error=0.05)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_and_another_one_another():
    pair = nested(**KINDS["scaled"])
    first, again, other = (compare(*pair, method="NETI-DIFF", n_iter=500, n_chains=4, seed=seed) for seed in (1, 1, 2))
    assert first.log_bayes_factor == again.log_bayes_factor
    assert first.opinions == again.opinions and first.hysteresis == again.hysteresis
    assert first.log_bayes_factor != other.log_bayes_factor


@pytest.mark.slow
def test_nobodys_precision_is_changed():
    before = jax.numpy.ones(1).dtype
    result = compare(*nested(**KINDS["scaled"]), method="NETI-DIFF", n_iter=500, n_chains=4)
    assert jax.numpy.ones(1).dtype == before == np.float32
    assert result.legs[0].forward.log_ratio.dtype == np.float64


@pytest.mark.slow
def test_prior_odds_give_posterior_odds():
    pair = nested(**KINDS["scaled"])
    result = compare(*pair, method="NETI-DIFF", n_iter=500, n_chains=4, log_prior_odds=np.log(3))
    assert result.log_posterior_odds == pytest.approx(result.log_bayes_factor.value + np.log(3))
    assert result.probability == pytest.approx(1 / (1 + np.exp(-result.log_posterior_odds)))


@pytest.mark.slow
def test_a_row_of_ones_own():
    row = Method(False, lambda n: power(n, 3), 10, "bar")
    result = compare(*nested(**KINDS["scaled"]), method=row, n_iter=1000, n_chains=4)
    assert result.about["method"] == "custom" and len(result.legs[0].forward.tau) == 10
    assert module_or_function is compare


@pytest.mark.slow
def test_a_short_run_that_lags_behind_warns():
    """Pima with the paper's Metropolis and 2,000 iterations is off by 3 sigma, and the way back shows it."""
    short, hopeless = (
        compare(*logistic.pima(), method="NETI-DIFF", n_iter=n, n_chains=64, kernel=logistic.paper_metropolis)
        for n in (2000, 500)
    )
    assert any("differ by" in reason and "Raise n_iter" in reason for reason in short.reasons)
    assert short.verdict != "trustworthy"
    assert hopeless.verdict == "do not use" and any("no answer yet" in reason for reason in hopeless.reasons)
    assert np.isnan(hopeless.log_bayes_factor.value) and np.isfinite(hopeless.raw_estimate.value)


@pytest.mark.slow
def test_a_coarse_ladder_warns():
    row = METHODS["TI-standard"]._replace(n_rungs=4)
    result = compare(*nested(**KINDS["scaled"]), method=row, n_iter=8_000, n_chains=16)
    assert result.verdict == "weak" and any("still missing" in reason for reason in result.reasons)
    fine = compare(*nested(**KINDS["scaled"]), method=few_rungs("MBAR"), n_iter=4_000)
    assert fine.verdict == "trustworthy", fine.reasons


def line(y_name="x"):
    return Model({y_name: dist.Normal(0.0, 1.0)}, lambda theta: -0.5 * (theta[y_name] - 1) ** 2)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"method": "TI-magic"}, "unknown method 'TI-magic': choose one of auto, TI-standard"),
        ({"n_chains": 1}, "at least 2 independent chains"),
        ({"method": "NETI-DIFF", "n_iter": 10}, "n_iter = 10 is too short.*at least 100"),
        ({"method": "MBAR", "n_iter": 100}, "at least 200"),
        ({"method": "CTI", "n_chains": 2}, "at least 4 chains"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(CrossfadeError, match=message):
        compare(*nested(**KINDS["scaled"]), **change)


def test_a_model_without_parameters_is_for_the_default():
    for pair in ((nothing(), line()), (line(), nothing())):
        with pytest.raises(CrossfadeError, match=r"has no parameters.*leave method= out"):
            compare(*pair, method="NETI-DIFF", n_iter=100)


def test_a_kernel_needs_models_with_a_prior_per_parameter():
    whole = as_joint(line())._replace(model=None)
    with pytest.raises(CrossfadeError, match="kernel= is for models with a prior per parameter"):
        compare(whole, line(), method="NETI-DIFF", kernel=lambda a, b: None)
    joined = as_joint(line())._replace(model=None, factors=None)
    with pytest.raises(CrossfadeError, match="not known parameter by parameter"):
        compare(joined, line(), method="NETI-DIFF", n_iter=100)
    with pytest.raises(CrossfadeError, match="needs the prior and the likelihood apart"):
        compare(joined._replace(log_prior=None), line(), method="NETI", n_iter=100)


def test_a_model_of_ones_own_with_a_kernel():
    """N(0, 1) prior and N(1; x, 1) against N(1; x, 4): p(y) = N(1; 0, 2) and N(1; 0, 5) up to what is dropped."""
    m1 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: dist.Normal(theta["x"], 1.0).log_prob(1.0))
    m2 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: dist.Normal(theta["x"], 2.0).log_prob(1.0))
    truth = float(-0.5 * (np.log(5) + 1 / 5) + 0.5 * (np.log(2) + 1 / 2))
    result = compare(
        m1, m2, method="NETI-DIFF", n_iter=4000, kernel=lambda a, b: Metropolis(Diagonal({"x": np.asarray(1.5)}))
    )
    assert_estimate(result.log_bayes_factor, truth, max_error=0.01)


def stop_after(n, monkeypatch):
    calls, real = [], loop._segment

    def segment(*args):
        calls.append(1)
        if len(calls) > n:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(loop, "_segment", segment)


def test_ctrl_c_on_the_way_back_still_answers(monkeypatch):
    pair = nested(**KINDS["scaled"])
    whole = compare(*pair, method="NETI-DIFF", n_iter=500, n_chains=4)
    stop_after(1, monkeypatch)
    result = compare(*pair, method="NETI-DIFF", n_iter=500, n_chains=4)
    assert result.log_bayes_factor == whole.log_bayes_factor
    assert result.hysteresis is None and result.legs[0].reverse is None


@pytest.mark.slow
def test_ctrl_c_on_the_way_there_keeps_what_is_done(monkeypatch):
    stop_after(1, monkeypatch)
    with pytest.raises(Interrupted) as stopped:
        compare(*nested(**KINDS["scaled"]), method="NETI", n_iter=500, n_chains=4)
    first, second = stopped.value.legs
    assert first.forward.tau[-1] == 1.0 and len(second.forward.tau) == 0


def test_sigmoid_is_what_neti_diff_runs_on():
    result = compare(*nested(**KINDS["scaled"]), method="NETI-DIFF", n_iter=500, n_chains=4)
    np.testing.assert_array_equal(result.legs[0].forward.tau, sigmoid(500))
    assert linear.gibbs is nested(**KINDS["scaled"])[0].kernel


def test_what_chains_move_by_is_said():
    step = Diagonal({})
    whole = Cycle((HMC(step, np.asarray(0.1), 4), Cycle((Gibbs(()), UniformMetropolis(step)))))
    assert moves_of(whole) == ["HMC", "Gibbs", "Metropolis"]
