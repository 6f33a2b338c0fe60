"""Many models sampled once each: exact answers along trees, stars and chains, ways round, models that fail."""

import jax.numpy as jnp
import numpy as np
import numpyro
import pandas
import pytest
from assertions import assert_estimate
from lines import DESIGNS, X, Y, _level, in_numpyro, posterior
from numpyro import distributions as dist
from scipy import stats

from crossfade.bridges.formula import as_model
from crossfade.bridges.numpyro import from_numpyro
from crossfade.density.model import Model
from crossfade.ranking import rank
from crossfade.ranking.network import spanning
from crossfade.ranking.terms import from_many_formulas
from crossfade.types import CrossfadeError

FEATURES = {"level": DESIGNS[0], "line": DESIGNS[1], "curve": np.column_stack([np.ones(20), X, X**2])}
NAMES = ("mu", "b", "c")


def model(design, y=Y):
    names = NAMES[: design.shape[1]]

    def likelihood(p):
        return dist.Normal(jnp.stack([p[name] for name in names]) @ design.T, 1.0).log_prob(y).sum()

    return Model({name: dist.Normal(0.0, 1.0) for name in names}, likelihood)


MODELS = {name: model(design) for name, design in FEATURES.items()}
EXACT = {
    name: float(stats.multivariate_normal(np.zeros(20), np.eye(20) + design @ design.T).logpdf(Y))
    for name, design in FEATURES.items()
}


@pytest.fixture(scope="module")
def found():
    return rank(MODELS, n_chains=16, progress=False)


def assert_right(ranking, names=tuple(FEATURES)):
    for name in names:
        own = ranking.log_bayes_factor(ranking.names[0], name)
        assert_estimate(own, EXACT[name] - EXACT[ranking.names[0]], max_error=0.05)
        with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
            assert_estimate(
                own._replace(value=own.value + np.log(2)), EXACT[name] - EXACT[ranking.names[0]], max_error=0.05
            )


def test_three_models_along_a_tree(found):
    assert_right(found)
    assert found.verdict == "trustworthy", found.reasons
    assert len(found.about["tree"]) == 2 and len(found.closure) == 1
    residual = found.closure[0].residual
    assert abs(residual.value) < 4 * residual.error + 1e-9 and residual.error < 0.05
    mean, _ = found.average("mu")
    assert np.isfinite(mean)


@pytest.mark.parametrize("n_chains", [4, 6])
def test_few_chains(n_chains):
    """Halves of two or three chains make as many groups."""
    own = rank({name: MODELS[name] for name in ("level", "line")}, n_chains=n_chains, progress=False)
    assert own.left_out.shape == (n_chains, 2)
    exact = EXACT["line"] - EXACT["level"]
    assert_estimate(own.log_bayes_factor("level", "line"), exact, max_error=0.05)


def test_a_model_added_to_formulas():
    table = pandas.DataFrame({"y": Y, "x": X, "z": X**2})
    space = from_many_formulas(table, "y ~ 1", "y ~ x", "y ~ z")
    extra = as_model(space.models["y ~ z"])
    two = space._replace(models={name: space.models[name] for name in ("y ~ 1", "y ~ x")})
    own = rank(two, route="path", n_chains=8, target_se=0.2, prior="size", progress=False)
    with pytest.raises(CrossfadeError, match=r"counts terms, and those of 'extra' are not known: add it to .*uniform"):
        own.with_model("extra", extra, progress=False)
    with pytest.raises(CrossfadeError, match=r"weights by name, and that of 'extra' is not known: add it to .*uniform"):
        own.with_prior({"y ~ 1": 1.0}).with_model("extra", extra, progress=False)
    more = own.with_prior("uniform").with_model("extra", extra, progress=False)
    assert sorted(more.names) == ["extra", "y ~ 1", "y ~ x"] and more.terms == ()
    exact = rank(space, progress=False).log_bayes_factor("y ~ 1", "y ~ z").value
    assert_estimate(more.log_bayes_factor("y ~ 1", "extra"), exact, max_error=0.3)
    with pytest.raises(CrossfadeError, match="'extra' was added later and is no formula"):
        more.predict(table[:2])
    assert more.without("extra").predict(table[:2])["mean"].notna().all()
    assert more.with_prior({"extra": 1.0, "y ~ 1": 1.0}).probabilities["y ~ x"].value == 0


@pytest.mark.slow
def test_the_order_of_the_models_has_no_say(found):
    other = rank(dict(reversed(MODELS.items())), n_chains=16, progress=False)
    assert other.names == found.names
    np.testing.assert_array_equal(other.log_evidence, found.log_evidence)
    np.testing.assert_array_equal(other.left_out, found.left_out)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["star", "chain"])
def test_other_designs(design):
    own = rank(MODELS, n_chains=16, design=design, reference="line" if design == "star" else None, progress=False)
    assert_right(own)
    assert own.about["tree"] == ["curve | line", "level | line"] and own.closure == ()


