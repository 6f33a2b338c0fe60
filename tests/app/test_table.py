"""The page a user reads: right numbers, right words, within 80 columns, never eaten by markup."""

import io
import math

import numpy as np
import pytest
from rich.console import Console

from crossfade.app.table import number, odds, probability, report, with_error
from crossfade.types import Estimate, Result, Sharing


def result(value=8.8571, **changes) -> Result:
    run = Result(
        log_bayes_factor=Estimate(value, 0.0081, 15.0, "trapezoid"),
        opinions={"jarzynski": Estimate(8.86, 0.01, 15.0), "corrected_trapezoid": Estimate(8.9, 0.02, 15.0)},
        hysteresis=Estimate(-0.01, 0.02, 30.0, "hysteresis"),
        warnings=(),
        legs=(),
        sharing=Sharing(("Intercept", "variance"), (), ("group[T.b]", "np.log(x)"), ()),
        about={
            "method": "NETI-DIFF",
            "n_iter": 64000,
            "n_chains": 16,
            "seed": 0,
            "seconds": 12.34,
            "log_prior_odds": 0.0,
        },
        differences={
            "jarzynski": Estimate(0.003, 0.002, 15.0),
            "corrected_trapezoid": Estimate(0.04, 0.02, 15.0),
        },
    )
    return run._replace(**changes)


def page(run: Result, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(report(run))
    return out.getvalue()


def test_the_answer_in_all_its_forms():
    text = page(result())
    for expected in (
        "8.8571 ± 0.0081 of M2 over M1 (trapezoid)",
        "8.8398 to 8.8744",  # t with 15 degrees of freedom: 2.131 standard errors
        "3.8466",
        "7,024 : 1 for M2",
        "0.9999, if both were equally likely before",
        "+1.5 sigma",
        "+2.0 sigma",
        "-0.010 ± 0.020",
        "-0.5 sigma",
        "64,000 iterations x 16 chains, seed 0, 12.3 s",
    ):
        assert expected in text, expected


def test_what_is_shared_and_names_with_brackets():
    text = page(result())
    assert "Intercept, variance" in text
    assert "group[T.b], np.log(x)" in text
    assert "nothing" in text  # only in M1
    assert "tempered" not in text
    assert "tempered          Intercept" in page(
        result(sharing=Sharing(("Intercept",), ("x",), ("z",), ("Intercept",)))
    )


def test_priors_stated_or_listed():
    assert "coefficients ~ N(0, 1)" in page(
        result(about={"prior": "coefficients ~ N(0, 1)", "priors": {"x": "N(9, 9)"}})
    )
    assert "x ~ N(0, 2); z ~ N(1, 3)" in page(result(about={"priors": {"x": "N(0, 2)", "z": "N(1, 3)"}}))


def test_prior_odds_are_shown_and_used():
    text = page(result(value=1.0, about={"log_prior_odds": math.log(1 / 9)}))
    assert "9.0 : 1 for M1" in text
    assert "posterior odds    3.3 : 1 for M1" in text
    assert f"{1 / (1 + 9 / math.e):.4f}" in text
    assert "equally likely" not in text


def test_warnings_stand_out():
    text = page(result(warnings=("the chains lag behind the path", "second")))
    assert "Warning: do not rely on this answer yet" in text
    assert "- the chains lag behind the path" in text and "- second" in text
    assert "Warning" not in page(result())


@pytest.mark.parametrize("width", [80, 100])
def test_lines_fit(width):
    long = result(
        warnings=("a long warning " * 20,),
        sharing=Sharing(tuple(f"parameter_{i}" for i in range(30)), (), (), ()),
        about={"M1": "y ~ " + " + ".join(f"x{i}" for i in range(40)), "prior": "a very long prior " * 10},
    )
    assert max(len(line) for line in page(long, width).splitlines()) <= width


def test_nothing_optional_is_needed():
    bare = result(opinions={}, differences={}, hysteresis=None, about={}, sharing=Sharing((), (), (), ()))
    assert "Second opinions" not in page(bare)


def test_a_run_without_the_way_back_says_so():
    assert "not known, because the run back was not finished" in " ".join(page(result(hysteresis=None)).split())


def test_number_follows_the_error():
    assert number(8.85712, 0.0081) == "8.8571"
    assert number(1234.5, 12.0) == "1234"
    assert number(0.5, float("nan")) == "0.5000"
    assert with_error(Estimate(-2.62501, 0.00312, 7.0)) == "-2.6250 ± 0.0031"
    assert with_error(Estimate(0.0, 0.0, 7.0)) == "0.0000 ± 0.0000"


@pytest.mark.parametrize(
    ("log_odds", "expected"),
    [
        (0.0, "1.0 : 1 for M2"),
        (math.log(3.25), "3.2 : 1 for M2"),
        (-math.log(3.25), "3.2 : 1 for M1"),
        (8.8571, "7,024 : 1 for M2"),
        (62.27758, "1.1 x 10^27 : 1 for M2"),
        (-5000.0, "3.0 x 10^2171 : 1 for M1"),
    ],
)
def test_odds(log_odds, expected):
    assert odds(log_odds) == expected


@pytest.mark.parametrize(
    ("log_odds", "expected"),
    [
        (0.0, "0.5000"),
        (-2.625, "0.0675"),
        (62.2776, "1 - 9.0e-28"),
        (-5000.0, "3.4e-2172"),
        (5000.0, "1 - 3.4e-2172"),
    ],
)
def test_probability(log_odds, expected):
    assert probability(log_odds) == expected


def test_probability_agrees_with_the_result():
    for value in np.linspace(-8, 8, 9):
        assert float(probability(value)) == pytest.approx(result(value=value).probability, abs=5.1e-5)
