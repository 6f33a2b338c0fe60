"""Ways to a confident wrong number, or to a bare traceback, of the default method: each stays closed."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from assertions import rng
from numpyro import distributions as dist

from crossfade.api import compare
from crossfade.density.model import Model
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])


def likelihood(p):
    return dist.Normal(p["mu"], 1.0).log_prob(Y).sum()


def model(prior=None, function=likelihood, **more):
    return Model({"mu": dist.Normal(0.0, 1.0) if prior is None else prior}, function, **more)


def test_mass_beyond_the_numbers_of_a_computer_is_no_answer():
    """Beta(0.05, 0.05): a sixth of one side lies closer to 1 than a double can say; the truth is 2.1796."""
    ends = [Model({"p": dist.Beta(a, a)}, lambda p: 20 * jnp.log(p["p"])) for a in (1.0, 0.05)]
    result = compare(*ends)
    assert result.verdict == "do not use"
    assert any("edge of the support of p" in reason for reason in result.reasons)


def test_own_draws_of_one_mode_of_two_are_weak():
    def folded(p):
        return dist.Normal(jnp.abs(p["mu"]), 1.0).log_prob(jnp.array([7.5, 8.2, 8.4])).sum()

    random = rng(1)
    draws = tuple({"mu": 8 + 0.57 * random.normal(size=(4, 1000))} for _ in range(2))
    result = compare(model(dist.Normal(0.0, 5.0), folded), model(dist.Normal(4.0, 5.0), folded), draws=draws)
    assert result.verdict == "weak"
    assert any("far from all of them: mu = -" in reason for reason in result.reasons)


def test_models_that_differ_by_a_constant():
    result = compare(model(), model(function=lambda p: likelihood(p) - 1))
    assert result.log_bayes_factor.value == pytest.approx(-1, abs=1e-9)
    assert result.verdict == "trustworthy", result.reasons


def test_own_draws_of_any_number_of_chains():
    random = rng(2)
    precision = 6.0

    def draws(*shape):
        return {"mu": Y.sum() / precision + random.normal(size=shape) / np.sqrt(precision)}

    wide = model(dist.Normal(0.0, 3.0))
    truth = _evidence(3.0) - _evidence(1.0)
    for first, second in (((5, 1000), None), ((4, 1000), (100, 100)), ((1, 4000), None)):
        own = {"mu": Y.sum() / (5 + 1 / 9) + random.normal(size=second) / np.sqrt(5 + 1 / 9)} if second else None
        result = compare(model(), wide, draws=(draws(*first), own), target_se=0.02)
        assert abs(result.log_bayes_factor.value - truth) < 5 * result.log_bayes_factor.error, (first, second)


def _evidence(sd):
    return scipy.stats.multivariate_normal(np.zeros(5), np.eye(5) + sd**2).logpdf(Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: model(dist.Normal(0.0, 1.0).mask(False)), "'mu' is MaskedDistribution, not a normalised density"),
        (lambda: model(dist.ImproperUniform(dist.constraints.real, (), ())), "no proper prior"),
        (lambda: model(dist.Delta(0.0)), "'mu' is Delta, not a normalised density"),
        (lambda: model(1.0), "the prior of 'mu' is 1.0: give a NumPyro distribution"),
        (lambda: model(scipy.stats.norm(0, 1)), "give a NumPyro distribution"),
        (lambda: model(function=lambda p: dist.Normal(p["mu"], 1.0).log_prob(Y)), r"shape \(5,\).*sum it"),
        (lambda: model(function=lambda p: None), "gives nothing and must give one number"),
        (lambda: model(function=lambda p: p["nu"]), "asks for the parameter 'nu', which has no prior"),
        (lambda: model(function=lambda p: float(np.exp(p["mu"]))), "cannot be traced by JAX"),
        (lambda: model(function=lambda p: 0.0 if p["mu"] > 0 else 1.0), "jnp.where for its branches"),
        (lambda: model(data=np.array(["a"])), "data= takes the responses as numbers"),
        (lambda: object(), "M2 is a object: bring it with from_numpyro"),
    ],
)
def test_models_that_cannot_be_used(make, message):
    with pytest.raises(CrossfadeError, match=message):
        compare(model(), make())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": ({"mu": np.zeros(10)}, None)}, r"shape \(10,\): give \[chain, draw\]"),
        ({"draws": (1,)}, "draws= takes two things"),
        ({"draws": {"mu": np.zeros((4, 100))}}, "draws= takes two things"),
        ({"draws": ({"mu": np.full((4, 100), np.nan)}, None)}, r"'mu' for M1 hold NaN \(chain 0, draw 0\)"),
        ({"draws": ({"mu": np.full((4, 100), "a")}, None)}, "'mu' for M1 are not numbers"),
        ({"share": {"mu": 3}}, "pairs 'mu' with 3"),
        ({"share": 5}, "share = 5: give a list of names"),
        ({"share": "nu"}, "names 'nu', which M1 does not have"),
        ({"share": {"mu": ("mu", [7], [0])}}, r"picks elements \[7\] of 'mu'"),
        ({"target_se": "a"}, "target_se = a"),
        ({"budget": "1.2.3 s"}, "'1.2.3' is no number"),
        ({"budget": [1]}, "positive number of seconds"),
        ({"seed": 1.5}, "seed = 1.5: give a whole number"),
        ({"n_chains": 4.0}, "n_chains = 4.0: give a whole number"),
        ({"log_prior_odds": "a"}, "log_prior_odds = 'a'"),
        ({"method": "foo", "budget": 3}, "unknown method 'foo'"),
    ],
)
def test_settings_that_cannot_be_used(settings, message):
    with pytest.raises(CrossfadeError, match=message):
        compare(model(), model(), **settings)
