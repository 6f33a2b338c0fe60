"""Links, warps and matching: normalised, fitted to what the draws can tell, on the right coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from linear_pairs import key
from numpyro import distributions as dist
from scipy import stats

from crossfade.density.joint import as_joint, constrained_draws, flat, nothing, unconstrained_draws
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.paths.fit import GAUSSIAN, fit, fit_link, fit_warps, relevant
from crossfade.paths.link import Link, ShortPath, energies, union
from crossfade.types import CrossfadeError


@pytest.fixture(autouse=True)
def doubles():
    with float64():
        yield


def model(**priors):
    return as_joint(Model(priors, lambda p: 0.0 * sum(jnp.sum(v) for v in p.values())))


@pytest.mark.parametrize("dof", [3.0, 8.0, GAUSSIAN])
def test_a_link_is_the_density_that_it_draws_from(dof):
    random = rng(1)
    root = np.linalg.cholesky(np.array([[1.0, 0.6], [0.6, 2.0]]))
    link = Link(np.array([0.5, -1.0]), np.array([[0.3], [2.0]]), root, np.asarray(dof))
    shared = np.array([0.7])
    mean = link.intercept + link.slopes @ shared
    exact = stats.multivariate_t(mean, root @ root.T, df=dof)
    draws = link.draw(random, np.tile(shared, (20_000, 1)))
    log_density = jax.vmap(lambda x: link.log_density(x, jnp.asarray(shared)))(draws[:50])
    np.testing.assert_allclose(log_density, exact.logpdf(draws[:50]), atol=1e-7 if dof == GAUSSIAN else 1e-10)
    # the draws have the density's own distance distribution: squared distance / p is F(p, dof)
    distance = (np.linalg.solve(root, (draws - mean).T) ** 2).sum(axis=0) / 2
    assert stats.kstest(distance, stats.f(2, min(dof, 1e9)).cdf).pvalue > 1e-4
    assert stats.kstest(distance * 1.1, stats.f(2, min(dof, 1e9)).cdf).pvalue < 1e-4  # the wrong twin


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
    score = np.mean(jax.vmap(link.log_density)(target[:, None], held_out))
    best = np.mean(stats.t(5, scale=0.4).logpdf(target - 1.0 - held_out @ [2.0, 0.0, -1.0]))
    assert best - 0.03 < score


def test_of_a_thousand_shared_coordinates_only_those_that_matter_get_a_slope():
    random = rng(3)
    shared = random.normal(size=(2000, 1000))
    own = (shared[:, 3] - 0.5 * shared[:, 700] + 0.1 * random.normal(size=2000))[:, None]
    assert set(relevant(own, shared, 2000)) == {3, 700}
    assert set(relevant(random.normal(size=(2000, 1)), shared, 2000)) == set()


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


@pytest.mark.parametrize("warp", ["identity", "shift", "affine"])
def test_whatever_is_fitted_both_ends_keep_their_evidence(warp):
    """Two normalised densities: the mean of exp(ratio) over draws of the first end is 1, for any fit."""
    j1, j2 = (
        model(s=dist.Normal(0.0, 1.0), a=dist.Normal(1.0, 0.5)),
        model(s=dist.Normal(0.3, 1.2), b=dist.Normal(0, 2.0)),
    )
    joined = union(j1, j2)
    random = rng(5)
    u1 = np.column_stack([random.normal(0, 1, 4000), random.normal(1, 0.5, 4000)])
    u2 = np.column_stack([random.normal(0.3, 1.2, 4000), random.normal(0, 2, 4000)])
    fitted = fit(joined, (u1[:1000], u2[:1000]), (1000, 1000), warp)
    path = ShortPath(j1, j2, joined)
    v = path.complete(0, u1[1000:], fitted, random).reshape(30, 100, -1)
    start, end = energies(path, v, fitted)
    weight = np.exp(np.asarray(end - start)).ravel()
    assert abs(weight.mean() - 1) < 4 * weight.std() / np.sqrt(3000)
    assert weight.std() < 1
    crooked = fitted._replace(links=(fitted.links[0], fitted.links[1]._replace(root=2 * fitted.links[1].root)))
    start, end = energies(path, v, crooked)  # the wrong twin: drawn from one link, weighed by another
    wrong = np.exp(np.asarray(end - start)).ravel()
    assert abs(wrong.mean() - 1) > 4 * wrong.std() / np.sqrt(3000)


def test_matching_by_name_by_hand_and_by_elements():
    j1 = model(a=dist.Normal(0.0, 1.0), beta=dist.Normal(np.zeros(3), 1.0))
    j2 = model(b=dist.Normal(0.0, 1.0), beta=dist.Normal(np.zeros(4), 1.0))
    with pytest.raises(CrossfadeError, match=r"'beta' of M1 is of shape \(3,\).*share some elements"):
        union(j1, j2)
    assert union(j1, j2, []).sharing.shared == () and union(j1, j2, []).size == 9
    by_hand = union(j1, j2, {"a": "b", "beta": ("beta", [0, 2], [1, 3])})
    assert by_hand.sharing.shared == ("a = b", "beta (in part)")
    assert by_hand.sharing.only_1 == ("beta[1]",) and by_hand.sharing.only_2 == ("beta[0]", "beta[2]")
    assert by_hand.size == 6 and by_hand.n_shared == 3
    np.testing.assert_array_equal(by_hand.where[0], [0, 1, 3, 2])
    np.testing.assert_array_equal(by_hand.where[1], [0, 4, 1, 5, 2])
    masks = union(j1, j2, {"beta": ("beta", [True, False, True], [False, True, False, True])})
    assert masks.n_shared == 2
    for share, message in (
        ({"q": "b"}, "names 'q', which M1 does not have"),
        ({"a": "q"}, "names 'q', which M2 does not have"),
        ({"beta": ("beta", [0, 1], [0])}, "pairs 2 elements of 'beta' with 1"),
        ({"beta": ("beta", [0, 0], [1, 2])}, "names a coordinate twice"),
        ({"beta": ("beta", [5], [1])}, r"picks elements \[5\] of 'beta', of shape \(3,\)"),
    ):
        with pytest.raises(CrossfadeError, match=message):
            union(j1, j2, share)


def test_elements_of_a_simplex_cannot_be_shared_apart():
    j = model(w=dist.Dirichlet(np.ones(3)))
    with pytest.raises(CrossfadeError, match="ties its elements together"):
        union(j, j, {"w": ("w", [0], [0])})


def test_supports_that_differ_are_no_match():
    with pytest.raises(CrossfadeError, match="cannot be shared"):
        union(model(x=dist.HalfNormal(1.0)), model(x=dist.Normal(0.0, 1.0)))
    with pytest.raises(CrossfadeError, match="cannot be shared"):
        union(model(x=dist.Uniform(0.0, 1.0)), model(x=dist.Uniform(0.0, 2.0)))


def test_flat_coordinates_and_back():
    j = model(w=dist.Dirichlet(np.ones(3)), s=dist.HalfNormal(1.0), m=dist.Normal(np.zeros((2, 2)), 1.0))
    density = flat(j)
    assert density.size == 2 + 1 + 4
    assert density.labels() == ["w[0]", "w[1]", "s", "m[0,0]", "m[0,1]", "m[1,0]", "m[1,1]"]
    u = np.asarray(jax.random.normal(key(6), (2, 5, 7)))
    theta = constrained_draws(j, u)
    np.testing.assert_allclose(theta["w"].sum(axis=-1), 1)
    np.testing.assert_allclose(unconstrained_draws(density, theta), u, atol=1e-9)
    assert flat(nothing()).size == 0
