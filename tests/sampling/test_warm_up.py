"""Warming up: chains that are lost, stuck in corners or in the wrong units find their way."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from linear_pairs import key

from crossfade.analysis.mixing import mixing, plain_r_hat
from crossfade.density.joint import as_joint
from crossfade.paths.fit import root_covariance
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.draws import warmed
from crossfade.sampling.hmc import SEGMENT, Stretch, advance, begin
from crossfade.sampling.warm_up import Past, _arrived, metric_root, relocated, rescued, warm_up, whiten
from crossfade.worlds import linear


class Gaussian(eqx.Module):
    precision: np.ndarray

    def __call__(self, u, tau):
        return -0.5 * u @ self.precision @ u


def test_the_metric_is_the_covariance_whatever_part_of_it_the_draws_have_seen():
    """Draws that have hardly spread in one direction, and gradients there, tell the whole covariance of a Gaussian."""
    random = rng(5)
    root = random.normal(size=(6, 6)) + 2 * np.eye(6)
    covariance = root @ root.T
    seen = random.normal(size=(4000, 6)) * np.array([1.0, 1.0, 1.0, 0.2, 3.0, 1.0])
    found = metric_root(seen, -seen @ np.linalg.inv(covariance))
    np.testing.assert_allclose(found @ found.T, covariance, rtol=1e-3, atol=1e-3)
    naive = np.cov(seen, rowvar=False)  # the wrong twin: draws alone
    assert np.abs(naive / covariance - 1).max() > 1
    many = random.normal(size=(400, 300)) * 3.0
    np.testing.assert_allclose(metric_root(many, -many / 9.0), np.full(300, 3.0), rtol=0.01)


class Funnel(eqx.Module):
    """log s ~ N(0, 1), 30 effects ~ N(0, s^2), each seen with noise of 0.2."""

    y: np.ndarray

    def __call__(self, u, tau):
        log_s, effects = u[0], u[1:]
        prior = -0.5 * log_s**2 - jnp.sum(0.5 * (effects / jnp.exp(log_s)) ** 2 + log_s)
        return prior - 0.5 * jnp.sum(((self.y - effects) / 0.2) ** 2)


def funnel():
    return Funnel(rng(3).normal(size=30))


def test_a_chain_in_the_neck_of_a_funnel_leaves_it():
    starts = np.concatenate([rng(4).normal(size=(16, 1)) * 0.3, rng(5).normal(size=(16, 30))], axis=1)
    starts[3] = -8.0, *(rng(6).normal(size=30) * np.exp(-8.0))
    chains = warm_up(begin(funnel(), starts, np.ones(31), chain_keys(key(3), 16)))
    _, draws = advance(chains, 4)
    assert mixing(draws.u).r_hat < 1.1 and (draws.u.std(axis=1) > 0.05).all()
    assert draws.divergent.mean() < 0.01


def stretch(centres, widths, heights, n=100):
    """Chains that sit at centres with these spreads, at these log densities on average."""
    random = rng(8)
    u = np.array([random.normal(size=(n, 2)) * width + centre for centre, width in zip(centres, widths, strict=True)])
    height = np.array(
        [
            h - 0.5 * ((own - own.mean(axis=0)) ** 2 / own.var(axis=0)).sum(axis=1)
            for h, own in zip(heights, u, strict=True)
        ]
    )
    return Stretch(u, height, height > 1e9, u, u, 0)


@pytest.mark.parametrize(("height", "leaves"), [(0.0, True), (2 * np.log(100.0), False)])
def test_a_narrow_place_is_left_only_if_it_is_empty(height, leaves):
    """A peak 100 times narrower in both coordinates holds as much as the others if it is 100^2 times as high."""
    seen = stretch([0.0] * 7 + [5.0], [1.0] * 7 + [0.01], [0.0] * 7 + [height])
    chains = begin(Gaussian(np.eye(2)), seen.u[:, -1], np.ones(2), chain_keys(key(1), 8))
    moved = relocated(chains, seen)
    if not leaves:
        assert moved is None
    else:
        assert np.abs(moved.w[7]).max() < 4 and np.array_equal(moved.w[:7], chains.w[:7])


def test_whitening_keeps_the_chains_where_they_are():
    target = Gaussian(np.array([[4.0, 1.0], [1.0, 3.0]]))
    sampler, draws = advance(begin(target, rng(1).normal(size=(8, 2)), np.ones(2), chain_keys(key(1), 8)), 2)
    moved = whiten(sampler, draws)
    assert moved.w is sampler.w
    np.testing.assert_allclose(moved.tuning.u(moved.tuning.z(sampler.w[:, None])), sampler.w[:, None], rtol=1e-9)


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
    assert np.abs(np.asarray(sampler.w)[:, 0]).max() < 3
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
    moved = rescued(sampler, Stretch(u, log_density, log_density > 0, u, u, 0))
    assert (moved is None) if stays else np.array_equal(moved.w[3], [50.0, 50.0])


def test_chains_on_their_way_are_left_alone():
    log_density = np.tile(np.linspace(-1e6, -1e4, SEGMENT), (4, 1))
    log_density[:3] = 0.0
    sampler = begin(Vague(), np.zeros((4, 2)), np.ones(2), chain_keys(key(1), 4))
    u = np.zeros((4, SEGMENT, 2))
    assert rescued(sampler, Stretch(u, log_density, log_density > 0, u, u, 0)) is None


def test_chains_far_below_the_others_have_not_arrived():
    height = np.random.default_rng(0).normal(0.0, 2.0, (6, SEGMENT))
    height[2] -= 40.0  # on its way from where a scale is vast
    height[4] += 9.0  # in the neck of a funnel, where the density is high
    assert list(_arrived(height)) == [0, 1, 3, 4, 5]
    assert list(_arrived(height + 40.0 * (np.arange(6) == 2)[:, None])) == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_chains_that_have_not_met_are_whitened_again(monkeypatch):
    """A polynomial of order 9: its coefficients hang together, and a vague prior of the noise starts far away.

    R-hat of first draws is 1.01, of one seed in twenty 1.05. It was up to 1.1 where coordinates were chosen by chains
    that were still on their way, and 6 to 14 after one round.
    """
    joint = as_joint(linear.radiocarbon(9), "M")

    def r_hats():
        return [mixing(warmed(joint, key(seed), 32).more(100).u).r_hat for seed in range(5)]

    met = r_hats()
    assert np.median(met) < 1.03 and max(met) < 1.1
    monkeypatch.setattr("crossfade.sampling.warm_up.N_ROUNDS", 1)
    monkeypatch.setattr("crossfade.sampling.warm_up.metric_root", lambda u, slope: root_covariance(u))
    assert np.median(r_hats()) > 1.5  # one round, of draws without their gradients


class Islet(eqx.Module):
    """A standard normal in three dimensions, and beside it a wide one of 5 % of the mass."""

    share: float

    def __call__(self, u, tau):
        near = jnp.log1p(-self.share) - 0.5 * jnp.sum(u**2)
        far = jnp.log(self.share) - 0.5 * jnp.sum(((u - 12.0) / 2.0) ** 2) - 3 * jnp.log(2.0)
        return jnp.logaddexp(near, far)


@pytest.mark.parametrize(("share", "counts"), [(0.05, True), (1e-6, False)])
def test_a_place_with_mass_that_chains_have_left_is_remembered(share, counts):
    """One chain was there while they warmed up; no draw is. A place that holds next to nothing may be forgotten."""
    u = rng(5).normal(size=(16, 100, 3))
    target = jax.vmap(jax.vmap(lambda u: Islet(share)(u, 1.0)))
    before = np.concatenate([u[:, :25], 12 + 2 * rng(6).normal(size=(1, 25, 3))])
    past = Past(before, np.asarray(target(before)))
    found = past.missed(u, np.asarray(target(u)))
    assert (found is not None and np.abs(found - 12).max() < 2) == counts
    there = np.concatenate([u[:-1], 12 + 2 * rng(7).normal(size=(1, 100, 3))])  # a draw came back
    assert past.missed(there, np.asarray(target(there))) is None
