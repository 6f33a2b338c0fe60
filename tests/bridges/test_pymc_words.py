"""Priors of PyMC models in words, and made wider: against closed forms, from exact draws and no chain."""

import numpy as np
import pymc as pm
import pytest
from assertions import assert_estimate, rng
from numpyro import distributions as dist
from scipy import stats

import crossfade
from crossfade.methods.sensitivity import check_sensitivity
from crossfade.methods.widths import with_widths
from crossfade.types import CrossfadeError, Estimate, Result, Sharing

Y = np.array([0.4, 1.3, -0.2, 0.9, 1.1])
N_CHAINS, N_DRAWS = 32, 200


def test_priors_are_in_the_arguments_that_users_give():
    with pm.Model() as model:
        mu = pm.Normal("mu", 1, 10)
        tau = pm.Exponential("tau", 2)
        pm.Gamma("shape", 2, 0.5)
        pm.HalfNormal("sd", 3)
        pm.HalfCauchy("wide", 5)
        pm.StudentT("t", nu=4, mu=0, sigma=2.5)
        pm.Normal("effect", mu, 2 * tau, shape=3)
        pm.Exponential("rate", tau)
        pm.Normal("known", np.arange(3.0), 1, shape=3)
        pm.Normal("y", mu, tau, observed=Y)
    assert crossfade.from_pymc(model).priors == {
        "mu": "Normal(1, 10)",
        "tau": "Exponential(2)",
        "shape": "Gamma(2, 0.5)",
        "sd": "HalfNormal(3)",
        "wide": "HalfCauchy(5)",
        "t": "StudentT(4, 0, 2.5)",
        "effect": "Normal(mu, f(tau))",
        "rate": "Exponential(f(tau))",
        "known": "Normal(<constant>, 1)",
    }


def mean_of(sd, loc=0.3):
    """The mean of normal data, sd 1."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", loc, sd), 1, observed=Y)
    return model


def log_evidence(sd, loc=0.3):
    return stats.multivariate_normal(np.full(5, loc), np.eye(5) + sd**2).logpdf(Y)


def null():
    with pm.Model() as model:
        pm.Normal("y", 0, 1, observed=Y)
    return model


def exact(sd, **about):
    """The result of a comparison with exact draws of its posterior."""
    value = log_evidence(sd) - stats.norm.logpdf(Y).sum()
    precision = 5 + sd**-2
    draws = (Y.sum() + 0.3 / sd**2) / precision + rng(0).normal(size=(N_CHAINS, N_DRAWS)) / precision**0.5
    headline = Estimate(value, 0.0, 31.0, "mbar")
    found = Result(headline, "trustworthy", (), {}, {}, {}, (), Sharing((), (), ("mu",)), about)
    return found._replace(draws=({}, {"mu": draws}))


@pytest.mark.parametrize("prior", [None, lambda factor: dist.Normal(0.3, 2 * factor)])
def test_the_curve_of_a_pymc_model_against_closed_forms(prior):
    curve = crossfade.prior_sensitivity(null(), mean_of(2.0), exact(2.0), "mu", factors=[0.5, 1, 2], prior=prior)
    assert curve.reliable.all()
    for factor, found in zip(curve.factors, curve.estimates, strict=True):
        truth = log_evidence(2 * factor) - stats.norm.logpdf(Y).sum()
        if factor == 1:
            assert found.value == pytest.approx(truth, abs=1e-9)
        else:
            assert_estimate(found, truth, max_error=0.02)
            # The prior around 0 instead of 0.3, a subtle twin.
            wrong = log_evidence(2 * factor, loc=-0.3) - stats.norm.logpdf(Y).sum()
            assert abs(found.value - wrong) > 4 * found.error
    if prior is None:
        assert curve.scales == ("Normal(0.3, 2), scale x 0.5", "Normal(0.3, 2)", "Normal(0.3, 2), scale x 2")


def test_a_scale_that_depends_on_others_and_a_rate():
    """Of effects around a mean of their own: log new - log old at one draw, by SciPy."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.Exponential("tau", 2)
        effect = pm.Normal("effect", 2 * mu, tau, shape=5)
        pm.Normal("y", effect, 1, observed=Y)
    random = rng(1)
    draws = {
        "mu": random.normal(size=(4, 200)),
        "tau": 1 + random.exponential(size=(4, 200)),
        "effect": random.normal(size=(4, 200, 5)),
    }
    run = Result(Estimate(0.0, 0.0, 31.0, "mbar"), "trustworthy", (), {}, {}, {}, (), Sharing((), (), ()), {})
    run = run._replace(draws=({}, draws))
    place, scale = 2 * draws["mu"][..., None], draws["tau"][..., None]
    old, new = (stats.norm.logpdf(draws["effect"], place, own).sum(axis=-1) for own in (scale, 3 * scale))
    (found, _) = reversed(crossfade.prior_sensitivity(null(), model, run, "effect", factors=[3]).estimates)
    assert found.value == pytest.approx(np.log(np.exp(new - old).mean()), abs=1e-8)
    (found, _) = reversed(crossfade.prior_sensitivity(null(), model, run, "tau", factors=[3]).estimates)
    old, new = (stats.expon.logpdf(draws["tau"], scale=own) for own in (0.5, 1.5))
    assert found.value == pytest.approx(np.log(np.exp(new - old).mean()), abs=1e-8)


def test_what_has_no_scale_is_said_before_the_run():
    with pm.Model() as model:
        pm.Normal("y", pm.Gamma("mu", 2, 1), 1, observed=Y)
    with pytest.raises(CrossfadeError, match=r"prior of 'mu' in M2 is Gamma\(2, 1\), which has no scale.*pass prior="):
        check_sensitivity(null(), model, "mu")
    check_sensitivity(null(), mean_of(1.0), "mu")
    with pytest.raises(CrossfadeError, match=r"made with mu ~ Normal\(0, 9\).*this M2 it is Normal\(0.3, 2\)"):
        crossfade.prior_sensitivity(null(), mean_of(2.0), exact(2.0, priors={"mu": "Normal(0, 9)"}), "mu")


def test_answers_near_even_odds_come_with_other_widths():
    models = crossfade.from_pymc(null()), crossfade.from_pymc(mean_of(2.0))
    found = with_widths(exact(2.0), *models).about["widths"]
    for (names, factor, value, error), truth in zip(found, (log_evidence(1.0), log_evidence(4.0)), strict=True):
        assert names == ["mu"] and factor in (0.5, 2.0)
        assert_estimate(Estimate(value, error, 31.0, ""), truth - stats.norm.logpdf(Y).sum(), max_error=0.02)
