"""Words on the methods of the table: each sign alone lowers them, and no sign leaves them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from analysis.findings import NEAR, says
from analysis.gaussian_path import GaussianPath, sweep_of_works
from assertions import rng

from crossfade.analysis.judge import Finding
from crossfade.analysis.judge_table import of_table
from crossfade.analysis.summary import HYSTERESIS, Summary, summarise
from crossfade.types import Estimate, Leg

ENDS, LADDER = np.array([0.0, 1.0]), np.linspace(0, 1, 6)


def rungs(seed: int = 60, path: GaussianPath = NEAR, tau: np.ndarray = LADDER, rho: float = 0.0) -> Leg:
    return Leg("M1 to M2", 1.0, path.equilibrium(rng(seed), tau, 8, 200, rho), None)


def with_way_back(legs: tuple[Leg, ...], name: str) -> Summary:
    """What is said of legs whose way back agrees."""
    return summarise(legs, name)._replace(checks={HYSTERESIS: Estimate(0.0, 0.06, 30)})


def test_a_run_without_its_way_back_is_weak() -> None:
    says(of_table((rungs(),), summarise((rungs(),), "mbar")), 1, "run back was not finished, or says nothing.* Run it")


def test_a_healthy_run_of_the_table_has_no_finding() -> None:
    for name in ("mbar", "bar", "stepping_stone", "corrected_trapezoid", "controlled"):
        assert of_table((rungs(),), with_way_back((rungs(),), name)) == [], name
    tau = np.linspace(0, 1, 401)
    both = (Leg("", 1.0, NEAR.sweep(rng(61), tau, 50, 0.2), NEAR.reverse_sweep(rng(62), tau, 50, 0.2)),)
    for name in ("trapezoid", "jarzynski", "crooks"):
        assert of_table(both, summarise(both, name)) == [], name


@pytest.mark.parametrize("error", [1.01, np.inf, np.nan])
def test_an_error_bar_of_the_table_that_is_no_answer(error: float) -> None:
    found = with_way_back((rungs(),), "mbar")
    wide = found._replace(headline=found.headline._replace(error=error))
    says(of_table((rungs(),), wide), 2, r"no answer yet\. Raise n_iter")


@pytest.mark.parametrize(("gap", "expected"), [(0.15, 0), (0.25, 1), (0.6, 2)])
def test_a_run_there_and_back_that_differ(gap: float, expected: int) -> None:
    found = summarise((rungs(),), "mbar")._replace(checks={HYSTERESIS: Estimate(gap, 0.06, 30)})
    findings = of_table((rungs(),), found)
    if expected:
        says(findings, expected, f"the run back differ by {gap:g} .*lag behind the path.* Raise n_iter")
    else:
        assert findings == []


def test_other_estimators_that_differ() -> None:
    found = with_way_back((rungs(),), "mbar")

    def with_difference(name: str, value: float) -> list[Finding]:
        return of_table((rungs(),), found._replace(differences={name: Estimate(value, 0.01, 14)}))

    says(with_difference("bar", 0.1), 1, "By bar the answer differs by 0.1 .* one of the two is biased")
    assert with_difference("bar", 0.4 * found.headline.error) == []  # less than half of the error bar
    assert with_difference("trapezoid", 0.1) == []  # a coarse sum discredits itself
    assert with_difference("stepping_stone", 0.1) == []  # and so do one-sided tails


@pytest.mark.parametrize(
    ("leg", "name", "sentence"),
    [
        (rungs(path=GaussianPath(m=9.0, s=1.0), tau=ENDS), "mbar", r"rungs 0 and 1 barely overlap .* Add rungs"),
        (rungs(path=GaussianPath(m=4.0, s=0.5)), "trapezoid", r"some \d.* is still missing, .*Add rungs, or use"),
        (rungs(rho=0.97), "mbar", r"the chains do not agree \(R-hat .* Raise n_iter"),
        (Leg("", 1.0, sweep_of_works(np.array([9.0, 1.0, 2.0, 1.5])), None), "jarzynski", "more than half of the"),
        (
            Leg("", 1.0, NEAR.sweep(rng(63), np.linspace(0, 1, 101), 50, 0.97), None),
            "trapezoid",
            r"holds only some [0-9.]+ independent draws, so the chains may never have left",
        ),
    ],
)
def test_each_sign_of_a_bad_leg(leg: Leg, name: str, sentence: str) -> None:
    found = of_table((leg,), summarise((leg,), name))
    assert any(finding.level == 1 and re.search(sentence, finding.text) for finding in found), found


def test_moves_that_are_refused() -> None:
    leg = rungs()
    leg.forward.acceptance[:, 2] = 0.01
    says(of_table((leg,), with_way_back((leg,), "mbar")), 1, r"only 1\.0% of the moves near tau = 0\.4 were accepted")


def test_chains_of_the_table_whose_agreement_is_unknown() -> None:
    """Three draws of a rung have no R-hat: that is not a sign of agreement."""
    leg = rungs()
    short = leg._replace(forward=leg.forward.take(draws=slice(0, 3)))
    findings = of_table((short,), summarise((short,), "mbar"))
    assert any("the chains do not agree (R-hat nan" in finding.text for finding in findings), findings
