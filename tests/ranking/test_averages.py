"""Averages over models: of responses that formulas predict, and of functions of draws."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas
import pytest
from assertions import rng
from scipy.special import expit

from crossfade import Model
from crossfade.bridges.formula import Prior
from crossfade.ranking import averages, rank
from crossfade.ranking.terms import all_subsets, from_many_formulas, orders
from crossfade.types import CrossfadeError


@pytest.fixture(scope="module")
def table():
    random = rng(5)
    x, g = random.normal(size=60), np.repeat(["a", "b", "c"], 20)
    y = 50 + 8 * x + 3 * (g == "b") + 4 * random.normal(size=60)
    success = (random.uniform(size=60) < expit(0.4 + 0.8 * x)).astype(int)
    return pandas.DataFrame({"y": y, "x": x, "z": random.normal(size=60), "g": g, "success": success})


@pytest.fixture(scope="module")
def new():
    return pandas.DataFrame({"x": [-1.5, 0.2, 2.0], "z": [0.0, 1.0, -1.0], "g": ["b", "a", "c"]}, index=[7, 8, 9])


def by_hand(table, new, columns):
    """Mean and variance of the expected response of a conjugate regression, from the normal equations."""
    ones = {"1": lambda t: np.ones(len(t))}
    make = ones | {name: lambda t, name=name: t[name].to_numpy(float) for name in ("x", "z")}
    make |= {f"g {k}": lambda t, k=k: (t["g"] == k).to_numpy(float) for k in ("b", "c")}
    old, fresh = (np.column_stack([make[name](t) for name in columns]) for t in (table, new))
    mean, sd = old.mean(axis=0), old.std(axis=0, ddof=1)
    mean[0], sd[0] = 0, 1
    d, r = (old - mean) / sd, (fresh - mean) / sd
    y = table["y"].to_numpy()
    shift, scale = y.mean(), y.std(ddof=1)
    v = (y - shift) / scale
    h = d.T @ d + np.eye(len(columns))
    beta = np.linalg.solve(h, d.T @ v)
    shape, rate = 0.1 + len(v) / 2, 0.1 + (v @ v - beta @ h @ beta) / 2
    spread = np.einsum("ij,jk,ik->i", r, np.linalg.inv(h), r) * rate / (shape - 1)
    log_z = -np.linalg.slogdet(h)[1] / 2 - shape * np.log(rate)
    return log_z, shift + scale * (r @ beta), scale**2 * spread


def test_gaussian_predictions_to_the_digit(table, new):
    found = rank(all_subsets(table, "y ~ x + z + g"), progress=False).predict(new)
    models = [
        [*("x",) * x, *("z",) * z, *("g b", "g c") * g] for x in (False, True) for z in (False, True) for g in (0, 1)
    ]
    every = [by_hand(table, new, ["1", *own]) for own in models]
    log_z = np.array([own[0] for own in every])
    p = np.exp(log_z - log_z.max())
    p[p / p.sum() < 1e-9] = 0  # as good as nothing
    p /= p.sum()
    mean = p @ [own[1] for own in every]
    sd = np.sqrt(p @ [own[2] + own[1] ** 2 for own in every] - mean**2)
    assert found["mean"].to_numpy() == pytest.approx(mean, abs=2e-3)  # models of 1e-4 in all are left out
    assert found["sd"].to_numpy() == pytest.approx(sd, rel=2e-3)
    assert (found["error"] == 0).all() and list(found.index) == [7, 8, 9]
    best = every[int(np.argmax(log_z))][1]  # the twin: the best model alone
    assert np.abs(best - mean).max() > 0.02


def test_logistic_predictions_by_a_grid(table, new):
    """Two models of one covariate or none, their posteriors on a grid."""
    ranking = rank(from_many_formulas(table, "success ~ 1", "success ~ x", family="logistic"), progress=False)
    found = ranking.predict(new)
    x = table["x"].to_numpy()
    standard = [(own - x.mean()) / x.std(ddof=1) for own in (x, new["x"].to_numpy())]
    a, b = np.linspace(-3, 4, 401), np.linspace(-3, 6, 401)
    y = table["success"].to_numpy()

    def log_joint(a, b):
        eta = a[..., None] + b[..., None] * standard[0]
        fit = (y * eta - np.logaddexp(0, eta)).sum(axis=-1)
        return fit - (a**2 + b**2) / 200

    flat = np.exp(log_joint(a, 0 * a) + 30)
    both = np.exp(log_joint(*np.meshgrid(a, b, indexing="ij")) + 30) / np.sqrt(2 * np.pi * 100)
    z = flat.sum(), both.sum() * (b[1] - b[0])
    p = z[1] / sum(z)
    means = []
    for here in standard[1]:
        one = (expit(a) * flat).sum() / flat.sum()
        two = (expit(a[:, None] + b * here) * both).sum() / both.sum()
        means.append((1 - p) * one + p * two)
    assert (found["error"] < 0.003).all()
    assert np.abs(found["mean"] - means).max() < 4 * found["error"].max() + 1e-6
    at_the_mean = expit(ranking.average("Intercept")[0] + ranking.average("x")[0] * standard[1])
    assert np.abs(at_the_mean - means).max() > 4 * found["error"].max() + 1e-6  # the twin: the response at the mean


def test_errors_of_predictions_are_in_common(table, new, monkeypatch):
    """All models take the same random numbers: what moves the mean of each moves the average as far."""
    ranking = rank(all_subsets(table, "success ~ x + z", family="logistic"), progress=False)
    ranking = ranking._replace(left_out=np.tile(ranking.log_evidence, (16, 1)))  # weights that are known
    moved = 0.01 * rng(2).normal(size=(16, 3))

    def expected(model, rows, seed):
        mean = np.full(3, 0.1 * len(model.names))
        return averages.Moments(mean, np.ones(3)), mean + moved

    monkeypatch.setattr(averages, "_expected", expected)
    assert ranking.posterior.max() < 0.9
    assert ranking.predict(new)["error"].to_numpy() == pytest.approx(np.sqrt(15 * moved.var(axis=0)))


@pytest.mark.slow
def test_errors_of_predictions_over_seeds():
    """With the errors of 32 models taken as independent, they scatter 1.6 times as far as was stated."""
    random = rng(2)
    table = pandas.DataFrame(random.normal(size=(40, 5)), columns=list("abcde"))
    table["count"] = random.poisson(np.exp(0.5 + 0.4 * table["a"]))
    new = pandas.DataFrame(2.5 * random.normal(size=(6, 5)), columns=list("abcde"))
    ranking = rank(
        all_subsets(table, "count ~ a + b + c + d + e", family="poisson", prior=Prior(sd=0.3)), progress=False
    )
    ranking = ranking._replace(left_out=np.tile(ranking.log_evidence, (16, 1)))  # weights that are known
    runs = [ranking._replace(about={"seed": seed}).predict(new) for seed in range(24)]
    scatter = np.std([own["mean"] for own in runs], axis=0, ddof=1)
    stated = np.sqrt(np.mean([own["error"] ** 2 for own in runs], axis=0))
    assert 0.75 < np.mean(scatter / stated) < 1.3


def test_a_table_without_rows_is_predicted_to_be_one(table, new):
    for formulas, family in ((("y ~ x", "y ~ x + g"), "gaussian"), (("success ~ x", "success ~ z"), "logistic")):
        ranking = rank(from_many_formulas(table, *formulas, family=family), progress=False)
        none = ranking.predict(new[:0])
        assert list(none.columns) == ["mean", "sd", "error"] and len(none) == 0 and none.to_numpy().dtype.kind == "f"


def test_orders_and_chains_predict_too(table, new):
    exact = rank(orders(table, "y ~ x", 1, 3), progress=False).predict(new)
    straight = rank(from_many_formulas(table, "y ~ x", "y ~ x + z"), progress=False).predict(new)
    assert np.abs(exact["mean"] - straight["mean"]).max() < 3  # of 60 with a standard deviation of 9


def test_rows_that_do_not_fit_are_refused_by_name(table, new):
    ranking = rank(from_many_formulas(table, "y ~ x", "y ~ x + g"), progress=False)
    with pytest.raises(CrossfadeError, match="no column 'g'"):
        ranking.predict(new[["x"]])
    with pytest.raises(CrossfadeError, match="'z'"):
        ranking.predict(new.assign(g="z"))
    with pytest.raises(CrossfadeError, match=r"missing in the new rows: 'x' has 1 \(row 2\)"):
        ranking.predict(new.assign(x=[1.0, np.nan, 0.0]))
    with pytest.raises(CrossfadeError, match="read from a file"):
        ranking._replace(space=None).predict(new)
    with pytest.raises(CrossfadeError, match="for formulas"):  # of models that are none
        ranking._replace(space=None, network=object()).predict(new)
    with pytest.raises(CrossfadeError, match="none: rank the models by chains"):
        ranking.average(lambda theta: theta["x"])


def test_functions_of_draws_are_averaged_over_models():
    y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
    models = {
        f"sd {sd}": Model(
            {"mu": dist.Normal(0.0, sd)},
            lambda theta: jnp.sum(dist.Normal(theta["mu"], 1.0).log_prob(y)),
            data=y,
        )
        for sd in (1.0, 4.0)
    }
    ranking = rank(models, target_se=0.02, progress=False)
    mean, sd = ranking.average(lambda theta: jnp.stack([theta["mu"] ** 2, jnp.exp(theta["mu"])]))
    p, truth = [], []
    for prior in (1.0, 4.0):
        v = 1 / (1 / prior**2 + len(y))
        m = v * y.sum()
        p.append(np.exp(0.5 * np.log(v / prior**2) + m**2 / (2 * v)))
        truth.append([m**2 + v, np.exp(m + v / 2)])
    right = np.array(p) / sum(p) @ np.array(truth)
    assert np.abs(mean - right).max() < 0.05 and np.abs(np.array(truth)[0] - right).max() > 0.02 and (sd > 0.3).all()
    with pytest.raises(CrossfadeError, match=r"asks for 'nu', which 'sd \d.0' has not"):
        ranking.average(lambda theta: theta["nu"])
    with pytest.raises(CrossfadeError, match=r"none of the models can be ranked\. a: "):
        rank({"a": Model({"mu": dist.Normal(0.0, 1.0)}, lambda theta, data: 0.0), "b": 3}, progress=False)
    with pytest.raises(CrossfadeError, match="no function for model"):
        ranking.average({"sd 1.0": lambda theta: theta["mu"]})
