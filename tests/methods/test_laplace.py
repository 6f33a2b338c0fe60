"""A first look at an evidence, without chains, held to exact ones; and where it says that it cannot."""

import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate
from numpyro import distributions as dist

from crossfade.density.model import Model
from crossfade.methods.laplace import first_look
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import mixed


def test_a_first_look_is_near_the_exact_evidence():
    model = linear.radiata()[0]
    exact = linear.log_evidence(model)
    look = first_look(model)
    assert look.reliable and look.laplace == pytest.approx(exact, abs=0.1)
    assert_estimate(look.importance, exact, max_error=0.02)
    with pytest.raises(AssertionError):  # the wrong twin: Laplace without half a log 2 pi
        assert_estimate(look.importance, exact + 0.5 * np.log(2 * np.pi), max_error=0.02)


def test_importance_sampling_mends_what_the_curvature_cannot_know():
    """The third power of a gamma variate: a skewed posterior of log s, with evidence Gamma(5) 2^-5 / 1."""
    look = first_look(Model({"s": dist.Gamma(2.0, 1.0)}, lambda p: 3 * jnp.log(p["s"]) - p["s"]))
    exact = float(np.log(24) - 5 * np.log(2))
    assert_estimate(look.importance, exact, max_error=0.02)
    assert 0.005 < abs(look.laplace - exact) < 0.1


def test_what_a_first_look_refuses():
    with pytest.raises(CrossfadeError, match="50 coordinates"):
        first_look(mixed.pair(100)[0])
    with pytest.raises(CrossfadeError, match="no peak with a curvature"):
        first_look(Model({"a": dist.Normal(0.0, 1.0)}, lambda p: 0.5 * p["a"] ** 2))
    flat = Model({"a": dist.Uniform(0.0, 1.0)}, lambda p: 0.0 * p["a"])
    assert np.isfinite(first_look(flat).laplace)
