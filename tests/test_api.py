"""The questions that can be asked: what is refused and how, what a result hides, and that nothing is left switched."""

import jax
import jax.numpy as jnp
import lines
import numpy as np
import numpyro
import pymc
import pytest
import scipy.stats
from assertions import assert_estimate
from numpyro import distributions as dist

import crossfade
from crossfade.api import compare, evidence
from crossfade.density.model import Model
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])


def likelihood(p):
    return dist.Normal(p["mu"], 1.0).log_prob(Y).sum()


def model(prior=None, function=likelihood, **more):
    return Model({"mu": dist.Normal(0.0, 1.0) if prior is None else prior}, function, **more)


@pytest.mark.slow
def test_mass_beyond_the_numbers_of_a_computer_is_no_answer():
    """Beta(0.05, 0.05): a sixth of one side lies closer to 1 than a double can say; the truth is 2.1796."""
    ends = [Model({"p": dist.Beta(a, a)}, lambda p: 20 * jnp.log(p["p"])) for a in (1.0, 0.05)]
    result = compare(*ends)
    assert result.verdict == "do not use"
    assert any("edge of the support of p" in reason for reason in result.reasons)


def test_models_that_differ_by_a_constant():
    result = compare(model(), model(function=lambda p: likelihood(p) - 1))
    assert result.log_bayes_factor.value == pytest.approx(-1, abs=1e-9)
    assert result.verdict == "trustworthy", result.reasons


def test_both_priors_of_a_name_that_is_not_shared_are_told():
    pair = model(), model(dist.Normal(3.0, 10.0))
    result = compare(*pair, share=[], target_se=0.1)
    assert result.about["tempered_priors"] == {"mu": ("Normal(0, 1)", "Normal(3, 10)")}
    assert "mu ~ Normal(0, 1) in M1, Normal(3, 10) in M2" in " ".join(str(result).split())


@pytest.fixture(scope="module")
def refused():
    """Draws of other data: no answer."""
    draws = tuple(lines.posterior(k, np.random.default_rng(k), y=lines.Y + k) for k in (0, 1))
    return compare(*lines.in_numpyro(), draws=draws, log_prior_odds=np.log(3))


def test_do_not_use_hides_the_number(refused):
    assert refused.verdict == "do not use" and refused.reasons
    hidden = refused.log_bayes_factor
    assert np.isnan(hidden.value) and hidden.error == np.inf and hidden.name == "mbar"
    assert np.isnan(refused.log_posterior_odds) and np.isnan(refused.probability)
    assert np.isfinite(refused.raw_estimate.value) and np.isfinite(refused.raw_estimate.error)
    weak = refused._replace(verdict="weak")
    assert weak.log_bayes_factor == weak.raw_estimate == refused.raw_estimate
    assert weak.log_posterior_odds == pytest.approx(refused.raw_estimate.value + np.log(3))
    assert weak.probability == pytest.approx(1 / (1 + np.exp(-weak.log_posterior_odds)))


def test_a_result_says_what_it_was_made_of(refused):
    assert refused.about["method"] == "auto" and refused.about["estimator"] == "mbar"
    assert refused.about["seed"] == 0 and refused.about["seconds"] > 0
    assert refused.about["priors"] == {"mu": "Normal(0, 1)", "b": "Normal(0, 1)"}
    assert set(refused.draws[0]) == {"mu"} and set(refused.draws[1]) == {"mu", "b"}
    assert refused.posteriors["M2/posterior"]["b"].dims[:2] == ("chain", "draw")


def test_precision_is_not_left_switched(refused):
    assert not jax.config.jax_enable_x64
    assert refused.legs[0].forward.log_ratio.dtype == np.float64
    draws = crossfade.sample(lines.in_numpyro()[0], n_draws=25, n_chains=4)
    assert draws.u.dtype == np.float64 and not jax.config.jax_enable_x64


def test_evidence_takes_draws_and_is_exact():
    draws = lines.posterior(1, np.random.default_rng(5))
    found = evidence(lines.in_numpyro()[1], draws=draws)
    exact = scipy.stats.multivariate_normal(np.zeros(20), np.eye(20) + lines.DESIGNS[1] @ lines.DESIGNS[1].T)
    assert found.verdict == "trustworthy", found.reasons
    assert_estimate(found.log_bayes_factor, exact.logpdf(lines.Y), max_error=0.05)


def test_arguments_of_other_methods_are_refused():
    m1, m2 = lines.in_numpyro()
    for settings, message in (
        ({"n_iter": 100}, "n_iter= is for the methods of the table"),
        ({"kernel": lambda a, b: None}, "kernel= is for the methods of the table"),
        ({"method": "MBAR", "target_se": 0.1}, 'target_se= is for method="auto"'),
        ({"method": "MBAR", "draws": (None, None)}, 'draws= is for method="auto"'),
    ):
        with pytest.raises(CrossfadeError, match=message):
            compare(m1, m2, **settings)


def test_data_that_differ_are_refused():
    other = Model({"mu": dist.Normal(0.0, 1.0)}, likelihood, data=np.append(Y, 1.0))
    for method in ("auto", "NETI-DIFF"):
        with pytest.raises(CrossfadeError, match=r"M1 has 5 responses and M2 has 6, and 1.0 is in M2 only"):
            compare(model(data=Y), other, method=method)


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


