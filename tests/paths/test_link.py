"""Links and warps: normalised, drawn from what they weigh, with random numbers that belong to the draw."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from linear_pairs import key
from scipy import stats

from crossfade.paths.fit import GAUSSIAN
from crossfade.paths.link import LinkFactor, link, noise, warp

ROOT = np.linalg.cholesky(np.array([[1.0, 0.6], [0.6, 2.0]]))
SHARED = np.array([0.7])


def of(dof, root=ROOT):
    return link(np.array([0.5, -1.0]), np.array([[0.3], [2.0]]), root, dof)


@pytest.mark.parametrize("dof", [3.0, 8.0, GAUSSIAN])
def test_a_link_is_the_density_that_it_draws_from(dof):
    own = of(dof)
    mean = own.intercept + own.slopes @ SHARED
    exact = stats.multivariate_t(mean, ROOT @ ROOT.T, df=dof)
    draws = own.draw(noise((1,), 20, 1000, 2), np.tile(SHARED, (20, 1000, 1)))
    tolerance = 1e-7 if dof == GAUSSIAN else 1e-10
    few = draws[0, :50]
    np.testing.assert_allclose(own.log_density(few, np.tile(SHARED, (50, 1))), exact.logpdf(few), atol=tolerance)
    # the draws have the density's own distance distribution: squared distance / p is F(p, dof)
    flat = draws.reshape(-1, 2)
    distance = (np.linalg.solve(ROOT, (flat - mean).T) ** 2).sum(axis=0) / 2
    assert stats.kstest(distance, stats.f(2, min(dof, 1e9)).cdf).pvalue > 1e-4
    assert stats.kstest(distance * 1.1, stats.f(2, min(dof, 1e9)).cdf).pvalue < 1e-4  # the wrong twin


def test_jax_and_numpy_agree_and_vectors_are_diagonals():
    few = rng(2).normal(size=(5, 2))
    for own in (of(8.0), of(8.0, np.array([0.5, 2.0]))):
        by_numpy = own.log_density(few, np.tile(SHARED, (5, 1)))
        by_jax = jax.vmap(lambda x, own=own: own.log_density(x, jnp.asarray(SHARED)))(jnp.asarray(few))
        np.testing.assert_allclose(by_jax, by_numpy, atol=1e-12)
    full = of(8.0, np.diag([0.5, 2.0]))
    np.testing.assert_allclose(by_numpy, full.log_density(few, np.tile(SHARED, (5, 1))), atol=1e-12)
    random = noise((3,), 1, 5, 2)
    shared = np.tile(SHARED, (1, 5, 1))
    np.testing.assert_allclose(own.draw(random, shared), full.draw(random, shared), atol=1e-12)


def test_nothing_to_link_costs_nothing():
    empty = link(np.zeros(0), np.zeros((0, 1)), np.zeros(0), GAUSSIAN)
    assert empty.draw(noise((0,), 2, 3, 0), np.zeros((2, 3, 1))).shape == (2, 3, 0)
    assert empty.log_density(np.zeros((4, 0)), np.zeros((4, 1))).tolist() == [0.0] * 4


def test_random_numbers_belong_to_the_draw():
    """More draws, other chains and other links leave those of a draw as they are."""
    few, many = noise((5, 1), 4, 10, 2), noise((5, 1), 8, 30, 2)
    np.testing.assert_array_equal(few.normal, many.normal[:4, :10])
    np.testing.assert_array_equal(few.uniform, many.uniform[:4, :10])
    kept = many.take(np.array([2, 5]))
    np.testing.assert_array_equal(kept.normal, many.normal[[2, 5]])
    assert not np.array_equal(few.normal, noise((5, 0), 4, 10, 2).normal)  # the other end has its own
    shared = np.tile(SHARED, (4, 10, 1))
    near = of(8.0).draw(few, shared) - of(8.001).draw(few, shared)
    assert np.abs(near).max() < 0.01  # a link that is a little different draws a little different points


def test_a_warp_goes_there_and_back_with_its_volume():
    root = np.array([[2.0, 0.0], [0.7, 0.5]])
    for own, full in ((warp(np.array([1.0, -2.0]), root), root), (warp(np.zeros(2), np.array([2.0, 3.0])), None)):
        full = np.diag([2.0, 3.0]) if full is None else full
        v = rng(4).normal(size=(6, 2))
        np.testing.assert_allclose(own.inverse(own(v)), v, atol=1e-12)
        np.testing.assert_allclose(jax.vmap(own)(jnp.asarray(v)), own(v), atol=1e-12)
        assert float(own.log_volume) == pytest.approx(np.linalg.slogdet(full)[1], abs=1e-12)


def test_a_factor_of_a_path_reads_its_own_stretch():
    v = np.asarray(jax.random.normal(key(3), (4,)))
    factor = LinkFactor(of(8.0), (2, 4), 1)
    expected = of(8.0).log_density(v[2:4], v[:1])
    assert float(factor(jnp.asarray(v))) == pytest.approx(float(expected), abs=1e-12)
