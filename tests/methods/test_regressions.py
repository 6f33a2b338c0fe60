"""Two regressions without chains: the routes, their words, and what they hand on."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
from assertions import assert_estimate

from crossfade import compare, from_formulas, load, prior_sensitivity
from crossfade.bridges.formula import Prior, designs, regressions
from crossfade.data import load as data
from crossfade.density.model import Model
from crossfade.density.regression import Regression, regression_of
from crossfade.methods.budget import Asked
from crossfade.methods.coupled import around_mode
from crossfade.methods.regressions import CLOSED, COUPLED, by_regression, without_chains
from crossfade.types import CrossfadeError
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic, poisson
from crossfade.worlds.glm.laplace import mode_and_curvature

PIMA = -2.625013


def answer(pair, target_se=0.05, seed=0, **limits):
    return by_regression(*pair, Asked(target_se, **limits), seed=seed)


def pima():
    return tuple(regression_of(model) for model in logistic.pima())


def test_pima_by_importance_sampling(tmp_path):
    result = compare(*logistic.pima(), seed=1)
    result.save(tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").log_bayes_factor == result.log_bayes_factor
    assert result.about["route"] == COUPLED and result.verdict == "trustworthy"
    assert_estimate(result.log_bayes_factor, PIMA, max_error=0.003)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(result.log_bayes_factor, PIMA + 0.01, max_error=0.003)
    assert result.sharing.only_2 == ("age",) and not result.sharing.tempered


@pytest.mark.slow
def test_pima_over_seeds():
    z = []
    for seed in range(25):
        estimate = answer(pima(), seed=seed).raw_estimate
        z.append((estimate.value - PIMA) / estimate.error)
    assert 0.4 < np.mean(np.square(z)) < 1.6


@pytest.mark.slow
def test_posteriors_are_those_of_the_chains():
    quick, path = (compare(*logistic.pima(), route=route, progress=False) for route in ("auto", "path"))
    assert path.legs and not quick.legs
    for model in ("M1", "M2"):
        ours, theirs = (result.posteriors[model]["posterior"] for result in (quick, path))
        assert set(ours) == set(theirs)
        for name in ours:
            sd = float(theirs[name].std())
            assert float(ours[name].mean()) == pytest.approx(float(theirs[name].mean()), abs=0.12 * sd)
            assert float(ours[name].std()) == pytest.approx(sd, rel=0.12)


def test_radiata_in_closed_form(tmp_path):
    result = compare(*linear.radiata())
    assert result.about["route"] == CLOSED and result.verdict == "trustworthy"
    assert result.log_bayes_factor.error == 0
    assert result.log_bayes_factor.value == pytest.approx(8.857108, abs=5e-7)
    text = str(result)
    assert "8.857108 of M2 over M1" in text and "exact" in text and "±" not in text
    result.save(tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").log_bayes_factor == result.log_bayes_factor


def test_sensitivity_goes_on_from_a_closed_form():
    m1, m2 = linear.radiata()
    curve = prior_sensitivity(m1, m2, compare(m1, m2), "x", factors=[0.8, 1.25])
    for factor, estimate in zip(curve.factors, curve.estimates, strict=True):
        scaled = regression_of(m1)
        where = np.array([name == "x" for name in scaled.names])
        changed = scaled._replace(precision=scaled.precision / np.where(where, factor**2, 1.0))
        exact = regression_of(m2).log_evidence() - changed.log_evidence()
        assert_estimate(estimate, exact, n_sigma=5, max_error=0.02)


@pytest.mark.slow
def test_what_asks_for_chains_gets_them():
    m1, m2 = linear.radiata()
    assert compare(m1, m2, n_chains=16, progress=False).legs
    with pytest.raises(CrossfadeError, match="unknown route 'quick': choose one of auto, path"):
        compare(m1, m2, route="quick")


def test_other_data_are_refused():
    m1, m2 = linear.radiata()
    own = regression_of(m2)
    with pytest.raises(CrossfadeError, match="different data"):
        compare(m1, own._replace(y=own.y + 1.0))


def table(n, seed, effect=0.5):
    random = np.random.default_rng(seed)
    x, z = random.normal(size=(2, n))
    chance = 1 / (1 + np.exp(-(0.3 + effect * x)))
    return pandas.DataFrame(
        {"x": x, "z": z, "y": (random.uniform(size=n) < chance) * 1, "count": random.poisson(np.exp(0.5 + 0.3 * x))}
    )


@pytest.mark.slow
@pytest.mark.parametrize(("response", "family"), [("y", "logistic"), ("count", "poisson")])
def test_formulas_by_both_routes(response, family):
    m1, m2 = from_formulas(table(60, 3), f"{response} ~ x", f"{response} ~ x + z", family=family)
    quick = compare(m1, m2, target_se=0.01)
    path = compare(m1, m2, target_se=0.02, route="path", progress=False)
    assert quick.about["route"] == COUPLED
    gap = abs(quick.log_bayes_factor.value - path.log_bayes_factor.value)
    assert gap < 4 * np.hypot(quick.log_bayes_factor.error, path.log_bayes_factor.error)


def test_separated_responses():
    """x tells y without an error: the posterior is as wide as the prior on one side, which no mode knows."""
    rows = table(40, 4).assign(y=lambda t: (t["x"] > 0) * 1)
    pair = regressions(
        designs(rows, "y ~ x", "y ~ x + z", family="logistic", scaling="standardise"), "logistic", Prior()
    )
    found = [answer(pair, seed=seed).raw_estimate for seed in range(12)]
    truth = answer(pair, target_se=0.0015, seed=99).raw_estimate
    z = [(own.value - truth.value) / np.hypot(own.error, truth.error) for own in found]
    assert np.mean(np.square(z)) < 2.5 and max(own.error for own in found) < 0.02


def test_budgets_end_it():
    weak = answer(pima(), target_se=1e-9, max_draws=20_000)
    assert weak.verdict == "weak" and "20,000 draws is used up" in weak.reasons[0]
    weak = answer(pima(), target_se=1e-9, seconds=0.3)
    assert weak.verdict == "weak" and "the budget of 0.3 s is used up" in weak.reasons[0]


def test_the_same_seed_gives_the_same_answer_in_any_order_of_columns():
    first, second = pima()
    assert answer((first, second), seed=3).raw_estimate == answer((first, second), seed=3).raw_estimate
    order = np.array([2, 0, 1, 3, 4, 5])
    turned = second._replace(
        design=second.design[:, order],
        names=tuple(second.names[i] for i in order),
        mean=second.mean[order],
        precision=second.precision[order],
    )
    again = answer((first, turned), seed=3).raw_estimate
    assert again.value == pytest.approx(answer((first, second), seed=3).raw_estimate.value, abs=1e-9)


def test_a_heavy_tail_is_left_to_the_chains(monkeypatch):
    monkeypatch.setattr("crossfade.methods.regressions.PARETO_K", -np.inf)
    assert "heavy tail" in answer(pima())
    own = Regression("poisson", np.array([1.0, 2.0, 3.0]), np.ones((3, 1)), ("a",), np.zeros(1), np.ones(1))
    result = compare(own, own._replace(mean=np.ones(1)), progress=False)
    assert result.legs and "heavy tail" in result.about["notes"][-1]


def test_formulas_need_no_jax(tmp_path):
    path = tmp_path / "pima.csv"
    data("pima").to_csv(path, index=False)
    code = (
        "import sys\n"
        "from crossfade.app.cli import app\n"
        f"app(['compare', {str(path)!r}, 'y ~ glu', 'y ~ glu + age', '--family', 'logistic'], standalone_mode=False)\n"
        "assert not {'jax', 'equinox', 'numpyro'} & set(sys.modules), 'JAX was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "importance sampling" in done.stdout


def test_a_regression_is_a_model():
    own = Regression("poisson", np.array([1.0, 2.0, 3.0]), np.ones((3, 1)), ("a",), np.zeros(1), np.ones(1))
    other = own._replace(mean=np.ones(1))
    result = compare(own, other, route="path", progress=False)
    quick = compare(own, other)
    assert result.legs and quick.sharing.tempered == ("a",)
    gap = abs(quick.log_bayes_factor.value - result.log_bayes_factor.value)
    assert gap < 4 * np.hypot(quick.log_bayes_factor.error, result.log_bayes_factor.error)


def test_bad_settings_are_named_without_chains_too():
    for settings, words in (({"seed": -1}, "seed = -1"), ({"log_prior_odds": np.nan}, "log_prior_odds = nan")):
        with pytest.raises(CrossfadeError, match=words):
            without_chains(*pima(), settings)
    assert without_chains(*pima(), {"share": []}) == ""  # to share nothing is to ask for a path


def test_nearly_collinear_powers_of_a_year():
    """The inverse of their curvature is lost in rounding: its root was an error, or no root at all, by machine."""
    year = np.arange(1960.0, 2020.0)
    y = (np.random.default_rng(1).uniform(size=60) < 0.5) * 1.0
    own = Regression("logistic", y, year[:, None] ** np.arange(5), tuple("abcde"), np.zeros(5), np.full(5, 0.01))
    mode, curvature = own.mode_and_curvature()
    root = around_mode(mode, curvature).root
    np.testing.assert_allclose(root.T @ curvature @ root, np.eye(5), atol=1e-3)
    assert np.array_equal(root, np.tril(root))
    # the twin, by way of the inverse: which of the two it is depends on the machine
    try:
        lost = np.linalg.cholesky(np.linalg.inv(curvature))
        assert np.abs(lost.T @ curvature @ lost - np.eye(5)).max() > 1
    except np.linalg.LinAlgError:
        pass
    assert answer((own.taken([0, 1]), own)).verdict == "trustworthy"


@pytest.mark.parametrize("world", [logistic, poisson])
def test_priors_in_another_order_are_the_same_model(world):
    random = np.random.default_rng(1)
    x = random.normal(3, 1, size=40)
    y = (random.uniform(size=40) < 1 / (1 + np.exp(3 - x))) * 1.0
    sd = np.array([10.0, 0.1])
    model = world.model(y, np.column_stack([np.ones(40), x]), ("one", "x"), prior_sd=sd)
    turned = Model(dict(reversed(model.priors.items())), model.log_likelihood, model.kernel, model.data)
    assert turned.names == ("x", "one")
    assert answer((regression_of(model), regression_of(turned))).log_bayes_factor[:2] == (0.0, 0.0)
    (mode, curvature), (mode_turned, curvature_turned) = map(mode_and_curvature, (model, turned))
    np.testing.assert_array_equal(mode, mode_turned[::-1])
    np.testing.assert_allclose(curvature, curvature_turned[::-1, ::-1])
    more = Model({**model.priors, "z": model.priors["x"]}, model.log_likelihood, model.kernel, model.data)
    assert regression_of(more) is None
