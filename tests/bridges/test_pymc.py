"""PyMC models: the same log joint as SciPy's, supports without PyMC's Jacobians, and what is refused."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest
from assertions import rng
from likelihoods import evaluate
from numpyro.distributions import constraints
from pymc.distributions import transforms
from scipy import stats
from scipy.special import betaln

import crossfade.bridges.pymc as bridge
from crossfade.bridges.pymc import from_pymc
from crossfade.data import load
from crossfade.types import CrossfadeError
from crossfade.worlds.glm import logistic

pytestmark = pytest.mark.usefixtures("double_precision")

Y = np.array([0.3, -1.2, 2.5, 0.7])
GROUP = np.array([0, 0, 1, 1])


def log_joint(joint, theta):
    return float(evaluate(joint.log_joint, {name: jnp.asarray(value, float) for name, value in theta.items()}))


def schools(y=Y, sd=0.8):
    with pm.Model() as model:
        data = pm.Data("data", y)
        mu = pm.Normal("mu", 0, 10)
        tau = pm.HalfNormal("tau", 5)
        effect = pm.Normal("effect", mu, tau, shape=2)
        pm.Deterministic("total", effect.sum())
        pm.Normal("y", effect[GROUP], sd, observed=data)
    return model


def schools_by_scipy(theta, y=Y):
    mu, tau, effect = theta["mu"], theta["tau"], theta["effect"]
    log_prior = stats.norm(0, 10).logpdf(mu) + stats.halfnorm(scale=5).logpdf(tau)
    log_prior += stats.norm(mu, tau).logpdf(effect).sum()
    return log_prior, stats.norm(effect[GROUP], 0.8).logpdf(y).sum()


def test_locations_and_scales_that_depend_on_others_are_known():
    with pm.Model() as model:
        c = pm.Normal("c")
        s = pm.HalfNormal("s")
        pm.Normal("fixed", 1.0, 2.0, shape=3)
        pm.StudentT("heavy", 4.0, c, sigma=2 * s, shape=3)
        first = pm.Normal.dist(2 * c, 2 * s)
        pm.GaussianRandomWalk("walk", mu=c, sigma=s, init_dist=first, steps=5)
        pm.AR("ar", rho=[c, 0.5], sigma=s, constant=True, init_dist=first, steps=5)
        pm.AR("second", rho=[0.2, 0.5], sigma=s, init_dist=pm.Normal.dist(0, 1, shape=2), steps=5)
        pm.Normal("y", c, s, observed=Y)
    joint = from_pymc(model)
    theta = {"c": jnp.asarray(0.3), "s": jnp.asarray(1.7)}
    assert set(joint.conditional) == {"heavy", "walk", "ar"}
    heavy = joint.conditional["heavy"](theta)
    np.testing.assert_allclose(np.broadcast_to(heavy.loc, 3), 0.3)
    np.testing.assert_allclose(np.broadcast_to(heavy.scale, 3), 3.4)
    for name, pull in (("walk", 1.0), ("ar", 0.5)):
        np.testing.assert_allclose(joint.conditional[name](theta), [0.6, 3.4, 0.3, pull, 1.7], rtol=1e-12)


def test_a_hierarchical_model_has_the_log_joint_of_scipy():
    joint = from_pymc(schools())
    assert joint.names == ("mu", "tau", "effect") and joint.notes == ()
    np.testing.assert_array_equal(joint.data, Y)
    r = rng(920)
    for _ in range(3):
        theta = {"mu": r.normal(), "tau": r.gamma(2), "effect": r.normal(size=2)}
        log_prior, log_likelihood = schools_by_scipy(theta)
        assert log_joint(joint, theta) == pytest.approx(log_prior + log_likelihood, abs=1e-10)
    assert float(evaluate(joint.log_likelihood, jax.tree.map(jnp.asarray, theta))) == pytest.approx(log_likelihood)


def test_changed_data_are_seen():
    theta = {"mu": 0.2, "tau": 1.3, "effect": np.array([0.4, -0.6])}
    model = schools()
    before = from_pymc(model)
    with model:
        pm.set_data({"data": Y + 1})
    after = from_pymc(model)
    for joint, y in ((before, Y), (after, Y + 1)):
        assert log_joint(joint, theta) == pytest.approx(sum(schools_by_scipy(theta, y)), abs=1e-10)
        np.testing.assert_array_equal(joint.data, y)


@pytest.fixture(scope="module")
def constrained():
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", [1.0, 2.0, 3.0])
        width = pm.Uniform("width", 1, [3.0, 4.0], shape=2)
        share = pm.Beta("share", 2, 3)
        above = pm.TruncatedNormal("above", 0, 1, lower=-1)
        below = pm.Truncated("below", pm.Normal.dist(0, 1), upper=2)
        angle = pm.VonMises("angle", 0.5, 2)
        rate = pm.Gamma("rate", 2, 3, default_transform=None)
        pair = pm.MvNormal("pair", np.zeros(2), np.array([[2.0, 0.5], [0.5, 1.0]]))
        sorted_pair = pm.Laplace("sorted_pair", 0, 2, shape=2, transform=transforms.ordered)
        mean = share + above + below + angle + pair.sum() + sorted_pair[0]
        pm.Normal("y", mean, width[0] * width[1] * rate, observed=Y)
        pm.Multinomial("counts", 9, weights, observed=[2, 3, 4])
    return from_pymc(model)


def test_constraints_have_the_log_joint_of_scipy(constrained):
    joint = constrained
    np.testing.assert_array_equal(joint.data, [2, 3, 4, *Y])
    supports = {name: support for name, (_, support) in joint.places.items()}
    assert supports["weights"] is constraints.simplex and supports["share"] is constraints.unit_interval
    assert supports["rate"] is constraints.positive and supports["pair"] is constraints.real
    assert supports["sorted_pair"] is constraints.ordered_vector and "'sorted_pair'" in joint.notes[0]
    assert supports["above"] == constraints.greater_than(-1.0) and supports["below"] == constraints.less_than(2.0)
    r = rng(921)
    for _ in range(3):
        theta = {
            "weights": r.dirichlet([1, 1, 1]),
            "width": r.uniform(1, [3, 4]),
            "share": r.uniform(),
            "above": r.uniform(-1, 3),
            "below": r.uniform(-3, 2),
            "angle": r.uniform(-3, 3),
            "rate": r.gamma(2),
            "pair": r.normal(size=2),
            "sorted_pair": np.sort(r.normal(size=2)),
        }
        expected = stats.dirichlet([1, 2, 3]).logpdf(theta["weights"]) - np.log(2 * 3)
        expected += stats.beta(2, 3).logpdf(theta["share"]) + stats.truncnorm(-1, np.inf).logpdf(theta["above"])
        expected += stats.truncnorm(-np.inf, 2).logpdf(theta["below"]) + stats.vonmises(2, 0.5).logpdf(theta["angle"])
        expected += stats.gamma(2, scale=1 / 3).logpdf(theta["rate"])
        expected += stats.multivariate_normal([0, 0], [[2, 0.5], [0.5, 1]]).logpdf(theta["pair"])
        expected += stats.laplace(0, 2).logpdf(theta["sorted_pair"]).sum() + np.log(2)  # of the ordered pairs alone
        mean = sum(np.sum(theta[name]) for name in ("share", "above", "below", "angle", "pair"))
        sd = theta["width"].prod() * theta["rate"]
        expected += stats.norm(mean + theta["sorted_pair"][0], sd).logpdf(Y).sum()
        expected += stats.multinomial(9, theta["weights"]).logpmf([2, 3, 4])
        assert log_joint(joint, theta) == pytest.approx(expected, abs=1e-10)


def test_starts_are_draws_of_the_prior_inside_the_support(constrained):
    joint = constrained
    density = joint.density
    starts = evaluate(jax.vmap(joint.start), jax.random.split(jax.random.key(0), 50))
    assert {name: value.shape[1:] for name, value in starts.items()} == {n: p[0] for n, p in joint.places.items()}
    assert np.all(np.diff(starts["sorted_pair"]) > 0)
    assert np.all(np.isfinite(evaluate(jax.vmap(density.coordinates.inverse), starts)))
    assert stats.kstest(np.asarray(joint.start.draws["share"]), stats.beta(2, 3).cdf).pvalue > 1e-4


def test_unconstrained_vectors_carry_the_right_volume():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        pair = pm.Normal("pair", 0, 1, shape=2, transform=transforms.ordered)
        pm.Binomial("y", 10, p, observed=7)
        pm.Normal("z", pair.sum(), 1, observed=0.4)
    density = from_pymc(model).density
    grids = (np.linspace(-16, 16, 81), np.linspace(-7, 7, 57), np.linspace(-12, 4, 65))
    axes = np.meshgrid(*grids, indexing="ij")
    values = evaluate(jax.vmap(density), jnp.stack([jnp.ravel(axis) for axis in axes], axis=1))
    log_evidence = float(jax.nn.logsumexp(values)) + sum(np.log(grid[1] - grid[0]) for grid in grids)
    expected = np.log(120) + betaln(9, 6) - betaln(2, 3) + stats.norm(0, np.sqrt(3)).logpdf(0.4)
    assert log_evidence == pytest.approx(expected, abs=1e-5)


def test_the_pima_pair_is_ours():
    table = load("pima")
    for ours, names in zip(logistic.pima(), ("npreg glu bmi ped", "npreg glu bmi ped age"), strict=True):
        x = table[names.split()].to_numpy(float)
        x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
        with pm.Model() as model:
            eta = pm.Normal("intercept", 0, 10)
            for name, column in zip(names.split(), x.T, strict=True):
                eta += pm.Normal(name, 0, 10) * column
            pm.Bernoulli("y", logit_p=eta, observed=table["y"])
        theirs = from_pymc(model)
        assert theirs.names == ours.names and np.array_equal(theirs.data, ours.data)
        theta = dict(zip(ours.names, rng(922).normal(size=len(ours.names)), strict=True))
        expected = float(ours.log_joint(jax.tree.map(jnp.asarray, theta)))
        assert log_joint(theirs, theta) == pytest.approx(expected, abs=1e-9)


def test_where_a_parameter_is_invalid_the_density_is_zero():
    with pm.Model() as model:
        sd = pm.Normal("sd", 1, 1)
        pm.Normal("y", 0, sd, observed=Y)
    joint = from_pymc(model)
    assert log_joint(joint, {"sd": -1.0}) == -np.inf and np.isfinite(log_joint(joint, {"sd": 1.0}))


def test_a_density_of_the_users_own_is_trusted():
    with pm.Model() as model:
        pm.CustomDist("x", logp=lambda value: -value, transform=transforms.log)
        pm.Normal("y", model["x"], 1, observed=Y)
    joint = from_pymc(model)
    assert joint.places["x"] == ((), constraints.positive) and "taken on trust" in joint.notes[0]
    assert float(joint.start(jax.random.key(0))["x"]) > 0  # it cannot be drawn: around the initial point
    assert log_joint(joint, {"x": 0.3}) == pytest.approx(-0.3 + stats.norm(0.3, 1).logpdf(Y).sum(), abs=1e-10)


def of(site, observed=True):
    with pm.Model() as model:
        site()
        if observed:
            pm.Normal("y", 0, 1, observed=Y)
    return model


def moving_bound():
    return pm.Uniform("site", 0, pm.HalfNormal("top", 1))


REFUSED = {
    "discrete": (lambda: pm.Poisson("site", 3), "'site' is discrete: sum it out"),
    "flat": (lambda: pm.Flat("site"), "prior of 'site' is improper"),
    "half flat": (lambda: pm.HalfFlat("site"), "prior of 'site' is improper"),
    "potential": (lambda: pm.Potential("site", pm.Normal("b") ** 2), "'site' is a pm.Potential.*from_log_joint"),
    "minibatch": (lambda: pm.Normal("site", pm.Normal("b"), observed=Y, total_size=40), "'site' sees a minibatch"),
    "batches": (lambda: pm.Normal("s", pm.Normal("b"), observed=pm.Minibatch(Y, batch_size=2)), "pm.Minibatch .give"),
    "missing": (
        lambda: pm.MvNormal("site", np.zeros(2), np.eye(2), observed=np.array([[1.0, np.nan], [0, 0]])),
        "'site_.*' has missing values",
    ),
    "correlations": (lambda: pm.LKJCorr("site", 3, 2), "'site' .LKJCorr.* cannot map"),
    "covariance": (lambda: pm.Wishart("site", 5, np.eye(2)), "'site' .Wishart. has no density"),
    "censored": (
        lambda: pm.Censored("site", pm.Normal.dist(), lower=0, upper=None),
        "'site' is Censored and not observed.*give it observed=",
    ),
    "flat scales": (
        lambda: pm.LKJCholeskyCov("site", n=2, eta=2, sd_dist=pm.HalfFlat.dist()),
        "sd_dist of 'site' is HalfFlat: give it a proper",
    ),
    "bounded scales": (
        lambda: pm.LKJCholeskyCov("site", n=2, eta=2, sd_dist=pm.Uniform.dist(0, 3)),
        "sd_dist of 'site' is Uniform: give it a proper",
    ),
    "unknown eta": (
        lambda: pm.LKJCholeskyCov("site", n=2, eta=pm.HalfNormal("eta"), sd_dist=pm.HalfNormal.dist()),
        "eta of 'site' is not a number",
    ),
    "confined": (lambda: pm.Normal("site", transform=transforms.Interval(-1, 1)), "'site' confines it.*pm.Truncated"),
    "half confined": (lambda: pm.Normal("site", transform=transforms.log), "'site' confines it"),
    "unequal order": (
        lambda: pm.Normal("site", [0, pm.Normal("b")], 1, transform=transforms.ordered, initval=[0, 1]),
        "prior of 'site' is not normalised on ordered vectors: its entries have priors of their own that depend",
    ),
    "unlikely order": (
        lambda: pm.Normal("site", [9, 0], 1, transform=transforms.ordered, initval=[0, 1]),
        "probability that the entries of 'site' are in order could not be computed",
    ),
    "descending": (
        lambda: pm.Normal("site", shape=2, transform=transforms.Ordered(ascending=False), initval=[1, 0]),
        "prior of 'site' is not normalised on ordered vectors, unless",
    ),
    "moving bound": (moving_bound, "support of 'site' depends on other parameters"),
    "one bound each": (lambda: pm.Uniform("site", [0, 1], [1, 2]), None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_variable_and_the_way_out(case):
    site, message = REFUSED[case]
    if message is None:  # the twin that must pass
        assert from_pymc(of(site)).names == ("site",)
        return
    with pytest.raises(CrossfadeError, match=message):
        from_pymc(of(site))


def test_models_without_data_or_parameters_are_refused():
    with pytest.raises(CrossfadeError, match="no observed variable, only 'b': give the data"):
        from_pymc(of(lambda: pm.Normal("b"), observed=False))
    with pytest.raises(CrossfadeError, match="neither a free variable nor data"):
        from_pymc(of(lambda: None, observed=False))
    with pytest.raises(CrossfadeError, match=r"needs a pymc.Model, not a function"):
        from_pymc(schools)


def test_without_pymc_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymc", None)
    with pytest.raises(CrossfadeError, match=r"pip install 'crossfade\[pymc\]'"):
        bridge.from_pymc(None)


def test_nothing_is_left_behind(tmp_path):
    """Neither JAX's switch nor XLA's flags are changed, and no C compiler is called."""
    code = f"""
