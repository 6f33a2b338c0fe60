"""Log joints written by hand, in JAX and in NumPy: values, gradients, volume, and what is refused."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import rng
from jax.scipy import stats as jstats
from likelihoods import evaluate
from numpyro.distributions import constraints
from scipy import stats
from scipy.special import gammaln

from crossfade.bridges.log_joint import SUPPORTS, from_log_joint, from_numpy_log_joint
from crossfade.density.joint import as_joint
from crossfade.types import CrossfadeError

pytestmark = pytest.mark.usefixtures("double_precision")

Y = np.array([0.3, -1.2, 2.5])
COUNTS = np.array([2, 3, 4])
EXAMPLE = {"mu": np.array([0.3, -1.0]), "sd": 1.5, "p": np.array([0.2, 0.3, 0.5])}
SUPPORT = {"sd": "positive", "p": "simplex"}


def in_jax(theta):
    log_prior = jnp.sum(jstats.norm.logpdf(theta["mu"], 0, 2)) + jstats.gamma.logpdf(theta["sd"], 2)
    log_prior += jstats.dirichlet.logpdf(theta["p"], jnp.array([1.0, 2.0, 3.0]))
    return log_prior + jnp.sum(jstats.norm.logpdf(Y, jnp.sum(theta["mu"]), theta["sd"])) + COUNTS @ jnp.log(theta["p"])


def in_numpy(theta):
    log_prior = stats.norm(0, 2).logpdf(theta["mu"]).sum() + stats.gamma(2).logpdf(theta["sd"])
    log_prior += gammaln(6) - gammaln([1, 2, 3]).sum() + np.array([0, 1, 2]) @ np.log(theta["p"])
    return log_prior + stats.norm(theta["mu"].sum(), theta["sd"]).logpdf(Y).sum() + COUNTS @ np.log(theta["p"])


def gradient(theta):
    residual = Y - theta["mu"].sum()
    return {
        "mu": -theta["mu"] / 4 + residual.sum() / theta["sd"] ** 2,
        "sd": 1 / theta["sd"] - 1 - len(Y) / theta["sd"] + (residual**2).sum() / theta["sd"] ** 3,
        "p": (COUNTS + np.array([0, 1, 2])) / theta["p"],
    }


def points(n):
    r = rng(910)
    return [{"mu": r.normal(size=2), "sd": np.array(r.gamma(2)), "p": r.dirichlet([2, 2, 2])} for _ in range(n)]


def test_a_jax_function_is_its_joint():
    joint = from_log_joint(in_jax, EXAMPLE, support=SUPPORT, data=Y)
    assert joint.names == ("mu", "sd", "p") and joint.notes == () and not joint.separable
    assert joint.places["p"] == ((3,), constraints.simplex) and joint.places["mu"] == ((2,), constraints.real)
    np.testing.assert_array_equal(joint.data, Y)
    for theta in points(3):
        assert float(evaluate(joint.log_joint, theta)) == pytest.approx(in_numpy(theta), abs=1e-10)


def test_prior_and_likelihood_may_stay_apart():
    joint = from_log_joint(
        lambda sd: -jnp.sum(sd), [1.0, 2.0], support="positive", log_likelihood=lambda sd: jnp.sum(jnp.log(sd))
    )
    assert joint.separable and joint.names == ("theta",)
    assert float(joint.log_prior({"theta": jnp.array([1.0, 2.0])})) == -3
    assert float(joint.log_joint({"theta": jnp.array([1.0, 2.0])})) == pytest.approx(-3 + np.log(2))


class Quadratic(eqx.Module):
    """A module that takes one array."""

    weight: np.ndarray

    def __call__(self, x):
        return -jnp.sum(self.weight * x**2)


def test_data_of_a_module_are_arguments_of_the_program():
    joint = from_log_joint(Quadratic(np.array([1.0, 3.0])), np.ones(2, int))
    assert len(jax.tree.leaves(joint.whole)) == 1
    assert float(evaluate(joint.log_joint, {"theta": jnp.array([1.0, 2.0])})) == -13


CENTRE = 0.0


def test_changed_globals_are_seen(monkeypatch):
    joint = from_log_joint(lambda x: -((x - CENTRE) ** 2), 1.0)
    assert float(evaluate(as_joint(joint).log_joint, {"theta": jnp.array(1.0)})) == -1
    monkeypatch.setitem(globals(), "CENTRE", 3.0)
    assert float(evaluate(as_joint(joint).log_joint, {"theta": jnp.array(1.0)})) == -4


def test_unconstrained_vectors_carry_the_right_volume():
    def density(theta):  # normalised: a simplex of three, and an ordered pair of two standard normals
        ordered = jnp.sum(jstats.norm.logpdf(theta["x"])) + jnp.log(2)
        return jstats.dirichlet.logpdf(theta["p"], jnp.array([2.0, 3.0, 2.0])) + ordered

    joint = from_log_joint(density, {"p": [0.2, 0.3, 0.5], "x": [-1.0, 1.0]}, support={"p": "simplex", "x": "ordered"})
    grid = np.linspace(-7, 7, 25)
    axes = np.meshgrid(*[grid] * 4, indexing="ij")
    values = jax.jit(jax.vmap(joint.density))(np.stack([np.ravel(axis) for axis in axes], axis=1))
    assert float(jnp.sum(jnp.exp(values))) * (grid[1] - grid[0]) ** 4 == pytest.approx(1, abs=2e-3)


def test_starts_are_in_the_support_and_spread():
    joint = from_log_joint(lambda s: -jnp.sum(s), [2.0, 3.0], support="positive")
    starts = evaluate(jax.vmap(joint.start), jax.random.split(jax.random.key(0), 500))["theta"]
    assert stats.kstest(np.ravel(np.log(starts) - np.log([2, 3])), stats.uniform(-2, 4).cdf).pvalue > 1e-4
    assert SUPPORTS["correlation"] is constraints.corr_matrix


def test_a_numpy_function_has_values_and_gradients():
    exact = from_log_joint(in_jax, EXAMPLE, support=SUPPORT).density
    u = jnp.stack([evaluate(exact.coordinates.inverse, theta) for theta in points(4)])
    expected, derivatives = evaluate(jax.vmap(jax.value_and_grad(exact)), u)
    for slopes in (gradient, None):
        joint = from_numpy_log_joint(in_numpy, EXAMPLE, gradient=slopes, support=SUPPORT, data=Y)
        assert "called back to Python, one point at a time" in joint.notes[0]
        assert ("finite differences" in joint.notes[0]) == (slopes is None)
        values, found = evaluate(jax.vmap(jax.value_and_grad(joint.density)), u)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found, derivatives, rtol=1e-7, atol=1e-7)
    many = {name: jnp.stack([theta[name] for theta in points(4)]) for name in EXAMPLE}
    values = evaluate(jax.vmap(joint.whole), many)
    np.testing.assert_allclose(values, [in_numpy(theta) for theta in points(4)], rtol=0, atol=1e-10)


def test_steps_scale_with_the_coordinate():
    scales = np.array([1e-6, 1.0, 1e6])
    joint = from_numpy_log_joint(lambda x: -np.sum((x / scales) ** 4), scales)
    slope = jax.jit(jax.grad(joint.whole))({"theta": 0.7 * scales})["theta"]
    np.testing.assert_allclose(slope * scales, -4 * 0.7**3, rtol=1e-8)


def test_doubles_are_not_rounded_in_threads_outside_of_the_context():
    joint = from_numpy_log_joint(lambda x: float(x), 1.0)
    theta = {"theta": jnp.array(1 + 1e-12)}
    compiled = jax.jit(lambda theta: joint.whole(theta)).lower(theta).compile()
    found = []
    thread = threading.Thread(target=lambda: found.append(float(compiled(theta))))
    thread.start()
    thread.join()
    assert found == [1 + 1e-12]


def test_errors_of_the_users_function_say_where():
    def fragile(theta):
        if theta["sd"] > 1.6:
            raise ZeroDivisionError("no such scale")
        return in_numpy(theta)

    with pytest.raises(CrossfadeError, match=r"the log joint failed at .*'sd': array\(2.\).*: ZeroDivisionError"):
        from_numpy_log_joint(fragile, {**EXAMPLE, "sd": 2}, support=SUPPORT)
    joint = from_numpy_log_joint(fragile, EXAMPLE, support=SUPPORT)
    with pytest.raises(Exception, match=r"the log joint failed at .*1.7.*: ZeroDivisionError: no such scale"):
        jax.block_until_ready(evaluate(joint.whole, {**EXAMPLE, "sd": np.array(1.7)}))


def wrong_gradient(theta):
    return gradient(theta) | {"sd": -gradient(theta)["sd"]}


ROUND = jnp.ones(2)
REFUSED = {
    "NumPy in JAX": (in_numpy, EXAMPLE, {}, "cannot be traced by JAX .*from_numpy_log_joint"),
    "a branch": (lambda x: x if x > 0 else -x, 1.0, {}, "cannot be traced by JAX"),
    "an error": (lambda theta: theta["sigma"], EXAMPLE, {}, "failed at the example .KeyError: 'sigma'"),
    "many numbers": (lambda x: -(x**2), [1.0, 2.0], {}, r"shape \(2,\) and must be one number"),
    "no number": (lambda x: (x, x), 1.0, {}, "type tuple and must be one number"),
    "an integer": (lambda x: jnp.sum(x > 0), 1.0, {}, "of type int64"),
    "infinite": (lambda x: jnp.log(x), -1.0, {}, "log joint is nan at the example"),
    "no slope": (lambda x: jnp.sqrt(jnp.abs(x)), 0.0, {}, "derivative of the log joint by 'theta' is"),
    "outside": (in_jax, EXAMPLE | {"sd": -1.0}, {"support": SUPPORT}, r"example\['sd'\] = -1.0 is not inside"),
    "on the edge": (in_jax, EXAMPLE | {"p": [0, 0.5, 0.5]}, {"support": SUPPORT}, r"example\['p'\].* not inside"),
    "too few axes": (in_jax, EXAMPLE | {"p": 0.5}, {"support": SUPPORT}, r"example\['p'\].* not inside"),
    "text": (in_jax, {"mu": "high"}, {}, r"example\['mu'\] is a str"),
    "not finite": (in_jax, {"mu": np.inf}, {}, r"example\['mu'\] is inf"),
    "nothing": (in_jax, {}, {}, "example has no parameter"),
    "unknown name": (in_jax, EXAMPLE, {"support": {"sigma": "positive"}}, "support names .'sigma'."),
    "unknown support": (in_jax, EXAMPLE, {"support": {"sd": "round"}}, "support of 'sd' is 'round'.*one of real, posi"),
    "discrete support": (in_jax, EXAMPLE, {"support": {"sd": constraints.boolean}}, "support of 'sd' is"),
    "no map": (in_jax, EXAMPLE, {"support": {"mu": constraints.sphere}}, "support of 'mu' .* no map"),
    "one for all": (in_jax, EXAMPLE, {"support": "positive"}, "give a dict with their names"),
    "likelihood": (
        in_jax,
        EXAMPLE,
        {"support": SUPPORT, "log_likelihood": lambda t: ROUND},
        "log likelihood has shape",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_of_jax_functions(case):
    function, example, options, message = REFUSED[case]
    with pytest.raises(CrossfadeError, match=message):
        from_log_joint(function, example, **options)


REFUSED_IN_NUMPY = {
    "many numbers": (lambda theta: theta["mu"], None, r"shape \(2,\) and must be one number"),
    "wrong gradient": (in_numpy, wrong_gradient, "gradient and finite differences disagree in 'sd'"),
    "wrong names": (in_numpy, lambda theta: {"mu": theta["mu"]}, "dict with the names mu, sd, p"),
    "wrong shape": (
        in_numpy,
        lambda theta: gradient(theta) | {"mu": 1.0},
        r"gradient of 'mu' has shape \(\), not \(2,\)",
    ),
    "an error": (in_numpy, lambda theta: theta["tau"], "the gradient failed at .*KeyError"),
    "infinite": (lambda theta: -np.inf, None, "log joint is -inf at the example"),
}


@pytest.mark.parametrize("case", REFUSED_IN_NUMPY)
def test_refusals_of_numpy_functions(case):
    function, slopes, message = REFUSED_IN_NUMPY[case]
    with pytest.raises(CrossfadeError, match=message):
        from_numpy_log_joint(function, EXAMPLE, gradient=slopes, support=SUPPORT)
