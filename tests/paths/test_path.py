"""Paths between models: whatever the links, both ends keep their evidence; there, back, and in other coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from linear_pairs import KINDS, crossed, key, nested

from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.paths.path import direct, from_no_data, named_sharing, nowhere, reparametrise, reverse, union_coordinates
from crossfade.types import CrossfadeError
from crossfade.worlds.glm import logistic


def point(m1, m2, offset=0):
    return {**m1.sample_prior(key(offset)), **m2.sample_prior(key(offset + 1))}


@pytest.mark.parametrize("pair", [nested, crossed])
@pytest.mark.parametrize("kind", KINDS)
def test_both_ends_are_the_joints_times_the_priors_of_what_they_lack(pair, kind):
    m1, m2 = pair(**KINDS[kind])
    theta = point(m1, m2)
    energy = direct(m1, m2).energy(theta)

    def prior_of(model, names):
        values = [model.priors[name] for name in names]
        made = [p if isinstance(p, dist.Distribution) else p(theta) for p in values]
        return sum(float(d.log_prob(theta[name])) for d, name in zip(made, names, strict=True))

    sharing = named_sharing(m1, m2)
    assert float(energy.start) == pytest.approx(float(m1.log_joint(theta)) + prior_of(m2, sharing.only_2), abs=1e-9)
    assert float(energy.end) == pytest.approx(float(m2.log_joint(theta)) + prior_of(m1, sharing.only_1), abs=1e-9)


def test_equal_priors_cancel_exactly_and_unequal_ones_are_tempered():
    m1, m2 = nested(**KINDS["scaled"])
    assert named_sharing(m1, m2) == (("variance", "one", "a"), (), ("b",), (), ())
    path = direct(m1, m2)
    assert {factor.name for factor in path.energy.common} == {"variance", "one", "a", "b"}
    assert path.energy.ends[0].factors == path.energy.ends[1].factors == ()
    c1, c2 = crossed(**KINDS["scaled"])
    assert named_sharing(c1, c2).tempered == ("a",)
    assert {factor.name for factor in direct(c1, c2).energy.common} == {"variance", "b", "c"}
    same = direct(m1, m1).energy(m1.sample_prior(key(3)))
    assert float(same.ratio) == 0.0


def log_z(path, tau):
    """log of the integral of q_tau over a grid of (a, b)."""
    grid = jnp.linspace(-12, 12, 801)
    a, b = jnp.meshgrid(grid, grid)
    energy = jax.vmap(lambda a, b: path.energy({"a": a, "b": b}))(a.ravel(), b.ravel())
    log_q = jax.vmap(lambda s, e: type(energy)(s, e).at(tau))(energy.start, energy.end)
    return float(jax.scipy.special.logsumexp(log_q) + 2 * jnp.log(grid[1] - grid[0]))


def one_and_two():
    m1 = Model({"a": dist.Normal(0.0, 2.0)}, lambda theta: -0.5 * (theta["a"] - 1) ** 2 - 1.3)
    m2 = Model(
        {"a": dist.Normal(0.5, 1.0), "b": dist.Normal(0.3, 1.0)},
        lambda theta: -0.5 * (theta["a"] + theta["b"] - 1) ** 2,
    )
    return m1, m2


class Doubled(dist.transforms.Transform):
    """The identity that says that it stretches by 1/2: twice the density."""

    domain = codomain = dist.constraints.real

    def __call__(self, x):
        return x

    def _inverse(self, y):
        return y

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        return jnp.full(jnp.shape(x), -jnp.log(2.0))

    def tree_flatten(self):
        return (), ((), {})


def test_any_normalised_link_gives_the_same_answer():
    m1, m2 = one_and_two()
    prior = direct(m1, m2)
    near = direct(m1, m2, links={"b": dist.Normal(-0.4, 0.5)})

    def given_a(theta):
        return dist.Normal(0.5 - 0.5 * theta["a"], 0.7)

    bent = direct(m1, m2, links={"b": given_a})
    answers = [log_z(path, 1.0) - log_z(path, 0.0) for path in (prior, near, bent)]
    np.testing.assert_allclose(answers, answers[0], atol=1e-9)
    # the wrong twin: a link that is not normalised moves the answer by its missing constant
    half = dist.TransformedDistribution(dist.Normal(-0.4, 0.5), Doubled())
    wrong = direct(m1, m2, links={"b": half})
    assert log_z(wrong, 1.0) - log_z(wrong, 0.0) - answers[0] == pytest.approx(-np.log(2), abs=1e-9)


def test_links_are_for_unshared_parameters_only():
    m1, m2 = one_and_two()
    with pytest.raises(CrossfadeError, match=r"link for 'a'.*'b'"):
        direct(m1, m2, links={"a": dist.Normal(0.0, 1.0)})


def test_reverse_swaps_the_ends_and_twice_is_once():
    m1, m2 = crossed(**KINDS["scaled"])
    theta = point(m1, m2)
    path = direct(m1, m2)
    there, back, again = (p.energy(theta) for p in (path, reverse(path), reverse(reverse(path))))
    assert (float(back.start), float(back.end)) == (float(there.end), float(there.start))
    assert (float(again.start), float(again.end)) == (float(there.start), float(there.end))
    other = direct(m2, m1).energy(theta)
    assert float(other.ratio) == pytest.approx(float(back.ratio), abs=1e-9)


def test_unconstrained_coordinates_keep_every_log_z():
    """s2 > 0 moved to log s2: the integral over the real line with log|J| equals the one over s2."""
    m1 = Model({"s": dist.Gamma(2.0, 1.0)}, lambda theta: -2 * theta["s"])
    m2 = Model({"s": dist.Gamma(3.0, 2.0)}, lambda theta: -0.5 * theta["s"])
    path = direct(m1, m2)
    moved = reparametrise(path, union_coordinates(m1, m2))
    s = jnp.linspace(1e-9, 60, 400_001)
    u = jnp.linspace(-30, 6, 40_001)

    def area(log_q, x):
        return float(jax.scipy.special.logsumexp(log_q) + jnp.log(x[1] - x[0]))

    for tau in (0.0, 0.4, 1.0):
        flat = area(jax.vmap(lambda s, tau=tau: path.energy({"s": s}).at(tau))(s), s)
        bent = area(jax.vmap(lambda u, tau=tau: moved.energy(u[None]).at(tau))(u), u)
        assert bent == pytest.approx(flat, abs=1e-6)
    # the wrong twin forgets log|J|
    naked = area(jax.vmap(lambda u: path.energy({"s": jnp.exp(u)}).at(1.0))(u), u)
    assert abs(naked - flat) > 0.1
    start = moved.start(key(1))
    assert np.isfinite(float(moved.energy(start).start))


def test_the_ends_are_exact_where_the_other_end_is_impossible():
    m1 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: jnp.where(theta["x"] < 1, 0.0, -jnp.inf))
    m2 = Model({"x": dist.Normal(0.0, 1.0)}, lambda theta: jnp.where(theta["x"] > 0, 0.0, -jnp.inf))
    path = direct(m1, m2)
    left, right = (path.energy({"x": jnp.array(x)}) for x in (-0.5, 2.0))
    assert np.isfinite(left.at(0.0)) and left.at(0.5) == left.at(1.0) == -np.inf
    assert np.isfinite(right.at(1.0)) and right.at(0.5) == right.at(0.0) == -np.inf
    assert left.ratio == -np.inf and right.ratio == np.inf


def same_name():
    """a in both, real in M1 and positive in M2; c is shared."""
    m1 = Model({"c": dist.Normal(0.0, 1.0), "a": dist.Normal(0.5, 1.0)}, lambda p: -((p["a"] - p["c"]) ** 2))
    m2 = Model({"c": dist.Normal(0.0, 1.0), "a": dist.Gamma(2.0, 1.0)}, lambda p: -((p["a"] - 2 * p["c"]) ** 2))
    return m1, m2


def test_one_name_with_two_meanings_is_two_parameters():
    m1, m2 = same_name()
    path = direct(m1, m2)
    theta = {"c": jnp.array(0.3), "a": jnp.array(-0.4), "a (M2)": jnp.array(1.7)}
    energy = path.energy(theta)
    own = {"c": theta["c"], "a": theta["a"]}, {"c": theta["c"], "a": theta["a (M2)"]}
    expected = float(m1.log_joint(own[0]) + m2.priors["a"].log_prob(1.7))
    assert float(energy.start) == pytest.approx(expected, abs=1e-9)
    expected = float(m2.log_joint(own[1]) + m1.priors["a"].log_prob(-0.4))
    assert float(energy.end) == pytest.approx(expected, abs=1e-9)
    for start in (path.start, path.start_reverse):
        assert set(start(key(2))) == {"c", "a", "a (M2)"} and np.isfinite(float(path.energy(start(key(2))).ratio))
    sharing = named_sharing(m1, m2)
    assert sharing.shared == ("c",) and sharing.only_1 == sharing.only_2 == ("a",) and len(sharing.apart) == 1


def test_names_that_differ_may_be_shared():
    m1, m2 = one_and_two()
    energy = direct(m1, m2, share={"a": "b"}).energy({"a": jnp.array(0.2), "a (M2)": jnp.array(0.7)})
    second = {"b": jnp.array(0.2), "a": jnp.array(0.7)}
    assert float(energy.end) == pytest.approx(float(m2.log_joint(second)), abs=1e-9)
    vectors = [Model({"v": dist.Normal(jnp.zeros(2), 1.0)}, lambda p: 0.0 * p["v"][0]) for _ in range(2)]
    with pytest.raises(CrossfadeError, match="whole parameters only"):
        direct(*vectors, share={"v": ("v", [0], [1])})


def test_a_prior_in_one_piece_has_no_links():
    whole = as_joint(one_and_two()[0])._replace(factors=None)
    with pytest.raises(CrossfadeError, match="the prior of M1 is not known parameter by parameter"):
        direct(whole, one_and_two()[1])


def test_from_no_data_the_ratio_is_the_log_likelihood():
    m1, _ = nested(**KINDS["scaled"])
    joint = as_joint(m1)
    theta = m1.sample_prior(key(4))
    u = joint.coordinates.inverse(theta)
    path = from_no_data(joint)
    energy = path.energy(u)
    assert float(energy.ratio) == pytest.approx(float(m1.log_likelihood(theta)), abs=1e-9)
    assert float(path(u, 1.0)) == pytest.approx(float(joint.density(u)), abs=1e-9)
    with pytest.raises(CrossfadeError, match="no start of its own"):
        nowhere(key(0))


def test_a_likelihood_that_is_not_one_number_is_refused():
    y = np.zeros(3)
    vector = Model({"mu": dist.Normal(0.0, 1.0)}, lambda p: dist.Normal(p["mu"], 1.0).log_prob(y))
    with pytest.raises(CrossfadeError, match=r"log likelihood of M1 gives an array of shape \(3,\).*sum it"):
        direct(vector, vector)


def test_models_of_different_data_are_refused():
    random = np.random.default_rng(0)
    x = random.normal(size=(10, 1))
    y = (np.arange(10) % 3 == 0).astype(float)
    with pytest.raises(CrossfadeError, match="different data"):
        direct(logistic.model(y, x, ("x",)), logistic.model(1 - y, x, ("x",)))
    with pytest.raises(CrossfadeError, match="different data"):
        direct(logistic.model(y, x, ("x",)), logistic.model(y[:9], x[:9], ("x",)))
