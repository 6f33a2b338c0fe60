"""Regressions as numbers, against quadrature and against the models that are sampled."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from assertions import assert_estimate
from scipy.integrate import nquad
from scipy.special import logsumexp
from scipy.stats import gamma, norm, poisson

from crossfade.bridges.formula import as_model
from crossfade.density.precision import float64
from crossfade.density.regression import Regression, regression_of
from crossfade.methods.coupled import NOTHING, Coupled, Side, around_mode
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic

RANDOM = np.random.default_rng(5)
X = np.column_stack([np.ones(9), RANDOM.normal(size=9)])
Y = {
    "gaussian": X @ [0.5, -1.0] + RANDOM.normal(size=9),
    "logistic": (RANDOM.uniform(size=9) < 0.6).astype(float),
    "poisson": RANDOM.poisson(2.0, size=9).astype(float),
}
NAMES, MEAN, PRECISION = ("a", "b"), np.array([0.3, -0.2]), np.array([0.7, 2.0])


def regression(family, noise=None):
    return Regression(family, Y[family], X, NAMES, MEAN, PRECISION, noise)


def log_likelihood(family, theta):
    eta = X @ theta
    if family == "poisson":
        return poisson.logpmf(Y[family], np.exp(eta)).sum()
    p = 1 / (1 + np.exp(-eta))
    return np.log(np.where(Y[family] == 1, p, 1 - p)).sum()


def over_variance(given):
    """Integral over 1/v ~ Gamma(2, rate 0.8), by its quantiles."""
    u = (np.arange(4000) + 0.5) / 4000
    return logsumexp([given(1 / precision) for precision in gamma.ppf(u, 2.0, scale=1 / 0.8)]) - np.log(4000)


def test_a_conjugate_evidence_is_the_density_of_the_responses():
    """Coefficients integrated out: y ~ N(D mean, v (I + D D' / precision)), by another formula than ours."""
    cover = np.eye(9) + X @ np.diag(1 / PRECISION) @ X.T
    away = Y["gaussian"] - X @ MEAN

    def given(variance):
        squares = away @ np.linalg.solve(cover, away)
        return -0.5 * (9 * np.log(2 * np.pi * variance) + np.linalg.slogdet(cover)[1] + squares / variance)

    assert regression("gaussian", 0.7).log_evidence() == pytest.approx(given(0.7), abs=1e-12)
    assert regression("gaussian", (2.0, 0.8)).log_evidence() == pytest.approx(over_variance(given), abs=2e-3)
    assert regression("gaussian", (2.1, 0.8)).log_evidence() != pytest.approx(over_variance(given), abs=2e-3)


@pytest.mark.parametrize("noise", [(2.0, 0.8), 0.7])
def test_a_conjugate_evidence_is_that_of_the_path(noise):
    model = as_model(regression("gaussian", noise))
    assert linear.log_evidence(model) == pytest.approx(regression("gaussian", noise).log_evidence(), abs=1e-11)


def test_radiata_to_the_digit():
    m1, m2 = (regression_of(model) for model in linear.radiata())
    assert m2.log_evidence() - m1.log_evidence() == pytest.approx(8.857108, abs=5e-7)


def test_draws_of_a_conjugate_posterior_have_its_moments():
    own = regression("gaussian", (2.0, 0.8))
    draws = own.posterior(4, 20_000, np.random.default_rng(1))
    gram = X.T @ X + np.diag(PRECISION)
    best = np.linalg.solve(gram, X.T @ Y["gaussian"] + PRECISION * MEAN)
    least = np.sum((Y["gaussian"] - X @ best) ** 2) + PRECISION @ (best - MEAN) ** 2
    shape, rate = 2.0 + 4.5, 0.8 + least / 2
    variance = rate / (shape - 1)
    sd = np.sqrt(variance * np.diag(np.linalg.inv(gram)))
    n = np.sqrt(80_000)
    assert draws["variance"].mean() == pytest.approx(variance, abs=5 * draws["variance"].std() / n)
    for j, name in enumerate(NAMES):
        assert draws[name].mean() == pytest.approx(best[j], abs=5 * sd[j] / n)
        assert draws[name].std() == pytest.approx(sd[j], rel=0.03)
    together = np.corrcoef(draws["a"].ravel(), draws["b"].ravel())[0, 1]
    covariance = np.linalg.inv(gram)
    assert together == pytest.approx(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), abs=0.02)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_log_joints_at_many_points(family, monkeypatch):
    own, points = regression(family), RANDOM.normal(size=(7, 2))
    prior = norm.logpdf(points, MEAN, PRECISION**-0.5).sum(axis=1)
    expected = [log_likelihood(family, theta) for theta in points] + prior
    np.testing.assert_allclose(own.log_joint(points), expected, rtol=1e-12)
    monkeypatch.setattr("crossfade.density.regression.BLOCK", 20)  # two points at a time
    monkeypatch.setattr("crossfade.density.regression.FACTORS", 4)
    np.testing.assert_allclose(own.log_joint(points), expected, rtol=1e-12)


def test_logits_far_out_do_not_overflow():
    own = regression("logistic")
    assert np.isfinite(own.log_joint(np.array([[1e4, -2e4]]))).all()
    assert regression("poisson").log_joint(np.array([[1e4, 0.0]]))[0] == -np.inf


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_the_mode_is_a_mode_with_that_curvature(family):
    own = regression(family)
    mode, curvature = own.mode_and_curvature()
    steps = 1e-4 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [0, 0]])
    right, left, up, down, both, neither, here = own.log_joint(mode + steps)
    slopes = np.array([right - left, up - down]) / 2e-4
    np.testing.assert_allclose(slopes, 0, atol=1e-6)
    numeric = [(right + left - 2 * here), (up + down - 2 * here)]
    cross = (both + neither - right - left - up - down + 2 * here) / 2
    np.testing.assert_allclose(curvature, -np.array([[numeric[0], cross], [cross, numeric[1]]]) / 1e-8, rtol=1e-4)


