"""The Poisson world: the likelihood to the digit, a pair against quadrature, and chains that start far away."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate, rng
from linear_pairs import key
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats

from crossfade import compare
from crossfade.density.model import Model, without_data
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.types import CrossfadeError, State
from crossfade.worlds.glm import laplace as glm
from crossfade.worlds.glm import poisson

SD = 2.5


def data() -> tuple[np.ndarray, np.ndarray]:
    """60 counts of mean 4, and the columns one, a, b."""
    random = np.random.default_rng(5)
    design = np.column_stack([np.ones(60), random.normal(size=(60, 2))])
    return random.poisson(np.exp(design @ [1.2, 0.4, 0.15])).astype(float), design


def pair() -> tuple[Model, Model]:
    y, design = data()
    return poisson.model(y, design[:, :2], ("one", "a")), poisson.model(y, design, ("one", "a", "b"))


def log_evidence_by_quadrature(m: Model, n_nodes: int, sd: float = SD) -> float:
    """Tensor Gauss-Hermite around the mode; the integrand is SciPy's, the package only says where to look."""
    y, design = data()
    design = design[:, : len(m.names)]
    mode, curvature = glm.mode_and_curvature(m)
    spread = np.linalg.inv(np.linalg.cholesky(curvature + np.eye(len(mode)) / sd**2)).T
    nodes, weights = hermegauss(n_nodes)
    z = np.stack(np.meshgrid(*[nodes] * len(mode), indexing="ij"), -1).reshape(-1, len(mode))
    log_w = sum(np.meshgrid(*[np.log(weights) + nodes**2 / 2] * len(mode), indexing="ij")).ravel()
    theta = mode + z @ spread.T
    log_joint = stats.poisson.logpmf(y, np.exp(theta @ design.T)).sum(1) + stats.norm.logpdf(theta, 0, sd).sum(1)
    return float(np.logaddexp.reduce(log_w + log_joint) + np.linalg.slogdet(spread)[1])


def truth(sd: float = SD) -> float:
    one, two = (log_evidence_by_quadrature(m, 20, sd) for m in pair())
    return two - one


def point(m: Model, values: np.ndarray) -> dict:
    return {name: jnp.asarray(value) for name, value in zip(m.names, values, strict=True)}


def test_the_log_likelihood_is_scipys():
    y, design = data()
    _, m2 = pair()
    for values in rng(0).normal(size=(5, 3)):
        exact = stats.poisson.logpmf(y, np.exp(design @ values)).sum()
        assert float(m2.log_likelihood(point(m2, values))) == pytest.approx(exact, abs=1e-10)
        exact += stats.norm.logpdf(values, 0, SD).sum()
        assert float(m2.log_joint(point(m2, values))) == pytest.approx(exact, abs=1e-10)


def test_rates_beyond_all_numbers_are_impossible_not_broken():
    _, m2 = pair()
    assert float(m2.log_likelihood(point(m2, np.array([800.0, 0.0, 0.0])))) == -np.inf


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_the_mode_is_a_mode_also_of_large_counts(scale):
    y, design = data()
    m = poisson.model(np.round(scale * y), design, ("one", "a", "b"))
    mode, curvature = glm.mode_and_curvature(m)
    gradient = np.array(list(jax.grad(m.log_joint)(point(m, mode)).values()))
    assert np.sqrt(gradient @ np.linalg.solve(curvature, gradient)) < 1e-6  # in posterior standard deviations
    np.testing.assert_allclose(curvature, (design.T * np.exp(design @ mode)) @ design, rtol=1e-6)


def test_the_mode_is_found_from_a_prior_mean_without_a_density():
    y, design = data()
    m = poisson.model(y, design, ("one", "a", "b"), prior_mean=(900.0, 0.0, 0.0), prior_sd=1000.0)
    mode, _ = glm.mode_and_curvature(m)
    assert mode == pytest.approx([1.2, 0.4, 0.15], abs=0.25)


def test_the_quadrature_has_converged():
    for m in pair():
        assert log_evidence_by_quadrature(m, 12) == pytest.approx(log_evidence_by_quadrature(m, 20), abs=1e-7)


@pytest.mark.slow
def test_a_pair_against_quadrature():
    result = compare(*pair(), method="MBAR", n_iter=8_000, seed=0)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth(), max_error=0.02)
    with pytest.raises(AssertionError, match="sigma"):  # the wrong twin: a prior a tenth narrower
        assert_estimate(result.log_bayes_factor, truth(0.9 * SD), max_error=0.02)


@pytest.mark.slow
def test_chains_come_home_from_anywhere():
    """From rates that are too high, too low, and too high for some data and too low for others."""
    m1, m2 = pair()
    path = direct(m1, m2)
    one, a, b = np.array([[8, 0, 0], [5, 3, -3], [-9, 0, 0], [-6, 1, 1], [-4, 4, 2], [-5, -4, -6], [0, 7, 0]]).T
    far = {"one": jnp.asarray(one, float), "a": jnp.asarray(a, float), "b": jnp.asarray(b, float)}
    state = State(far, jax.vmap(path.energy)(far))
    run = {"keys": chain_keys(key(0), 7), "schedule": Schedule(1, 0, 20), "state": state}
    _, home = anneal(path, poisson.hmc(m1, m2), np.array([1.0]), **run)
    mode, curvature = glm.mode_and_curvature(m2)
    off = np.stack([home.theta[name] for name in m2.names], 1) - mode
    assert np.all(np.einsum("ci,ij,cj->c", off, curvature, off) < 30)  # chi-squared with 3 degrees of freedom
    _, lost = anneal(path, glm.hmc(m1, m2), np.array([1.0]), **run)  # the wrong twin: HMC alone never moves
    assert np.sum(lost.theta["one"] == one) >= 3


@pytest.mark.parametrize("tau", [0.0, 0.4, 1.0])
def test_the_leap_leaves_a_known_density_alone(tau):
    """From no data to no data every q_tau is the prior, where the chains begin."""
    m1, m2 = (without_data(m) for m in pair())
    keys = chain_keys(key(1), 3000)
    trace, state = anneal(direct(m1, m2), glm.leap(m1, m2), np.array([tau]), keys, schedule=Schedule(10, 0, 0))
    assert trace.acceptance.mean() > 0.7
    draws = np.concatenate([state.theta[name] for name in m2.names]) / SD
    assert stats.kstest(draws, "norm").pvalue > 1e-4
    wrong = rng(2).standard_t(glm.LEAP_DOF, size=len(draws))  # the wrong twin: every proposal accepted
    assert stats.kstest(wrong, "norm").pvalue < 1e-4


def test_bad_models_are_refused():
    x = np.ones((3, 1))
    for wrong in (-1, 0.5, np.nan, np.inf):
        with pytest.raises(CrossfadeError, match="must be counts"):
            poisson.model(np.array([0, 1, wrong]), x, ("a",))
    with pytest.raises(CrossfadeError, match="shape"):
        poisson.model(np.array([0, 1, 1]), x, ("a", "b"))
    with pytest.raises(CrossfadeError, match="proper"):
        poisson.model(np.array([0, 1, 1]), x, ("a",), prior_sd=np.inf)
