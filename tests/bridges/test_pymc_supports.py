"""PyMC's special vectors: covariances, sums of zero, orders; and censored data, up to the far tails."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest
from assertions import assert_estimate, rng
from likelihoods import evaluate
from numpyro import distributions as dist
from pymc.distributions import multivariate, transforms
from scipy import special, stats

from crossfade.bridges import tails
from crossfade.bridges.packed import log_lkj_mass
from crossfade.bridges.pymc import from_pymc
from crossfade.types import Estimate

pytestmark = pytest.mark.usefixtures("double_precision")

Y = np.array([0.3, -1.2, 2.5])


def integral(joint, grids):
    """log of the integral of the log joint over unconstrained vectors in a box, by the trapezoidal rule."""
    axes = np.meshgrid(*grids, indexing="ij")
    values = evaluate(jax.vmap(joint.density), jnp.stack([jnp.ravel(axis) for axis in axes], axis=1))
    return float(jax.nn.logsumexp(values)) + sum(np.log(grid[1] - grid[0]) for grid in grids)


def covariance(n, eta):
    with pm.Model() as model:
        root, _, _ = pm.LKJCholeskyCov("root", n=n, eta=eta, sd_dist=pm.LogNormal.dist(0, 0.5))
        pm.MvNormal("y", np.zeros(n), chol=root, observed=np.ones(n))
    return from_pymc(model)


def packed(free, n):
    """The packed root of a covariance, from its standard deviations and what is below the diagonal of R's root."""
    below = jnp.zeros((n, n)).at[np.tril_indices(n, -1)].set(free[n:])
    root = below + jnp.diag(jnp.sqrt(1 - jnp.sum(below**2, axis=1)))
    return (free[:n, None] * root)[np.tril_indices(n)], root


def numpyros_density(free, n, eta):
    _, root = packed(free, n)
    volume = jnp.linalg.slogdet(jax.jacobian(lambda free: packed(free, n)[0])(free))[1]
    return dist.LKJCholesky(n, eta).log_prob(root) + dist.LogNormal(0, 0.5).log_prob(free[:n]).sum() - volume


