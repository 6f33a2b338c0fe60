"""Components whose numbering means nothing: one numbering is sampled, and all are counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

from crossfade.api import compare, evidence, restored_draws, sample
from crossfade.density.exchangeable import check_numbering, found_numbering, one_numbering
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.types import CrossfadeError
from crossfade.worlds import mixture

Y = np.concatenate([np.random.default_rng(1).normal(-2, 0.7, 12), np.random.default_rng(2).normal(2, 0.7, 18)])


def one():
    return Model({"m": dist.Normal(0.0, 3.0)}, lambda p: dist.Normal(p["m"], 2.0).log_prob(Y).sum())


def two(means=(0.0, 0.0)):
    """Two normals of equal weight and known spread."""

    def likelihood(p):
        parts = dist.Normal(p["mu"][:, None], 0.7).log_prob(Y) + jnp.log(0.5)
        return jax.scipy.special.logsumexp(parts, axis=0).sum()

    return Model({"mu": dist.Normal(np.array(means), 3.0).to_event(1)}, likelihood)


def weighted(a=1.0):
    """Two normals of known spread, and the chance of the first of them."""

    def likelihood(p):
        log_weight = jnp.log(jnp.array([p["w"], 1 - p["w"]]))
        parts = dist.Normal(p["mu"][:, None], 0.7).log_prob(Y) + log_weight[:, None]
        return jax.scipy.special.logsumexp(parts, axis=0).sum()

    return Model({"w": dist.Beta(a, 1.0), "mu": dist.Normal(0.0, 3.0).expand([2]).to_event(1)}, likelihood)


def truth_weighted():
    """By a grid over both means and the weight, beside the one normal."""
    grid, weights = np.linspace(-6, 6, 241), np.linspace(0, 1, 82)[1:-1]
    step, prior = grid[1] - grid[0], stats.norm.logpdf(grid, 0, 3)
    likely = stats.norm.pdf(Y[:, None], grid, 0.7)
    each = [
        logsumexp(np.log(w * likely[:, :, None] + (1 - w) * likely[:, None, :]).sum(axis=0) + prior[:, None] + prior)
        for w in weights
    ]
    fine = np.linspace(-12, 12, 1201)
    first = logsumexp(stats.norm.logpdf(fine, 0, 3) + stats.norm.logpdf(Y[:, None], fine, 2).sum(axis=0))
    second = logsumexp(each) + 2 * np.log(step) + np.log(weights[1] - weights[0])
    return float(second - first - np.log(fine[1] - fine[0]))


def truth():
    grid = np.linspace(-12, 12, 1201)
    step, prior = grid[1] - grid[0], stats.norm.logpdf(grid, 0, 3)
    first = logsumexp(prior + stats.norm.logpdf(Y[:, None], grid, 2).sum(axis=0)) + np.log(step)
    likely = stats.norm.pdf(Y[:, None], grid, 0.7)
    both = np.log((likely[:, :, None] + likely[:, None, :]) / 2).sum(axis=0)
    return float(logsumexp(both + prior[:, None] + prior) + 2 * np.log(step) - first)


@pytest.mark.slow
def test_all_numberings_are_counted():
    result = compare(one(), two(), exchangeable=["mu"], target_se=0.02)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth(), max_error=0.02)
    with pytest.raises(AssertionError):  # the wrong twin: one numbering of the two
        assert_estimate(result.log_bayes_factor, truth() - np.log(2), max_error=0.02)
    assert (np.diff(result.draws[1]["mu"], axis=-1) > 0).all() and "2! numberings" in result.about["notes"][0]


def test_components_that_differ_are_refused_by_name():
    with pytest.raises(CrossfadeError, match=r"renumbering \('mu',\) changes the log joint of M2"):
        compare(one(), two((0.0, 1.0)), exchangeable=["mu"])
    with pytest.raises(CrossfadeError, match="exchangeable names 'nu', which no model has"):
        compare(one(), two(), exchangeable=["nu"])


@pytest.mark.slow
def test_our_own_mixtures_know_their_components():
    with float64():
        joint = as_joint(mixture.summed(Y, 3))
        assert joint.exchangeable == ("mean_3", "precision_3", "weight_3")
        there = one_numbering(joint, joint.exchangeable, "M1")
        theta = there.start(jax.random.key(3))
        assert (np.diff(theta["mean_3"]) >= 0).all()
        gained = float(there.log_joint(theta) - joint.log_joint(theta))
        assert gained == pytest.approx(np.log(6), abs=1e-9)
        assert one_numbering(as_joint(one()), ("mu",), "M1").places == as_joint(one()).places


@pytest.mark.slow
@pytest.mark.parametrize("said", [("w", "mu"), ()])
def test_a_weight_is_turned_round_with_two_components(said):
    """Named, or found when the chains do not meet."""
    result = compare(one(), weighted(), exchangeable=said, target_se=0.02)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth_weighted(), max_error=0.02)
    with pytest.raises(AssertionError):
        assert_estimate(result.log_bayes_factor, truth_weighted() - np.log(2), max_error=0.02)
    assert "2! numberings" in result.about["notes"][0]


@pytest.mark.slow
def test_draws_brought_along_are_put_in_order():
    """As another sampler gives them: some chains in one numbering, some in the other."""
    own = compare(one(), weighted(), exchangeable=["w", "mu"], target_se=0.02).draws[1]
    turned = {"w": np.array(own["w"]), "mu": np.array(own["mu"])}
    turned["w"][::2], turned["mu"][::2] = 1 - turned["w"][::2], turned["mu"][::2, :, ::-1]
    result = compare(one(), weighted(), exchangeable=["w", "mu"], target_se=0.05, draws=(None, turned))
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth_weighted(), max_error=0.05)


def test_what_is_not_exchangeable_is_not_found():
    with float64():
        for model, names in (
            (weighted(), ("mu", "w")),
            (weighted(2.0), None),
            (two((0.0, 1.0)), None),
            (two(), ("mu",)),
        ):
            joint = as_joint(model)
            at = [joint.start(jax.random.key(i)) for i in range(5)]
            found = found_numbering(joint, at, "M1")
            assert (None if found is None else found.numbered) == names


def test_a_ring_is_not_exchangeable():
    """It is the same turned round and in a mirror, but not with two neighbours swapped."""
    ring = Model(
        {"x": dist.Normal(0.0, 1.0).expand([6]).to_event(1)},
        lambda p: -jnp.sum((p["x"] - jnp.roll(p["x"], 1)) ** 2) / 2,
    )
    with float64():
        joint = as_joint(ring)
        with pytest.raises(CrossfadeError, match="changes the log joint"):
            one_numbering(joint, ["x"], "M1")
        assert found_numbering(joint, [joint.start(jax.random.key(i)) for i in range(5)], "M1") is None


def test_a_large_log_joint_hides_no_difference():
    def model(differ):
        return Model({"mu": dist.Normal(np.zeros(3), 1.0).to_event(1)}, lambda p: -1e6 + 0.01 * differ * p["mu"][0])

    with float64():
        with pytest.raises(CrossfadeError, match="changes the log joint"):
            one_numbering(as_joint(model(True)), ["mu"], "M1")
        assert one_numbering(as_joint(model(False)), ["mu"], "M1").numbered == ("mu",)


@pytest.mark.slow
def test_one_model_alone_may_have_components_too():
    alone = evidence(two(), exchangeable="mu", target_se=0.02, n_chains=16)
    other = evidence(one(), target_se=0.02, n_chains=16)
    error = np.hypot(alone.raw_estimate.error, other.raw_estimate.error)
    assert abs(alone.raw_estimate.value - other.raw_estimate.value - truth()) < 4 * error < 0.12
    draws = sample(two(), exchangeable=["mu"], n_draws=25, n_chains=8)
    assert (np.diff(draws.theta()["mu"], axis=-1) > 0).all()
    again = restored_draws(two(), draws.arrays(), exchangeable=["mu"])
    np.testing.assert_array_equal(again.more(25).u, draws.more(25).u)


def test_a_claim_that_no_draw_of_the_prior_can_refute_is_held_against_the_chains():
    def likelihood(p):
        near = (jnp.abs(p["mu"] - np.array([5.0, -5.0])) < 0.05).all()
        return jnp.where(near, 0.0, -jnp.inf)

    joint = as_joint(Model({"mu": dist.Normal(0.0, 100.0).expand([2]).to_event(1)}, likelihood))
    numbered = one_numbering(joint, ["mu"], "M1")  # impossible either way, at every draw of the prior
    here = [{"mu": np.array([-5.0, 5.0])}, {"mu": np.array([5.0, -5.0])}]
    with pytest.raises(CrossfadeError, match=r"renumbering \('mu',\) changes the log joint of M1"):
        check_numbering(numbered, numbered.numbered, here, "M1")
    check_numbering(joint, ("mu",), [{"mu": np.array([1.0, 2.0])}], "M1")  # the twin: nothing told


def test_draws_in_one_numbering_count_for_all():
    """As chains of a mixture often come: none of them has ever left one numbering."""
    wide = Model({"mu": dist.Normal(np.zeros(2), 50.0).to_event(1)}, two().log_likelihood)
    grid = np.linspace(-5, 5, 401)
    log_parts = [stats.norm.logpdf(Y[:, None], grid, 0.7) + np.log(0.5)] * 2
    log_joint = np.logaddexp(log_parts[0][:, :, None], log_parts[1][:, None, :]).sum(axis=0)
    log_joint += stats.norm.logpdf(grid, 0, 50)[:, None] + stats.norm.logpdf(grid, 0, 50)
    truth = logsumexp(log_joint) + 2 * np.log(grid[1] - grid[0])
    chance = np.exp(log_joint - log_joint.max()) * (grid[:, None] < grid)
    random = np.random.default_rng(3)
    at = random.choice(chance.size, size=4000, p=chance.ravel() / chance.sum())
    draws = np.stack([grid[at // 401], grid[at % 401]], axis=1) + random.uniform(-0.0125, 0.0125, size=(4000, 2))
    result = evidence(wide, draws={"mu": draws.reshape(4, 1000, 2)})
    assert result.verdict == "trustworthy" and result.about["numbered"] == [[], ["mu"]]
    assert_estimate(result.log_bayes_factor, truth, max_error=0.01)
    with pytest.raises(AssertionError):  # the twin: one numbering alone
        assert_estimate(result.log_bayes_factor, truth - np.log(2), max_error=0.01)
