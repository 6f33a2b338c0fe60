"""Coordinates in which a density has steps: recognised, and moved by Metropolis beside HMC."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate, rng
from linear_pairs import key
from numpyro import distributions as dist
from scipy.special import gammaln, logsumexp

from crossfade.api import compare
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.draws import warmed
from crossfade.sampling.evaluate import steps
from crossfade.sampling.hmc import advance, begin
from crossfade.sampling.warm_up import warm_up
from crossfade.types import CrossfadeError

WEIGHTS = np.array([0.1, 0.5, 0.05, 0.35])


class Stairs(eqx.Module):
    """u_1 in four boxes of width 1 with these weights, u_0 ~ N(box, 1)."""

    def __call__(self, u, tau):
        box = jnp.clip(jnp.floor(u[1]), 0, 3)
        height = jnp.log(jnp.asarray(WEIGHTS))[box.astype(int)]
        inside = (u[1] >= 0) & (u[1] < 4)
        return jnp.where(inside, height, -jnp.inf) - 0.5 * (u[0] - box) ** 2


def visited(jumps):
    starts = np.stack([rng(1).normal(size=32), rng(2).uniform(0, 4, 32)], axis=1)
    chains = warm_up(begin(Stairs(), starts, np.ones(2), chain_keys(key(1), 32), None, jumps))
    _, seen = advance(chains, 12)
    return seen


def test_boxes_are_visited_as_often_as_they_weigh():
    seen = visited(np.array([1]))
    boxes = np.floor(seen.u[:, :, 1]).astype(int)
    share = np.array([[(own == k).mean() for k in range(4)] for own in boxes])
    error = share.std(axis=0, ddof=1) / np.sqrt(len(share))
    assert (error < 0.03).all() and (np.abs(share.mean(axis=0) - WEIGHTS) < 4.5 * error).all()
    means = np.array([seen.u[:, :, 0][boxes == k].mean() for k in range(4)])
    np.testing.assert_allclose(means, np.arange(4), atol=0.25)
    assert seen.divergent.mean() < 0.01


COUNTS = np.concatenate([rng(5).poisson(4.0, 15), rng(6).poisson(1.5, 20)]).astype(float)
YEARS = np.arange(len(COUNTS)) + 0.5


def constant():
    return Model({"rate": dist.Gamma(2.0, 1.0)}, lambda p: dist.Poisson(p["rate"]).log_prob(COUNTS).sum())


def changing():
    def likelihood(p):
        rate = jnp.where(p["switch"] > YEARS, p["rate"], p["later"])
        return dist.Poisson(rate).log_prob(COUNTS).sum()

    priors = {"rate": dist.Gamma(2.0, 1.0), "later": dist.Gamma(2.0, 1.0), "switch": dist.Uniform(0.0, 35.0)}
    return Model(priors, likelihood)


def log_rate_out(counts):
    """Of counts of one rate ~ Gamma(2, 1), without the factorials."""
    return gammaln(2 + counts.sum()) - (2 + counts.sum()) * np.log1p(len(counts))


def truth():
    edges = np.concatenate([[0.0], YEARS, [35.0]])
    parts = [log_rate_out(COUNTS[:k]) + log_rate_out(COUNTS[k:]) for k in range(len(COUNTS) + 1)]
    return float(logsumexp(np.array(parts) + np.log(np.diff(edges) / 35)) - log_rate_out(COUNTS))


@pytest.mark.slow
@pytest.mark.parametrize("named", [["switch"], []])
def test_a_change_point_named_or_recognised(named):
    result = compare(constant(), changing(), discontinuous=named, target_se=0.03)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth(), max_error=0.03)
    with pytest.raises(AssertionError):  # the wrong twin: half of the prior of the switch
        assert_estimate(result.log_bayes_factor, truth() - np.log(2), max_error=0.03)
    assert any("steps in switch" in note for note in result.about["notes"]) == (not named)


def test_steps_are_told_from_curvature():
    with float64():
        draws = warmed(as_joint(changing())._replace(discontinuous=("switch",)), key(3), 16).more(50)
        where = draws.coordinates.stretch("switch")
        np.testing.assert_array_equal(steps(draws.density, draws.u, np.arange(3)), where)


def test_unknown_names_are_an_error():
    with pytest.raises(CrossfadeError, match="discontinuous names 'swich', which no model has"):
        compare(constant(), changing(), discontinuous=["swich"])
