"""The doctor passes healthy models, and names what is wrong with ill ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from jax.scipy import stats
from numpyro import distributions as dist
from numpyro.distributions import constraints
from scipy.special import beta

from crossfade import check
from crossfade.api import sample
from crossfade.app.page import of_checkup
from crossfade.app.terminal import show
from crossfade.bridges.log_joint import from_log_joint, from_numpy_log_joint
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.doctor import Checkup, Finding, placebo, same_data
from crossfade.doctor.integral import integrals
from crossfade.doctor.mass import prior_mass
from crossfade.doctor.numbers import finite, gradients, points
from crossfade.doctor.runs import placebo_test
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic, mixed, poisson

N = 30
X = rng(40).normal(size=N)
Y = 0.5 + 0.8 * X + rng(41).normal(size=N)
LOG_2PI = float(np.log(2 * np.pi))


class Bare(dist.Normal):
    """exp(-x^2/2) without its constant."""

    def log_prob(self, value, intermediates=None):
        return -((value - self.loc) ** 2) / (2 * self.scale**2)


class HalfWritten(dist.Normal):
    """A normal restricted to positive numbers, its density not doubled."""

    support = constraints.positive

    def sample(self, key, sample_shape=()):
        return jnp.abs(super().sample(key, sample_shape))


class Flat(dist.HalfNormal):
    """Improper: 1/x."""

    def log_prob(self, value, intermediates=None):
        return -jnp.log(value)


def likelihood(theta):
    return dist.Normal(theta["a"] + theta["b"] * X, theta["sigma"]).log_prob(Y).sum()


def line(log_likelihood=likelihood, data=Y, **priors) -> Model:
    """y = a + b x + noise of scale sigma."""
    usual = {"a": dist.Normal(0.0, 2.0), "b": dist.Normal(0.0, 1.0), "sigma": dist.HalfNormal(2.0)}
    return Model({**usual, **priors}, log_likelihood, data=data)


def bad(checkup: Checkup) -> dict[str, str]:
    return {found.name: found.message for found in checkup.findings if not found.ok}


@pytest.mark.slow
def test_a_healthy_pair_passes_everything(capsys):
    said = []
    z = rng(46).normal(size=N)
    won = (X + z > 0).astype(float)
    m1, m2 = (logistic.model(won, np.column_stack([np.ones(N), x]), ("one", "slope")) for x in (X, z))
    checkup = check(m1, m2, progress=said.append)
    assert checkup.ok, str(checkup)
    names = [(found.model, found.name) for found in checkup.findings]
    for model in ("M1", "M2"):
        for name in ("prior", "finite (prior)", "gradient (posterior)", "placebo"):
            assert (model, name) in names
    assert ("both", "same data") in names and ("both", "two ways") in names
    assert not any("not checked" in found.message for found in checkup.findings)
    assert "M2: placebo" in said
    show(*of_checkup(checkup))
    assert "Findings: 14 fine." in capsys.readouterr().out


def log_likelihood_with_nan(theta):
    return likelihood(theta) + 0 * jnp.log(theta["b"] + 1.0)


def test_ill_models_are_named():
    dropped = check(line(b=Bare(0.0, 1.0)))
    assert bad(dropped).keys() == {"prior"}
    assert "the prior of 'b' integrates to 2.507, not 1: it lacks its normalising constant" in bad(dropped)["prior"]
    assert "not checked: fix the findings above first" in str(dropped) and not dropped.ok
    assert dropped.summary == "1 bad, 2 fine, 2 not checked"
    assert not {"same data", "two ways"} & {found.name for found in dropped.findings}  # those take two models

    half = check(line(sigma=HalfWritten(0.0, 2.0)))
    assert "the prior of 'sigma' integrates to 0.500, not 1: multiply a half-normal" in bad(half)["prior"]
    assert "restricted to sigma > 0 by 2" in bad(half)["prior"]

    nan = bad(check(line(log_likelihood_with_nan)))
    assert "the log likelihood is nan at a = " in nan["finite (prior)"]


def test_other_data_are_named():
    joints = [as_joint(line(data=data)) for data in (Y, Y[:-1], np.r_[Y[:-1], 9.5], Y.astype(np.float32), None)]
    (same,) = same_data(joints[0], joints[0])
    assert same.ok and "both models have the same 30 responses (sha256 " in same.message
    (fewer,) = same_data(joints[0], joints[1])
    assert not fewer.ok and f"M1 has 30 responses and M2 has 29, and {float(Y[-1])!r} is in M1 only" in fewer.message
    (other,) = same_data(joints[0], joints[2])
    assert not other.ok and f"1 value differs, for example {float(Y[-1])!r} in M1 and 9.5 in M2" in other.message
    (rounded,) = same_data(joints[0], joints[3])
    assert not rounded.ok and "30 values differ" in rounded.message and "single precision" in rounded.message
    (unknown,) = same_data(joints[0], joints[4])
    assert unknown.ok and "not checked: M2 came without responses" in unknown.message
    (missing,) = same_data(joints[0], as_joint(line(data=np.full(3, np.nan))))
    assert not missing.ok and "3 of the 3 responses of M2 are NaN" in missing.message


def test_a_wrong_gradient_is_named():
    def log_joint(theta):
        return float(-0.5 * theta["b"] ** 2 - 0.5 * np.sum((Y - theta["b"] * X) ** 2) - np.log(theta["sigma"]) ** 2)

    def gradient(theta):  # of another function where b is positive, which the example does not tell
        right = -theta["b"] + np.sum(X * (Y - theta["b"] * X))
        wrong = 2 * right if theta["b"] > 0 else right
        return {"b": np.asarray(wrong), "sigma": np.asarray(-2 * np.log(theta["sigma"]) / theta["sigma"])}

    example = {"b": -1.0, "sigma": 1.5}
    joint = from_numpy_log_joint(log_joint, example, gradient=gradient, support={"sigma": "positive"}, data=Y)
    found = check(joint)
    assert bad(found).keys() == {"gradient (starts)"}
    assert "the derivative by b (unconstrained) is " in bad(found)["gradient (starts)"]
    assert "correct the gradient that you wrote" in bad(found)["gradient (starts)"]
    assert "give the prior and the likelihood apart" in str(found)


def numbers(log_joint, u) -> dict[str, Finding]:
    """Findings of a joint of one real number at some points."""
    with float64():
        joint = from_log_joint(log_joint, 1.0)
        at = points(joint.density, np.asarray(u)[:, None], "starts")
        found = finite(joint, at, "M1") + gradients(at, "M1")
        return {finding.name.split()[0]: finding for finding in found}


def test_impossible_points_are_allowed_and_counted_but_slopes_must_exist():
    def possible(x):
        return jnp.where(x > 0, -(x**2), -jnp.inf)

    def careless(x):  # the side not taken has no derivative
        return jnp.where(x > 0, jnp.sqrt(jnp.maximum(x, 0)), x)

    u = np.linspace(-1, 3, 40)
    assert numbers(possible, u)["finite"].ok and "-inf at 25%" in numbers(possible, u)["finite"].message
    found = numbers(careless, u)["finite"]
    assert (
        not found.ok
        and "its derivative by theta is not, at 10 of 40 starting points, e.g. theta = -1." in found.message
    )
    nowhere = numbers(possible, -u[-3:])["finite"]
    assert not nowhere.ok and "-inf at all 3 starting points" in nowhere.message


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_right_gradients_pass_on_every_scale(scale):
    found = numbers(lambda x: -jnp.abs(x / scale) - 1e5 + jnp.sin(x / scale), scale * rng(42).normal(size=40))
    assert found["gradient"].ok, found["gradient"].message


def test_a_rule_of_another_function_is_caught():
    @jax.custom_jvp
    def square(x):
        return x**2

    square.defjvp(lambda primals, tangents: (square(*primals), 2.01 * primals[0] * tangents[0]))
    found = numbers(lambda x: -square(x), rng(43).normal(size=20))["gradient"]
    assert not found.ok and "the derivative by theta" in found.message


def mass(model) -> tuple[bool, str]:
    with float64():
        (found,) = prior_mass(as_joint(model), "M1", 0)
        return found.ok, found.message


PROPER = {
    "heavy tails": dist.Cauchy(3.0, 0.1),
    "half of them": dist.HalfCauchy(1e3),
    "interval": dist.Uniform(1.0, 3.0),
    "wide": dist.Normal(1e4, 1e5),
    "narrow": dist.Normal(50.0, 1e-4),
    "many": dist.Normal(np.arange(50.0), np.arange(1.0, 51.0)),
    "an event": dist.HalfNormal(np.array([0.1, 2.0, 30.0])).to_event(1),
    "together": dist.MultivariateNormal(np.zeros(3), np.diag([1.0, 2.0, 3.0])),
}
SLOW_TO_COMPILE = {
    "an edge": dist.Beta(0.5, 2.0),
    "a steep edge": dist.Gamma(np.array([0.1, 2.0, 30.0]), 1.0),
    "truncated": dist.TruncatedNormal(0.0, 1.0, low=1.0, high=2.0),
    "a simplex": dist.Dirichlet(np.array([1.0, 2.0, 3.0])),
    "tied": dist.MultivariateNormal(np.zeros(2), np.array([[1.0, 0.8], [0.8, 1.0]])),
}
EVERY = [*PROPER, *(pytest.param(prior, marks=pytest.mark.slow) for prior in SLOW_TO_COMPILE)]


@pytest.mark.parametrize("prior", EVERY)
def test_proper_priors_have_mass_one(prior):
    ok, message = mass(Model({"b": (PROPER | SLOW_TO_COMPILE)[prior]}, lambda theta: 0.0))
    assert ok and message == "the prior of 'b' integrates to 1"


def test_other_constants_and_improper_priors_are_named():
    ok, message = mass(line(sigma=Flat(1.0)))
    assert not ok and "the prior of 'sigma' does not integrate to a finite number" in message
    ok, message = mass(Model({"b": Bare(np.zeros(3), np.ones(3))}, lambda theta: 0.0))
    assert not ok and f"the prior of 'b' integrates to {(2 * np.pi) ** 1.5:.3f}, not 1" in message
    ok, message = mass(Model({"s": dist.HalfNormal(1.0), "b": lambda theta: Bare(0.0, theta["s"])}, lambda theta: 0.0))
    assert not ok and "the prior of 'b' integrates to" in message


def test_a_joint_prior_is_integrated_as_a_whole():
    def log_prior(constant):
        def of(theta):
            cauchy = stats.cauchy.logpdf(theta["b"]).sum()
            return cauchy + stats.norm.logpdf(theta["sigma"], 0, 2) + constant

        return of

    def joint(constant, sigma="positive"):
        example = {"b": np.zeros(2), "sigma": 1.0}
        return from_log_joint(
            log_prior(constant), example, support={"sigma": sigma}, log_likelihood=lambda theta: 0.0 * theta["sigma"]
        )

    assert mass(joint(np.log(2))) == (True, "the prior of 'b', 'sigma' integrates to 1")
    ok, message = mass(joint(0.0))
    assert (
        not ok
        and "'b', 'sigma' integrates to 0.500, not 1: multiply a half-normal" in message
        and "sigma > 0" in message
    )
    ok, message = mass(joint(0.7, "real"))
    assert not ok and "integrates to 2.014, not 1: it lacks its normalising constant, so subtract 0.7 " in message


def tied(constant):
    """A scale and an effect that depends on it: no product, so it is integrated by sampling."""

    def log_prior(theta):
        return stats.norm.logpdf(theta["s"]) + stats.norm.logpdf(theta["b"], 0, jnp.exp(theta["s"] / 4)) + constant

    return from_log_joint(log_prior, {"s": 0.1, "b": 0.2}, log_likelihood=lambda theta: 0.0 * theta["b"])


@pytest.mark.slow
def test_a_prior_that_is_no_product_is_integrated_by_sampling():
    assert mass(tied(0.0)) == (True, "the prior of 's', 'b' integrates to 1")
    ok, message = mass(tied(-np.log(4)))
    assert not ok and "integrates to 0.2" in message and "lacks its normalising constant" in message


def test_integrals_against_closed_forms():
    def log_f(x):
        away = x - np.array([0.0, 300.0, -1.0])
        return np.stack([-(away[:, 0] ** 2), -np.abs(away[:, 1]) * 1e3, -np.log1p(away[:, 2] ** 2)], axis=1)

    log_value, _, converges = integrals(log_f, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(np.exp(log_value), [np.sqrt(np.pi), 2e-3, np.pi], rtol=1e-5)
    assert converges.all()
    assert not integrals(lambda x: -np.log1p(np.abs(x)), np.zeros(1), np.ones(1))[2].any()


def test_integrals_of_very_heavy_tails_jumps_and_two_widths():
    def log_f(x):
        heavy = -0.65 * np.log1p(x[:, 0] ** 2 / 0.3)  # Student's t with 0.3 degrees of freedom
        box = np.where((x[:, 1] > 3) & (x[:, 1] < 5.3), -np.log(2.3), -np.inf)
        spike = -0.5 * (x[:, 2] / 1e-3) ** 2 + np.log(1e3)
        return np.stack([heavy, box, np.logaddexp(spike, -0.5 * (x[:, 2] / 10) ** 2 - np.log(10))], axis=1)

    log_value, error, converges = integrals(log_f, np.zeros(3), np.ones(3))
    heavy = np.sqrt(0.3) * beta(0.5, 0.15)
    np.testing.assert_allclose(np.exp(log_value), [heavy, 1.0, 2 * np.sqrt(2 * np.pi)], rtol=5e-3)
    assert converges.all() and error[1] > 1e-3  # a jump is known to be hard


@pytest.mark.slow
def test_many_elements_are_integrated_at_once():
    priors = dist.Normal(np.arange(20_000.0), np.linspace(0.1, 10, 20_000))
    assert mass(Model({"b": priors}, lambda theta: 0.0)) == (True, "the prior of 'b' integrates to 1")


def test_broken_functions_are_findings():
    def broken(theta):
        return likelihood({**theta, "sigma": theta["sd"]})

    found = check(line(broken))
    assert "cannot read it: the log likelihood of M1 asks for the parameter 'sd'" in bad(found)["model"]
    assert "cannot read it: M1 is a str" in bad(check("a model"))["model"]
    assert not check(line(broken), "a model").ok


def off_by_log_2(model):
    """A placebo whose density is not normalised."""
    twin = placebo(model)
    return twin._replace(log_prior=lambda theta: twin.log_prior(theta) + jnp.log(2.0))


def test_a_placebo_has_a_name_of_its_own_and_is_ignored():
    model = Model({"placebo": dist.Normal(0.0, 1.0)}, lambda theta: sum(theta.values()))
    for twin in (placebo(model), placebo(as_joint(model))):
        assert twin.names == ("placebo", "placebo_2")
        theta = {"placebo": jnp.asarray(0.5), "placebo_2": jnp.asarray(2.0)}
        expected = 0.5 - 0.125 - 2.0 - LOG_2PI
        assert float(twin.log_joint(theta)) == pytest.approx(expected, abs=1e-6)
        assert sum(float(factor(theta)) for factor in twin.factors.values()) == pytest.approx(expected - 0.5, abs=1e-6)
        assert twin.priors == {"placebo": "Normal(0, 1)", "placebo_2": "Normal(0, 1)"} and twin.model is None


def test_an_unnormalised_placebo_is_caught():
    model = as_joint(Model({"b": dist.Normal(0.0, 1.0)}, lambda theta: -(theta["b"] ** 2)))
    (found,) = placebo_test(model, "M1", twin=off_by_log_2)
    assert not found.ok and "0.69" in found.message and "not 0: normalise the prior" in found.message


def counts():
    x = rng(44).normal(size=(40, 2))
    y = rng(45).poisson(np.exp(0.5 + 0.4 * x[:, 0])).astype(float)
    design = np.column_stack([np.ones(40), x])
    return poisson.model(y, design[:, :2], ("one", "a")), poisson.model(y, design, ("one", "a", "b"))


PAIRS = {"radiata": linear.radiata, "pima": logistic.pima, "poisson": counts, "mixed": lambda: mixed.pair(10)}


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_shipped_pairs_are_healthy(pair):
    checkup = check(*PAIRS[pair]())
    assert checkup.ok, str(checkup)


@pytest.mark.slow
def test_draws_that_were_brought_along_are_used():
    m1, m2 = counts()
    draws = tuple(sample(model).theta() for model in (m1, m2))
    checkup = check(m1, m2, draws=draws)
    assert checkup.ok, str(checkup)
    other = check(m1, draws=({"one": draws[0]["one"]}, None))
    assert "the draws for M1 have no 'a'" in bad(other)["finite (posterior)"]
