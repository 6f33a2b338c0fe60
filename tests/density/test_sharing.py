"""What two models have in common: parameters by name, by hand and by elements; the same data, in any order."""

import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate
from numpyro import distributions as dist
from numpyro.distributions import constraints
from scipy import stats
from scipy.special import logsumexp

from crossfade.api import compare
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.density.sharing import check_data, match, still_shared, union
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])


def model(data=None, **priors):
    return as_joint(Model(priors, lambda p: 0.0 * sum(jnp.sum(v) for v in p.values()), data=data))


def test_by_name_by_hand_and_by_elements():
    j1 = model(a=dist.Normal(0.0, 1.0), beta=dist.Normal(np.zeros(3), 1.0))
    j2 = model(b=dist.Normal(0.0, 1.0), beta=dist.Normal(np.zeros(4), 1.0))
    assert union(j1, j2, []).sharing.shared == () and union(j1, j2, []).size == 9
    by_hand = union(j1, j2, {"a": "b", "beta": ("beta", [0, 2], [1, 3])})
    assert by_hand.sharing.shared == ("a = b", "beta (in part)")
    assert by_hand.sharing.only_1 == ("beta[1]",) and by_hand.sharing.only_2 == ("beta[0]", "beta[2]")
    assert by_hand.size == 6 and by_hand.n_shared == 3
    assert by_hand.labels == ("a", "beta[0]", "beta[2]", "beta[1]", "beta[0]", "beta[2]")
    np.testing.assert_array_equal(by_hand.where[0], [0, 1, 3, 2])
    np.testing.assert_array_equal(by_hand.where[1], [0, 4, 1, 5, 2])
    assert by_hand.only == (slice(3, 4), slice(4, 6))
    masks = union(j1, j2, {"beta": ("beta", [True, False, True], [False, True, False, True])})
    assert masks.n_shared == 2


def test_a_common_name_that_cannot_be_shared_is_not_and_says_why():
    scalar, vector = model(slope=dist.Normal(0.0, 1.0)), model(slope=dist.Normal(np.zeros(3), 1.0))
    positive, short, long = (
        model(slope=prior) for prior in (dist.HalfNormal(1.0), dist.Uniform(0.0, 1.0), dist.Uniform(0.0, 2.0))
    )
    for pair, why in (
        ((scalar, vector), "'slope' is in both models, but it has shape () in M1 and (3,) in M2"),
        ((scalar, positive), "'slope' is in both models, but its support is real in M1 and positive in M2"),
    ):
        sharing = union(*pair).sharing
        assert sharing.shared == () and sharing.only_1 == sharing.only_2 == ("slope",)
        assert sharing.apart == (why,)
    assert "support is interval(0., 1.) in M1 and interval(0., 2.) in M2" in match(short, long).apart[0]
    assert match(scalar, scalar).apart == () and match(scalar, scalar).whole == {"slope": "slope"}


@pytest.mark.parametrize(
    ("share", "message"),
    [
        ({"q": "b"}, "names 'q', which M1 does not have"),
        ({"a": "q"}, "names 'q', which M2 does not have"),
        ({"beta": ("beta", [0, 1], [0])}, "pairs 2 elements of 'beta' with 1"),
        ({"beta": ("beta", [0, 0], [1, 2])}, "names a coordinate twice"),
        ({"beta": ("beta", [5], [1])}, r"picks elements \[5\] of 'beta', of shape \(3,\)"),
        ({"beta": ("beta", [1])}, "give .name in M2, elements in M1, elements in M2"),
        (["beta"], r"asks for 'beta' of M1 and 'beta' of M2, but it has shape \(3,\).*or share some elements"),
        ("s", "asks for 's' of M1 and 's' of M2, but its support is real in M1 and positive in M2. Leave it out"),
        ({"w": ("w", [0], [0])}, "ties its elements together"),
    ],
)
def test_what_is_asked_for_and_cannot_be_is_an_error(share, message):
    own = {"a": dist.Normal(0.0, 1.0), "w": dist.Dirichlet(np.ones(3)), "s": dist.Normal(0.0, 1.0)}
    other = {"b": dist.Normal(0.0, 1.0), "w": dist.Dirichlet(np.ones(3)), "s": dist.HalfNormal(1.0)}
    j1, j2 = model(**own, beta=dist.Normal(np.zeros(3), 1.0)), model(**other, beta=dist.Normal(np.zeros(4), 1.0))
    with pytest.raises(CrossfadeError, match=message):
        union(j1, j2, share)


