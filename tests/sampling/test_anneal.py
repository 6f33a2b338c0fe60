import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from linear_pairs import KINDS, crossed, key, nested

from crossfade.density.model import Model
from crossfade.paths.path import direct, union_coordinates
from crossfade.sampling import anneal as module
from crossfade.sampling.anneal import BrokenEnergy, Interrupted, Schedule, Score, anneal, apart, chain_keys, join
from crossfade.sampling.kernel import Diagonal, Metropolis
from crossfade.sampling.ladder import linear as evenly
from crossfade.sampling.ladder import sigmoid
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic


def gibbs_world():
    pair = crossed(**KINDS["scaled"])
    return direct(*pair), linear.gibbs(*pair)


def hmc_world():
    pair = logistic.pima()
    return direct(*pair), logistic.hmc(*pair)


@pytest.mark.parametrize(
    "world, schedule",
    [
        pytest.param(gibbs_world, Schedule(1, 0, 20), marks=pytest.mark.slow),
        pytest.param(gibbs_world, Schedule(6, 3, 20), marks=pytest.mark.slow),
        pytest.param(hmc_world, Schedule(6, 3, 20), marks=pytest.mark.slow),
    ],
)
def test_one_batch_is_several_batches_is_a_run_in_chunks(world, schedule):
    path, kernel = world()
    tau = sigmoid(41)
    keys = chain_keys(key(0), 8)
    whole, _ = anneal(path, kernel, tau, keys, schedule=schedule)
    parts = [anneal(path, kernel, tau, some, schedule=schedule)[0] for some in (keys[:4], keys[4:])]
    chunked, _ = anneal(path, kernel, tau, keys, schedule=schedule, segment=17)
    scale = np.abs(whole.log_ratio).max()
    for other in (join(parts), chunked):
        np.testing.assert_allclose(other.log_ratio, whole.log_ratio, rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(other.acceptance, whole.acceptance, atol=1e-6)
    # the wrong twin: other keys are another run
    other, _ = anneal(path, kernel, tau, chain_keys(key(1), 8), schedule=schedule)
    assert np.abs(other.log_ratio - whole.log_ratio).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("world", [gibbs_world, pytest.param(hmc_world, marks=pytest.mark.slow)])
def test_chains_with_ladders_of_their_own_are_as_if_each_was_alone(world):
    path, kernel = world()
    ladders, keys, schedule = np.array([sigmoid(9), evenly(9), 1 - evenly(9)]), chain_keys(key(0), 3), Schedule(4, 2, 9)
    found, _ = anneal(path, kernel, ladders, keys, schedule=schedule)
    assert found.tau.shape == (3, 9)
    scale = np.abs(found.log_ratio).max()
    for i, one in enumerate(apart(found)):
        alone, _ = anneal(path, kernel, ladders[i], keys[i : i + 1], schedule=schedule)
        np.testing.assert_array_equal(one.tau, alone.tau)
        np.testing.assert_allclose(one.log_ratio, alone.log_ratio, rtol=0, atol=1e-11 * scale)
    # the wrong twin: the ladders in another order
    other, _ = anneal(path, kernel, ladders[[1, 0, 2]], keys, schedule=schedule)
    assert (np.abs(other.log_ratio - found.log_ratio).max(axis=(1, 2)) > 1e-3).tolist() == [True, True, False]


def test_a_broken_chain_is_told_with_the_tau_of_its_own_ladder():
    m1 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: 0.0 * theta["x"])
    m2 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: 0 * jnp.log(1e9 - theta["x"]))
    path, kernel = direct(m1, m2), Metropolis(Diagonal({"x": np.array(0.1)}))
    _, state = anneal(path, kernel, np.array([0.0]), chain_keys(key(0), 2))
    broken = state.energy._replace(end=np.array([0.0, np.nan]))
    with pytest.raises(BrokenEnergy, match=r"tau = 0.75 in chain 1"):
        own = np.array([[0.25], [0.75]])
        anneal(path, kernel, own, chain_keys(key(0), 2), state=state._replace(energy=broken))


def test_a_chains_key_is_its_own_however_many_there_are():
    data = [jax.random.key_data(chain_keys(key(0), n, first)) for n, first in ((8, 0), (4, 0), (4, 4))]
    np.testing.assert_array_equal(data[0], np.concatenate(data[1:]))


def test_shapes_and_what_is_kept():
    path, kernel = gibbs_world()
    trace, state = anneal(path, kernel, evenly(5), chain_keys(key(0), 3), schedule=Schedule(4, 2, 10))
    assert trace.log_ratio.shape == (3, 5, 4) and trace.acceptance.shape == (3, 5)
    assert trace.equilibrium and trace.log_ratio.dtype == np.float64
    assert float(trace.log_ratio[1, -1, -1]) == float(state.energy.ratio[1])
    sweep, _ = anneal(path, kernel, evenly(5), chain_keys(key(0), 3))
    assert not sweep.equilibrium and sweep.log_ratio.shape == (3, 5, 1)


