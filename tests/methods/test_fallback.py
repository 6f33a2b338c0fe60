"""The fallback: posteriors in separate pieces are left to tempering, which says how it did."""

import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate
from likelihoods import Likelihood
from numpyro import distributions as dist
from scipy import stats
from traps import TRAPS

from crossfade.api import compare, evidence
from crossfade.density.joint import as_joint, fixed
from crossfade.density.model import Model
from crossfade.methods import fallback
from crossfade.methods.budget import Asked
from crossfade.types import Estimate, Result, Sharing


@pytest.fixture(scope="module")
def trap():
    return TRAPS["separated"]()


@pytest.fixture(scope="module")
def result(trap):
    return compare(trap.m1, trap.m2, target_se=0.1, n_chains=16)


@pytest.mark.slow
def test_separate_modes_are_tempered_from_the_prior(trap, result):
    assert "because the chains of M1 stay in separate places" in result.about["path"]
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, trap.truth, max_error=0.1)
    with pytest.raises(AssertionError):  # the wrong twin: a mode of one model forgotten
        assert_estimate(result.log_bayes_factor, trap.truth + np.log(2), max_error=0.1)
    assert result.sharing.shared == ("mu",) and min(result.about["round_trips"]) >= 40
    # every replicate crosses between the modes, which no untempered chain does
    assert (np.ptp(np.sign(result.draws[0]["mu"]), axis=1) == 2).all()


def test_a_pair_in_pieces_is_handed_over_with_what_is_left_of_the_budget(trap, monkeypatch):
    seen = []

    def stub(joints, asked, seed, why, say, before):
        seen.append((asked, why, before))
        empty = Estimate(0.1, 0.01, 15.0, "mbar")
        return Result(empty, "trustworthy", (), {}, {}, {}, (), Sharing((), (), ()), {"path": why})

    monkeypatch.setattr(fallback, "tempered", stub)
    found = compare(trap.m1, trap.m2, budget="5 min", n_chains=16)
    assert seen[0][0] == Asked(0.05, 300.0) and 0 < seen[0][2] < 300
    assert "the chains of M1 stay in separate places (R-hat" in seen[0][1]
    assert found.about["method"] == "auto" and found.sharing.shared == ("mu",)


def test_models_in_one_piece_and_draws_of_ones_own_are_not_tempered(trap, monkeypatch):
    def never(*_, **__):
        raise AssertionError("tempered")

    monkeypatch.setattr(fallback, "tempered", never)
    random = np.random.default_rng(1)
    own = 8 + 0.57 * random.normal(size=(4, 1000))
    found = compare(trap.m1, trap.m2, draws=({"mu": own}, {"mu": own}))
    assert found.verdict != "trustworthy"
    assert any("far from all of them: mu = -" in reason for reason in found.reasons)


def level(p, y):
    return dist.Normal(p["mu"], 1.0).log_prob(y).sum()


@pytest.mark.slow
def test_a_budget_that_is_spent_is_said():
    y = np.array([0.2])
    joints = tuple(as_joint(Model({"mu": dist.Normal(0.0, sd)}, Likelihood(level, y))) for sd in (1.0, 2.0))
    asked = Asked(1e-7, None, 7000)
    found = fallback.tempered(joints, asked, 0, "it was asked for", lambda words: None)
    truth = -0.5 * (np.log(5 / 2) + 0.04 / 5 - 0.04 / 2)
    assert found.verdict == "weak" and "7,000 draws per rung is used up" in found.reasons[0]
    assert_estimate(found.raw_estimate, truth, max_error=0.05)


def test_steps_are_those_that_the_error_asks_for_and_the_budget_allows():
    passage = type("Passage", (), {"log_likelihood": np.zeros((16, 10, 400))})
    run = type("Run", (), {"tau": np.zeros(10)})
    summary = type("Summary", (), {"headline": Estimate(0.0, 0.1, 15.0)})

    def affordable(asked, spent=1.0):
        return fallback._affordable(asked, summary, [passage] * 2, [run] * 2, spent, asked.seconds)

    assert affordable(Asked(0.06)) == (int(400 * (1.15 / 0.36 - 1)), "")
    assert affordable(Asked(0.2)) == (400, "")  # at least twice as many, where it is the draws that are too few
    assert affordable(Asked(0.001)) == (1200, "")  # at most four times as many at once
    assert affordable(Asked(0.001, seconds=2.0)) == (400, "")
    n, why = affordable(Asked(0.001, seconds=1.1))
    assert n == 0 and why == "the budget of 1.1 s is used up"


@pytest.mark.slow
def test_what_cannot_be_tempered_in_time_is_answered_along_the_fitted_path(trap, monkeypatch):
    """With a verdict that says why it is not to be used, and how long tempering would take."""
    monkeypatch.setattr(fallback, "forecast", lambda joints: 1e4)
    found = compare(trap.m1, trap.m2, budget="1 min", n_chains=16)
    assert found.verdict == "do not use" and any("would need about 2.8 h" in reason for reason in found.reasons)


def test_ctrl_c_while_tempering(trap, monkeypatch):
    joints = as_joint(trap.m1), as_joint(trap.m2)

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fallback, "tune", pressed)
    with pytest.raises(KeyboardInterrupt, match=r"no answer yet: it was asked for, .*stopped by hand before"):
        fallback.tempered(joints, Asked(0.05, 100.0), 0, "it was asked for", lambda words: None)


@pytest.mark.slow
def test_the_evidence_of_a_model_in_pieces_falls_back_too():
    """Two peaks of unequal mass; over nothing, and over a model without parameters that has a likelihood."""

    def likelihood(p):
        parts = [np.log(w) + dist.Normal(at, 0.3).log_prob(p["x"]).sum() for w, at in ((0.9, -6.0), (0.1, 6.0))]
        return jnp.logaddexp(*parts)

    m2 = Model({"x": dist.Normal(0.0, 10.0).expand([2])}, likelihood)
    truth = 2 * stats.norm.logpdf(6.0, 0.0, np.hypot(10.0, 0.3))
    result = evidence(m2)
    assert "the evidence from the prior by parallel tempering" in result.about["path"]
    assert result.verdict == "trustworthy" and result.draws[0] == {}
    assert_estimate(result.log_bayes_factor, truth, max_error=0.05)
    over = compare(fixed(jnp.asarray(1.5), None), m2)
    assert_estimate(over.log_bayes_factor, truth - 1.5, max_error=0.05)
    with pytest.raises(AssertionError):  # the twin: the constant forgotten
        assert_estimate(over.log_bayes_factor, truth, max_error=0.05)
