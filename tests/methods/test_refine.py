"""Importance sampling from fits to the draws, where that is cheaper than more of them."""

import lines
import numpy as np
import numpyro
import pytest
from assertions import assert_estimate
from numpyro import distributions as dist
from scipy import stats

from crossfade import compare, evidence
from crossfade.analysis.judge import judge
from crossfade.methods import refine
from crossfade.methods.refine import NAME, Refined
from crossfade.types import Estimate

TARGET = 0.0005


def test_a_small_error_is_reached_by_points():
    result = compare(*lines.in_numpyro(), target_se=TARGET, seed=2)
    assert result.raw_estimate.name == NAME and "then importance sampling" in result.about["path"]
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=TARGET)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(result.log_bayes_factor, lines.truth() + 0.02, max_error=TARGET)
    assert_estimate(result.opinions["mbar"], lines.truth(), max_error=0.1)  # the chains, held against them
    assert "importance sampling" in str(result) and "mbar" in str(result)


def test_the_path_is_taken_where_it_is_asked_for():
    result = compare(*lines.in_numpyro(), target_se=0.01, seed=2, route="path")
    assert result.raw_estimate.name == "mbar" and "importance" not in result.about["path"]


def test_one_evidence_by_points():
    m1, _ = lines.in_numpyro()
    result = evidence(m1, target_se=TARGET, seed=1)
    again = evidence(m1, target_se=0.02, seed=2)
    gap = result.log_bayes_factor.value - again.log_bayes_factor.value
    assert abs(gap) < 4 * np.hypot(result.log_bayes_factor.error, again.log_bayes_factor.error)


def test_chains_that_say_something_else_are_said():
    own = Refined(Estimate(1.0, 0.001, 15, NAME), Estimate(0.5, 0.05, 14, NAME), 2048, 0.1)
    word, reasons = judge(own.findings())
    assert word == "do not use" and "differs from the answer by -0.5 (10.0 standard errors)" in reasons[0]
    assert judge(own._replace(difference=Estimate(0.01, 0.05, 14, NAME)).findings()).word == "trustworthy"


def test_heavy_tails_are_left_to_the_chains(monkeypatch):
    monkeypatch.setattr(refine, "PARETO_K", -np.inf)
    result = compare(*lines.in_numpyro(), target_se=0.01, seed=2)
    assert result.raw_estimate.name == "mbar"


def test_dear_points_are_left_to_the_chains(monkeypatch):
    monkeypatch.setattr(refine, "PER_DRAW", 1e-9)
    result = compare(*lines.in_numpyro(), target_se=0.001, budget="6400 draws", seed=2)
    assert result.raw_estimate.name == "mbar"


def skewed(y, sd):
    """Few data, a scale near 0 and a heavy tail: nothing normal about it."""
    mu = numpyro.sample("mu", dist.Normal(0, sd))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(1.0))
    numpyro.sample("y", dist.StudentT(3.0, mu, sigma), obs=y)


@pytest.mark.slow
def test_errors_over_seeds_on_a_skewed_pair():
    y = np.array([0.2, 0.5, -0.1, 3.0])
    found = [
        compare((skewed, y, 1.0), (skewed, y, 5.0), target_se=0.003, seed=seed, progress=False) for seed in range(20)
    ]
    truth = compare((skewed, y, 1.0), (skewed, y, 5.0), target_se=0.0008, seed=99, progress=False).log_bayes_factor
    z = [
        (own.log_bayes_factor.value - truth.value) / np.hypot(own.log_bayes_factor.error, truth.error) for own in found
    ]
    assert all(own.verdict == "trustworthy" for own in found)
    assert np.mean(np.square(z)) < 2.0


def test_points_know_the_likelihood_of_a_model_without_parameters():
    y = np.array([0.3, 1.2, -0.5, 2.0])

    def fixed(y):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)

    def free(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("m", dist.Normal(0.0, 1.0)), 1.0), obs=y)

    result = compare((fixed, y), (free, y), target_se=1e-4)
    assert result.raw_estimate.name == NAME
    truth = (y.sum() ** 2 / 5 - np.log(5)) / 2
    assert_estimate(result.log_bayes_factor, truth, max_error=1e-4)
    with pytest.raises(AssertionError):  # the twin: a likelihood of 1
        assert_estimate(result.log_bayes_factor, truth + stats.norm.logpdf(y).sum(), max_error=1e-4)
