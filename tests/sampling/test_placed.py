"""Runs that advance together are the runs that each would be alone, and their rungs have the moments of the draws."""

import jax
import numpy as np
import pytest
from linear_pairs import key, nested

from crossfade.analysis.moments import plain
from crossfade.density.model import without_data
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, begin, chain_keys
from crossfade.sampling.ladder import Rung, place_by_tangents, power
from crossfade.sampling.placed import anneal_together
from crossfade.types import CrossfadeError
from crossfade.worlds.linear import models as linear

MODEL = nested(noise=linear.Noise(2.0, 1.5))[1]
N_ITER = 400


@pytest.fixture(scope="module")
def leg():
    with jax.enable_x64(True):
        path, kernel = direct(without_data(MODEL), MODEL), linear.gibbs(without_data(MODEL), MODEL)
        keys = chain_keys(key(1), 5)
        return path, kernel, keys, (begin(path, keys, np.array(0.0)), begin(path, keys, np.array(1.0)))


def some(state, index):
    return jax.tree.map(lambda x: x[index], state)


LADDERS = [power(10), power(5), 10, 5, 10]


@pytest.fixture(scope="module")
def together(leg):
    path, kernel, keys, ends = leg
    return anneal_together(path, kernel, LADDERS, N_ITER, keys, ends)


@pytest.mark.slow
def test_company_changes_nothing(leg, together):
    path, kernel, keys, ends = leg
    assert [len(trace.tau) for trace in together] == [10, 5, 10, 5, 10]
    for own in ([0], [2], [1, 2], [3, 0]):
        alone = anneal_together(
            path, kernel, [LADDERS[i] for i in own], N_ITER, keys[np.array(own)],
            (some(ends[0], np.array(own)), some(ends[1], np.array(own))),
        )  # fmt: skip
        for i, trace in zip(own, alone, strict=True):
            np.testing.assert_allclose(trace.tau, together[i].tau, atol=1e-9)
            np.testing.assert_allclose(trace.log_ratio, together[i].log_ratio, atol=1e-7)
    # the wrong twin: the same method with another key is another run
    assert np.abs(together[2].tau - together[4].tau).max() > 1e-4


@pytest.mark.parametrize("run, n_turns", [pytest.param(0, 1, marks=pytest.mark.slow), (1, 2)])
def test_moments_are_those_of_the_draws_without_the_first_fifth(leg, together, run, n_turns):
    """Ten turns of 50 steps: a run of five rungs stays two turns at each, and drops 20 of the 100 steps."""
    path, kernel, keys, (state, _) = leg
    own, state = keys[run : run + 1], some(state, slice(run, run + 1))
    found, schedule = plain(together[run]), Schedule(5 * N_ITER // 40, 0, 0)
    for k, tau in enumerate(LADDERS[run]):
        draws = []
        for turn in range(k * n_turns, (k + 1) * n_turns):
            step = jax.vmap(lambda one, turn=turn: jax.random.fold_in(one, turn))(own)
            trace, state = anneal(path, kernel, np.array([tau]), step, schedule=schedule, state=state)
            draws.append(trace.log_ratio.ravel())
        draws = np.concatenate(draws)
        kept = draws[len(draws) // 5 :]
        assert found.mean[k] == pytest.approx(kept.mean(), rel=1e-9)
        assert found.variance[k] == pytest.approx(kept.var(ddof=1), rel=1e-8)
        assert abs(found.mean[k] - draws.mean()) > 1e-6  # the wrong twin keeps the burn-in
        assert found.variance[k] != pytest.approx(kept.var(), rel=1e-4)


@pytest.mark.parametrize("run", [2, 3, 4])
def test_each_run_places_its_rungs_by_its_own_tangents(together, run):
    def measured(other):
        trace, (mean, variance) = together[other], plain(together[other])

        def measure(tau):
            k = np.argmin(np.abs(trace.tau - tau))
            return Rung(trace.tau[k], mean[k], variance[k])

        return measure

    np.testing.assert_allclose(place_by_tangents(measured(run), LADDERS[run]).tau, together[run].tau, atol=1e-12)
    # the wrong twin: by the tangents of another run
    assert not np.allclose(place_by_tangents(measured(6 - run if run != 3 else 2), LADDERS[run]).tau, together[run].tau)


def test_lengths_that_cannot_go_together_are_refused(leg):
    path, kernel, keys, ends = leg
    for ladders, n_iter in (([10, 5], 410), ([10, 4], 400)):
        with pytest.raises(CrossfadeError, match="multiple of 40, and 10 of all numbers"):
            anneal_together(path, kernel, ladders, n_iter, keys[:2], ends)
