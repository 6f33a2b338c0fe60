"""Named parameters as one unconstrained vector: there and back, by name, and where numbers end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from linear_pairs import key
from numpyro import distributions as dist
from numpyro.distributions import constraints

from crossfade.density.coordinates import coordinates
from crossfade.types import CrossfadeError

PLACES = {
    "w": ((3,), constraints.simplex),
    "s": ((), constraints.positive),
    "m": ((2, 2), constraints.real),
}


@pytest.fixture(scope="module")
def where():
    return coordinates(PLACES)


def test_there_and_back(where):
    assert where.size == 2 + 1 + 4
    assert where.labels() == ["w[0]", "w[1]", "s", "m[0,0]", "m[0,1]", "m[1,0]", "m[1,1]"]
    np.testing.assert_array_equal(where.stretch("m"), [3, 4, 5, 6])
    u = np.asarray(jax.random.normal(key(6), (2, 5, 7)))
    theta = where.constrained(u)
    assert {name: value.shape[2:] for name, value in theta.items()} == {"w": (3,), "s": (), "m": (2, 2)}
    np.testing.assert_allclose(theta["w"].sum(axis=-1), 1)
    np.testing.assert_allclose(theta["s"], np.exp(u[:, :, 2]))
    np.testing.assert_allclose(where.unconstrained(theta), u, atol=1e-9)
    one = where.theta(jnp.asarray(u[0, 0]))
    np.testing.assert_allclose(where.inverse(one), u[0, 0], atol=1e-9)


def test_the_same_parameters_in_another_order_are_other_coordinates():
    """In one process: a program that was compiled for the one is not the other's."""
    u = np.array([[[0.5, -3.0]]])
    places = {"s": ((), constraints.positive), "m": ((), constraints.real)}
    for ordered in (places, dict(reversed(places.items()))):
        where = coordinates(ordered)
        np.testing.assert_allclose(where.unconstrained(where.constrained(u)), u)
        assert where.lost(u)[0] == 0


def test_the_volume_is_that_of_the_jacobian(where):
    """Of the coordinates that are free: the first two of the simplex, the scale and the matrix."""
    u = np.asarray(jax.random.normal(key(7), (7,)))

    def free(u):
        theta = where.theta(u)
        return jnp.concatenate([theta["w"][:2], theta["s"][None], theta["m"].ravel()])

    _, expected = np.linalg.slogdet(np.asarray(jax.jacobian(free)(u)))
    assert float(where.theta_and_jacobian(u)[1]) == pytest.approx(expected, abs=1e-9)


def test_a_point_is_described_by_name(where):
    said = where.describe(np.zeros(7))
    assert said.startswith("w = [0.3333 0.3333 0.3333], s = 1.")


def test_draws_at_the_edge_of_floating_point_are_counted():
    unit = coordinates({"p": ((), constraints.unit_interval)})
    u = rng(1).normal(size=(4, 500, 1))
    assert unit.lost(u)[0] == 0.0
    u[:, :100] = 45.0  # 1 - p = 3e-20, which a double takes for 0
    share, name = unit.lost(u)
    assert share == pytest.approx(0.2) and name == "p"
    assert coordinates({}).lost(np.zeros((2, 5, 0))) == (0.0, "")


def test_supports_of_distributions_are_places():
    both = coordinates({"x": ((), dist.Uniform(1.0, 3.0).support), "y": ((2,), dist.HalfNormal(1.0).support)})
    theta = both.constrained(np.zeros((1, 1, 3)))
    assert theta["x"] == pytest.approx(2.0) and theta["y"] == pytest.approx(1.0)


def test_a_draw_is_lost_if_any_of_its_coordinates_is():
    """One in ten draws at the edge of each of five supports: four in ten in all, and 0.1 would be too little."""
    where = coordinates({"p": ((5,), constraints.unit_interval)})
    u = np.where(rng(11).uniform(size=(1, 2000, 5)) < 0.1, 60.0, 0.3)
    share, label = where.lost(u)
    assert share == pytest.approx(1 - 0.9**5, abs=0.05) and label.startswith("p[")
    assert where.lost(np.full((1, 50, 5), 0.3))[0] == 0.0


def test_parameters_that_have_no_coordinates_are_named():
    with pytest.raises(CrossfadeError, match="'e' has shape \\(0,\\), so it holds no number"):
        coordinates({"e": ((0,), constraints.real)})
    with pytest.raises(CrossfadeError, match="no unconstrained coordinates for the support of 'd'"):
        coordinates({"d": ((3,), constraints.sphere)})
