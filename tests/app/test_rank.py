"""`crossfade rank`: what it prints, what it writes, what it refuses."""

import json

import pytest
from command_line import run, words

from crossfade import load_ranking
from crossfade.data import load


@pytest.fixture(scope="module")
def pima(tmp_path_factory):
    path = tmp_path_factory.mktemp("rank") / "pima.csv"
    load("pima").to_csv(path, index=False)
    return path


def test_all_subsets(pima, tmp_path):
    out = tmp_path / "ranking.json"
    shown = run(
        "rank",
        pima,
        "--all-subsets",
        "y ~ glu + bmi*age",
        "--family",
        "logistic",
        "--quiet",
        "--out",
        out,
        "--report",
        tmp_path / "ranking.html",
    )
    assert shown.exit_code == 0, shown.output
    text = words(shown.stdout)
    assert "Stored in" in text and "The report is in" in text and (tmp_path / "ranking.html").stat().st_size > 10_000
    assert "TRUSTWORTHY: the best of 10 models has probability" in text
    assert "coefficients ~ N(0, sd 10)" in text and "pima.csv, 532 rows, logistic family" in text
    assert "bmi:age" in text and "log inclusion BF" in text
    kept = load_ranking(out)
    assert len(kept.names) == 10 and kept.about["scale"].startswith("covariates standardised")


def test_formulas_and_orders_and_json(pima, tmp_path):
    table = tmp_path / "table.csv"
    shown = run("rank", pima, "bmi ~ glu", "bmi ~ skin", "bmi ~ glu + skin", "--json", "--out", table)
    found = json.loads(shown.stdout)
    assert found["models"][0] == "bmi ~ skin" or found["models"][0] == "bmi ~ glu + skin"
    assert found["verdict"] == "trustworthy" and table.read_text(encoding="utf-8").startswith(
        "model,log_bayes_factor,error"
    )
    shown = run("rank", pima, "bmi ~ skin", "--orders", "0:4", "--quiet")
    assert "order 1" in shown.stdout and "orthogonal polynomials in skin" in words(shown.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["y ~ glu"], "two formulas or more"),
        (["y ~ glu", "--all-subsets", "y ~ bmi"], "takes one formula and no others"),
        (["y ~ glu", "--orders", "3"], "orders like 1:10"),
        (["y ~ glu", "y ~ sugar"], "there is no column 'sugar'"),
        (["y ~ glu", "y ~ bmi", "--model-prior", "flat"], "--model-prior flat: choose one of uniform, size"),
        (["y ~ glu", "y ~ bmi", "--out", "x.txt"], "ends in .json or .csv"),
        (["y ~ glu", "y ~ bmi", "--report", "x.pdf"], "ends in .html"),
        (["y ~ glu", "y ~ bmi", "--design", "ring"], "--design ring: choose one of tree, star, chain"),
    ],
)
def test_refused_with_a_reason(pima, arguments, said):
    shown = run("rank", pima, *arguments, "--family", "logistic", "--quiet")
    assert shown.exit_code == 2 and said in words(shown.stderr)
