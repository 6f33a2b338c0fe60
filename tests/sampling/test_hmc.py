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
from crossfade.sampling.draws import warmed
from crossfade.sampling.hmc import SEGMENT, Chains, Stretch, Tuning, advance, begin, rescued, warm_up, whiten
from crossfade.types import CrossfadeError
from crossfade.worlds import linear


class Gaussian(eqx.Module):
    """Two coordinates of very different units, strongly correlated."""

    precision: np.ndarray
    mean: np.ndarray

    def __call__(self, u, tau):
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
    assert draws.divergent.mean() == 0


def test_log_densities_and_gradients_are_those_of_the_draws(run):
    """Gradients by u, although the chains move in z."""
    sampler, draws = run
    target = sampler.target
    np.testing.assert_allclose(draws.log_density[3, 7], target(draws.u[3, 7], 1.0), rtol=1e-9)
    assert draws.slope.shape == (32, 4, 2)
    last = draws.u[:, SEGMENT - 1 :: SEGMENT]
    expected = -(last - MEAN) @ target.precision
    np.testing.assert_allclose(draws.slope, expected, rtol=1e-6, atol=1e-9)
    each = Tuning(np.tile(sampler.tuning.shift, (32, 1)), np.tile(sampler.tuning.scale, (32, 1, 1)), np.ones(32), 2.2)
    np.testing.assert_allclose(each.u(each.z(last)), last, rtol=1e-9)
    np.testing.assert_allclose(each.slope_in_u(expected), sampler.tuning.slope_in_u(expected), rtol=1e-9)


def test_draws_do_not_depend_on_how_they_are_cut(run):
    sampler, _ = run
    whole, first = advance(sampler, 2)
    half, a = advance(sampler, 1)
    again, b = advance(half, 1)
    np.testing.assert_array_equal(first.u, np.concatenate([a.u, b.u], axis=1))
    np.testing.assert_array_equal(whole.u, again.u)
    assert first.u.shape[1] == 2 * SEGMENT


def test_nan_stops_a_run_and_minus_infinity_does_not(run):
    class Broken(eqx.Module):
        def __call__(self, u, tau):
            return jnp.where(u[0] > 2.0, jnp.nan, -0.5 * u @ u)

    class Wall(eqx.Module):
        def __call__(self, u, tau):
            return jnp.where(u[0] > 0.5, -jnp.inf, -0.5 * u @ u)

    starts = -np.abs(rng(2).normal(size=(32, 2)))
    sampler = begin(Broken(), starts, np.ones(2), chain_keys(key(2), 32))
    with pytest.raises(CrossfadeError, match="NaN or"):
        advance(sampler, 8)
    _, draws = advance(begin(Wall(), starts, np.ones(2), chain_keys(key(2), 32)), 8)
    assert draws.u[:, :, 0].max() <= 0.5


class Wider(eqx.Module):
    """N(0, 1 + tau)."""

    def __call__(self, u, tau):
        return -0.5 * u @ u / (1 + tau)


def test_every_chain_has_a_tau_and_may_have_a_scale_of_its_own():
    tau = np.repeat([0.0, 3.0], 32)
    starts = rng(7).normal(size=(64, 1)) * np.sqrt(1 + tau)[:, None]
    tuning = Tuning(np.zeros((64, 1)), np.sqrt(1 + tau)[:, None], np.full(64, 0.7), 2.2)
    _, draws = advance(Chains(Wider(), tau, chain_keys(key(7), 64), starts, tuning), 4)
    variance = [draws.u[tau == t].var() for t in (0.0, 3.0)]
    np.testing.assert_allclose(variance, [1, 4], rtol=0.15)


def test_whitening_keeps_the_chains_where_they_are(run):
    sampler, draws = run
    moved = whiten(sampler, draws.u.reshape(-1, 2)[:100])
    assert moved.u is sampler.u
    np.testing.assert_allclose(moved.tuning.u(moved.tuning.z(sampler.u[:, None])), sampler.u[:, None], rtol=1e-9)


class Vague(eqx.Module):
    """u = (log s2, log m): n = 40 data of mean 1 and variance 1, m | s2 ~ half normal(s2), log s2 as good as flat."""

    def __call__(self, u, tau):
        log_s2, log_m = u
        s2, m = jnp.exp(log_s2), jnp.exp(log_m)
        return -20.5 * log_s2 - 0.5 * (40 + 40 * (m - 1) ** 2 + m**2) / s2 - 0.005 * (log_s2 + 1 / s2) + log_m


def test_chains_that_a_vague_prior_sends_away_come_back():
    near = rng(9).normal(size=(12, 2)) * 0.5
    far = np.concatenate([near, [[450.0, 226.0], [600.0, 298.0], [-30.0, -14.0], [300.0, 151.0]]])
    sampler = warm_up(begin(Vague(), far, np.array([200.0, 100.0]), chain_keys(key(9), len(far))))
    assert np.abs(np.asarray(sampler.u)[:, 0]).max() < 3
    sampler, draws = advance(sampler, 8)
    assert plain_r_hat(draws.u)[0] < 1.2


@pytest.mark.parametrize(("height", "stays"), [(-500.0, True), (-5e4, False)])
def test_only_hopeless_chains_are_moved(height, stays):
    """A chain that is stuck at a density that could matter is a finding, not a nuisance."""
    u = np.zeros((4, SEGMENT, 2))
    u[3] = 100.0
    log_density = np.zeros((4, SEGMENT))
    log_density[3] = height
    sampler = begin(Vague(), u[:, -1], np.ones(2), chain_keys(key(1), 4))
    moved = rescued(sampler, Stretch(u, log_density, log_density > 0, u[:, :1], 0))
    assert (moved is None) if stays else np.array_equal(moved.u[3], [50.0, 50.0])


def test_chains_on_their_way_are_left_alone():
    log_density = np.tile(np.linspace(-1e6, -1e4, SEGMENT), (4, 1))
    log_density[:3] = 0.0
    sampler = begin(Vague(), np.zeros((4, 2)), np.ones(2), chain_keys(key(1), 4))
    u = np.zeros((4, SEGMENT, 2))
    assert rescued(sampler, Stretch(u, log_density, log_density > 0, u[:, :1], 0)) is None


@pytest.mark.slow
def test_chains_that_have_not_met_are_whitened_again(monkeypatch):
    """A polynomial of order 9: its coefficients hang together, and a vague prior of the noise starts far away."""
    joint = as_joint(linear.radiocarbon(9), "M")

    def worst_r_hat():
        return max(mixing(warmed(joint, key(seed), 32).more(100).u).r_hat for seed in range(4))

    assert worst_r_hat() < 1.05
    monkeypatch.setattr("crossfade.sampling.hmc.N_ROUNDS", 1)
    assert worst_r_hat() > 1.5