@pytest.mark.parametrize("start", [-300.0, 300.0])
def test_newton_arrives_from_a_prior_far_away(start):
    own = regression("poisson")._replace(mean=np.full(2, start), precision=np.full(2, 1e-6))
    mode, _ = own.mode_and_curvature()
    assert np.abs(mode).max() < 10


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_a_model_and_its_regression_have_one_log_joint(family):
    own = regression(family)
    model = as_model(own)
    again = regression_of(model)
    points = RANDOM.normal(size=(5, 2))
    with float64():
        theirs = [float(model.log_joint(dict(zip(NAMES, theta, strict=True)))) for theta in points]
    np.testing.assert_allclose(own.log_joint(points), theirs, rtol=1e-12)
    np.testing.assert_allclose(again.log_joint(points), theirs, rtol=1e-12)


def test_other_priors_make_it_no_regression_of_ours():
    from numpyro import distributions as dist

    from crossfade import Model, without_data

    m1, _ = logistic.pima()
    assert regression_of(m1).names == m1.names
    changed = Model({**m1.priors, "glu": dist.Cauchy(0.0, 2.5)}, m1.log_likelihood, m1.kernel, m1.data)
    assert regression_of(changed) is None
    assert regression_of(without_data(m1)) is None
    unscaled = linear.model(Y["gaussian"], X, NAMES, scaled=False)
    assert regression_of(unscaled) is None
    m1, _ = linear.radiata()
    assert regression_of(Model({**m1.priors, "variance": dist.LogNormal(0.0, 1.0)}, m1.log_likelihood)) is None


def test_priors_in_words():
    assert regression("gaussian", (2.0, 0.8)).priors == {
        "variance": "InverseGamma(2, 0.8)",
        "a": "Normal(0.3, variance / 0.7)",
        "b": "Normal(-0.2, variance / 2)",
    }
    assert regression("logistic").priors["b"] == "Normal(-0.2, 0.707107)"