@pytest.mark.parametrize(("n", "eta"), [(2, 2.0), (3, 2.0), (4, 0.7)])
def test_the_prior_of_a_covariance_is_that_of_numpyro(n, eta):
    joint = covariance(n, eta)
    assert joint.places["root"][0] == (n * (n + 1) // 2,)
    r = rng(940)
    free = jnp.asarray(np.column_stack([r.gamma(2, size=(3, n)), r.uniform(-0.5, 0.5, size=(3, n * (n - 1) // 2))]))
    expected = jax.jit(jax.vmap(lambda free: numpyros_density(free, n, eta)))(free)
    value = jax.jit(jax.vmap(lambda free: packed(free, n)[0]))(free)
    found = np.asarray(evaluate(jax.vmap(joint.log_prior), {"root": value}))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.all(np.abs(found + 2 * log_lkj_mass(n, eta) - expected) > 0.5)  # had the constant the wrong sign


def test_the_prior_of_a_covariance_integrates_to_one():
    grids = np.linspace(-2.8, 2.8, 57), np.linspace(-5, 5, 101), np.linspace(-7, 2.5, 77)
    prior = covariance(2, 2.0).without_data()
    assert integral(prior, grids) == pytest.approx(0, abs=1e-3)
    constant = prior.factors["root"].constant  # what PyMC's own lacks: -2 log(4/3) in 5.28
    assert constant != 0
    raw = prior._replace(log_prior=replace(prior.factors["root"], constant=0.0))
    assert integral(raw, grids) == pytest.approx(-constant, abs=1e-3)


def test_a_pymc_that_is_normalised_is_left_alone(monkeypatch):
    ours = covariance(2, 2.0)
    theta = {"root": jnp.array([0.8, 0.3, 1.1])}
    wrong = multivariate._lkj_normalizing_constant
    monkeypatch.setattr(multivariate, "_lkj_normalizing_constant", lambda eta, n: -wrong(eta, n))
    mended = covariance(2, 2.0)
    assert mended.notes == () and "so that it is normalised" in ours.notes[0]
    assert float(evaluate(mended.log_prior, theta)) == pytest.approx(float(evaluate(ours.log_prior, theta)), abs=1e-6)


def test_the_mass_of_correlations():
    for eta in (0.7, 1.0, 2.5):
        assert log_lkj_mass(2, eta) == pytest.approx((2 * eta - 1) * np.log(2) + special.betaln(eta, eta), abs=1e-12)
    a, b, c = rng(941).uniform(-1, 1, size=(3, 400_000))
    determinant = 1 + 2 * a * b * c - a**2 - b**2 - c**2  # inside the cube, positive where the matrix is
    terms = 8 * np.maximum(determinant, 0)
    estimate = Estimate(terms.mean(), terms.std() / np.sqrt(len(terms)), np.inf)
    assert_estimate(estimate, np.exp(log_lkj_mass(3, 2.0)), max_error=0.01)
    with pytest.raises(AssertionError):
        assert_estimate(estimate, np.exp(-log_lkj_mass(3, 2.0)), max_error=0.01)


@pytest.mark.parametrize(("shape", "n_axes"), [((3,), 1), ((2, 3), 2), ((2, 2), 1)])
def test_vectors_that_sum_to_zero_have_the_exact_evidence(shape, n_axes):
    y = np.resize(Y, shape)
    with pm.Model() as model:
        a = pm.ZeroSumNormal("a", sigma=1.5, shape=shape, n_zerosum_axes=n_axes)
        pm.Normal("y", a, 0.7, observed=y)
    joint = from_pymc(model)
    first = len(shape) - n_axes
    centred = [np.eye(n) - np.full((n, n), 1 / n if k >= first else 0.0) for k, n in enumerate(shape)]
    prior = 1.5**2 * (centred[0] if len(shape) == 1 else np.kron(*centred))
    exact = stats.multivariate_normal(np.zeros(y.size), prior + 0.49 * np.eye(y.size)).logpdf(y.ravel())
    found = integral(joint, [np.linspace(-8, 8, 161)] * 2)
    assert joint.coordinates.size == 2
    assert found == pytest.approx(exact, abs=1e-8)
    free = stats.multivariate_normal(np.zeros(y.size), (1.5**2 + 0.49) * np.eye(y.size)).logpdf(y.ravel())
    assert abs(found - free) > 0.1


def test_sums_of_zero_are_not_a_matter_of_rounding():
    with pm.Model() as model:
        a = pm.ZeroSumNormal("a", sigma=pm.HalfNormal("sd"), shape=3)
        pm.Normal("y", a, 1, observed=Y)
    density = from_pymc(model).density
    far = np.array([[0.0, u, -0.3 * u] for u in 10.0 ** np.arange(4, 13)])
    assert np.all(np.isfinite(evaluate(jax.vmap(density), far)))  # PyMC says -inf for some


def test_ordered_normals_with_means_of_their_own():
    mean, sd = np.array([0.5, -0.2]), np.array([1.0, 2.0])
    with pm.Model() as model:
        pm.Normal("cut", mean, sd, transform=transforms.ordered, initval=[0, 1])
        pm.Normal("y", model["cut"].sum(), 1, observed=Y)
    joint = from_pymc(model)
    in_order = stats.norm.logcdf((mean[1] - mean[0]) / np.sqrt(np.sum(sd**2)))
    theta = {"cut": jnp.array([-0.4, 1.3])}
    expected = stats.norm(mean, sd).logpdf([-0.4, 1.3]).sum() - in_order
    assert float(evaluate(joint.log_prior, theta)) == pytest.approx(expected, abs=1e-8)
    assert abs(np.log(2) + in_order) > 0.05  # the number of orders would be wrong
    assert "probability of its order" in joint.notes[0]
    starts = evaluate(jax.vmap(joint.start), jax.random.split(jax.random.key(0), 50))
    assert np.all(np.diff(starts["cut"]) > 0)


def test_ordered_exponentials_with_rates_of_their_own():
    rate = np.array([[1.0, 0.2, 3.0], [1.0, 1.0, 1.0]])
    with pm.Model() as model:
        pm.Exponential("x", rate, transform=transforms.Ordered(positive=True), initval=np.ones((2, 1)) * [1.0, 2, 3])
        pm.Normal("y", model["x"].sum(), 1, observed=Y)
    joint = from_pymc(model)
    x = np.array([[0.2, 0.9, 1.4], [0.1, 0.2, 0.3]])
    in_order = np.log(rate / np.cumsum(rate[:, ::-1], axis=1)[:, ::-1]).sum()
    expected = stats.expon(scale=1 / rate).logpdf(x).sum() - in_order
    assert float(evaluate(joint.log_prior, {"x": jnp.asarray(x)})) == pytest.approx(expected, abs=1e-8)
    assert abs(2 * np.log(6) + in_order) > 0.1


TIMES = np.array([1.0, 3.0, 5.0, 5.0])


def weibull(mu):
    law = stats.weibull_min(1.5, scale=np.exp(mu))
    return law.logpdf(TIMES[:2]).sum() + 2 * law.logsf(5)


def normal(mu):
    law = stats.norm(mu, 1)
    return law.logpdf(TIMES[1]).sum() + law.logcdf(1) + 2 * law.logsf(5)


CENSORED = {
    "weibull": (lambda mu: pm.Weibull.dist(1.5, pm.math.exp(mu)), None, weibull, (-2.0, 0.0, 3.0, 20.0)),
    "normal": (lambda mu: pm.Normal.dist(mu, 1), 1.0, normal, (-60.0, -5.0, 1.0, 4.0, 60.0)),
}


@pytest.mark.parametrize("case", CENSORED)
def test_censored_data_have_the_likelihood_of_scipy_and_its_gradient(case):
    law, lower, expected, points = CENSORED[case]
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 10)
        pm.Censored("y", law(mu), lower=lower, upper=5.0, observed=TIMES)
    joint = from_pymc(model)
    np.testing.assert_array_equal(joint.data, TIMES)
    slope = jax.jit(jax.grad(lambda mu: joint.log_likelihood({"mu": mu})))
    for mu in points:
        assert float(evaluate(joint.log_likelihood, {"mu": jnp.array(mu)})) == pytest.approx(expected(mu), rel=1e-10)
        around = (expected(mu + 1e-5) - expected(mu - 1e-5)) / 2e-5
        assert float(slope(mu)) == pytest.approx(around, rel=1e-5)  # far out, that of PyTensor is NaN
    free = stats.weibull_min(1.5).logpdf(TIMES).sum() if case == "weibull" else stats.norm(1, 1).logpdf(TIMES).sum()
    assert abs(expected(0.0 if case == "weibull" else 1.0) - free) > 0.1


def test_tails_are_those_of_scipy():
    x = np.array([-20.0, -3.0, -0.5, 0.0, 0.5, 3.0, 30.0, 1e3])
    np.testing.assert_allclose(tails.erfcx(x), special.erfcx(x), rtol=1e-9)
    np.testing.assert_allclose(tails.erfc(x), special.erfc(x), rtol=1e-12)
    below = -np.array([1e-300, 1e-9, 0.1, 0.6931, 0.6932, 5.0, 700.0])
    np.testing.assert_allclose(tails.log1mexp(below), np.log(-special.expm1(below)), rtol=1e-12, atol=1e-16)
    assert np.all(np.isfinite(jax.vmap(jax.grad(tails.log1mexp))(below[1:])))
