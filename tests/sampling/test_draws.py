"""Draws of a posterior: they grow, are kept and go on elsewhere, to the last bit; starts that cannot be are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from likelihoods import Likelihood
from scipy import stats

import crossfade
from crossfade.analysis.mixing import mixing
from crossfade.density.joint import as_joint, nothing
from crossfade.density.model import Model
from crossfade.sampling.draws import warmed
from crossfade.sampling.evaluate import values
from crossfade.sampling.starts import starts
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])


def normal(p, y):
    return dist.Normal(p["mu"], p["sd"]).log_prob(y).sum()


def model(width=2.0, y=Y):
    return Model({"mu": dist.Normal(0.0, width), "sd": dist.HalfNormal(1.0)}, Likelihood(normal, y), data=y)


@pytest.fixture(scope="module")
def whole():
    return crossfade.sample(model(), n_draws=150, n_chains=8, seed=3)


@pytest.fixture(scope="module")
def first():
    return crossfade.sample(model(), n_draws=50, n_chains=8, seed=3)


def same(a, b):
    for name in ("u", "log_density", "divergent", "slope"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_draws_are_of_the_posterior():
    draws = crossfade.sample(model(), n_draws=200)
    mu, log_sd = np.linspace(-4, 5, 451)[:, None], np.linspace(-3, 2, 401)[None, :]
    log_p = stats.norm.logpdf(mu, 0, 2) + stats.halfnorm.logpdf(np.exp(log_sd)) + log_sd
    log_p = log_p + sum(stats.norm.logpdf(v, mu, np.exp(log_sd)) for v in Y)
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    n = mixing(draws.u).effective
    theta = draws.theta()
    for found, exact in ((theta["mu"], mu), (np.log(theta["sd"]), log_sd)):
        mean = (weight * exact).sum()
        sd = np.sqrt((weight * (exact - mean) ** 2).sum())
        assert abs(found.mean() - mean) < 4.5 * sd / np.sqrt(n)
        assert found.std() == pytest.approx(sd, rel=0.15)
    assert theta["mu"].shape == (32, 200) and draws.can_grow


def test_more_is_as_if_they_had_been_drawn_at_once(whole, first):
    same(first.more(100), whole)
    same(first.more(25).more(60), whole)  # whole segments: 75 more
    assert first.n_draws == 50 and first.more(0) is first


def test_what_is_kept_goes_on_to_the_last_bit(whole, first, tmp_path):
    np.savez(tmp_path / "draws.npz", **first.arrays())
    with np.load(tmp_path / "draws.npz") as file:
        again = crossfade.restored_draws(model(), dict(file))
    same(again, first)
    same(again.more(100), whole)
    first.save(tmp_path / "saved.npz")
    same(crossfade.restored_draws(model(), tmp_path / "saved.npz").more(100), whole)
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_gradients_stay_with_their_draws(first):
    at = first.slope_at
    assert at.shape == first.slope.shape == (8, 2, 2)
    expected = jax.grad(first.density)(jnp.asarray(at[5, 1]))
    np.testing.assert_allclose(first.slope[5, 1], expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(values(first.density, first.u), first.log_density, rtol=1e-9)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (model(width=2.1), "the log joint of the model at the last draws is not what it was"),
        (model(y=Y + 0.01), "the log joint of the model at the last draws is not what it was"),
        (Model({"mu": dist.Normal(0.0, 2.0)}, lambda p: 0.0 * p["mu"]), "2 coordinates and the model has 1"),
    ],
)
def test_another_model_is_refused(first, other, message):
    with pytest.raises(CrossfadeError, match=message):
        crossfade.restored_draws(other, first.arrays())


def test_draws_without_chains_do_not_grow(first):
    with pytest.raises(CrossfadeError, match="cannot be continued"):
        first._replace(chains=None).more(25)
    empty = warmed(nothing(), jax.random.key(0), 4).more(30)
    assert empty.u.shape == (4, 50, 0) and empty.can_grow and not empty.log_density.any()


def test_chains_start_dispersed_and_half_of_them_high():
    joint = as_joint(model())
    u, spread = starts(joint, joint.density, jax.random.key(1), 16, "M1")
    assert u.shape == (16, 2) and (spread > 0).all()
    height = values(joint.density, u)
    assert height[1::2].min() > np.median(height[::2])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p: jnp.log(p["mu"] - 50), "at mu = .* the log joint is nan"),
        (lambda p: jnp.where(p["mu"] > 50, 0.0, -jnp.inf), "only 0 of 1024 draws of the prior of M1"),
    ],
)
def test_starts_that_cannot_be(function, message):
    joint = as_joint(Model({"mu": dist.Normal(0.0, 1.0)}, function))
    with pytest.raises(CrossfadeError, match=message):
        starts(joint, joint.density, jax.random.key(1), 16, "M1")


def test_a_prior_without_a_finite_scale_is_named():
    priors = {"mu": dist.Normal(0.0, 1.0), "slope": dist.Normal(0.0, np.inf)}
    joint = as_joint(Model(priors, lambda p: -(p["mu"] ** 2) - p["slope"] ** 2))
    with pytest.raises(CrossfadeError, match=r"the prior of slope in M1 is a finite number.*a finite scale"):
        starts(joint, joint.density, jax.random.key(1), 16, "M1")
