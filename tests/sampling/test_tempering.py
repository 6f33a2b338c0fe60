"""Parallel tempering from the prior: both of two far modes are seen, with the right mass, and states travel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate
from linear_pairs import key
from numpyro import distributions as dist
from traps import TRAPS

from crossfade.analysis.errors import jackknife
from crossfade.analysis.estimators import mbar
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.sampling.tempering import MOST_RUNGS, TUNING, Passage, advance, begin, trace_of, tune


@pytest.fixture(scope="module")
def run():
    """M1 of the pair with modes at +8 and -8, tempered."""
    tempered = tune(begin(as_joint(TRAPS["separated"]().m1), key(1), 12), TUNING[:4])
    return tempered, *advance(tempered, 250)


def log_evidence():
    """log p(y) of |mu| with N(0, 5) prior, from the two half lines."""
    y, grid = np.array([7.5, 8.2, 8.4]), np.linspace(-40, 40, 80_001)
    log_p = -0.5 * ((y[:, None] - np.abs(grid)) ** 2).sum(axis=0) - 0.5 * (grid / 5) ** 2
    constant = -2 * np.log(2 * np.pi) - np.log(5)
    return float(np.log(np.exp(log_p - log_p.max()).sum() * 0.001) + log_p.max() + constant)


def test_the_evidence_of_two_modes_is_that_of_both(run):
    tempered, _, passage = run
    estimate = jackknife(trace_of(tempered, passage), mbar)
    assert_estimate(estimate, log_evidence(), max_error=0.12)
    with pytest.raises(AssertionError):  # the wrong twin: one mode of the two
        assert_estimate(estimate, log_evidence() - np.log(2), max_error=0.12)


def test_every_replicate_visits_both_modes(run):
    tempered, _, passage = run
    top = passage.u[:, -1, :, 0]
    assert (np.ptp(np.sign(top), axis=1) == 2).all()
    assert passage.round_trips() > 20
    assert tempered.tau[0] == 0 and tempered.tau[-1] == 1 and (np.diff(tempered.tau) > 0).all()
    assert len(tempered.tau) <= MOST_RUNGS
    _, everywhere = advance(tempered, 300, gain=1e-9)  # which records all rungs
    prior = everywhere.u[:, 0, :, 0].ravel()  # fresh draws of N(0, 5), some of them swapped up and others down
    assert abs(prior.mean()) < 0.6 and prior.std() == pytest.approx(5, rel=0.15)


def test_steps_do_not_depend_on_how_they_are_cut(run):
    tempered, _, passage = run
    half, first = advance(tempered, 3)
    _, second = advance(half, 2)
    joined = Passage.joined([first, second])
    np.testing.assert_array_equal(joined.log_likelihood, passage.log_likelihood[:, :, :5])
    np.testing.assert_array_equal(joined.u[:, 0], passage.u[:, -1, :5])


def test_round_trips_are_counted_from_swaps():
    """One replicate, three rungs: the state that was seen at the top goes down to the prior."""
    swaps = np.zeros((4, 1, 2), bool)
    swaps[1, 0, 1] = swaps[2, 0, 0] = True
    log_l = np.zeros((1, 3, 4))
    passage = Passage(log_l, log_l[..., None], swaps, np.zeros(2))
    assert passage.round_trips() == 1
    assert passage._replace(swapped=np.zeros((4, 1, 2), bool)).round_trips() == 0


def test_a_likelihood_that_is_not_a_number_counts_as_zero():
    model = Model({"x": dist.Normal(0.0, 1.0)}, lambda p: jnp.where(p["x"] > 1, jnp.nan, 0.0))
    _, passage = advance(begin(as_joint(model), jax.random.key(0), 4), 80)
    assert np.isneginf(passage.log_likelihood[:, 0]).any() and passage.u[:, -1, 40:].max() <= 1
