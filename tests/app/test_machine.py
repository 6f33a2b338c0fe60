"""What machines read: JSON and nothing else, no NaN in it, and exit codes that mean something."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import run, words

from crossfade.app import machine, store
from crossfade.app.output import CODES
from crossfade.data import load
from crossfade.types import Estimate, Result, Sharing

DOCS = Path(__file__).parents[2] / "docs"
EVERY = {"schema", "kind", "crossfade", "nulls"}
RARE = {"not_written"}  # tests/app/test_stumbles.py has it


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "radiata.csv"
    load("radiata").assign(half=[*"ab"] * 21).to_csv(path, index=False)
    return path


def strict(text: str) -> dict:
    """One line, and JSON as the standard has it: no NaN, no Infinity."""
    assert text.count("\n") == 1

    def refused(constant: str):
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refused)


def documented(kind: str) -> set[str]:
    """The fields of a section of docs/json.md, or of a row of its last table."""
    text = (DOCS / "json.md").read_text(encoding="utf-8")
    if f"## {kind}\n" in text:
        rows = text.split(f"## {kind}\n")[1].split("\n## ")[0].split("|---|---|---|\n")[1].split("\n\n")[0].splitlines()
        return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])} - RARE
    row = next(line for line in text.splitlines() if line.startswith(f"| `{kind}` |"))
    return set(re.findall(r"`(\w+)`", row.split("|")[3]))


def test_compare(table, tmp_path):
    shown = run(
        "compare",
        table,
        "y ~ x",
        "y ~ z",
        "--json",
        "--out",
        tmp_path / "run.nc",
        "--sensitivity",
        "z",
        "--report",
        tmp_path / "run.html",
    )
    assert shown.exit_code == 0 and shown.stderr == ""
    found = strict(shown.stdout)
    assert set(found) - EVERY == documented("comparison") - {"exact"}
    assert (found["schema"], found["kind"]) == (machine.SCHEMA, "comparison")
    assert all(path.startswith("sensitivity.rows") for path in found["nulls"])  # too few draws for a tail there
    stored = store.load(tmp_path / "run.nc")
    assert found["log_bayes_factor"]["value"] == stored.log_bayes_factor.value
    assert found["probability_of_M2"] == stored.probability and found["sentence"] == stored.sentence
    assert found["favoured"] == "M2" and found["strength"] == {"words": "decisive", "scale": "Jeffreys 1961"}
    assert [own["name"] for own in found["effects"]] == ["x", "z"]
    assert len(found["sensitivity"]["rows"]) == 13
    again = strict(run("estimate", tmp_path / "run.nc", "--json").stdout)
    assert again == {**{name: found[name] for name in again}, "nulls": {}}
    assert set(found) - set(again) == {"sensitivity", "stored_in", "report"}


def test_compare_by_and_rank(table, tmp_path):
    shown = run("compare", table, "y ~ x", "y ~ z", "--by", "half", "--json")
    found = strict(shown.stdout)
    assert shown.exit_code == 0 and set(found) - EVERY == documented("comparisons")
    assert [row["name"] for row in found["rows"]] == ["a", "b"] and found["verdicts"] == {"trustworthy": 2}
    shown = run("rank", table, "y ~ x", "y ~ z", "--json", "--report", tmp_path / "ranking.html")
    found = strict(shown.stdout)
    assert shown.exit_code == 0 and set(found) - EVERY - {"format"} == documented("ranking")
    assert found["models"][0] == "y ~ z" and found["report"] == str(tmp_path / "ranking.html")


@pytest.mark.slow
def test_doctor_and_demo(table, tmp_path):
    rows = load("radiata")
    rows.assign(x=rows["x"].mask(rows.index == 3)).to_csv(gap := tmp_path / "gap.csv", index=False)
    shown = run("doctor", gap, "y ~ x", "y ~ z", "--drop-missing", "--json")
    found = strict(shown.stdout)
    assert "1 of 42 rows is left out" in found["notes"][0]
    assert shown.exit_code == 0 and found["ok"] and set(found) - EVERY < documented("checkup")
    shown = run("demo", "--json")
    found = strict(shown.stdout)
    assert shown.exit_code == 0 and shown.stderr == ""
    assert abs(found["log_bayes_factor"]["value"] - found["exact"]) < 4 * found["log_bayes_factor"]["error"]


def test_plans_are_told(table, tmp_path):
    shown = run("compare", table, "y ~ x", "y ~ z", "--route", "path", "--dir", tmp_path / "run", "--plan", "--json")
    found = strict(shown.stdout)
    assert set(found) - EVERY == documented("plan") and found["folder"] == str(tmp_path / "run")


def unusable(verdict="do not use") -> Result:
    about = {"method": "auto", "widths": [[["b"], 0.5, 1.0, 0.1]]}
    opinions = {"jarzynski": Estimate(np.float64(3.2), np.inf, 3.0)}
    estimate = Estimate(7.654, 0.01, 9.0, "mbar")
    return Result(estimate, verdict, ("Chains disagree.",), opinions, {}, {}, (), Sharing(("a",), (), ("b",)), about)


def test_without_an_answer_there_is_no_number_and_a_reason(tmp_path):
    store.save(unusable(), tmp_path / "run.nc")
    shown = run("estimate", tmp_path / "run.nc", "--json")
    found = strict(shown.stdout)
    assert shown.exit_code == 3 and "7.65" not in shown.stdout and found["reasons"] == ["Chains disagree."]
    for name in ("log_bayes_factor", "favoured", "strength", "log_posterior_odds", "probability_of_M2"):
        assert found[name] is None and found["nulls"][name] == "the verdict is 'do not use'"
    assert found["effects"] == found["other_priors"] == [] and found["opinions"] == {}


def test_numbers_that_are_none_are_null_with_a_reason(capsys):
    machine.print_json("comparison", **machine.comparison(unusable("weak")), more=[1.0, np.nan, np.float64(2)])
    found = strict(capsys.readouterr().out)
    assert found["opinions"]["jarzynski"]["error"] is None and found["more"] == [1.0, None, 2.0]
    assert found["nulls"]["opinions.jarzynski.error"] == "infinite" and found["nulls"]["more[1]"] == "not a number"


def test_errors_are_json_too(table):
    shown = run("compare", table, "y ~ x", "y ~ q", "--json")
    found = strict(shown.stdout)
    assert shown.exit_code == found["exit_code"] == 2 and set(found) - EVERY == documented("error") - {"output"}
    assert "there is no column 'q'" in found["error"] and f"Error: {found['error']}" in words(shown.stderr)


def test_no_group_with_an_answer_is_no_answer(table, tmp_path):
    path = tmp_path / "data.csv"
    load("radiata").assign(board=range(42)).to_csv(path, index=False)
    shown = run("compare", path, "y ~ x", "y ~ z", "--by", "board")
    assert shown.exit_code == 3 and "42 groups: 42 failed." in words(shown.stdout)


def test_exit_codes_are_in_the_help_and_in_the_docs():
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    help_ = words(run("--help").output)
    for code, said in CODES.items():
        assert f"{code} {said}" in help_ and f"| {code} | {said.split(' (')[0]}" in text, code


def test_the_package_is_the_command_and_shells_complete_it():
    shown = subprocess.run([sys.executable, "-m", "crossfade", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == "crossfade 0.1.0\n"
    asked = {**os.environ, "_CROSSFADE_COMPLETE": "complete_bash", "COMP_WORDS": "crossfade ra", "COMP_CWORD": "1"}
    shown = subprocess.run([sys.executable, "-m", "crossfade"], capture_output=True, text=True, env=asked)
    assert shown.stdout.split() == ["rank"]