import os, sys
os.environ["PYTENSOR_FLAGS"] = "base_compiledir={tmp_path}"
import jax, numpy as np, pymc as pm, pytensor
from crossfade.bridges.pymc import from_pymc
from crossfade.density.precision import float64
with pm.Model() as model:
    b = pm.Uniform("b", 0, [1.0, 2.0], shape=2)
    pm.Normal("y", b.sum(), pm.HalfNormal("sd"), observed=np.arange(3.0))
with float64():
    from_pymc(model)
compiled = [path for path in os.listdir(pytensor.config.compiledir) if path != "__init__.py"]
print(jax.config.jax_enable_x64, os.environ.get("XLA_FLAGS"), compiled)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split("\n")[-2] == "False None []"


SEEN, CENSORED = np.array([0.4, 1.3, 2.2]), np.array([3.0, 3.0])


def survival(term, observed=True):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 3)
        if observed:
            pm.Exponential("time", rate, observed=SEEN)
        pm.Potential("censored", term(rate))
    return model


def test_a_potential_may_be_part_of_the_likelihood():
    joint = from_pymc(survival(lambda rate: -rate * CENSORED), factors="likelihood")
    np.testing.assert_array_equal(joint.data, SEEN)
    assert joint.notes == (
        "that the pm.Potential 'censored' is a normalised probability of data, given the parameters, is taken on trust",
    )
    theta = {"rate": jnp.array(0.7)}
    expected = stats.expon(scale=1 / 0.7).logpdf(SEEN).sum() - 0.7 * CENSORED.sum()
    assert float(evaluate(joint.log_likelihood, theta)) == pytest.approx(expected, abs=1e-10)
    assert float(evaluate(joint.log_prior, theta)) == pytest.approx(stats.gamma(2, scale=1 / 3).logpdf(0.7), abs=1e-10)


def test_a_likelihood_may_be_potentials_alone():
    def term(rate):
        return pm.logp(pm.Exponential.dist(rate), SEEN)

    joint = from_pymc(survival(term, observed=False), factors="likelihood")
    assert joint.data is None
    found = float(evaluate(joint.log_likelihood, {"rate": jnp.array(0.7)}))
    assert found == pytest.approx(stats.expon(scale=1 / 0.7).logpdf(SEEN).sum(), abs=1e-10)


def test_potentials_that_are_refused():
    plain = survival(lambda rate: -rate * CENSORED)
    with pytest.raises(CrossfadeError, match=r"'censored' is a pm.Potential.*pass factors=.likelihood. to from_pymc"):
        from_pymc(plain)
    with pytest.raises(CrossfadeError, match=r"no data in the pm.Potential 'censored'.*part of the prior"):
        from_pymc(survival(lambda rate: -2 * np.log(3) - rate**2), factors="likelihood")
    with pytest.raises(CrossfadeError, match="factors = 'prior': give factors=\"likelihood\""):
        from_pymc(plain, factors="prior")