def two_spreads():
    """y ~ N(0, exp(s)^2) with s ~ N(0, 1), against y ~ N(0, s^2) with s ~ half normal: one name, two meanings."""
    m1 = Model({"s": dist.Normal(0.0, 1.0)}, lambda p: dist.Normal(0.0, jnp.exp(p["s"])).log_prob(Y).sum(), data=Y)
    m2 = Model({"s": dist.HalfNormal(2.0)}, lambda p: dist.Normal(0.0, p["s"]).log_prob(Y[::-1]).sum(), data=Y[::-1])
    u, step = np.linspace(-6, 6, 12_001, retstep=True)
    log_l = stats.norm.logpdf(Y[:, None], 0, np.exp(u)).sum(axis=0)
    priors = stats.norm.logpdf(u), stats.halfnorm.logpdf(np.exp(u), scale=2) + u
    first, second = (logsumexp(log_l + prior) + np.log(step) for prior in priors)
    return m1, m2, float(second - first)


def test_the_answer_is_right_where_a_name_has_two_meanings():
    m1, m2, truth = two_spreads()
    result = compare(m1, m2, target_se=0.01)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, truth, max_error=0.01)
    with pytest.raises(AssertionError):  # the wrong twin: one Jacobian too many, at the posterior's middle
        assert_estimate(result.log_bayes_factor, truth + np.log(0.8), max_error=0.01)
    assert result.sharing.shared == () and "support is real in M1 and positive in M2" in result.sharing.apart[0]
    assert set(result.draws[0]) == set(result.draws[1]) == {"s"}
    assert (result.draws[1]["s"] > 0).all() and (result.draws[0]["s"] < 0).any()


def test_bounds_that_differ_by_their_last_digit_are_told_apart():
    j1, j2 = (model(a=dist.Uniform(0.0, high)) for high in (0.3, 0.1 + 0.2))
    told = "its support is interval(0., 0.3) in M1 and interval(0., 0.30000000000000004) in M2"
    assert told in union(j1, j2).sharing.apart[0]


def test_the_same_data_in_another_order_are_the_same_data():
    prior = dist.Normal(0.0, 1.0)
    check_data(model(Y, a=prior), model(Y[::-1], a=prior))
    check_data(model(Y, a=prior), model(None, a=prior))
    check_data(model(np.array([0.0, 1.0]), a=prior), model(np.array([[-0.0], [1.0]]), a=prior))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.append(Y, 1.0), "M1 has 5 responses and M2 has 6, and 1.0 is in M2 only"),
        (np.array([0.3, -0.2, 0.9, 1.4, 0.2]), "of 5 responses 1 value differs, for example 0.1 in M1 and 0.2 in M2"),
        (2 * Y, "of 5 responses 5 values differ.*so build both from the same rows, on the same scale"),
        (np.append(Y[:-1], Y[-2]), "of 5 responses 1 value differs, for example 0.1 in M1 and 1.4 in M2"),
        (Y.astype(np.float32), "rounded to single precision"),
        (np.append(Y[:-1], np.nan), "1 of the 5 responses of M2 are NaN"),
    ],
)
def test_other_data_are_refused_with_what_differs(other, message):
    prior = dist.Normal(0.0, 1.0)
    with pytest.raises(CrossfadeError, match=message):
        check_data(model(Y, a=prior), model(other, a=prior))


def test_what_has_been_put_in_order_since_is_left_out_of_what_was_asked():
    j1, j2 = (model(a=dist.Normal(0.0, 1.0), mu=dist.Normal(np.zeros(2), 1.0)) for _ in "12")
    places = {**j2.places, "mu": ((2,), constraints.ordered_vector)}
    numbered = j2._replace(places=places, numbered=("mu",))
    assert still_shared(j1, j2, ["a", "mu"]) == (["a", "mu"], []) and still_shared(j1, numbered, None) == (None, [])
    share, gone = still_shared(j1, numbered, ["a", "mu"])
    assert share == {"a": "a"} and gone[0].startswith("'mu' is not shared as asked")
    assert union(j1, numbered, share).sharing.shared == ("a",)
