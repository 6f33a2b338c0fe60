"""The manual has an entry for every reason that a verdict can give, and its limits are the judge's."""

import re

from manual import DOCS
from reasons import reasons

from crossfade.analysis import judge

PAGE = (DOCS / "verdicts.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^#### (.*)$", PAGE, flags=re.MULTILINE)


def test_every_reason_has_an_entry_and_every_entry_a_reason():
    found = reasons()
    assert len(found) > 30
    assert {said: where for said, where in found.items() if said not in ENTRIES} == {}
    assert [entry for entry in ENTRIES if entry not in found] == []
    assert len(set(ENTRIES)) == len(ENTRIES)


def test_every_entry_says_what_to_do():
    for entry in PAGE.split("\n#### ")[1:]:
        assert "**Do**: " in entry.split("\n## ")[0], entry.splitlines()[0]


def test_reasons_that_are_printed_are_found_by_their_entries():
    """What the source says is what the judge says: a filled-in sentence fits its entry."""
    estimate = judge.Estimate(3.0, 0.5, 30.0)
    checks = {judge.SLOPE: estimate._replace(value=8.0), judge.HALVES: estimate._replace(value=9.0)}
    said = [
        *judge.of_error(estimate, 0.1, "the budget of 60 s is used up"),
        *judge.of_error(estimate._replace(error=7.0), 0.1, ""),
        *judge.of_checks(checks, estimate),
        *judge.of_gap("tempering", estimate._replace(value=9.0)),
        *judge.of_round_trips(3),
        *judge.of_undefined([0.2, 0.0]),
    ]
    patterns = [re.escape(entry).replace("…", ".*") for entry in ENTRIES]
    assert len(said) >= 7
    for finding in said:
        assert any(re.match(pattern, finding.text) for pattern in patterns), finding.text


def test_limits_are_those_of_the_judge():
    rows = re.findall(r"^\| [^|`]+ \| ([\d.e-]+) \| ([\d.e-]+) \|$", PAGE, flags=re.MULTILINE)
    limits = (
        judge.R_HAT,
        judge.EFFECTIVE,
        judge.OVERLAP,
        judge.CHANCE,
        judge.DIVERGENT,
        judge.SATURATED,
        judge.UNDEFINED,
        judge.ROUND_TRIPS,
    )
    assert [(float(weak), float(none)) for weak, none in rows] == [tuple(map(float, own)) for own in limits]