def test_a_run_can_be_stepped_by_hand():
    pair = model(), model(dist.Normal(0.0, 3.0))
    run = crossfade.begin(*pair, target_se=0.02, seed=3)
    while not run.finished:
        run = crossfade.step(run)
    by_hand, at_once = crossfade.result_of(run), compare(*pair, target_se=0.02, seed=3)
    assert by_hand.raw_estimate == at_once.raw_estimate and by_hand.verdict == at_once.verdict
    with pytest.raises(CrossfadeError, match="target_se"):
        crossfade.begin(*pair, target_se=-1.0)


def in_numpyro(y, sd):
    mu = numpyro.sample("mu", dist.Normal(0.0, sd))
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)


def in_pymc(y, sd):
    with pymc.Model() as made:
        mu = pymc.Normal("mu", 0, sd)
        pymc.Normal("y", mu, 1, observed=y)
    return made


def log_evidence(sd):
    return scipy.stats.multivariate_normal(np.zeros(len(Y)), np.eye(len(Y)) + sd**2).logpdf(Y)


def test_raw_models_of_two_libraries_are_compared():
    result = compare((in_numpyro, Y, 1.0), in_pymc(Y, 3.0), target_se=0.02)
    truth = log_evidence(3.0) - log_evidence(1.0)
    assert result.verdict == "trustworthy", result.reasons
    assert result.about["priors"]["mu"].startswith("Normal(0, 3")
    assert_estimate(result.log_bayes_factor, truth, max_error=0.02)
    with pytest.raises(AssertionError):
        assert_estimate(result.log_bayes_factor, truth + np.log(3), max_error=0.02)


def test_all_questions_take_raw_models():
    raw = (in_numpyro, Y, 1.0)
    assert_estimate(evidence(raw, target_se=0.02).log_bayes_factor, log_evidence(1.0), max_error=0.02)
    assert crossfade.sample(raw, n_draws=25, n_chains=4).u.shape == (4, 25, 1)
    assert not crossfade.begin(raw, in_pymc(Y, 3.0)).finished
    with pytest.raises(CrossfadeError, match="M2: in_numpyro cannot be called with the 1 argument given"):
        crossfade.begin(raw, (in_numpyro, Y))
    with pytest.raises(CrossfadeError, match="M1 has 5 responses and M2 has 6"):
        compare(raw, in_pymc(np.append(Y, 1.0), 3.0))


@pytest.mark.slow
def test_the_doctor_takes_raw_models():
    found = crossfade.check((in_numpyro, Y, 1.0), in_pymc(Y, 3.0))
    assert all(finding.ok for finding in found.findings), found


POINT = np.array([0.3, -0.2, 0.9, 1.4, 0.1])


def exact_point_null():
    """M2: the mean is N(0, 1); M1: it is 0; noise of sd 1."""
    n, total = len(POINT), POINT.sum()
    return -0.5 * np.log(1 + n) + 0.5 * total**2 / (1 + n)


def test_a_point_hypothesis_of_numpyro():
    def null(y):
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    def free(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)

    result = compare((null, POINT), (free, POINT), target_se=0.02, progress=False)
    assert result.verdict == "trustworthy"
    assert_estimate(result.log_bayes_factor, exact_point_null(), max_error=0.02)
    assert "more likely under" in result.sentence or "as likely under" in result.sentence
    swapped = compare((free, POINT), (null, POINT), target_se=0.02, progress=False)
    assert_estimate(swapped.log_bayes_factor, -exact_point_null(), max_error=0.02)
    with pytest.raises(CrossfadeError, match="different data"):
        compare((null, POINT + 1), (free, POINT), progress=False)


@pytest.mark.slow
def test_a_point_hypothesis_of_pymc():
    pm = pytest.importorskip("pymc")
    with pm.Model() as null:
        pm.Normal("y", 0, 1, observed=POINT)
    with pm.Model() as free:
        pm.Normal("y", pm.Normal("mu", 0, 1), 1, observed=POINT)
    result = compare(null, free, target_se=0.02, progress=False)
    assert_estimate(result.log_bayes_factor, exact_point_null(), max_error=0.02)


def test_an_evidence_is_called_one():
    result = evidence(
        Model({"mu": dist.Normal(0, 1)}, lambda theta: dist.Normal(theta["mu"], 1).log_prob(POINT).sum(), data=POINT),
        progress=False,
    )
    assert "log evidence" in str(result) and "p(M2 | data)" not in str(result) and "only in M2" not in str(result)
    assert len(repr(result)) < 200


def test_responses_in_another_order_are_noted():
    def model(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)

    def wide(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 3)), 1), obs=y)

    result = compare((model, POINT), (wide, POINT[::-1].copy()), target_se=0.05, progress=False)
    assert any("in another order" in note for note in result.about["notes"])


@pytest.mark.parametrize("hint", [{"exchangeable": ["a"]}, {"discontinuous": ["a"]}, {"route": "path"}])
def test_what_a_method_of_the_table_would_not_do_is_refused(hint):
    a = crossfade.Model({"a": dist.Normal(0.0, 1.0)}, lambda p: -(p["a"] ** 2))
    with pytest.raises(CrossfadeError, match=f'{next(iter(hint))}= is for method="auto"'):
        crossfade.compare(a, a, method="BAR", n_iter=200, **hint)


@pytest.mark.parametrize("n_iter", [200.0, 0])
def test_iterations_are_a_number_of_them(n_iter):
    a = crossfade.Model({"a": dist.Normal(0.0, 1.0)}, lambda p: -(p["a"] ** 2))
    with pytest.raises(CrossfadeError, match="n_iter = "):
        crossfade.compare(a, a, method="BAR", n_iter=n_iter)
