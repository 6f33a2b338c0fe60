"""Calibration: sound pairs pass it, a dropped constant does not, for every kind of model that makes up data."""

import numpy as np
import numpyro
import pandas
import pymc
import pytest
from assertions import rng
from numpyro import distributions as dist
from scipy.special import expit, logit

import crossfade
from crossfade import calibrate, from_formulas
from crossfade.bridges.formula import Prior
from crossfade.bridges.simulate import simulator
from crossfade.calibration import Calibration
from crossfade.density.joint import as_joint
from crossfade.types import CrossfadeError

Y = np.zeros(5)


def of(log_odds, made, prior=0.5):
    return Calibration(np.asarray(made), np.asarray(log_odds) - logit(prior), prior, ({},) * len(made))


def sound(n, offset, shift=0.0, prior=0.5):
    """Probabilities that are right, and then moved by a constant."""
    random = rng(offset)
    log_odds = random.normal(0, 2, size=n)
    return of(log_odds + shift, random.uniform(size=n) < expit(log_odds), prior)


def test_probabilities_that_are_right_pass():
    assert np.mean([sound(200, i).calibrated for i in range(60)]) > 0.96


def test_a_constant_is_seen_and_measured():
    found = sound(400, 1, shift=np.log(2 * np.pi) / 2)
    assert not found.calibrated
    assert found.offset.value == pytest.approx(np.log(2 * np.pi) / 2, abs=3 * found.offset.error)
    assert found.offset.error < 0.2


def test_errors_that_cancel_on_average_are_seen_in_bins():
    random = rng(2)
    log_odds = random.normal(0, 1, size=600)
    found = of(3 * log_odds, random.uniform(size=600) < expit(log_odds))
    assert abs(found.average.value) < 4 * found.average.error and not found.calibrated


def test_all_data_tell_the_models_apart():
    found = of([-60.0] * 15 + [60.0] * 15, [0] * 15 + [1] * 15)
    assert found.calibrated and not np.isfinite(found.offset.error)
    assert "All data sets tell the models apart" in str(found)


def test_designs():
    found = of(np.log([20.0, 5.0, 0.05, 1.0]), [1, 1, 1, 0])
    rows = found.design.set_index(["made by", "Bayes factor"])
    assert rows.loc[("M2", 3), "for it"] == pytest.approx(2 / 3)
    assert rows.loc[("M2", 10), "for it"] == pytest.approx(1 / 3)
    assert rows.loc[("M2", 10), "against it"] == pytest.approx(1 / 3)
    assert rows.loc[("M1", 3), "for it"] == 0


def table():
    random = rng(3)
    x, z = random.normal(size=(2, 25))
    return pandas.DataFrame(
        {"x": x, "z": z, "y": random.normal(size=25), "b": np.arange(25) % 2, "n": np.arange(25) % 4}
    )


@pytest.mark.parametrize(("response", "family"), [("y", "gaussian"), ("b", "logistic"), ("n", "poisson")])
def test_formulas_of_every_family(response, family, tmp_path):
    prior = Prior() if family == "gaussian" else Prior(sd=1.0)
    pair = from_formulas(table(), f"{response} ~ x", f"{response} ~ x + z", family=family, prior=prior)
    found = calibrate(*pair, n_sets=60, seed=1)
    assert found.calibrated and found.n_without_answer == 0
    found.plot(tmp_path / "calibration.png")
    assert (tmp_path / "calibration.png").stat().st_size > 10_000
    assert "Calibration: calibrated" in str(found)


def one(y, sd=1.0):
    mu = numpyro.sample("mu", dist.Normal(0, sd))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def other(y):
    mu = numpyro.sample("mu", dist.Normal(0, 3.0))
    numpyro.sample("response", dist.Normal(mu, 1), obs=y)


def in_pymc(sd):
    with pymc.Model() as model:
        mu = pymc.Normal("mu", 0, sd)
        pymc.Normal("y", mu, 1, observed=Y)
    return model


