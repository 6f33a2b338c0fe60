"""The sampler of the default method: right distributions, whatever the units; same draws, however they are cut."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from linear_pairs import key
from scipy import stats

from crossfade.analysis.mixing import mixing, plain_r_hat
from crossfade.density.joint import as_joint
from crossfade.density.precision import float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.draws import more, run_source
from crossfade.sampling.hmc import SEGMENT, Draws, advance, begin, rescued, root_covariance, warm_up, whiten
from crossfade.types import CrossfadeError
from crossfade.worlds import linear


@pytest.fixture(autouse=True)
def doubles():
    with float64():
        yield


class Gaussian(eqx.Module):
    """Two coordinates of very different units, strongly correlated."""

    precision: np.ndarray
    mean: np.ndarray

    def __call__(self, u):
        centred = u - self.mean
        return -0.5 * centred @ self.precision @ centred


COVARIANCE = np.array([[1e4, 99.0], [99.0, 1.0]])
MEAN = np.array([3000.0, -2.0])


@pytest.fixture(scope="module")
def run():
    with float64():
        target = Gaussian(np.linalg.inv(COVARIANCE), MEAN)
        starts = MEAN + rng(1).normal(size=(32, 2)) * [500.0, 20.0]
        sampler = warm_up(begin(target, starts, np.array([500.0, 20.0]), chain_keys(key(1), 32)))
        sampler, draws = advance(sampler, 4)
        return sampler, draws


def test_draws_have_the_target_s_distribution(run):
    _, draws = run
    mixed = mixing(draws.u)
    assert mixed.r_hat < 1.03 and mixed.effective > 1000
    flat = draws.u.reshape(-1, 2)
    error = np.sqrt(np.diag(COVARIANCE) / mixed.effective)
    assert (np.abs(flat.mean(axis=0) - MEAN) < 4.5 * error).all()
    np.testing.assert_allclose(np.cov(flat, rowvar=False) / COVARIANCE, 1, atol=0.2)
    root = np.linalg.cholesky(COVARIANCE)
    distance = (np.linalg.solve(root, (flat - MEAN).T) ** 2).sum(axis=0)
    thinned = distance[:: max(int(len(flat) / mixed.effective), 1)]
    assert stats.kstest(thinned, stats.chi2(2).cdf).pvalue > 1e-4
    assert stats.kstest(1.2 * thinned, stats.chi2(2).cdf).pvalue < 1e-3  # the wrong twin
    assert draws.divergent.mean() == 0 and 0.6 < draws.acceptance.mean() < 1


def test_draws_do_not_depend_on_how_they_are_cut(run):
    sampler, _ = run
    whole, first = advance(sampler, 2)
    half, a = advance(sampler, 1)
    again, b = advance(half, 1)
    np.testing.assert_allclose(first.u, np.concatenate([a.u, b.u], axis=1), rtol=1e-9)
    np.testing.assert_allclose(whole.u, again.u, rtol=1e-9)
    assert first.u.shape[1] == 2 * SEGMENT


def test_nan_stops_a_run_and_minus_infinity_does_not(run):
    class Broken(eqx.Module):
        def __call__(self, u):
            return jnp.where(u[0] > 2.0, jnp.nan, -0.5 * u @ u)

    class Wall(eqx.Module):
        def __call__(self, u):
            return jnp.where(u[0] > 0.5, -jnp.inf, -0.5 * u @ u)

    starts = -np.abs(rng(2).normal(size=(32, 2)))
    sampler = begin(Broken(), starts, np.ones(2), chain_keys(key(2), 32))
    with pytest.raises(CrossfadeError, match="NaN or"):
        advance(sampler, 8)
    _, draws = advance(begin(Wall(), starts, np.ones(2), chain_keys(key(2), 32)), 8)
    assert draws.u[:, :, 0].max() <= 0.5


def test_roots_are_roots_and_whitening_keeps_the_chains_where_they_are(run):
    sampler, draws = run
    flat = draws.u.reshape(-1, 2)
    root = root_covariance(flat)
    np.testing.assert_allclose(root @ root.T, np.cov(flat, rowvar=False), rtol=1e-3)
    assert root_covariance(rng(3).normal(size=(500, 300))).shape == (300,)
    moved = whiten(sampler, flat[:100])
    np.testing.assert_allclose(moved.tuning.u(moved.tuning.z(sampler.u)), sampler.u, rtol=1e-9)


def test_mixing_sees_chains_apart_and_coordinates_that_stand_still():
    draws = rng(4).normal(size=(8, 200, 3))
    assert mixing(draws).r_hat < 1.02
    apart = draws.copy()
    apart[:4, :, 1] += 3
    assert mixing(apart).r_hat > 1.5 and mixing(apart).r_hat_of == 1
    still = draws.copy()
    still[:, :, 2] = 1.0
    assert mixing(still).r_hat == np.inf and mixing(still).r_hat_of == 2
    many = rng(5).normal(size=(8, 100, 400))
    many[:4, :, 333] += 2
    assert mixing(many).r_hat_of == 333 and np.argmax(plain_r_hat(many)) == 333
    assert mixing(np.zeros((4, 10, 0))).r_hat == 1.0


class Vague(eqx.Module):
    """u = (log s2, log m): n = 40 data of mean 1 and variance 1, m | s2 ~ half normal(s2), log s2 as good as flat."""

    def __call__(self, u):
        log_s2, log_m = u
        s2, m = jnp.exp(log_s2), jnp.exp(log_m)
        return -20.5 * log_s2 - 0.5 * (40 + 40 * (m - 1) ** 2 + m**2) / s2 - 0.005 * (log_s2 + 1 / s2) + log_m


def test_chains_that_a_vague_prior_sends_away_come_back():
    near = rng(9).normal(size=(12, 2)) * 0.5
    far = np.concatenate([near, [[450.0, 226.0], [600.0, 298.0], [-30.0, -14.0], [300.0, 151.0]]])
    sampler = warm_up(begin(Vague(), far, np.array([200.0, 100.0]), chain_keys(key(9), len(far))))
    assert np.abs(np.asarray(sampler.u)[:, 0]).max() < 3
    sampler, draws = advance(sampler, 8)
    assert plain_r_hat(draws.u[:, :, 0]) < 1.2


@pytest.mark.parametrize(("height", "stays"), [(-500.0, True), (-5e4, False)])
def test_only_hopeless_chains_are_moved(height, stays):
    """A chain that is stuck at a density that could matter is a finding, not a nuisance."""
    u = np.zeros((4, SEGMENT, 2))
    u[3] = 100.0
    log_density = np.zeros((4, SEGMENT))
    log_density[3] = height
    sampler = begin(Vague(), u[:, -1], np.ones(2), chain_keys(key(1), 4))
    moved = rescued(sampler, Draws(u, log_density, log_density, log_density > 0, 0))
    assert (moved is None) if stays else np.array_equal(moved.u[3], [50.0, 50.0])


def test_chains_on_their_way_are_left_alone():
    log_density = np.tile(np.linspace(-1e6, -1e4, SEGMENT), (4, 1))
    log_density[:3] = 0.0
    sampler = begin(Vague(), np.zeros((4, 2)), np.ones(2), chain_keys(key(1), 4))
    assert rescued(sampler, Draws(np.zeros((4, SEGMENT, 2)), log_density, log_density, log_density > 0, 0)) is None


def test_chains_that_have_not_met_are_whitened_again(monkeypatch):
    """A polynomial of order 9: its coefficients hang together, and a vague prior of the noise starts far away."""
    joint = as_joint(linear.radiocarbon(9), "M")

    def worst_r_hat():
        return max(mixing(more(run_source(joint, key(seed), 32, "M"), 4).draws.u).r_hat for seed in range(4))

    assert worst_r_hat() < 1.05
    monkeypatch.setattr("crossfade.sampling.hmc.N_ROUNDS", 1)
    assert worst_r_hat() > 1.5
