"""The page a user reads: right numbers, right words, nothing eaten by markup, on a terminal and in a notebook."""

import math
from html.parser import HTMLParser

import numpy as np
import pytest

from crossfade.app import html, terminal
from crossfade.app.page import NO_NUMBER, of_checkup
from crossfade.app.page import page as sections
from crossfade.app.words import number, odds, probability, with_error
from crossfade.doctor.finding import Checkup, Finding
from crossfade.types import Estimate, Leg, Result, Sharing, Trace

HOSTILE = "<script>alert('x')</script>"


def result(value=8.8571, **changes) -> Result:
    run = Result(
        raw_estimate=Estimate(value, 0.0081, 15.0, "trapezoid"),
        verdict="trustworthy",
        reasons=(),
        opinions={"jarzynski": Estimate(8.86, 0.01, 15.0), "corrected_trapezoid": Estimate(8.9, 0.02, 15.0)},
        differences={
            "jarzynski": Estimate(0.003, 0.002, 15.0),
            "corrected_trapezoid": Estimate(0.04, 0.02, 15.0),
        },
        checks={"hysteresis": Estimate(-0.01, 0.02, 30.0, "hysteresis"), "slope": Estimate(1.012, 0.021, 30.0)},
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
    )
    return run._replace(**changes)


def page(run: Result, width: int = 80) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        return str(run)


def words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_the_answer_in_all_its_forms():
    text = page(result())
    for expected in (
        "8.8571 ± 0.0081 of M2 over M1 (trapezoid)",
        "8.8398 to 8.8744",  # t with 15 degrees of freedom: 2.131 standard errors
        "3.8466",
        "7,024 : 1 for M2",
        "0.9999, if both were equally likely before",
        "corrected trapezoid     8.900 ± 0.020\n",
        "64,000 iterations x 16 chains, seed 0, 12.3 s",
    ):
        assert expected in text, expected
    assert not text.endswith("\n") and "sigma" not in text
    assert "expected" not in text  # all checks are passed, and the verdict says so


def test_differences_are_shown_where_the_answer_is_in_doubt():
    assert "minus the answer" not in page(result())
    text = page(result(verdict="weak", reasons=("The error is large. Run it longer.",)))
    assert "minus the answer" in text and "0.0030 ± 0.0020" in text
    assert "both ways         differ by -0.010 ± 0.020 (0 is expected)" in text
    assert "which end         slope 1.012 ± 0.021 (1 is expected)" in text


def test_numbers_that_say_nothing_are_left_out():
    vague = {"bar": Estimate(8.0, 0.82, 15.0), "mbar": Estimate(8.0, math.inf, 3.0), "crooks": Estimate(8.1, 0.80, 9.0)}
    text = page(
        result(
            verdict="weak",
            reasons=("Run it longer.",),
            opinions=vague,
            checks={"hysteresis": vague["bar"], "slope": Estimate(1.0, math.nan, 1.0)},
        )
    )
    assert "crooks" in text and "bar" not in text
    assert "both ways" not in text and "slope" not in text and "Checks" not in text


def test_what_is_shared_and_names_with_brackets():
    text = page(result())
    assert "Intercept, variance" in text
    assert "group[T.b], np.log(x)" in text
    assert "nothing" in text  # only in M1
    assert "priors differ" not in text and "not shared" not in text
    apart = ("b is a vector in M1 and a number in M2.", "c is positive in M1 only.")
    text = page(result(sharing=Sharing(("Intercept",), ("x",), ("z",), ("Intercept",), apart)))
    assert "priors differ     of Intercept, which both models have" in text
    assert f"not shared        {apart[0]}\n{'':18}{apart[1]}\n" in text


def test_priors_stated_or_listed():
    assert "coefficients ~ N(0, 1)" in page(
        result(about={"prior": "coefficients ~ N(0, 1)", "priors": {"x": "N(9, 9)"}})
    )
    assert "x ~ N(0, 2); z ~ N(1, 3)" in page(result(about={"priors": {"x": "N(0, 2)", "z": "N(1, 3)"}}))
    both = {"priors": {"x": "N(0, 5)", "z": "N(1, 3)"}, "tempered_priors": {"x": ("N(0, 1)", "N(0, 5)")}}
    assert "x ~ N(0, 1) in M1, N(0, 5) in M2; z ~ N(1, 3)" in page(result(about=both))


def test_prior_odds_are_shown_and_used():
    text = page(result(value=1.0, about={"log_prior_odds": math.log(1 / 9)}))
    assert "9.0 : 1 for M1" in text
    assert "posterior odds    3.3 : 1 for M1" in text
    assert f"{1 / (1 + 9 / math.e):.4f}" in text
    assert "equally likely" not in text


def straight(tau=(0.0, 1.0), sign=0.5) -> tuple[Leg, ...]:
    part = Trace(np.array(tau), np.zeros((4, len(tau), 5)), np.ones((4, len(tau))), True)
    return (Leg("half 1", sign, part, None),)