@pytest.mark.parametrize("model", [(one, Y), in_pymc(1.0)], ids=["NumPyro", "PyMC"])
def test_made_up_data_have_the_moments_of_the_model_and_are_compared(model):
    own = simulator(model, "M1")
    assert own.shapes == {"y": (5,)}
    made = np.array([own.draw(key)["y"] for key in range(400)])
    assert made.std() == pytest.approx(np.sqrt(2), abs=0.15)
    assert np.corrcoef(made.T)[0, 1] == pytest.approx(0.5, abs=0.15)
    np.testing.assert_array_equal(own.draw(7)["y"], own.draw(7)["y"])
    data = own.draw(3)
    given = as_joint(own.given(data))
    np.testing.assert_allclose(np.sort(given.data), np.sort(data["y"]), rtol=1e-6)


@pytest.mark.slow
def test_numpyro_and_pymc_pairs_are_calibrated():
    found = calibrate((one, Y), (other, Y), n_sets=60)  # the observed sites have other names
    assert found.calibrated
    assert calibrate(in_pymc(1.0), in_pymc(3.0), n_sets=60).calibrated


@pytest.mark.slow
def test_a_dropped_constant_is_caught():
    """M2 without the constant of its likelihood: log Bayes factors are off by 5/2 log(2 pi)."""

    def make(sd, constant):
        def model(y):
            def likelihood(theta):
                return dist.Normal(theta["mu"], 1.0).log_prob(y).sum() + constant

            return crossfade.Model({"mu": dist.Normal(0.0, sd)}, likelihood, data=y)

        return model

    def simulate(sd):
        def draw(seed):
            random = np.random.default_rng(seed)
            return random.normal(random.normal(0, sd), 1, size=5)

        return draw

    simulators = (simulate(1.0), simulate(3.0))
    right = calibrate(make(1.0, 0.0), make(3.0, 0.0), simulate=simulators, n_sets=80)
    wrong = calibrate(make(1.0, 0.0), make(3.0, 2.5 * np.log(2 * np.pi)), simulate=simulators, n_sets=80)
    assert right.calibrated and not wrong.calibrated
    assert wrong.offset.value == pytest.approx(2.5 * np.log(2 * np.pi), abs=4 * wrong.offset.error)


def test_a_run_goes_on_from_its_rows(tmp_path):
    pair = from_formulas(table(), "y ~ x", "y ~ x + z")
    whole = calibrate(*pair, n_sets=25, out=tmp_path / "rows.csv")
    assert len(pandas.read_csv(tmp_path / "rows.csv")) == 25
    again = calibrate(*pair, n_sets=25)
    np.testing.assert_array_equal(whole.log_bayes_factor, again.log_bayes_factor)


def test_rows_of_another_pair_are_not_taken(tmp_path):
    out = tmp_path / "rows.csv"

    def asked(sd):
        table = pandas.DataFrame({"x": np.linspace(-1, 1, 12), "y": np.arange(12) % 5.0})
        pair = from_formulas(table, "y ~ 1", "y ~ x", prior=Prior(precision=1 / sd**2))
        return calibrate(*pair, n_sets=20, out=out, progress=False)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("crossfade.many.Many.save", killed)
        with pytest.raises(KeyboardInterrupt):
            asked(1.0)
    with pytest.raises(CrossfadeError, match="holds another run: models was"):
        asked(3.0)
    asked(1.0)


def killed(*_):
    raise KeyboardInterrupt


def test_what_cannot_be_calibrated_is_refused():
    pair = from_formulas(table(), "y ~ x", "y ~ x + z")
    with pytest.raises(CrossfadeError, match="at least 20"):
        calibrate(*pair, n_sets=5)
    with pytest.raises(CrossfadeError, match="between 0 and 1"):
        calibrate(*pair, prior=1.0)
    with pytest.raises(CrossfadeError, match="cannot make up data"):
        calibrate(crossfade.from_numpyro(one, Y), crossfade.from_numpyro(other, Y))
    with pytest.raises(CrossfadeError, match="have shape"):
        calibrate((one, Y), (other, np.zeros(7)))
    with pytest.raises(CrossfadeError, match="functions of the data"):
        calibrate(*pair, simulate=(None, None))

    def factored(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.factor("f", -mu * np.sum(y))

    with pytest.raises(CrossfadeError, match=r"numpyro\.factor 'f' has no distribution"):
        calibrate((factored, Y), (one, Y))
