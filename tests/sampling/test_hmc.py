"""The sampler of the default method: right distributions, whatever the units; same draws, however they are cut."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from blackjax.mcmc.integrators import IntegratorState, velocity_verlet
from linear_pairs import key
from scipy import stats

from crossfade.analysis.mixing import mixing
from crossfade.bridges.log_joint import from_log_joint
from crossfade.density.precision import float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.hmc import SEGMENT, Chains, Tuning, _stopping, advance, begin
from crossfade.sampling.starts import LONGEST_LEAP, first_steps
from crossfade.sampling.warm_up import warm_up


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
    assert draws.slope.shape == (32, 100, 2)
    last = draws.u[:, SEGMENT - 1 :: SEGMENT]
    expected = -(last - MEAN) @ target.precision
    np.testing.assert_allclose(draws.slope[:, SEGMENT - 1 :: SEGMENT], expected, rtol=1e-6, atol=1e-9)
    each = Tuning(np.tile(sampler.tuning.shift, (32, 1)), np.tile(sampler.tuning.scale, (32, 1, 1)), np.ones(32), 2.2)
    np.testing.assert_allclose(each.u(each.z(last)), last, rtol=1e-9)
    np.testing.assert_allclose(each.slope_in_u(expected), sampler.tuning.slope_in_u(expected), rtol=1e-9)


def test_draws_do_not_depend_on_how_they_are_cut(run):
    sampler, _ = run
    whole, first = advance(sampler, 2)
    half, a = advance(sampler, 1)
    again, b = advance(half, 1)
    np.testing.assert_array_equal(first.u, np.concatenate([a.u, b.u], axis=1))
    np.testing.assert_array_equal(whole.w, again.w)
    assert first.u.shape[1] == 2 * SEGMENT


class Broken(eqx.Module):
    """Not a density beyond u = 2: NaN, or +inf, which no sampler may be drawn to."""

    value: float

    def __call__(self, u, tau):
        return jnp.where(u[0] > 2.0, self.value, -0.5 * u @ u)


class Wall(eqx.Module):
    def __call__(self, u, tau):
        return jnp.where(u[0] > 0.5, -jnp.inf, -0.5 * u @ u)


@pytest.mark.parametrize(("target", "edge"), [(Broken(np.nan), 2.0), (Broken(np.inf), 2.0), (Wall(), 0.5)])
def test_where_there_is_no_density_trajectories_end_and_are_counted(target, edge):
    starts = -np.abs(rng(2).normal(size=(32, 2)))
    _, draws = advance(begin(target, starts, np.ones(2), chain_keys(key(2), 32)), 8)
    assert draws.u[:, :, 0].max() <= edge and np.isfinite(draws.log_density).all()
    assert draws.divergent.any() and draws.divergent.mean() < 0.5


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


class Ridge(eqx.Module):
    """A posterior a hundred times narrower than the first units, and steep where a prior would begin."""

    def __call__(self, u, tau):
        return -0.5 * jnp.sum((u / 0.01) ** 2)


def trajectory(integrator, z, momentum, n_steps=20, size=0.1):
    with float64():
        at = jnp.array([z])
        log_density = partial(Ridge(), tau=1.0)
        step = integrator(log_density, lambda p, position=None: 0.5 * jnp.sum(p**2))
        state = IntegratorState(at, jnp.array([momentum]), log_density(at), -at / 0.01**2)
        visited = [state]
        for _ in range(n_steps):
            visited.append(step(visited[-1], size))
        return visited


def test_a_trajectory_stops_at_the_first_step_that_goes_wrong():
    stopped, free = (trajectory(own, 0.005, 0.3) for own in (_stopping, velocity_verlet))
    n = int(np.argmax(np.isnan([float(state.logdensity) for state in stopped])))
    assert 1 <= n <= 2 and np.isnan([float(state.logdensity) for state in stopped[n:]]).all()
    # until then it is velocity Verlet, and from then on it stays
    for own, other in zip(stopped[:n], free[:n], strict=True):
        assert float(own.position[0]) == float(other.position[0])
        assert float(own.momentum[0]) == float(other.momentum[0])
    assert {float(state.position[0]) for state in stopped[n:]} == {float(stopped[n - 1].position[0])}
    assert abs(float(free[-1].position[0])) > 1e20  # the twin that goes on


def test_a_step_that_is_wrong_is_wrong_on_the_way_back():
    """Otherwise a proposal could be reached from a place that cannot be reached from it."""
    before, after = trajectory(velocity_verlet, 0.005, 0.3, n_steps=2)[1:]
    assert abs(float(before.logdensity - after.logdensity)) > 1000
    back = trajectory(_stopping, float(after.position[0]), -float(after.momentum[0]), n_steps=1)[1]
    assert np.isnan(float(back.logdensity))
    again = trajectory(velocity_verlet, float(after.position[0]), -float(after.momentum[0]), n_steps=1)[1]
    assert float(again.position[0]) == pytest.approx(float(before.position[0]))


def test_first_steps_are_short_where_the_density_is_steep():
    with float64():
        density = from_log_joint(lambda theta: -0.5 * (theta["x"] / 0.01) ** 2, {"x": 0.0}).density
        u = np.array([[0.0], [1e-3], [1.0], [30.0]])
        sizes = first_steps(density, u, np.ones(1))
    slope = np.abs(u[:, 0]) / 0.01**2
    assert sizes[0] == 0.1 and (np.diff(sizes) <= 0).all()
    assert (sizes**2 / 2 * slope <= LONGEST_LEAP * (1 + 1e-12)).all()
    assert (0.1**2 / 2 * slope[2:] > 100 * LONGEST_LEAP).all()  # the twin with one step size for all
