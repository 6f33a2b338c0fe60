"""The logistic world: the likelihood to the digit, and Pima against its quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate, rng
from linear_pairs import key

from crossfade.analysis.errors import jackknife, paper_variance
from crossfade.analysis.estimators import mbar, trapezoid
from crossfade.analysis.moments import controlled_values
from crossfade.density.model import without_data
from crossfade.paths.path import direct, reverse, union_coordinates
from crossfade.sampling.anneal import Schedule, Score, anneal, chain_keys
from crossfade.sampling.ladder import sigmoid
from crossfade.sampling.placed import measured_length
from crossfade.types import CrossfadeError
from crossfade.worlds.glm import logistic
from crossfade.worlds.glm.laplace import mode_and_curvature

PIMA = -2.625013  # tensor Gauss-Hermite quadrature, covariates standardised with n - 1


@pytest.mark.parametrize("n", [1, 7, 532, 999, 1000, 1001, 4321])
def test_sum_softplus_is_the_sum_of_softplus(n):
    eta = rng(n).normal(scale=20, size=n)
    exact = np.logaddexp(0, eta).sum()
    assert float(logistic.sum_softplus(jnp.asarray(eta))) == pytest.approx(exact, rel=1e-13)
    gradient = jax.grad(logistic.sum_softplus)(jnp.asarray(eta))
    np.testing.assert_allclose(gradient, 1 / (1 + np.exp(-eta)), atol=1e-14)


def test_sum_softplus_neither_overflows_nor_underflows():
    for eta in (np.full(2500, 800.0), np.full(2500, -800.0), np.zeros(2500), np.array([1e300, -1e300])):
        assert float(logistic.sum_softplus(jnp.asarray(eta))) == pytest.approx(np.logaddexp(0, eta).sum(), rel=1e-13)
    # the wrong twin: one product of everything overflows at 2^1024
    with np.errstate(over="ignore"):
        assert np.isinf(np.log(np.prod(np.full(2500, 2.0))))


def test_the_log_likelihood_is_bernoullis():
    _, m2 = logistic.pima()
    theta = {name: jnp.asarray(value) for name, value in zip(m2.names, rng(1).normal(size=6), strict=True)}
    from crossfade.data import load

    table = load("pima")
    x = table[["npreg", "glu", "bmi", "ped", "age"]].to_numpy(float)
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    eta = float(theta["intercept"]) + x @ np.array([float(theta[name]) for name in m2.names[1:]])
    p = 1 / (1 + np.exp(-eta))
    exact = np.sum(np.where(table["y"] == 1, np.log(p), np.log1p(-p)))
    assert float(m2.log_likelihood(theta)) == pytest.approx(exact, abs=1e-9)


def test_the_mode_is_a_mode_and_laplace_is_near_the_evidence():
    for model, truth in zip(logistic.pima(), (-257.2516, -259.8858), strict=True):
        mode, curvature = mode_and_curvature(model)
        theta = {name: jnp.asarray(value) for name, value in zip(model.names, mode, strict=True)}
        gradient = jax.grad(model.log_joint)(theta)
        assert max(abs(float(g)) for g in gradient.values()) < 1e-6
        precision = curvature + np.eye(len(mode)) / 100
        log_det = np.linalg.slogdet(precision / (2 * np.pi))[1]
        assert float(model.log_joint(theta)) - log_det / 2 == pytest.approx(truth, abs=1e-4)


@pytest.mark.slow
def test_pima_by_hmc_rungs_and_mbar():
    """The direct path with the prior as link: 30 rungs of equal length, 64 chains."""
    pair = logistic.pima()
    path, kernel = direct(*pair), logistic.hmc(*pair)
    tau = measured_length(path, kernel, chain_keys(key(0), 16))(30)
    trace, _ = anneal(path, kernel, tau, chain_keys(key(1), 64), schedule=Schedule(n_draws=1400, n_burn=50))
    estimate = jackknife(trace, mbar)
    assert_estimate(estimate, PIMA, max_error=0.005)
    wider = [
        logistic.model(m.data, (1 - 2 * m.data)[:, None] * m.log_likelihood.rows, m.names, prior_sd=11.0) for m in pair
    ]
    schedule = Schedule(n_draws=1400, n_burn=50)
    trace, _ = anneal(direct(*wider), logistic.hmc(*wider), tau, chain_keys(key(1), 16), schedule=schedule)
    with pytest.raises(AssertionError, match="sigma"):  # the wrong twin: priors a tenth wider
        assert_estimate(jackknife(trace, mbar), PIMA, max_error=0.02)


@pytest.mark.slow
def test_control_variates_cut_the_variance_of_the_integrand():
    """At least fivefold along the path, weighted as the integral weights it; Oates et al. report about tenfold."""
    pair = logistic.pima()
    schedule = Schedule(n_draws=200, n_burn=40)
    keys = chain_keys(key(2), 16)
    trace, _ = anneal(
        direct(*pair),
        logistic.hmc(*pair),
        sigmoid(30),
        keys,
        schedule=schedule,
        observe=Score(union_coordinates(*pair)),
    )
    weight = np.gradient(trace.tau) ** 2
    before = weight @ trace.log_ratio.var(axis=(0, 2))
    first, second = (before / (weight @ controlled_values(trace, d).var(axis=(0, 2))) for d in (1, 2))
    assert second > 5
    assert 1 < first < second  # a lower degree does less
    backwards = trace._replace(extra={**trace.extra, "score": trace.extra["score"][:, :, ::-1]})
    assert before / (weight @ controlled_values(backwards).var(axis=(0, 2))) < 1.2  # scores of other draws do not


@pytest.mark.slow
def test_neti_diff_with_the_papers_metropolis():
    """Agrees within its own error, there and back together; its own variance formula is far too small."""
    pair = logistic.pima()
    there, _ = anneal(direct(*pair), logistic.paper_metropolis(*pair), sigmoid(32_000), chain_keys(key(5), 32))
    back, _ = anneal(
        reverse(direct(*pair)), logistic.paper_metropolis(*pair[::-1]), sigmoid(32_000), chain_keys(key(6), 32)
    )
    assert_estimate(jackknife(there, trapezoid), PIMA, max_error=0.07)
    assert_estimate(-jackknife(back, trapezoid), PIMA, max_error=0.07)
    spread = np.trapezoid(there.log_ratio[:, :, 0], there.tau, axis=1).var(ddof=1)
    assert spread > 8 * paper_variance(there).mean()


def test_the_papers_steps_on_both_routes():
    m1, m2 = logistic.pima()
    straight = logistic.paper_metropolis(m1, m2).step
    assert straight.tempered_up == ("age",) and straight.tempered_down == ()
    back = logistic.paper_metropolis(m2, m1).step
    assert back.tempered_up == () and back.tempered_down == ("age",)
    leg = logistic.paper_metropolis(without_data(m1), m1).step
    assert set(leg.tempered_up) == set(m1.names)


def test_bad_models_are_refused():
    x = np.ones((3, 1))
    with pytest.raises(CrossfadeError, match="must be 0 or 1"):
        logistic.model(np.array([0, 1, 2]), x, ("a",))
    with pytest.raises(CrossfadeError, match="finite"):
        logistic.model(np.array([0, 1, 1]), x * np.nan, ("a",))
    with pytest.raises(CrossfadeError, match="shape"):
        logistic.model(np.array([0, 1, 1]), x, ("a", "b"))
    with pytest.raises(CrossfadeError, match="proper"):
        logistic.model(np.array([0, 1, 1]), x, ("a",), prior_sd=np.inf)
