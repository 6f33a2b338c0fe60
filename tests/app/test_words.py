"""The answer in words: a sentence to quote, Jeffreys' grades, effects, and what other priors would have said."""

import json
import math

import numpy as np
import pytest
from command_line import run, words

import crossfade
from crossfade.app.effects import effects
from crossfade.app.words import sentence, strength
from crossfade.bridges.formula import Prior
from crossfade.data import load
from crossfade.types import Estimate, Result, Sharing

BOARDS = load("radiata")


def result(value: float, error: float = 0.001, verdict: str = "trustworthy", **about) -> Result:
    estimate = Estimate(value, error, 15.0, "mbar")
    return Result(estimate, verdict, (), {}, {}, {}, (), Sharing(("a",), (), ("b",)), about)


@pytest.mark.parametrize(
    ("ratio", "error", "said"),
    [
        (1.0, 0.0, "not worth more than a bare mention"),
        (3.0, 0.0, "not worth more than a bare mention"),
        (3.3, 0.0, "substantial"),
        (1 / 3.3, 0.0, "substantial"),
        (9.9, 0.0, "substantial"),
        (10.1, 0.0, "strong"),
        (1 / 31, 0.0, "strong"),
        (33, 0.0, "very strong"),
        (101, 0.0, "decisive"),
        (1e9, 0.0, "decisive"),
        (10, 0.1, "between substantial and strong"),
        (1 / 10, 0.1, "between substantial and strong"),
        (1.1, 0.2, "not worth more than a bare mention for either model"),
        (1.5, 0.6, "between not worth more than a bare mention for M1 and substantial for M2"),
    ],
)
def test_jeffreys_grades_are_half_powers_of_ten(ratio, error, said):
    assert strength(Estimate(math.log(ratio), error, 15.0)) == said


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (
            result(-2.625, M1="y ~ x", M2="y ~ x + z"),
            "The data are 13.8 times more likely under M1 (y ~ x) than under M2 (y ~ x + z); "
            "log Bayes factor of M2 over M1: -2.6250 ± 0.0010.",
        ),
        (
            result(30.0, verdict="weak"),
            "The data are 1.1 x 10^13 times more likely under M2 than under M1; "
            "log Bayes factor of M2 over M1: 30.0000 ± 0.0010 (weak).",
        ),
        (
            result(2.0, error=0.0),
            "The data are 7.4 times more likely under M2 than under M1; log Bayes factor of M2 over M1: 2.000 (exact).",
        ),
        (
            result(0.01),
            "The data are about as likely under M2 as under M1; log Bayes factor of M2 over M1: 0.0100 ± 0.0010.",
        ),
        (result(3.0, verdict="do not use")._replace(reasons=("Chains disagree.",)), None),
        (
            result(-4.2)._replace(sharing=Sharing((), (), ("b",)), about={"evidence": True}),
            "The log evidence is -4.2000 ± 0.0010.",
        ),
    ],
)
def test_the_sentence(run, said):
    assert run.sentence == sentence(run) == (said or "No Bayes factor can be given. Chains disagree.")
    assert (f"to quote {said}" in words(str(run))) == (said is not None and "evidence" not in said)


def test_the_page_without_an_answer_has_no_words_for_it():
    run = crossfade.compare(*crossfade.from_formulas(BOARDS, "y ~ x", "y ~ 1"))
    page = str(run._replace(verdict="do not use", reasons=("Chains disagree.",)))
    assert "to quote" not in page and "effect" not in page and "Jeffreys" not in page and "other priors" not in page


def test_effects_are_those_of_least_squares():
    """With weak priors the posterior of a coefficient is around the least-squares estimate, in sds of both columns."""
    run = crossfade.compare(
        *crossfade.from_formulas(BOARDS, "y ~ x", "y ~ x + z", prior=Prior(precision=1e-6, noise_shape=1e-3))
    )
    (found,) = effects(run)
    standard = (BOARDS - BOARDS.mean()) / BOARDS.std()
    design = np.column_stack([np.ones(len(BOARDS)), standard["x"], standard["z"]])
    best, rest, *_ = np.linalg.lstsq(design, standard["y"], rcond=None)
    sd = np.sqrt(rest[0] / (len(BOARDS) - 3) * np.linalg.inv(design.T @ design)[2, 2])
    assert (found.model, found.name) == ("M2", "z")
    assert found.mean == pytest.approx(best[2], abs=0.1 * sd)
    assert (found.low, found.high) == pytest.approx((best[2] - 2.02 * sd, best[2] + 2.02 * sd), abs=0.25 * sd)


