"""Compilation ahead of time: what was compiled in threads is found when it is called."""

import logging

import jax
import numpy as np
import pytest
from likelihoods import Likelihood
from linear_pairs import key
from numpyro import distributions as dist

from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.sampling.ahead import compile_all, for_draws, for_starts
from crossfade.sampling.draws import warmed
from crossfade.sampling.evaluate import values

Y = np.array([0.3, -1.0, 0.7, 2.2, 0.1])
LARGE = ("_segment", "_values", "_values_and_slopes", "_at_theta")  # the priors, and so `_drawn`, are the same


def model(scale):
    def likelihood(p, y):
        return dist.StudentT(5.0, p["m"], scale * p["s"]).log_prob(y).sum()

    return as_joint(Model({"m": dist.Normal(0.0, 1.0), "s": dist.LogNormal(0.0, 1.0)}, Likelihood(likelihood, Y)))


@pytest.fixture
def compiled():
    """Names of the large programs that are compiled meanwhile."""
    found, logger = [], logging.getLogger("jax._src.interpreters.pxla")

    class Listener(logging.Handler):
        def emit(self, record):
            words = record.getMessage().split()
            found.extend(word for word in LARGE if words[:1] == ["Compiling"] and f"jit({word})" in words)

    listener, level = Listener(), logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(listener)
    logger.setLevel(level)


@pytest.mark.parametrize("ahead", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_was_compiled_ahead_is_not_compiled_again(ahead, compiled):
    joints = [model(1.3 if ahead else 1.4), model(1.5 if ahead else 1.6)]  # other numbers are other programs
    if ahead:
        compile_all(joints, for_starts)
        compile_all(joints, lambda joint: for_draws(joint, 8))
        assert sorted(set(compiled)) == sorted(LARGE) and len(compiled) == 2 * len(LARGE), compiled
        compiled.clear()
    for joint in joints:
        draws = warmed(joint, key(1), 8).more(25)
        assert np.isfinite(values(draws.density, draws.u)).all()
    assert len(compiled) == (0 if ahead else 2 * len(LARGE)), compiled


def test_an_error_in_a_model_is_raised_where_it_is_compiled():
    class Broken(Exception):
        pass

    def programs(joint):
        if joint.names == ("m", "s"):
            raise Broken("this model")
        return []

    other = as_joint(Model({"m": dist.Normal(0.0, 1.0)}, lambda p: -(p["m"] ** 2)))
    with pytest.raises(Broken, match="this model"):
        compile_all([other, model(1.0)], programs)
    assert jax.numpy.ones(2).sum() == 2