def test_the_verdict_and_its_reasons():
    text = page(result(verdict="weak", reasons=("The error is 0.2. Ask for more draws.", "The chains differ.")))
    assert "Verdict: weak" in text
    assert "- The error is 0.2. Ask for more draws." in text and "- The chains differ." in text
    assert "The chains agree and every check is passed." in page(result())
    overlap = "The chains agree, the two posteriors overlap, and every check is passed."
    assert overlap in page(result(legs=straight()))
    assert overlap not in page(result(legs=straight((0.0, 0.5, 1.0)))) + page(result(legs=straight(sign=-1.0)))


@pytest.mark.parametrize("show", [page, lambda run: run._repr_html_()])
def test_no_number_where_there_is_no_answer(show):
    run = result(7.654, verdict="do not use", reasons=("The chains of M1 disagree. Run them longer.",))
    text = words(show(run))
    assert "Verdict: do not use" in text and "The chains of M1 disagree." in text and NO_NUMBER in text
    assert not any(word in text for word in ("7.65", "8.86", "Answer", "Second opinions", "Bayes factor", "-0.010"))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_lines_fit(width):
    long = result(
        verdict="weak",
        reasons=("a long reason " * 20, "a_reason_without_blanks" * 10),
        sharing=Sharing(tuple(f"parameter_{i}" for i in range(30)), (), (), ()),
        about={"M1": "y ~ " + " + ".join(f"x{i}" for i in range(40)), "prior": "a very long prior " * 10},
    )
    lines = page(long, width).splitlines()
    assert max(map(len, lines)) == min(width, 100)
    assert all(line == line.rstrip() for line in lines)


def test_nothing_optional_is_needed():
    bare = result(opinions={}, differences={}, checks={}, about={}, sharing=Sharing((), (), (), ()))
    assert "Second opinions" not in page(bare) and "Checks" not in page(bare)
    assert "nan" in page(bare._replace(raw_estimate=Estimate(math.nan, math.nan, math.nan)))
    assert "inf" in page(bare._replace(raw_estimate=Estimate(math.inf, math.inf, 3.0)))


class Elements(HTMLParser):
    """Tags that are opened and closed, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f" {data}"


def test_the_notebook_says_what_the_terminal_says():
    run = result(verdict="weak", reasons=("The error is 0.2.",))
    found = Elements(html.fragment(run))
    for section in sections(run):
        for told in (
            section.title,
            section.note,
            *section.lines,
            *(cell for row in section.rows for cell in row.cells),
        ):
            assert told in found.text
            assert all(word in words(page(run)) for word in told.split())


def test_hostile_names_are_harmless_in_a_notebook():
    bad = f"\"{HOSTILE}&amp;'>"
    about = {"M1": bad, "data": bad, "priors": {bad: bad}, "notes": [bad], "method": bad, "path": bad}
    run = result(
        verdict="weak", reasons=(bad,), sharing=Sharing((bad,), (bad,), (bad,), (bad,), (bad,)), about=about,
        opinions={bad: Estimate(1.0, 0.01, 3.0)}, raw_estimate=Estimate(1.0, 0.01, 3.0, bad),
    )  # fmt: skip
    found = Elements(run._repr_html_())
    assert found.seen == {"div", "b", "table", "tr", "td"} and found.attributes == {"style"}
    assert found.text.count(bad) == 16
    assert words(page(run)).count("alert") == 16


def test_hostile_names_do_not_steer_the_terminal():
    text = page(result(about={"M1": "y ~ \x1b[2J\r\u202ex[/red]"}))
    assert "y ~ \ufffd[2J\ufffd\ufffdx[/red]" in text and "\x1b" not in text


def test_the_notebook_takes_nothing_from_elsewhere_and_keeps_its_colours():
    text = html.fragment(result())
    assert "http" not in text and "url(" not in text and "<style" not in text
    assert "color:" not in text.replace("border-color:", "") and "background:none" in text


def test_a_checkup_as_a_page(capsys):
    findings = (
        Finding("prior", "M1", True, "it integrates to 1"),
        Finding("gradient", "<b>M2[x]", False, "it is not finite. Mend it."),
        Finding("two ways", "both", True, "not checked: fix the findings above first"),
    )
    terminal.show(*of_checkup(Checkup(findings)))
    shown = words(capsys.readouterr().out)
    assert "BAD <b>M2[x] gradient it is not finite. Mend it." in shown
    assert shown.endswith("Findings: 1 bad, 1 fine, 1 not checked.")
    assert "<b>M2[x]" in Elements(html.pieces(of_checkup(Checkup(findings)))).text


def test_number_follows_the_error():
    assert number(8.85712, 0.0081) == "8.8571"
    assert number(1234.5, 12.0) == "1234"
    assert number(0.5, float("nan")) == "0.5000"
    assert with_error(Estimate(-2.62501, 0.00312, 7.0)) == "-2.6250 ± 0.0031"
    assert with_error(Estimate(8.857108, 0.0, np.inf)) == "8.857108"  # exact


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
        (math.inf, "1.0000"),
    ],
)
def test_probability(log_odds, expected):
    assert probability(log_odds) == expected


def test_probability_agrees_with_the_result():
    for value in np.linspace(-8, 8, 9):
        assert float(probability(value)) == pytest.approx(result(value=value).probability, abs=5.1e-5)
