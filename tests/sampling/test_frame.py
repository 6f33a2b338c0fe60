"""Standardised coordinates: the same density, other coordinates, and fewer divergences where the data say little."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from linear_pairs import key
from numpyro import distributions as dist

from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.density.series import Series, waves
from crossfade.sampling.draws import restored, warmed
from crossfade.sampling.frame import WIDTHS, frame_of, over_widths
from crossfade.sampling.view import Framed, view

Y = rng(2).normal(size=(6, 2))


def model(noise=1.0):
    """Six pairs of effects around a mean, with spreads and a correlation; six others with a spread; a random walk."""

    noise = np.full(1, noise)  # an array is an argument of the program, a number a part of it

    def likelihood(p):
        near = dist.Normal(p["pair"], noise).log_prob(Y).sum()
        far = dist.Normal(p["walk"], noise).log_prob(Y[:, 1]).sum()
        return near + far + dist.Normal(p["other"], noise).log_prob(Y[:, 0]).sum()

    return Model(
        {
            "m": dist.Normal(0.0, 1.0),
            "s": dist.LogNormal(np.zeros(2), 0.5).to_event(1),
            "pair": lambda p: dist.MultivariateNormal(p["m"] * jnp.ones(2), jnp.diag(p["s"])).expand([6]).to_event(1),
            "other": lambda p: dist.StudentT(4.0, p["m"], p["s"][0]).expand([6]).to_event(1),
            "walk": lambda p: dist.GaussianRandomWalk(p["s"][1], num_steps=6),
        },
        likelihood,
    )


@pytest.fixture(scope="module")
def frame():
    with float64():
        return frame_of(as_joint(model()))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_there_and_back_and_the_volume_between(frame, share):
    with float64():
        away = np.full(frame.coordinates.size, share)
        w = rng(1).normal(size=frame.coordinates.size)
        u, log_jacobian = frame.u_and_jacobian(w, away)
        np.testing.assert_allclose(frame.w(u, away), w, atol=1e-10)
        matrix = jax.jacfwd(lambda w: frame.u_and_jacobian(w, away)[0])(w)
        assert float(log_jacobian) == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)
        if share == 0.0:
            walk = frame.coordinates.stretch("walk")
            np.testing.assert_allclose(np.delete(u, walk), np.delete(w, walk), atol=1e-15)
            np.testing.assert_allclose(u[walk], waves(6, False) @ w[walk], atol=1e-12)
        again, volume = frame.seen(np.asarray(u)[None], away)
        np.testing.assert_allclose(again[0], w, atol=1e-10)
        assert volume[0] == pytest.approx(float(log_jacobian), abs=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_series_with_a_start_of_its_own(share):
    """There and back and the volume between; standardised, the waves are noise and the start is as it was."""

    def drifting(p):
        return Series(p["c"], jnp.exp(0.5 * p["c"]), 0.1 * p["c"], jnp.tanh(p["c"]), jnp.exp(p["c"]))

    model = Model({"c": dist.Normal(0.0, 1.0), "x": dist.Normal(np.zeros(7), 1.0).to_event(1)}, lambda p: p["c"])
    with float64():
        frame = frame_of(as_joint(model)._replace(conditional={"x": drifting}))
        away = np.full(8, share)
        w = rng(3).normal(size=8)
        u, log_jacobian = frame.u_and_jacobian(w, away)
        np.testing.assert_allclose(frame.w(u, away), w, atol=1e-10)
        matrix = jax.jacfwd(lambda w: frame.u_and_jacobian(w, away)[0])(w)
        assert float(log_jacobian) == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)
        start = u[0] + np.exp(0.5 * u[0]) ** share * (w[1] - (1 - share) * u[0])
        assert u[1] == pytest.approx(float(start), abs=1e-12)
        path = [u[1]]
        for _ in range(6):
            path.append(0.1 * u[0] + np.tanh(u[0]) * path[-1])
        without_noise = (
            np.where(np.arange(8) < 2, w, 0.0)
            if share == 1.0
            else frame.w(jnp.concatenate([u[:1], jnp.array(path)]), away)
        )
        np.testing.assert_allclose(frame.u_and_jacobian(without_noise, away)[0][1:], path, atol=1e-10)


def test_only_priors_that_depend_on_others_have_a_frame(frame):
    assert set(frame.priors) == {"pair", "other", "walk"} and frame.matrices == {"pair"}
    assert set(frame.waves) == {"walk"}
    assert set(frame.only(["m", "other"]).priors) == {"other"} and frame.only(["m"]) is None
    with float64():
        assert frame_of(as_joint(Model({"m": dist.Normal(0.0, 1.0)}, lambda p: p["m"]))) is None


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "standardised"), [(30.0, True), (0.02, False)])
def test_the_data_decide_how_far(noise, standardised):
    """Effects that the data say nothing about are sampled in standard form, those they fix as they are."""
    draws = warmed(as_joint(model(noise)), key(1), 16).more(100)
    where = draws.coordinates.stretch("other")
    assert (draws.chains.away[where] > 0.5).all() == standardised
    assert (draws.chains.away[where] < 0.1).all() == (not standardised)
    if standardised:  # then the posterior is the prior: Var(other) = E s^2 * 2 + Var m, with E s^2 = exp(2 * 0.5^2)
        found, expected = draws.u[:, :, where].var(), 2 * np.exp(0.5) + 1
        assert found == pytest.approx(expected, rel=0.3)
    # the short waves of a walk are the prior's, whatever the data say; the longest is what the data know
    assert (draws.chains.away[draws.coordinates.stretch("walk")] > 0.5).all() == standardised
    seen = view(draws, np.isin(np.arange(draws.u.shape[2]), where))  # "other" is shared with nobody
    assert isinstance(seen.density, Framed) == standardised
    assert seen.log_density[2, 50] == pytest.approx(float(seen.density(seen.u[2, 50])), rel=1e-9)
    np.testing.assert_allclose(seen.model_point(seen.u[2, 50]), draws.u[2, 50], atol=1e-9)
    rest = np.delete(np.arange(draws.u.shape[2]), where)
    np.testing.assert_array_equal(seen.u[:, :, rest], draws.u[:, :, rest])
    at = draws.u[2, 50]
    assert draws.log_density[2, 50] == pytest.approx(float(draws.density(at)), rel=1e-9)


@pytest.mark.slow
def test_such_draws_go_on_from_a_file(tmp_path):
    joint = as_joint(model(30.0))
    draws = warmed(joint, key(1), 16).more(25)  # as many chains as above: compiled already
    draws.save(tmp_path / "draws.npz")
    again = restored(joint, tmp_path / "draws.npz")
    np.testing.assert_array_equal(again.more(25).u, draws.more(25).u)


def test_a_sum_that_the_data_know_is_not_bent(frame):
    """y knows walk + drift t: the slope of the walk is open, but not once the drift is given."""
    random, n = rng(6), 4000
    log_step = 0.1 * random.normal(size=n)
    slope = 0.3 * random.normal(size=n)
    t = np.arange(1, 21)
    walk = np.cumsum(rng(7).normal(size=20)) + 0.05 * random.normal(size=(n, 20)) - slope[:, None] * t

    def with_drift(p):
        return dist.Normal(p["walk"] + p["drift"] * t, 0.1).log_prob(np.zeros(20)).sum()

    priors = {
        "step": dist.LogNormal(0.0, 1.0),
        "drift": dist.Normal(0.0, 1.0),
        "walk": lambda p: dist.GaussianRandomWalk(p["step"], num_steps=20),
    }
    with float64():
        own = frame_of(as_joint(Model(priors, with_drift)))
        where = own.coordinates.stretch("walk")
        away = own.measured(np.column_stack([log_step, slope, walk]))[where]
        assert away[0] < 0.05
        # the twins: a drift that has nothing to do with the walk, and a scale that makes a funnel
        unrelated = own.measured(np.column_stack([log_step, rng(8).permutation(slope), walk]))[where]
        funnel = own.measured(np.column_stack([10 * log_step, slope, walk]))[where]
    assert unrelated[0] > 0.15
    assert funnel[0] > 0.15


def spread_of(width, known, away):
    """Of a value known to `known` beside a prior of this width, in coordinates standardised by the power `away`."""
    return width**-away / np.hypot(1 / width, 1 / known)


@pytest.mark.parametrize("known", [0.01, 0.3, 3.0])
def test_the_neck_of_a_funnel_is_as_wide_as_its_mouth(known):
    width = np.exp(rng(9).normal(-1.0, 1.5, size=(4000, 1)))
    low, middle, high = np.quantile(width, [WIDTHS, 0.5, 1 - WIDTHS])
    share = np.array([1 / (1 + (middle / known) ** 2)])
    away = over_widths(share, width)[0]
    ends = [spread_of(end, known, away) for end in (low, high)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)
    # the twin: as it is at the median
    twin = [spread_of(end, known, share[0]) for end in (low, high)]
    assert abs(np.log(twin[0] / twin[1])) > 0.2


def test_without_a_funnel_the_share_stays_what_it_is():
    share = np.array([0.0, 0.2, 0.7, 1.0])
    np.testing.assert_allclose(over_widths(share, np.full((50, 4), 2.0)), share, atol=1e-8)
    wide = np.exp(rng(10).normal(size=(50, 4)))
    assert np.all(np.diff(over_widths(share, wide)) > 0)  # and in a funnel the order stays
    np.testing.assert_allclose(over_widths(share, wide)[[0, 3]], [0.0, 1.0], atol=1e-6)
