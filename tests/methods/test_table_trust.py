"""Ways to a confident wrong number by the table's methods, each closed by a refusal, a verdict or a right answer."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from assertions import assert_estimate, rng
from linear_pairs import log_evidence_of_data
from numpyro.distributions.constraints import real
from scipy import integrate, stats

from crossfade.analysis.errors import jackknife, replicates_of
from crossfade.analysis.estimators import bar, mbar
from crossfade.api import compare
from crossfade.density.coordinates import coordinates
from crossfade.density.model import Model
from crossfade.density.precision import float64
from crossfade.methods.table import METHODS
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, Score, anneal, chain_keys
from crossfade.sampling.kernel import Diagonal, Metropolis
from crossfade.sampling.ladder import sigmoid
from crossfade.sampling.pencil import pencil
from crossfade.types import CrossfadeError, NoAnswer, Trace
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic


def walk(**sd):
    return lambda a, b: Metropolis(Diagonal({name: np.asarray(value) for name, value in sd.items()}))


def test_data_that_a_function_reads_may_change_between_runs():
    data = {"y": np.array([0.3, -0.2, 0.9, 1.4, 0.1])}

    def with_sd(sd):
        return Model({"mu": dist.Normal(0.0, 1.0)}, lambda p: dist.Normal(p["mu"], sd).log_prob(data["y"]).sum())

    m1, m2 = with_sd(1.0), with_sd(2.0)

    def truth():
        y = data["y"]
        cov = [np.eye(5) * sd**2 + 1 for sd in (1.0, 2.0)]
        first, second = (stats.multivariate_normal.logpdf(y, np.zeros(5), c) for c in cov)
        return second - first

    before = truth()
    assert_estimate(
        compare(m1, m2, method="NETI-DIFF", n_iter=2000, kernel=walk(mu=1.0)).log_bayes_factor, before, max_error=0.03
    )
    data["y"] = 4 * data["y"]
    after = truth()
    assert abs(after - before) > 3
    assert_estimate(
        compare(m1, m2, method="NETI-DIFF", n_iter=2000, kernel=walk(mu=1.0)).log_bayes_factor, after, max_error=0.2
    )


def test_a_prior_that_is_not_normal_is_not_taken_for_one():
    y, x = rng(0).normal(size=(2, 10))
    design = np.column_stack([np.ones(10), x])
    m1 = linear.model(y, design[:, :1], ("i",), noise=0.25, scaled=False)
    m2 = linear.model(y, design, ("i", "x"), noise=0.25, scaled=False)
    laplace = Model({**m2.priors, "x": dist.Laplace(0.0, 0.2)}, m2.log_likelihood, m2.kernel, m2.data)
    with pytest.raises(CrossfadeError, match=r"Laplace\(0, 0.2\).*Normal"):
        compare(m1, laplace, method="NETI-DIFF", n_iter=500)
    free = linear.model(y, design, ("i", "x"))
    other = Model({**free.priors, "variance": dist.Gamma(1.0, 1.0)}, free.log_likelihood, free.kernel, free.data)
    with pytest.raises(CrossfadeError, match="InverseGamma only"):
        linear.gibbs(other, free)
    p1, p2 = logistic.pima()
    bent = Model({**p2.priors, "age": dist.Laplace(0.0, 1.0)}, p2.log_likelihood, p2.kernel, p2.data)
    with pytest.raises(CrossfadeError, match="Laplace"):
        logistic.hmc(p1, bent)


def boundary_pair():
    """s >= 0 with a prior that does not vanish at 0, and data that pull it there."""

    def with_sd(sd):
        return Model({"s": dist.HalfNormal(1.0)}, lambda p: 4 * dist.Normal(p["s"], sd).log_prob(0.2))

    def log_evidence(sd):
        def joint(s):
            return 2 * stats.norm.pdf(s) * stats.norm.pdf(0.2, s, sd) ** 4

        return np.log(integrate.quad(joint, 0, 20)[0])

    return with_sd(1.0), with_sd(0.6), log_evidence(0.6) - log_evidence(1.0)


@pytest.mark.slow
def test_control_variates_hold_at_a_boundary():
    m1, m2, truth = boundary_pair()
    row = METHODS["CTI-DIFF"]._replace(n_rungs=20)
    result = compare(m1, m2, method=row, n_iter=4000, kernel=walk(s=0.8))
    assert_estimate(result.log_bayes_factor, truth, max_error=0.005)
    # the wrong twin: in the constrained coordinate Stein's identity fails
    with float64():
        keys = chain_keys(jax.random.key(0), 16)
        path, kernel = direct(m1, m2), walk(s=0.8)(m1, m2)
        naked = Score(coordinates({"s": ((), real)}))
        trace, _ = anneal(path, kernel, sigmoid(20), keys, schedule=Schedule(200, 40), observe=naked)
    wrong = replicates_of(trace, "controlled").estimate()
    with pytest.raises(AssertionError):
        assert_estimate(wrong, truth, max_error=0.005)


def test_chains_that_never_move_are_noticed():
    y = 3 + rng(1).normal(size=20)

    def shifted(by):
        return Model({"mu": dist.Normal(0.0, 1.0)}, lambda p: dist.Normal(p["mu"] + by, 1.0).log_prob(y).sum())

    for step in (1e-3, 1e-5):
        result = compare(shifted(0.0), shifted(0.025), method="NETI-DIFF", n_iter=2000, kernel=walk(mu=step))
        assert result.verdict != "trustworthy" and any("independent draws" in reason for reason in result.reasons)
    moving = compare(shifted(0.0), shifted(0.025), method="NETI-DIFF", n_iter=2000, kernel=walk(mu=0.5))
    assert moving.verdict == "trustworthy", moving.reasons


def test_mbar_without_overlap_has_no_small_error():
    random = rng(2)
    tau = np.array([0.0, 0.5, 1.0])
    centre = np.array([-4000.0, 0.0, 4000.0])[None, :, None]
    ratio = centre + 60 * random.normal(size=(8, 3, 50)) + 40 * random.normal(size=(8, 3, 1))
    trace = Trace(tau, ratio, np.ones((8, 3)), True)
    by_mbar, by_bar = jackknife(trace, mbar), jackknife(trace, bar)
    assert by_mbar.error == pytest.approx(by_bar.error, rel=0.2) and by_bar.error > 1


def test_designs_that_double_precision_cannot_hold_are_refused():
    random = rng(3)
    w, x, z = random.normal(size=(3, 40))
    one = np.ones(40)

    def rows(columns):
        return np.vstack([np.column_stack(columns), np.eye(4)])

    big, zero = 1e9, np.zeros(40)
    first, second = rows([one, w, big * x, zero]), rows([one, w, zero, big * z])
    with pytest.raises(CrossfadeError, match="standardise the covariates"):
        pencil(first, second)
    modest = pencil(rows([one, w, 1e4 * x, zero]), rows([one, w, zero, 1e4 * z]))
    assert np.all(modest.values > 0)


def test_evidence_in_the_space_of_the_data_holds_at_raw_scales():
    random = rng(4)
    x = 1e4 * random.normal(size=30)
    m = linear.model(random.normal(size=30), np.column_stack([np.ones(30), x]), ("one", "x"))
    assert log_evidence_of_data(m) == pytest.approx(linear.log_evidence(m), abs=1e-6)


def interval(low, high):
    """x ~ N(0, 2) seen to lie in an interval: the evidence is its probability."""

    def log_likelihood(p):
        return jnp.where((p["x"] > low) & (p["x"] < high), 0.0, -jnp.inf)

    return Model({"x": dist.Normal(0.0, 2.0)}, log_likelihood)


def log_probability(low, high):
    return np.log(np.diff(stats.norm.cdf([low, high], scale=2.0))[0])


@pytest.mark.parametrize("second", [(0.0, 2.0), (-3.0, 4.0), (1.0, 4.0)])
@pytest.mark.parametrize("name", [pytest.param("BAR", marks=pytest.mark.slow), "MBAR"])
def test_supports_that_differ(second, name):
    """Draws of one model that are impossible under the other, either way and both ways."""
    first = (-1.0, 3.0)
    row = METHODS[name]._replace(n_rungs=3)
    result = compare(interval(*first), interval(*second), method=row, n_iter=3000, kernel=walk(x=2.0))
    truth = log_probability(*second) - log_probability(*first)
    assert_estimate(result.log_bayes_factor, truth, max_error=0.05)


@pytest.mark.slow
def test_a_likelihood_that_is_zero_where_the_prior_is_not_finds_a_start_or_says_so():
    """A start that both models exclude would be stuck there, with a ratio of -inf minus -inf."""
    trace = (
        compare(interval(2.0, 2.2), interval(2.0, 2.2), method="NETI-DIFF", n_iter=500, n_chains=8, kernel=walk(x=1.0))
        .legs[0]
        .forward
    )
    assert np.isfinite(trace.log_ratio).all()
    with pytest.raises(CrossfadeError, match="none that is possible at tau = 0"):
        compare(interval(50.0, 51.0), interval(50.0, 52.0), method="NETI-DIFF", n_iter=500, kernel=walk(x=1.0))


@pytest.mark.slow
def test_an_estimator_that_refuses_loses_no_draws():
    narrow, wide = interval(0.0, 1.0), interval(0.0, 2.0)
    with pytest.raises(NoAnswer, match="impossible at tau = 0") as refused:
        compare(narrow, wide, method="AIS", n_iter=500, kernel=walk(x=1.0))
    assert len(refused.value.legs[0].forward.tau) == 500
    result = compare(wide, narrow, method="stepping-stone", n_iter=2000, kernel=walk(x=1.0))
    assert_estimate(result.log_bayes_factor, log_probability(0, 1) - log_probability(0, 2), max_error=0.1)
    assert result.hysteresis is None  # the way back says nothing


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seed": 10**20}, "seed = 1"),
        ({"seed": -1}, "whole number from 0"),
        ({"log_prior_odds": np.nan}, "log_prior_odds = nan: give a finite number"),
        ({"kernel": Metropolis(Diagonal({"x": np.asarray(1.0)}))}, "takes a function of the two ends"),
        ({"kernel": walk(y=1.0)}, r"no step is given for \['x'\]"),
    ],
)
def test_settings_that_cannot_be(change, message):
    settings = {"method": "NETI-DIFF", "n_iter": 500, "kernel": walk(x=1.0), **change}
    with pytest.raises(CrossfadeError, match=message):
        compare(interval(0.0, 1.0), interval(0.0, 2.0), **settings)