def test_arrays_are_named_by_their_entries_and_the_page_shows_a_few():
    draws = np.random.default_rng(0).normal(size=(4, 50, 5))
    run = result(3.0)._replace(draws=({}, {"b": draws}))
    assert [own.name for own in effects(run)] == [f"b[{i}]" for i in range(5)]
    page = words(str(run))
    assert "effects b[0] in M2: " in page and "b[2] in M2" in page and "b[3]" not in page
    assert "and 2 more" in page


def test_effects_say_their_units(tmp_path):
    BOARDS.to_csv(tmp_path / "boards.csv", index=False)
    for options, said in (
        ([], "(sd of the response per sd of the covariate)"),
        (["--scaling", "raw", "--noise-rate", "180000"], "(units of the response per unit of the covariate)"),
    ):
        shown = run("compare", tmp_path / "boards.csv", "y ~ x", "y ~ x + z", *options)
        assert said in words(shown.stdout), shown.output


def test_effects_of_labels_are_from_level_to_level(tmp_path):
    """With a weak prior: the difference of two means, in sds of the response."""
    table = BOARDS.assign(kind=["new" if i % 3 == 0 else "old" for i in range(len(BOARDS))])
    table.to_csv(tmp_path / "boards.csv", index=False)
    options = ["--prior-precision", "1e-6", "--json"]
    shown = json.loads(run("compare", tmp_path / "boards.csv", "y ~ 1", "y ~ kind", *options).stdout)
    (found,) = shown["effects"]
    means = table.groupby("kind")["y"].mean() / table["y"].std()
    spread = (found["high"] - found["low"]) / 4
    assert found["name"] == "kind[T.old]"
    assert found["mean"] == pytest.approx(means["old"] - means["new"], abs=0.1 * spread)
    shown = run("compare", tmp_path / "boards.csv", "y ~ 1", "y ~ kind + x")
    assert "(sd of the response, this level against the first)" in words(shown.stdout)
    assert "(sd of the response per sd of the covariate)" in words(shown.stdout)


@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_other_widths_of_the_prior_are_answers_of_their_own(family):
    """Beside a comparison with that prior; the answer itself is the same number with and without them."""
    table = BOARDS if family == "gaussian" else load("pima")
    response, other = ("y", "x") if family == "gaussian" else ("y", "skin")
    table = table.assign(noise=np.random.default_rng(1).normal(size=len(table)))
    pair = (f"{response} ~ {other}", f"{response} ~ {other} + noise")

    def compared(factor: float) -> Result:
        prior = Prior(precisions={"noise": factor**-2}) if family == "gaussian" else Prior(sd=10 * factor)
        return crossfade.compare(*crossfade.from_formulas(table, *pair, family=family, prior=prior))

    from crossfade.methods.widths import answers_alone

    middle = compared(0.1 if family == "logistic" else 1)  # sd 1: a Bayes factor between 1/10 and 10
    with answers_alone():
        assert compared(0.1 if family == "logistic" else 1).raw_estimate == middle.raw_estimate
    half, twice = middle.about["widths"]
    assert (half[0], half[1], twice[1]) == (["noise"], 0.5, 2.0)
    assert half[2] > middle.raw_estimate.value > twice[2]  # a wider prior on nothing is worse
    if family == "gaussian":
        for factor, width in ((0.5, half), (2, twice)):
            assert width[2] == pytest.approx(compared(factor).raw_estimate.value, abs=1e-12)
    said = f"with the prior of noise half as wide: {half[2]:.2f}, twice as wide: {twice[2]:.2f}"
    assert f"other priors log Bayes factor {said}" in words(str(middle))


def test_a_clear_answer_and_tables_of_many_have_no_other_widths():
    clear = crossfade.compare(*crossfade.from_formulas(BOARDS, "y ~ x", "y ~ 1"))
    assert abs(clear.log_bayes_factor.value) > math.log(10) and "widths" not in clear.about
