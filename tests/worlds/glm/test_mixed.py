"""The mixed world: the recipe of its data, the joint to the digit, and the smallest reference by another route."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from crossfade.density.model import Model
from crossfade.paths.path import named_sharing
from crossfade.types import CrossfadeError
from crossfade.worlds.glm import mixed

# sum y, sum x0 y, sum x1 y by number of groups, from the recipe typed into a bare NumPy
SUMS = {10: (54, 3.3914209, -0.5659279), 1000: (4307, 1333.1433544, 0.3717496)}


def draw(m: Model, offset: int) -> dict[str, np.ndarray]:
    random = rng(offset)
    n_groups = m.log_likelihood.group.max() + 1
    return {name: random.normal(size=n_groups if name == "z" else ()) for name in m.names}


def log_joint_by_scipy(y, x, group, theta) -> float:
    eta = theta["b0"] + sum(theta[f"b{j + 1}"] * column for j, column in enumerate(x.T))
    eta = eta + np.exp(theta["ls"]) * theta["z"][group]
    slopes = [theta[f"b{j + 1}"] for j in range(x.shape[1])]
    return float(
        stats.bernoulli.logpmf(y, expit(eta)).sum()
        + stats.norm.logpdf(theta["b0"], 0, 5)
        + stats.norm.logpdf(slopes, 0, 2).sum()
        + stats.norm.logpdf(theta["ls"], -0.5, 1)
        + stats.norm.logpdf(theta["z"]).sum()
    )


@pytest.mark.parametrize("n_groups", [10, 100, 1000])
def test_the_data_are_those_of_the_recipe(n_groups):
    y, x, group = mixed.simulate(n_groups)
    random = np.random.default_rng(1)  # normals first, the rows' pairs in turn; then effects; then uniforms
    normals = random.standard_normal(21 * n_groups)
    np.testing.assert_array_equal(x[:, 0], normals[: 20 * n_groups : 2])
    np.testing.assert_array_equal(x[:, 1], normals[1 : 20 * n_groups : 2])
    effect = 0.8 * normals[20 * n_groups :]
    p = [expit(-0.3 + 0.7 * a + 0.15 * b * (10 / n_groups) ** 0.5 + effect[i // 10]) for i, (a, b) in enumerate(x)]
    np.testing.assert_array_equal(y, random.random(10 * n_groups) < p)
    np.testing.assert_array_equal(group, np.arange(10 * n_groups) // 10)


def test_the_sums_of_the_data():
    """So that a change of NumPy's streams is noticed, on which the references rest."""
    for n_groups, sums in SUMS.items():
        y, x, _ = mixed.simulate(n_groups)
        assert (y.sum(), *(y @ x)) == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize("which", [0, 1])
def test_the_log_joint_is_scipys(which):
    m = mixed.pair(100)[which]
    y, x, group = mixed.simulate(100)
    assert m.names == ("b0", "b1", *(["b2"] if which else []), "ls", "z")
    for offset in range(3):
        theta = draw(m, offset)
        exact = log_joint_by_scipy(y, x[:, : which + 1], group, theta)
        assert float(m.log_joint(theta)) == pytest.approx(exact, abs=1e-10)


def test_groups_of_any_size_and_order():
    """Labels in any order, groups of 1 to 40: the same joint and gradient as SciPy's and as equal groups by gather."""
    random = rng(3)
    group = random.choice(["d", "b", "a", "c", "e"], p=[0.5, 0.3, 0.1, 0.05, 0.05], size=80)
    group[:5] = list("edcba")
    y, x = (random.uniform(size=80) < 0.4).astype(float), random.normal(size=(80, 2))
    m = mixed.model(y, x, group)
    assert m.log_likelihood.size is None
    theta = draw(m, 4)
    exact = log_joint_by_scipy(y, x, np.searchsorted(list("abcde"), group), theta)
    assert float(m.log_joint(theta)) == pytest.approx(exact, abs=1e-10)

    _, equal = mixed.pair(10)
    own = equal.log_likelihood
    assert own.size == 10
    gathered = mixed.MixedLikelihood(own.flipped, own.signs, own.group, own.names, None)
    theta = {name: jnp.asarray(value) for name, value in draw(equal, 5).items()}
    one, two = (jax.grad(likelihood)(theta) for likelihood in (own, gathered))
    for name in theta:
        np.testing.assert_allclose(one[name], two[name], atol=1e-12)


def test_all_but_one_slope_is_shared():
    sharing = named_sharing(*mixed.pair(20))
    assert sharing.shared == ("b0", "b1", "ls", "z")
    assert (sharing.only_1, sharing.only_2, sharing.tempered) == ((), ("b2",), ())


def log_evidence_by_quadrature(n_slopes: int, n_nodes: int) -> float:
    """Ten groups: the effects by 40 nodes a group, the other parameters by a tensor of nodes at the mode."""
    y, x, _ = mixed.simulate(10)
    sign = (2 * y - 1).reshape(10, 10)
    columns = np.column_stack([np.ones(100), x[:, :n_slopes]]).reshape(10, 10, -1)
    effects, weights = hermegauss(40)
    sd = np.array([5.0] + [2.0] * n_slopes + [1.0])
    mean = np.array([0.0] * (n_slopes + 1) + [-0.5])

    def log_joint(theta: np.ndarray) -> float:
        eta = (columns @ theta[:-1])[:, :, None] + np.exp(theta[-1]) * effects
        each = np.exp(-np.logaddexp(0, -sign[:, :, None] * eta).sum(axis=1))  # [group, node]
        return np.log(each @ weights / np.sqrt(2 * np.pi)).sum() + stats.norm.logpdf(theta, mean, sd).sum()

    found = minimize(lambda theta: -log_joint(theta), mean, method="BFGS")
    root = np.linalg.cholesky(found.hess_inv)
    nodes, own = hermegauss(n_nodes)
    z = np.stack(np.meshgrid(*[nodes] * len(mean), indexing="ij"), -1).reshape(-1, len(mean))
    log_w = sum(np.meshgrid(*[np.log(own) + nodes**2 / 2] * len(mean), indexing="ij")).ravel()
    kept = log_w - (z**2).sum(axis=1) / 2 > -16
    values = np.array([log_joint(found.x + root @ point) for point in z[kept]])
    return float(logsumexp(log_w[kept] + values) + np.log(np.diag(root)).sum())


def test_the_reference_of_ten_groups():
    one, two = (log_evidence_by_quadrature(n_slopes, 11) for n_slopes in (1, 2))
    assert two - one == pytest.approx(mixed.REFERENCE[10][0], abs=5e-4)


def test_bad_models_are_refused():
    y, x, group = np.array([0, 1, 1]), np.ones((3, 1)), np.array([0, 0, 1])
    with pytest.raises(CrossfadeError, match="must be 0 or 1"):
        mixed.model(y + 1, x, group)
    with pytest.raises(CrossfadeError, match="finite"):
        mixed.model(y, x * np.nan, group)
    with pytest.raises(CrossfadeError, match="shapes"):
        mixed.model(y, x[:, 0], group)
    with pytest.raises(CrossfadeError, match="shapes"):
        mixed.model(y, x, group[:2])
    with pytest.raises(CrossfadeError, match="slope_sd must be positive"):
        mixed.model(y, x, group, slope_sd=0.0)
