"""What a prior hides in its parts: bounds that its support forgets, lumps of probability, what is improper."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pymc as pm
import pytest
from assertions import assert_estimate
from likelihoods import evaluate
from numpyro import distributions as dist
from numpyro.distributions import constraints
from numpyro.distributions.transforms import AffineTransform, ExpTransform, PowerTransform

from crossfade.api import compare
from crossfade.bridges.numpyro import from_numpyro
from crossfade.bridges.pymc import from_pymc
from crossfade.density.joint import as_joint
from crossfade.density.model import Model, log_density
from crossfade.types import CrossfadeError

pytestmark = pytest.mark.usefixtures("double_precision")

Y = np.array([3.0, -4.0, 2.0, 5.0])
TWO = dist.Categorical(probs=np.array([0.3, 0.7]))


def scale(prior):
    def model(y=Y):
        s = numpyro.sample("s", prior)
        numpyro.sample("y", dist.Normal(0.0, jnp.sum(s)), obs=y)

    return model


def transformed(base, *transforms):
    return dist.TransformedDistribution(base, list(transforms))


FORGETFUL = {
    "exp of uniform": (transformed(dist.Uniform(-1.0, 1.0), ExpTransform()), (np.exp(-1), np.exp(1))),
    "exp of negative": (transformed(dist.HalfNormal(), AffineTransform(0.0, -1.0), ExpTransform()), (0.0, 1.0)),
    "shifted": (transformed(dist.HalfNormal(1.0), AffineTransform(1.0, 1.0)), (1.0, np.inf)),
    "turned": (transformed(dist.HalfNormal(1.0), AffineTransform(np.array(1.0), np.array(-2.0))), (-np.inf, 1.0)),
    "beta": (transformed(dist.Beta(2.0, 2.0), AffineTransform(-1.0, 2.0)), (-1.0, 1.0)),
    "log-normal": (transformed(dist.LogNormal(), AffineTransform(1.0, 1.0)), (1.0, np.inf)),
}


@pytest.mark.parametrize("case", FORGETFUL)
def test_bounds_that_a_transform_forgets_are_kept(case):
    prior, bounds = FORGETFUL[case]
    joint = as_joint(from_numpyro(scale(prior)))
    support = joint.places["s"][1]
    assert getattr(support, "lower_bound", -np.inf) == pytest.approx(bounds[0])
    assert getattr(support, "upper_bound", np.inf) == pytest.approx(bounds[1])
    u = np.sinh(np.linspace(-4, 4, 4001))
    theta, log_jacobian = jax.vmap(joint.coordinates.theta_and_jacobian)(u[:, None])
    log_prior = jax.jit(jax.vmap(joint.log_prior))(theta)
    assert np.trapezoid(np.exp(log_prior + log_jacobian), u) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("case", FORGETFUL)
def test_outside_of_them_the_density_is_nothing_and_inside_its_gradient_is_finite(case):
    prior, bounds = FORGETFUL[case]
    prior = jax.tree.map(jnp.asarray, prior)  # NumPyro's own check is lost on the way
    value_and_slope = jax.jit(jax.value_and_grad(lambda s: log_density(prior, "s", {"s": s})))
    for bound, outwards in zip(bounds, (-1, 1), strict=True):
        if np.isfinite(bound):
            outside, inside = value_and_slope(bound + 0.2 * outwards), value_and_slope(bound - 0.2 * outwards)
            assert outside[0] == -np.inf and not np.isnan(outside[1])
            assert np.isfinite(inside).all()
            assert inside[0] == pytest.approx(float(FORGETFUL[case][0].log_prob(bound - 0.2 * outwards)), abs=1e-5)


def test_vectors_and_plates_keep_them_too():
    base = dist.Uniform(-1.0, 1.0)
    for prior in (
        transformed(base.expand([2]).to_event(1), ExpTransform()),
        transformed(base, ExpTransform()).expand([2]).to_event(1),
        transformed(base, ExpTransform()).expand([2]),
        transformed(base, ExpTransform()).expand([2]).mask(True),
    ):
        prior = jax.tree.map(jnp.asarray, prior)
        inside, outside = jnp.array([1.0, 2.0]), jnp.array([1.0, 9.0])
        assert log_density(prior, "s", {"s": inside}) == pytest.approx(-2 * np.log(2) - np.log(2))
        assert log_density(prior, "s", {"s": outside}) == -np.inf


def test_what_has_no_simple_image_has_an_edge():
    """A power between shifts, and bounds that move with a parameter."""
    prior = transformed(dist.HalfNormal(1.0), PowerTransform(0.5), AffineTransform(1.0, 1.0))
    joint = as_joint(from_numpyro(scale(prior)))
    assert evaluate(joint.log_prior, {"s": jnp.array(0.5)}) == -np.inf  # squared, it is a positive number

    def moving(y=Y):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        s = numpyro.sample("s", transformed(dist.HalfNormal(1.0), AffineTransform(mu, 1.0)))
        numpyro.sample("y", dist.Normal(s, 1.0), obs=y)

    joint = as_joint(from_numpyro(moving))
    assert joint.places["s"][1] is constraints.real
    assert evaluate(joint.log_prior, {"mu": jnp.array(1.0), "s": jnp.array(0.5)}) == -np.inf
    assert np.isfinite(evaluate(joint.log_prior, {"mu": jnp.array(1.0), "s": jnp.array(1.5)}))


def test_two_ways_to_write_one_prior_have_a_bayes_factor_of_one():
    other = dist.LogUniform(np.exp(-1.0), np.exp(1.0))
    forgetful = FORGETFUL["exp of uniform"][0]
    result = compare(from_numpyro(scale(forgetful)), from_numpyro(scale(other)), target_se=0.05)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, 0.0, max_error=0.05)


def test_data_outside_of_them_are_impossible_without_numpyros_check():
    def shifted(y=Y):
        s = numpyro.sample("s", dist.Normal(0.0, 1.0))
        base = dist.Exponential(1.0, validate_args=False)
        late = dist.TransformedDistribution(base, AffineTransform(s, 1.0), validate_args=False)
        numpyro.sample("y", late, obs=y)

    model = from_numpyro(shifted, np.array([1.2, 1.9]))
    assert float(evaluate(model.log_likelihood, {"s": jnp.array(1.0)})) == pytest.approx(-1.1)
    assert float(evaluate(model.log_likelihood, {"s": jnp.array(1.5)})) == -np.inf


def mixed(*parts, **kwargs):
    return dist.MixtureGeneral(TWO, list(parts), **kwargs)


IMPROPER = dist.ImproperUniform(constraints.real, (), ())
NUMPYRO = {
    "spike": (mixed(dist.Delta(0.0), dist.Normal(), support=constraints.real), "'s' has a lump of probability"),
    "transformed delta": (transformed(dist.Delta(0.0), ExpTransform()), "'s' has a lump of probability"),
    "transformed improper": (transformed(IMPROPER, ExpTransform()), "prior of 's' is improper"),
    "folded improper": (dist.FoldedDistribution(IMPROPER), "prior of 's' is improper"),
    "left": (dist.LeftCensoredDistribution(dist.Normal(), np.array(True)), "'s' is LeftCensored.*give it obs="),
    "right": (dist.RightCensoredDistribution(dist.Normal(), np.array(True)), "'s' is RightCensored"),
    "both": (
        dist.IntervalCensoredDistribution(dist.Normal(), np.array(False), np.array(True)),
        "'s' is IntervalCensored",
    ),
    "levy": (dist.Levy(0.0, 1.0), "forgets the support of 's' .Levy. .*InverseGamma"),
    "parts apart": (mixed(dist.Uniform(0.0, 2.0), dist.Uniform(0.0, 1.0)), "'s' has Uniform as a part, which does not"),
    "a part outside": (
        mixed(dist.Normal(), dist.Normal(1.0), support=constraints.positive),
        "'s' has Normal as a part, which does not",
    ),
    "a forgetful part": (
        mixed(*[FORGETFUL["exp of uniform"][0]] * 2),
        "'s' has TransformedDistribution as a part, which does not",
    ),
    "folded half": (dist.FoldedDistribution(dist.Exponential()), "'s' has Exponential as a part, which does not"),
    "half a start": (
        dist.EulerMaruyama(np.array([0.0, 0.1]), lambda x, t: (-x, 1.0), dist.HalfNormal()),
        "'s' has HalfNormal as a part, which does not",
    ),
    "told": (mixed(dist.Uniform(0.0, 2.0), dist.Uniform(0.0, 1.0), support=constraints.interval(0.0, 2.0)), None),
    "half a part": (mixed(dist.HalfNormal(), dist.Normal(), support=constraints.real), None),
    "folded": (dist.FoldedDistribution(dist.Normal(1.0)), None),
}


@pytest.mark.parametrize("case", NUMPYRO)
def test_priors_of_numpyro_that_are_refused_for_their_parts(case):
    prior, message = NUMPYRO[case]
    if message is None:  # the twins that must pass
        assert as_joint(from_numpyro(scale(prior))).names == ("s",)
        return
    with pytest.raises(CrossfadeError, match=message):
        from_numpyro(scale(prior))


def test_a_model_of_ours_is_refused_for_its_parts():
    with pytest.raises(CrossfadeError, match="prior of 's' is improper in part, or has a lump"):
        Model({"s": mixed(dist.Delta(0.0), dist.Normal(), support=constraints.real)}, lambda theta: 0.0)


HALF = [0.5, 0.5]
W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
PYMC = {
    "spike": (lambda: pm.Mixture("x", HALF, [pm.DiracDelta.dist(0.0), pm.Normal.dist()]), "'x' has a lump"),
    "censored part": (
        lambda: pm.Mixture("x", HALF, [pm.Censored.dist(pm.Normal.dist(), -1, 1), pm.Normal.dist()]),
        "'x' has a lump",
    ),
    "flat part": (lambda: pm.Mixture("x", HALF, [pm.Flat.dist(), pm.Normal.dist()]), "prior of 'x' is improper"),
    "flat start": (
        lambda: pm.GaussianRandomWalk("x", init_dist=pm.Flat.dist(), steps=1),
        "prior of 'x' is improper",
    ),
    "flat AR": (
        lambda: pm.AR("x", rho=[0.5], init_dist=pm.Flat.dist(), steps=2),
        "prior of 'x' is improper",
    ),
    "truncated flat": (lambda: pm.Truncated("x", pm.Flat.dist(), lower=0, upper=1), "prior of 'x' is improper"),
    "CAR": (lambda: pm.CAR("x", np.zeros(3), W, alpha=0.5, tau=2.0), "JAX cannot trace.*with from_numpyro"),
    "GARCH": (
        lambda: pm.GARCH11("x", omega=0.2, alpha_1=0.3, beta_1=0.3, initial_vol=1.0, shape=3),
        "JAX cannot trace",
    ),
    "walk": (lambda: pm.GaussianRandomWalk("x", mu=pm.Normal("m"), init_dist=pm.Normal.dist(), steps=1), None),
    "mixture": (lambda: pm.NormalMixture("x", pm.Dirichlet("w", np.ones(2)), [0, 2], [1, 2]), None),
    "truncated": (lambda: pm.Truncated("x", pm.Normal.dist(), lower=0), None),
    "not drawn": (lambda: pm.Truncated("x", pm.StudentT.dist(nu=3, mu=0, sigma=1), lower=0.0), None),
}


@pytest.mark.parametrize("case", PYMC)
def test_priors_of_pymc_that_are_refused_for_their_parts(case):
    make, message = PYMC[case]
    with pm.Model() as model:
        x = make()
        pm.Normal("y", x.sum(), 1.0, observed=[0.1])
    if message is None:
        joint = from_pymc(model)
        assert "x" in joint.names and np.isfinite(joint.log_joint(joint.start(jax.random.key(0))))
        return
    with pytest.raises(CrossfadeError, match=message):
        from_pymc(model)


def test_without_draws_and_without_a_point_the_priors_are_named(monkeypatch):
    def fails(*args, **kwargs):
        raise ValueError("no such point")

    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x"), 1.0, observed=[0.1])
    monkeypatch.setattr(pm, "draw", fails)
    monkeypatch.setattr(pm.Model, "initial_point", fails)
    with pytest.raises(CrossfadeError, match=r"neither draw .* initial point \(no such point\)"):
        from_pymc(model)
