"""Components whose numbering means nothing: one numbering is sampled, and all are counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

from crossfade.api import compare
from crossfade.density.exchangeable import one_numbering
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.types import CrossfadeError
from crossfade.worlds import mixture

Y = np.concatenate([np.random.default_rng(1).normal(-2, 0.7, 12), np.random.default_rng(2).normal(2, 0.7, 18)])


def one():
    return Model({"m": dist.Normal(0.0, 3.0)}, lambda p: dist.Normal(p["m"], 2.0).log_prob(Y).sum())


def two(means=(0.0, 0.0)):
    """Two normals of equal weight and known spread."""

    def likelihood(p):
        parts = dist.Normal(p["mu"][:, None], 0.7).log_prob(Y) + jnp.log(0.5)
        return jax.scipy.special.logsumexp(parts, axis=0).sum()

    return Model({"mu": dist.Normal(np.array(means), 3.0).to_event(1)}, likelihood)


def truth():
    grid = np.linspace(-12, 12, 1201)
    step, prior = grid[1] - grid[0], stats.norm.logpdf(grid, 0, 3)
    first = logsumexp(prior + stats.norm.logpdf(Y[:, None], grid, 2).sum(axis=0)) + np.log(step)
    likely = stats.norm.pdf(Y[:, None], grid, 0.7)
    both = np.log((likely[:, :, None] + likely[:, None, :]) / 2).sum(axis=0)
    return float(logsumexp(both + prior[:, None] + prior) + 2 * np.log(step) - first)


def test_all_numberings_are_counted():
    result = compare(one(), two(), exchangeable=["mu"], target_se=0.02)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth(), max_error=0.02)
    with pytest.raises(AssertionError):  # the wrong twin: one numbering of the two
        assert_estimate(result.log_bayes_factor, truth() - np.log(2), max_error=0.02)
    assert (np.diff(result.draws[1]["mu"], axis=-1) > 0).all() and "2! numberings" in result.about["notes"][0]


def test_components_that_differ_are_refused_by_name():
    with pytest.raises(CrossfadeError, match=r"renumbering \('mu',\) changes the log joint of M2"):
        compare(one(), two((0.0, 1.0)), exchangeable=["mu"])
    with pytest.raises(CrossfadeError, match="exchangeable names 'nu', which neither model has"):
        compare(one(), two(), exchangeable=["nu"])


def test_our_own_mixtures_know_their_components():
    with float64():
        joint = as_joint(mixture.summed(Y, 3))
        assert joint.exchangeable == ("mean_3", "precision_3", "weight_3")
        there = one_numbering(joint, joint.exchangeable, "M1")
        theta = there.start(jax.random.key(3))
        assert (np.diff(theta["mean_3"]) >= 0).all()
        gained = float(there.log_joint(theta) - joint.log_joint(theta))
        assert gained == pytest.approx(np.log(6), abs=1e-9)
        assert one_numbering(as_joint(one()), ("mu",), "M1").places == as_joint(one()).places