def test_a_run_can_be_taken_up_where_it_stopped():
    path, kernel = gibbs_world()
    keys = chain_keys(key(0), 3)
    _, state = anneal(path, kernel, np.array([0.0]), keys)
    again, _ = anneal(path, kernel, np.array([0.2, 0.2]), keys, schedule=Schedule(1, 0, 0), state=state)
    assert again.log_ratio.shape == (3, 2, 1)


def test_the_score_is_the_gradient_of_log_q():
    pair = nested(**KINDS["known"])
    path, kernel = direct(*pair), linear.gibbs(*pair)
    trace, state = anneal(path, kernel, np.array([0.3]), chain_keys(key(0), 2), observe=Score(union_coordinates(*pair)))
    theta = jax.tree.map(lambda x: x[1], state.theta)
    names = sorted(theta)
    step = 1e-5
    for i, name in enumerate(names):
        up, down = ({**theta, name: theta[name] + s} for s in (step, -step))
        slope = (path.energy(up).at(0.3) - path.energy(down).at(0.3)) / (2 * step)
        assert trace.extra["score"][1, 0, 0, i] == pytest.approx(float(slope), abs=1e-6)
        assert trace.extra["theta"][1, 0, 0, i] == float(theta[name])


def test_a_nan_likelihood_mid_run_stops_with_the_parameters_and_tau():
    """At tau the posterior sits near 2 tau - 1; M2's likelihood is NaN beyond 1/2."""
    m1 = Model({"x": dist.Normal(-1.0, 0.1)}, lambda theta: 0.0 * theta["x"])
    m2 = Model({"x": dist.Normal(-1.0, 0.1)}, lambda theta: 200 * theta["x"] + 0 * jnp.log(0.5 - theta["x"]))
    kernel = Metropolis(Diagonal({"x": np.asarray(0.1)}))
    with pytest.raises(BrokenEnergy, match=r"nan under M2's end.*tau = 0\.[5-9]\d* in chain \d, where x = 0\.[5-7]"):
        anneal(direct(m1, m2), kernel, evenly(2000), chain_keys(key(0), 4))


def test_a_nan_at_the_start_is_caught_before_any_step():
    m = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: jnp.nan * theta["x"])
    with pytest.raises(BrokenEnergy, match="narrow the prior"):
        anneal(direct(m, m), Metropolis(Diagonal({"x": np.asarray(0.3)})), evenly(3), chain_keys(key(0), 2))


def test_impossible_regions_are_no_error():
    m1 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: 0.0 * theta["x"])
    m2 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: jnp.where(theta["x"] > 0, 0.0, -jnp.inf))
    kernel = Metropolis(Diagonal({"x": np.asarray(1.0)}))
    trace, _ = anneal(direct(m1, m2), kernel, evenly(4), chain_keys(key(0), 50), schedule=Schedule(50, 400, 100))
    assert np.isneginf(trace.log_ratio[:, 0]).mean() == pytest.approx(0.5, abs=0.1)
    assert np.all(trace.log_ratio[:, 1:] == 0)


def test_ctrl_c_keeps_the_finished_rungs(monkeypatch):
    path, kernel = gibbs_world()
    keys = chain_keys(key(0), 3)
    whole, _ = anneal(path, kernel, evenly(50), keys, schedule=Schedule(1, 0, 0), segment=10)
    calls = []
    real = module._segment

    def stop_at_the_third(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(module, "_segment", stop_at_the_third)
    with pytest.raises(Interrupted) as stopped:
        anneal(path, kernel, evenly(50), keys, schedule=Schedule(1, 0, 0), segment=10)
    kept = stopped.value.trace
    assert len(kept.tau) == 20 and kept.tau[-1] < 1
    np.testing.assert_array_equal(kept.log_ratio, whole.log_ratio[:, :20])
    assert float(stopped.value.state.energy.ratio[0]) == whole.log_ratio[0, 19, 0]


def test_the_bar_is_silent_without_a_terminal(capsys):
    path, kernel = gibbs_world()
    anneal(path, kernel, evenly(5), chain_keys(key(0), 2))
    assert capsys.readouterr() == ("", "")
    assert not sys.stderr.isatty()


@pytest.mark.parametrize("tau", [[], [0.0, 1.5], [np.nan], [[0.0, 1.0]], [[], []], [[[0.0]], [[0.0]]]])
def test_a_bad_ladder_is_refused(tau):
    path, kernel = gibbs_world()
    with pytest.raises(CrossfadeError, match="between 0 and 1"):
        anneal(path, kernel, np.array(tau), chain_keys(key(0), 2))


def test_only_like_traces_are_joined():
    path, kernel = gibbs_world()
    a, _ = anneal(path, kernel, evenly(5), chain_keys(key(0), 2))
    b, _ = anneal(path, kernel, evenly(6), chain_keys(key(0), 2))
    with pytest.raises(CrossfadeError, match="same ladder"):
        join([a, b])
