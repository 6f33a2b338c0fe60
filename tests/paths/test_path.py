import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from linear_pairs import KINDS, crossed, key, nested

from crossfade.density.model import Model, describe, without_data
from crossfade.paths.path import direct, matched, reparametrise, reverse, unconstraining
from crossfade.types import CrossfadeError


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

    sharing = matched(m1, m2)
    assert float(energy.start) == pytest.approx(float(m1.log_joint(theta)) + prior_of(m2, sharing.only_2), abs=1e-9)
    assert float(energy.end) == pytest.approx(float(m2.log_joint(theta)) + prior_of(m1, sharing.only_1), abs=1e-9)


def test_equal_priors_cancel_exactly_and_unequal_ones_are_tempered():
    m1, m2 = nested(**KINDS["scaled"])
    assert matched(m1, m2) == (("variance", "one", "a"), (), ("b",), ())
    path = direct(m1, m2)
    assert set(path.energy.common) == {"variance", "one", "a", "b"}
    c1, c2 = crossed(**KINDS["scaled"])
    assert matched(c1, c2).tempered == ("a",)
    assert set(direct(c1, c2).energy.common) == {"variance", "b", "c"}
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
    doubled = dist.Normal(-0.4, 0.5).mask(False)
    wrong = direct(m1, m2, links={"b": doubled})
    assert abs(log_z(wrong, 1.0) - log_z(wrong, 0.0) - answers[0]) > 0.1


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
    moved = reparametrise(path, unconstraining(m1, m2))
    s = jnp.linspace(1e-9, 60, 400_001)
    u = jnp.linspace(-30, 6, 40_001)

    def area(log_q, x):
        return float(jax.scipy.special.logsumexp(log_q) + jnp.log(x[1] - x[0]))

    for tau in (0.0, 0.4, 1.0):
        flat = area(jax.vmap(lambda s, tau=tau: path.energy({"s": s}).at(tau))(s), s)
        bent = area(jax.vmap(lambda u, tau=tau: moved.energy({"s": u}).at(tau))(u), u)
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


def test_outside_a_prior_the_density_is_zero():
    m = Model({"s": dist.Gamma(2.0, 1.0)}, lambda theta: jnp.log(theta["s"]))
    assert float(m.log_prior({"s": jnp.array(-1.0)})) == -np.inf


def test_without_data_is_the_prior():
    m1, _ = nested(**KINDS["scaled"])
    theta = m1.sample_prior(key(5))
    assert float(without_data(m1).log_joint(theta)) == float(m1.log_prior(theta))
    assert without_data(m1).names == m1.names


def test_a_shared_name_with_another_shape_or_support_is_refused_by_name():
    scalar = Model({"slope": dist.Normal(0.0, 1.0)}, lambda theta: 0.0)
    vector = Model({"slope": dist.Normal(jnp.zeros(3), 1.0)}, lambda theta: 0.0)
    positive = Model({"slope": dist.HalfNormal(1.0)}, lambda theta: 0.0)
    with pytest.raises(CrossfadeError, match=r"'slope'.*shape \(\) .* in M1 .*shape \(3,\).*rename"):
        direct(scalar, vector)
    with pytest.raises(CrossfadeError, match=r"'slope'.*support"):
        direct(scalar, positive)


def test_models_of_different_data_are_refused():
    random = np.random.default_rng(0)
    x = random.normal(size=(10, 1))
    from crossfade.worlds.glm import logistic

    y = (np.arange(10) % 2).astype(float)
    with pytest.raises(CrossfadeError, match="different data"):
        direct(logistic.model(y, x, ("x",)), logistic.model(1 - y, x, ("x",)))
    with pytest.raises(CrossfadeError, match="different data"):
        direct(logistic.model(y, x, ("x",)), logistic.model(y[:9], x[:9], ("x",)))


def test_a_model_without_parameters_is_refused():
    with pytest.raises(CrossfadeError, match="at least one parameter"):
        Model({}, lambda theta: 0.0)


def test_priors_are_described_in_words():
    m1, _ = nested(**KINDS["scaled"])
    assert describe(m1.priors["a"]) == "Normal(0, variance / 1)"
    assert describe(m1.priors["variance"]) == "InverseGamma(2, 1.5)"
    assert describe(dist.Normal(0.0, 10.0)) == "Normal(0, 10)"
