"""Models at the door: one normalised log joint of named parameters, and what is turned away."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from linear_pairs import KINDS, key, nested
from scipy import stats

from crossfade.density.joint import AnyOf, Joint, as_joint, nothing
from crossfade.density.model import Model, describe, without_data
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9])


def model():
    priors = {"mu": dist.Normal(0.0, 2.0), "sd": dist.HalfNormal(1.0)}
    return Model(priors, lambda p: dist.Normal(p["mu"], p["sd"]).log_prob(Y).sum(), data=Y)


def test_a_joint_is_the_log_joint_of_scipy():
    joint, theta = as_joint(model()), {"mu": jnp.array(0.4), "sd": jnp.array(1.3)}
    expected = stats.norm.logpdf(0.4, 0, 2) + stats.halfnorm.logpdf(1.3) + stats.norm.logpdf(Y, 0.4, 1.3).sum()
    assert float(joint.log_joint(theta)) == pytest.approx(expected, abs=1e-12)
    assert joint.names == ("mu", "sd") and joint.separable and joint.exact_start
    assert sum(float(factor(theta)) for factor in joint.factors.values()) == pytest.approx(
        float(joint.log_prior(theta)), abs=1e-12
    )
    assert joint.priors == {"mu": "Normal(0, 2)", "sd": "HalfNormal(1)"}


def test_the_density_carries_the_volume_of_its_coordinates():
    """sd = exp(u): a grid over (mu, log sd) gives the evidence of a grid over (mu, sd)."""
    mu, log_sd = np.meshgrid(np.linspace(-6, 6, 241), np.linspace(-5, 3, 161), indexing="ij")
    density = as_joint(model()).density
    values = jax.vmap(density)(np.stack([mu.ravel(), log_sd.ravel()], axis=1))
    found = float(jax.nn.logsumexp(values)) + 2 * np.log(0.05)
    mu, sd = np.linspace(-6, 6, 241)[:, None], np.linspace(0.0025, 12, 2400)[None, :]
    flat = stats.norm.logpdf(mu, 0, 2) + stats.halfnorm.logpdf(sd) + sum(stats.norm.logpdf(v, mu, sd) for v in Y)
    expected = float(np.log(np.exp(flat).sum() * 0.05 * (sd[0, 1] - sd[0, 0])))
    assert found == pytest.approx(expected, abs=1e-3)
    naked = float(jax.nn.logsumexp(values - log_sd.ravel())) + 2 * np.log(0.05)
    assert abs(naked - expected) > 0.02  # the wrong twin forgets log|J|


def test_outside_a_prior_the_density_is_zero():
    m = Model({"s": dist.Gamma(2.0, 1.0)}, lambda theta: jnp.log(theta["s"]))
    assert float(m.log_prior({"s": jnp.array(-1.0)})) == -np.inf
    assert float(as_joint(m).log_joint({"s": jnp.array(-1.0)})) == -np.inf


def test_without_data_is_the_prior():
    m1, _ = nested(**KINDS["scaled"])
    theta = m1.sample_prior(key(5))
    assert float(without_data(m1).log_joint(theta)) == float(m1.log_prior(theta))
    assert float(as_joint(m1).without_data().log_joint(theta)) == float(m1.log_prior(theta))
    assert without_data(m1).names == m1.names
    whole = Joint({}, lambda key: {}, whole=lambda theta: 0.0)
    with pytest.raises(CrossfadeError, match="needs the prior and the likelihood apart"):
        whole.without_data()


def test_nothing_is_a_model_of_evidence_one():
    assert nothing().coordinates.size == 0 and float(nothing().density(jnp.zeros(0))) == 0.0


def test_a_start_from_draws_picks_one_of_them():
    start = AnyOf({"x": np.array([1.0, 2.0, 5.0])}, 3)
    found = {float(start(key(i))["x"]) for i in range(40)}
    assert found == {1.0, 2.0, 5.0}


def test_a_model_without_parameters_is_refused():
    with pytest.raises(CrossfadeError, match="at least one parameter"):
        Model({}, lambda theta: 0.0)


def test_priors_are_described_in_words():
    m1, _ = nested(**KINDS["scaled"])
    assert describe(m1.priors["a"]) == "Normal(0, variance / 1)"
    assert describe(m1.priors["variance"]) == "InverseGamma(2, 1.5)"
    assert describe(dist.Normal(0.0, 10.0)) == "Normal(0, 10)"


def test_a_support_that_moves_has_no_fixed_bijection():
    moving = {"a": dist.HalfNormal(1.0), "b": lambda theta: dist.Uniform(0.0, theta["a"])}
    with pytest.raises(CrossfadeError, match="support of 'b' depends on other parameters"):
        as_joint(Model(moving, lambda theta: 0.0 * theta["a"]))
    computed = {"a": dist.HalfNormal(1.0), "b": lambda theta: dist.Uniform(0.0, 2.0 + 0.0 * theta["a"])}
    assert as_joint(Model(computed, lambda theta: 0.0 * theta["a"])).names == ("a", "b")


def test_labels_have_no_gradient():
    labels = as_joint(Model({"k": dist.Poisson(3.0)}, lambda theta: 0.0 * theta["k"]))
    with pytest.raises(CrossfadeError, match="'k' is discrete: sum it out"):
        _ = labels.coordinates


@pytest.mark.parametrize(
    "prior",
    [
        dist.Normal(0.0, 1.0).expand([3]).mask(False).to_event(1),
        dist.Normal(0.0, 1.0).mask(False).expand([3]),
        lambda p: dist.Normal(0.0, 1.0).mask(False).expand([3]).to_event(1),
    ],
)
def test_masks_inside_a_prior_are_no_density(prior):
    with pytest.raises(CrossfadeError, match=r"the prior of 'x' is MaskedDistribution, not a normalised density"):
        as_joint(Model({"m": dist.Normal(0.0, 1.0), "x": prior}, lambda p: jnp.sum(p["x"])))
