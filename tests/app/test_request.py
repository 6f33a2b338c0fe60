"""Whatever is wrong about a request is said before anything is run."""

import pytest
from command_line import run, words

from crossfade.data import load

MODELS = """
import numpy as np, numpyro, numpyro.distributions as dist
y = np.array([0.3, -0.2, 0.9])
def m1():
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)
def m2():
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Uniform(-2, 2)), 1), obs=y)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table, models, and commands that would notice being run."""
    load("radiata").assign(group=[*"ab"] * 21).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "models.py").write_text(MODELS)

    def never(*_, **__):
        raise AssertionError("the run was started")

    for name in ("compare.compared", "rank.ranked", "by.compare_many"):
        monkeypatch.setattr(f"crossfade.app.{name}", never)
    monkeypatch.setattr("crossfade.doctor.check", never)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "magic"], "unknown method 'magic': choose one of auto, TI-standard, TI-optimal,"),
        (["--method", "BAR", "--target-se", "0.1"], "--target-se is for the default: leave --method out"),
        (["--method", "BAR", "--sensitivity", "x"], "--sensitivity is for the default: leave --method out"),
        (["--method", "BAR", "--dir", "run"], "--dir is for the default: leave --method out"),
        (["--n-iter", "100"], "--n-iter is for other methods: name one with --method, or leave it out"),
        (["--route", "scenic"], "unknown route 'scenic': choose one of auto, path"),
        (["--share", "x=q"], "--share x=q: M2 has no parameter 'q'; it has variance, Intercept, z"),
        (["--sensitivity", "q"], "--sensitivity q: no model has such a parameter; choose one of variance, Intercept,"),
        (["--sensitivity", "variance"], "has no scale to multiply"),
        (["--plot", "run.xyz"], "run.xyz: end the name of the picture with one of"),
        (["--plot", "nowhere/run.png"], "the folder nowhere does not exist"),
        (["--out", "run.csv"], "--out run.csv: give a name that ends in .nc"),
        (["--out", "nowhere/run.nc"], "the folder nowhere does not exist"),
        (["--target-se", "0"], "target_se = 0.0: ask for a positive standard error"),
        (["--log-prior-odds", "nan"], "log_prior_odds = nan: give a finite number"),
        (["--by", "group", "--plot", "a.png"], "--plot is for one comparison: leave it out, or leave --by out"),
        (["--by", "group", "--scaling", "zscore"], "unknown scaling 'zscore'"),
        (["--by", "group", "--prior-mean", "q=2"], "prior means name 'q', which no formula has"),
        (["--by", "group", "--route", "scenic"], "unknown route 'scenic'"),
        (["--by", "group", "--out", "table.txt"], "table.txt: a table is written as .csv, .jsonl, .parquet"),
        (["--by", "grp"], "--by grp: there is no such column in data.csv; its columns are"),
    ],
)
def test_compare(folder, options, message):
    refused = run("compare", "data.csv", "y ~ x", "y ~ z", *options)
    assert refused.exit_code == 2, refused.output
    assert message in words(refused.stderr)
    assert refused.stdout == "" and not (folder / "run").exists()


def test_compare_of_models_in_files(folder):
    pair = ("models.py:m1", "models.py:m2")
    refused = run("compare", *pair, "--sensitivity", "mu")
    assert refused.exit_code == 2 and "'mu' in M2 is Uniform(-2, 2), which has no scale" in words(refused.stderr)
    refused = run("compare", *pair, "--share", "nu", "--dir", "run")
    assert refused.exit_code == 2 and "--share nu: M1 has no parameter 'nu'; it has mu" in words(refused.stderr)
    assert not (folder / "run").exists()


def test_a_factor_stands_for_its_coefficients(folder):
    load("radiata").assign(kind=[*"ab"] * 21, site=[*"abc"] * 14).to_csv("data.csv", index=False)
    formulas = ("data.csv", "y ~ x", "y ~ x + kind + site")
    refused = run("compare", *formulas, "--sensitivity", "site")
    assert refused.exit_code == 2
    assert "--sensitivity site: 2 parameters have this name; choose one of site[T.b], site[T.c]" in words(
        refused.stderr
    )
    begun = run("compare", *formulas, "--sensitivity", "kind", "--prior-precision", "site=2")
    assert begun.exit_code == 1 and "the run was started" in words(begun.stderr)  # of one coefficient
    refused = run("compare", *formulas, "--prior-sd", "kind=2")
    assert refused.exit_code == 2 and "the gaussian family has no prior sds" in words(refused.stderr)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--design", "circle"], "--design circle: choose one of tree, star, chain"),
        (["--model-prior", "flat"], "--model-prior flat: choose one of uniform, size"),
        (["--route", "scenic"], "unknown route 'scenic'"),
        (["--top", "0"], "--top 0: show at least 1 model"),
        (["--out", "ranking.nc"], "--out ranking.nc: give a name that ends in .json or .csv"),
        (["--family", "probit", "--dir", "run"], "unknown family 'probit'"),
        (["--budget", "later"], "budget = 'later'"),
    ],
)
def test_rank(folder, options, message):
    refused = run("rank", "data.csv", "y ~ x", "y ~ z", *options)
    assert refused.exit_code == 2, refused.output
    assert message in words(refused.stderr) and not (folder / "run").exists()


def test_doctor(folder):
    refused = run("doctor", "data.csv", "y ~ x", "y ~ z", "--seed", "-1")
    assert refused.exit_code == 2 and "seed = -1: give a whole number" in words(refused.stderr)
