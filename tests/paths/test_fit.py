"""Fits to draws: slopes, spreads and tails that the draws can tell, and both ends keep their evidence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from numpyro import distributions as dist
from scipy import stats

from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.sharing import union
from crossfade.paths.fit import (
    completed,
    fit,
    fit_link,
    fit_warps,
    fitted_path,
    links_and_volumes,
    other_point,
    relevant,
    root_covariance,
    root_of_neighbours,
)
from crossfade.paths.link import link, noise


def model(**priors):
    return as_joint(Model(priors, lambda p: 0.0 * sum(jnp.sum(v) for v in p.values())))


def test_a_fitted_link_finds_slopes_spread_and_tails():
    random = rng(2)
    shared = random.normal(size=(4000, 3))
    noise = random.standard_t(5, size=4000) * 0.4
    own = (1.0 + shared @ [2.0, 0.0, -1.0] + noise)[:, None]
    link = fit_link(own, shared, 4000)
    np.testing.assert_allclose(link.slopes[0], [2, 0, -1], atol=0.05)
    assert 3 <= float(link.dof) <= 8
    held_out = random.normal(size=(2000, 3))
    target = 1.0 + held_out @ [2.0, 0.0, -1.0] + random.standard_t(5, size=2000) * 0.4
    score = np.mean(link.log_density(target[:, None], held_out))
    best = np.mean(stats.t(5, scale=0.4).logpdf(target - 1.0 - held_out @ [2.0, 0.0, -1.0]))
    assert best - 0.03 < score


def test_of_a_thousand_shared_coordinates_only_those_that_matter_get_a_slope():
    random = rng(3)
    shared = random.normal(size=(2000, 1000))
    own = (shared[:, 3] - 0.5 * shared[:, 700] + 0.1 * random.normal(size=2000))[:, None]
    assert set(relevant(own, shared, 2000)) == {3, 700}
    assert set(relevant(random.normal(size=(2000, 1)), shared, 2000)) == set()


def test_a_series_is_tied_to_its_neighbours():
    """150 states of a random walk: as good as the right matrix, where their full covariance is mostly noise."""
    n, p = 1500, 150
    states = np.cumsum(rng(6).normal(size=(n, p)), axis=1) * 0.3
    right = 0.3 * np.tril(np.ones((p, p)))

    def divergence(root):
        ratio = np.linalg.solve(root, right)
        return ((ratio**2).sum() - p) / 2 - np.linalg.slogdet(ratio)[1]

    assert divergence(root_of_neighbours(states, n)) < 0.25
    assert divergence(np.linalg.cholesky(np.cov(states, rowvar=False))) > 2  # the wrong twins: all, and none
    assert divergence(np.diag(states.std(axis=0))) > 100
    alone = root_of_neighbours(rng(7).normal(size=(n, p)), n)
    np.testing.assert_allclose(alone, np.diag(np.diag(alone)), atol=0.25)
    assert np.count_nonzero(np.abs(np.tril(alone, -1)) > 1e-12) < 5


def test_warps_put_both_ends_on_each_other_and_ignore_noise():
    random = rng(4)
    first, second = random.normal(size=(2000, 300)), random.normal(size=(2000, 300))
    second[:, 5] += 4.0
    second[:, 9] *= 3.0
    shifted = fit_warps("shift", first, second, (2000, 2000))
    gap = np.asarray(shifted[1].shift - shifted[0].shift)
    assert gap[5] == pytest.approx(4, abs=0.2) and np.count_nonzero(np.delete(gap, [5, 9])) == 0
    affine = fit_warps("affine", first, second, (2000, 2000))
    assert np.log(affine[1].scale / affine[0].scale)[9] == pytest.approx(np.log(3), abs=0.1)
    for warp, draws in zip(
        fit_warps("affine", first[:, :4], second[:, :4], (2000, 2000)), (first, second), strict=True
    ):
        whitened = warp.inverse(draws[:, :4])
        np.testing.assert_allclose(np.cov(whitened, rowvar=False), np.eye(4), atol=1e-2)
        np.testing.assert_allclose(jax.vmap(warp)(whitened), draws[:, :4], atol=1e-12)


@pytest.fixture(scope="module")
def ends():
    """Two normalised densities that share s, draws of both, and the ratio that a fit reads at those of the first."""
    j1 = model(s=dist.Normal(0.0, 1.0), a=dist.Normal(1.0, 0.5))
    j2 = model(s=dist.Normal(0.3, 1.2), b=dist.Normal(0.0, 2.0))
    random = rng(5)
    u1 = np.column_stack([random.normal(0, 1, 4000), random.normal(1, 0.5, 4000)])
    u2 = np.column_stack([random.normal(0.3, 1.2, 4000), random.normal(0, 2, 4000)])
    return j1, j2, u1, u2


def ratio(ends, drawn, read):
    """log q_1 - log q_0 by `read` at draws of the first end completed by `drawn`, and by the path's own energies."""
    j1, j2, u1, _ = ends
    joined = union(j1, j2)
    v = completed(joined, drawn, 0, u1[None, 1000:], noise((5,), 1, 3000, 1))
    own = [jax.vmap(j.density)(other_point(joined, read, k, v)[0]) for k, j in enumerate((j1, j2))]
    logs = [np.asarray(own[k]) + links_and_volumes(joined, read, k, v)[0] for k in (0, 1)]
    path = fitted_path((j1.density, j2.density), joined, read)
    return logs[1] - logs[0], np.asarray(jax.vmap(lambda v: path.energy(v).ratio)(v[0]))


@pytest.mark.parametrize("kind", ["identity", "shift", "affine"])
def test_whatever_is_fitted_both_ends_keep_their_evidence(ends, kind):
    """Two normalised densities: the mean of exp(ratio) over draws of the first end is 1, for any fit."""
    j1, j2, u1, u2 = ends
    own = fit(union(j1, j2), (u1[:1000], u2[:1000]), (1000.0, 1000.0), kind)
    by_parts, by_path = ratio(ends, own, own)
    np.testing.assert_allclose(by_parts, by_path, atol=1e-9)
    weight = np.exp(by_path)
    assert abs(weight.mean() - 1) < 4 * weight.std() / np.sqrt(3000)
    assert weight.std() < 1
    wide = own.links[1]
    wide = link(wide.intercept, wide.slopes, 1.2 * wide.root, float(wide.dof))
    wrong = np.exp(ratio(ends, own, own._replace(links=(own.links[0], wide)))[1])
    # the wrong twin: drawn from one link, weighed by another that is a fifth wider
    assert abs(wrong.mean() - 1) > 4 * wrong.std() / np.sqrt(3000)


def test_roots_are_roots():
    covariance = np.array([[1e4, 99.0], [99.0, 1.0]])
    flat = rng(6).multivariate_normal([0, 0], covariance, size=3000)
    root = root_covariance(flat)
    np.testing.assert_allclose(root @ root.T, np.cov(flat, rowvar=False), rtol=1e-3)
    assert root_covariance(rng(3).normal(size=(500, 300))).shape == (300,)
    assert root_covariance(np.zeros((5, 0))).shape == (0,)
