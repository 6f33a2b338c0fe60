"""Latent series of 40 states, by PyMC and by NumPyro's scan, against evidences by Gaussian algebra and quadrature."""

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from assertions import rng
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan
from scipy import integrate, stats

from crossfade import compare, from_numpyro, from_pymc

N = 40
Y = 0.5 + np.cumsum(0.3 * rng(40).normal(size=N)) + 0.7 * rng(41).normal(size=N)

pytestmark = pytest.mark.slow


def log_evidence(pull):
    """x_0 ~ Normal(0, 1), x_t ~ Normal(pull x_{t-1}, sd), y_t ~ Normal(x_t, 0.7), with sd ~ HalfNormal(1)."""
    past = np.linalg.inv(np.eye(N) - pull * np.eye(N, k=-1))

    def at(sd):
        covariance = past @ np.diag([1.0, *[sd**2] * (N - 1)]) @ past.T + 0.7**2 * np.eye(N)
        return np.exp(stats.multivariate_normal(np.zeros(N), covariance).logpdf(Y) + 60) * stats.halfnorm.pdf(sd)

    return np.log(integrate.quad(at, 0, 8, points=[0.1, 0.3, 1.0], limit=200)[0]) - 60


def by_pymc(pull):
    import pymc as pm

    with pm.Model() as model:
        sd, first = pm.HalfNormal("sd", 1), pm.Normal.dist(0, 1)
        if pull == 1:
            x = pm.GaussianRandomWalk("x", sigma=sd, init_dist=first, steps=N - 1)
        else:
            x = pm.AR("x", rho=[pull], sigma=sd, init_dist=first, steps=N - 1)
        pm.Normal("y", x, 0.7, observed=Y)
    return from_pymc(model)


def by_numpyro(pull):
    def model(y):
        sd = numpyro.sample("sd", dist.HalfNormal(1.0))
        start = numpyro.sample("start", dist.Normal(0.0, 1.0))

        def move(x, now):
            x = numpyro.sample("x", dist.Normal(pull * x, sd))
            numpyro.sample("y", dist.Normal(x, 0.7), obs=now)
            return x, None

        numpyro.sample("y_0", dist.Normal(start, 0.7), obs=y[0])
        scan(move, start, jnp.asarray(y[1:]))

    return from_numpyro(model, Y)


@pytest.mark.parametrize("build", [by_pymc, by_numpyro])
def test_a_walk_against_a_series_that_returns(build):
    """As a subtle wrong twin, the pull of 0.8 is 0.82 in the truth."""
    result = compare(build(1.0), build(0.8), seed=1, target_se=0.03, progress=False)
    assert result.verdict == "trustworthy"
    answer, truth = result.log_bayes_factor, log_evidence(0.8) - log_evidence(1.0)
    assert answer.error < 0.035
    assert abs(answer.value - truth) < 4 * answer.error
    assert abs(answer.value - (log_evidence(0.82) - log_evidence(1.0))) > 4 * answer.error
