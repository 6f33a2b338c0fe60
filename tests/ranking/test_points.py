"""Many regressions without chains: exact, or within errors of the path, in any order to the last bit."""

import numpy as np
import pytest
from assertions import assert_estimate

from crossfade import compare
from crossfade.bridges.formula import as_model
from crossfade.data import load
from crossfade.methods.progress import quiet
from crossfade.ranking import rank
from crossfade.ranking.terms import all_subsets, from_many_formulas
from crossfade.types import CrossfadeError, Estimate
from crossfade.worlds import linear

COVARIATES = ("npreg", "glu", "bmi", "ped", "age")


@pytest.fixture(scope="module")
def pima():
    return all_subsets(load("pima"), f"y ~ {' + '.join(COVARIATES)}", family="logistic")


@pytest.fixture(scope="module")
def found(pima):
    return rank(pima, progress=False)


def test_conjugate_models_are_exact():
    models = {f"order {k}": linear.radiocarbon(k) for k in range(1, 8)}
    own = rank(models, progress=False)
    for name, log_z in zip(own.names, own.log_evidence, strict=True):
        assert log_z == pytest.approx(linear.log_evidence(models[name]), abs=1e-9)
    assert own.verdict == "trustworthy" and own.table["error"].max() == 0 and own.chance_of_winner == 1.0


def test_pima_against_pairs_computed_one_by_one(pima, found):
    assert len(found.names) == 32 and found.table["error"].max() < 0.05
    first = "y ~ npreg + glu + bmi + ped"
    assert found.names[0] == first
    for other in ("y ~ npreg + glu + bmi + ped + age", "y ~ glu + bmi", "y ~ npreg + age"):
        models = [as_model(pima.model(frozenset(name.partition("~ ")[2].split(" + ")))) for name in (first, other)]
        right = compare(*models, target_se=0.001, seed=9).log_bayes_factor
        own = found.log_bayes_factor(first, other)
        both = Estimate(own.value, float(np.hypot(own.error, right.error)), 15)
        assert_estimate(both, right.value, max_error=0.05)
        with pytest.raises(AssertionError):  # the wrong twin: a constant dropped in one model
            assert_estimate(both, right.value + np.log(2 * np.pi) / 2, max_error=0.05)


@pytest.mark.slow
def test_errors_over_seeds(pima):
    """The spread over seeds is what the errors say, for evidences and for an inclusion probability."""
    runs = [rank(pima, progress=False, seed=seed) for seed in range(12)]
    name = "y ~ glu + bmi + ped + age"
    z = [own.log_bayes_factor(runs[0].names[0], name) for own in runs]
    mean = np.mean([own.value for own in z])
    assert 0.3 < np.mean([((own.value - mean) / own.error) ** 2 for own in z]) < 2.2
    p = [own.inclusion.loc["age"] for own in runs]
    mean = np.mean([own["probability"] for own in p])
    assert 0.3 < np.mean([((own["probability"] - mean) / own["error"]) ** 2 for own in p]) < 2.2


def test_the_order_of_the_models_has_no_say(pima, found):
    space = pima.space(quiet, None)
    other = rank(dict(reversed(space.models.items())), progress=False)
    assert other.names == found.names
    np.testing.assert_array_equal(other.log_evidence, found.log_evidence)
    np.testing.assert_array_equal(other.left_out, found.left_out)


def test_a_smaller_error_takes_more_points(pima, found):
    finer = rank(pima, target_se=0.002, progress=False)
    assert finer.table["error"].max() <= 0.002 < found.table["error"].max()
    short = rank(pima, target_se=1e-5, budget="2000 draws", progress=False)
    assert short.verdict == "weak" and "2,000 draws is used up" in short.reasons[0]


def test_averages_of_coefficients(found):
    mean, sd = found.average("glu")
    assert mean == pytest.approx(1.13, abs=0.05) and 0.1 < sd < 0.2
    assert abs(found.average("age")[0]) < abs(found.average("age", given=True)[0])


def test_models_of_other_data_or_families_are_refused():
    table = load("pima")
    first = from_many_formulas(table, "y ~ glu", "y ~ bmi", family="logistic").models
    second = from_many_formulas(table, "y ~ glu", "y ~ bmi").models
    with pytest.raises(CrossfadeError, match="different families"):
        rank({**first, "other": second["y ~ glu"]}, progress=False)
    third = from_many_formulas(table[:200], "y ~ glu", "y ~ bmi", family="logistic").models
    with pytest.raises(CrossfadeError, match="of other data than"):
        rank({**first, "other": third["y ~ glu"]}, progress=False)
    with pytest.raises(CrossfadeError, match="two models or more"):
        rank({"one": first["y ~ glu"]}, progress=False)