def test_one_evidence_by_quadrature():
    """The whole chain of constants: p(y) of a Poisson regression by an adaptive double integral."""
    own = regression("poisson")
    mode, curvature = own.mode_and_curvature()
    sd = np.sqrt(np.diag(np.linalg.inv(curvature)))
    limits = [(m - 9 * s, m + 9 * s) for m, s in zip(mode, sd, strict=True)]
    top = own.log_joint(mode[None])[0]
    value, _ = nquad(lambda a, b: np.exp(own.log_joint(np.array([[a, b]]))[0] - top), limits, opts={"epsabs": 1e-9})
    both = Coupled((NOTHING, Side(own.log_joint, around_mode(mode, curvature))), 0, 3)
    both.more(512)
    assert_estimate(both.answer().estimate(), top + np.log(value), max_error=0.01)
    with pytest.raises(AssertionError, match="sigma"):  # without the prior's constant
        assert_estimate(both.answer().estimate(), top + np.log(value) + np.log(PRECISION).sum() / 2, max_error=0.01)


def exact_poisson(y, design, theta):
    """The log likelihood in 50 digits, the factorials by Stirling's series."""
    with localcontext(prec=50):
        pi, total = Decimal("3.14159265358979323846264338327950288419716939937510"), Decimal(0)
        for k, row in zip(map(Decimal, y), design, strict=True):
            eta = sum(Decimal(a) * Decimal(b) for a, b in zip(row, theta, strict=True))
            series = (2 * pi * k).ln() / 2 + 1 / (12 * k) - 1 / (360 * k**3) + 1 / (1260 * k**5)
            total += k * eta - eta.exp() - (k * k.ln() - k + series)
        return float(total)


@pytest.mark.parametrize("size", [1e8, 1e13, 1e14])
def test_counts_of_any_size_keep_their_digits(size):
    """The terms of the plain formula are 1e15 and more: their difference was wrong by whole numbers."""
    design = np.column_stack([np.ones(30), np.linspace(-1, 1, 30)])
    y = np.random.default_rng(1).poisson(size * np.exp(0.3 * design[:, 1])).astype(float)
    own = Regression("poisson", y, design, NAMES, np.zeros(2), np.full(2, 0.01))
    mode, curvature = own.mode_and_curvature()
    model = as_model(own)
    for far in (0.0, 3.0):
        theta = mode + far / np.sqrt(np.diag(curvature)) * [1, -1]
        prior = norm(0, 10).logpdf(theta).sum()
        truth = exact_poisson(y.tolist(), design.tolist(), theta.tolist())
        assert own.log_joint(theta[None])[0] - prior == pytest.approx(truth, abs=1e-4)
        with float64():
            assert float(model.log_likelihood(dict(zip(NAMES, theta, strict=True)))) == pytest.approx(truth, abs=1e-4)


def test_both_formulas_for_counts_agree(monkeypatch):
    own = regression("poisson")._replace(y=np.array([0.0, 0.0, 1.0, 2.0, 30.0, 900.0, 1e3, 1e4, 1e6]))
    points = RANDOM.normal(size=(5, 2))
    plain = own.log_joint(points)
    monkeypatch.setattr("crossfade.density.regression.MANY", 0.0)
    assert own.log_joint(points).tolist() != plain.tolist()
    np.testing.assert_allclose(own.log_joint(points), plain, rtol=1e-13)
    assert own.log_joint(np.array([[1e4, 0.0]]))[0] == -np.inf


def test_rates_that_no_counts_can_be_drawn_of_are_refused():
    own = regression("poisson")
    assert own._replace(mean=np.array([20.0, 0.0])).simulate(np.random.default_rng(1)).max() > 1e6
    with pytest.raises(
        CrossfadeError, match=r"rates beyond e\^40 .*: standardise the covariates, or give .* smaller sd"
    ):
        own._replace(mean=np.array([60.0, 0.0])).simulate(np.random.default_rng(1))


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_collinear_columns_are_named(family):
    design = np.column_stack([X[:, 0], 1e12 * X[:, 1], 2e12 * X[:, 1]])
    own = Regression(family, Y[family], design, ("one", "big", "bigger"), np.zeros(3), np.full(3, 0.01))
    with pytest.raises(CrossfadeError, match=r"columns 'big', 'bigger' are so nearly collinear.*poly\(x, 3\)"):
        own.mode_and_curvature()
