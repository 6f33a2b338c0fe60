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
from crossfade.sampling.draws import restored, warmed
from crossfade.sampling.frame import frame_of

Y = rng(2).normal(size=(6, 2))


def model(noise=1.0):
    """Six pairs of effects around a mean, with spreads and a correlation; and six others with a spread of their own."""

    noise = np.full(1, noise)  # an array is an argument of the program, a number a part of it

    def likelihood(p):
        near = dist.Normal(p["pair"], noise).log_prob(Y).sum()
        return near + dist.Normal(p["other"], noise).log_prob(Y[:, 0]).sum()

    return Model(
        {
            "m": dist.Normal(0.0, 1.0),
            "s": dist.LogNormal(np.zeros(2), 0.5).to_event(1),
            "pair": lambda p: dist.MultivariateNormal(p["m"] * jnp.ones(2), jnp.diag(p["s"])).expand([6]).to_event(1),
            "other": lambda p: dist.StudentT(4.0, p["m"], p["s"][0]).expand([6]).to_event(1),
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
            np.testing.assert_allclose(u, w, atol=1e-15)


def test_only_priors_that_depend_on_others_have_a_frame(frame):
    assert set(frame.priors) == {"pair", "other"} and frame.matrices == {"pair"}
    with float64():
        assert frame_of(as_joint(Model({"m": dist.Normal(0.0, 1.0)}, lambda p: p["m"]))) is None


@pytest.mark.parametrize(("noise", "standardised"), [pytest.param(30.0, True, marks=pytest.mark.slow), (0.02, False)])
def test_the_data_decide_how_far(noise, standardised):
    """Effects that the data say nothing about are sampled in standard form, those they fix as they are."""
    draws = warmed(as_joint(model(noise)), key(1), 16).more(100)
    where = draws.coordinates.stretch("other")
    assert (draws.chains.away[where] > 0.5).all() == standardised
    assert (draws.chains.away[where] < 0.1).all() == (not standardised)
    if standardised:  # then the posterior is the prior: Var(other) = E s^2 * 2 + Var m, with E s^2 = exp(2 * 0.5^2)
        found, expected = draws.u[:, :, where].var(), 2 * np.exp(0.5) + 1
        assert found == pytest.approx(expected, rel=0.3)
    at = draws.u[2, 50]
    assert draws.log_density[2, 50] == pytest.approx(float(draws.density(at)), rel=1e-9)


@pytest.mark.slow
def test_such_draws_go_on_from_a_file(tmp_path):
    joint = as_joint(model(30.0))
    draws = warmed(joint, key(1), 16).more(25)  # as many chains as above: compiled already
    draws.save(tmp_path / "draws.npz")
    again = restored(joint, tmp_path / "draws.npz")
    np.testing.assert_array_equal(again.more(25).u, draws.more(25).u)