@pytest.mark.slow
def test_evidences_with_the_model_of_nothing():
    own = rank(MODELS, n_chains=16, evidence=True, progress=False)
    assert set(own.names) == set(MODELS) and own.about["absolute"]
    for name, log_z in zip(own.names, own.log_evidence, strict=True):
        assert log_z == pytest.approx(EXACT[name], abs=0.1)


@pytest.mark.slow
def test_models_that_fail_are_named_and_the_rest_stands(found):
    def broken(p):
        return jnp.where(p["mu"] > 0, jnp.nan, -(p["mu"] ** 2))

    bad = Model({"mu": dist.Normal(0.0, 1.0)}, broken)
    own = rank({**MODELS, "broken": bad}, n_chains=16, progress=False)
    assert set(own.missing) == {"broken"} and "NaN" in own.missing["broken"]
    assert own.names == found.names
    np.testing.assert_array_equal(own.log_evidence, found.log_evidence)
    assert "broken" in str(own)
    with pytest.raises(CrossfadeError, match="'broken' has no answer"):
        own.log_bayes_factor("broken", "line")


@pytest.mark.slow
def test_a_model_added_and_one_taken_away(found):
    fewer = rank({name: MODELS[name] for name in ("level", "line")}, n_chains=16, progress=False)
    more = fewer.with_model("curve", MODELS["curve"], progress=False)
    assert_right(more)
    for name in ("level", "line"):  # not sampled again
        assert more.network.draws[name] is fewer.network.draws[name]
    np.testing.assert_array_equal(more.log_evidence, found.log_evidence)
    assert more.without("curve").names == fewer.names
    with pytest.raises(CrossfadeError, match="a model 'line' already"):
        more.with_model("line", MODELS["line"])
    # what was taken away does not come back, and its name is free
    finer = more.without("curve").more(0.01, progress=False)
    assert finer.names == fewer.names and sum(own.value for own in finer.probabilities.values()) == pytest.approx(1.0)
    again = more.without("curve").with_model("curve", MODELS["curve"], progress=False)
    np.testing.assert_array_equal(again.log_evidence, more.log_evidence)
    weighed = more.with_prior({"line": 1.0, "level": 3.0}).more(0.01, progress=False)
    assert dict(zip(weighed.names, weighed.prior, strict=True)) == {"line": 0.25, "level": 0.75, "curve": 0.0}


@pytest.mark.slow
def test_models_without_parameters_among_them():
    def null(y):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)

    def shifted(y):
        numpyro.sample("y", dist.Normal(0.5, 1.0), obs=y)

    y = np.array([0.3, -0.2, 0.9, 1.4])
    found = rank({"null": (null, y), "shifted": (shifted, y)}, progress=False)
    exact = float(np.sum(0.5 * y - 0.125))
    assert found.log_bayes_factor("null", "shifted").value == pytest.approx(exact, abs=1e-9)

    def free(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0.0, 1.0)), 1.0), obs=y)

    two = rank({"shifted": (shifted, y), "free": (free, y)}, progress=False)
    assert set(two.with_model("null", (null, y), progress=False).names) == {"null", "shifted", "free"}


@pytest.mark.slow
def test_more_goes_on_where_the_draws_stopped(found):
    finer = found.more(0.002, progress=False)
    assert finer.table["error"].max() <= 0.002 < found.table["error"].max()
    first = found.network.draws["line"].u
    np.testing.assert_array_equal(finer.network.draws["line"].u[:, : first.shape[1]], first)
    for name in FEATURES:
        own = finer.log_bayes_factor(finer.names[0], name)
        assert_estimate(own, EXACT[name] - EXACT[finer.names[0]], max_error=0.002)


@pytest.mark.slow
def test_own_draws_by_name():
    random = np.random.default_rng(4)
    own = rank(MODELS, draws={"line": posterior(1, random, shape=(16, 200))}, n_chains=16, progress=False)
    assert_right(own)
    shifted = {name: value + 1.0 for name, value in posterior(1, random, shape=(16, 200)).items()}
    assert rank(MODELS, draws={"line": shifted}, n_chains=16, progress=False).verdict == "do not use"
    with pytest.raises(CrossfadeError, match="'cubic', which is no model"):
        rank(MODELS, draws={"cubic": {}}, progress=False)


def test_models_of_other_data_are_refused():
    level, line = in_numpyro()
    with pytest.raises(CrossfadeError, match=r"line \(M1\) and other \(M2\): .*data"):
        rank({"level": level, "line": line, "other": from_numpyro(_level, Y + 1)}, progress=False)


def test_the_cheapest_tree():
    cost = {("a", "b"): 1.0, ("a", "c"): 3.0, ("b", "c"): 2.0, ("c", "d"): 5.0, ("a", "d"): 4.0}
    assert spanning("abcd", cost) == (("a", "b"), ("a", "d"), ("b", "c"))
