"""Recorded answers: a change of the code that moves one bit of them is a change of method, and is said to be one."""

import json

import pytest
from recorded.runs import FILE, RUNS, machine, numbers

RECORD = json.loads(FILE.read_text(encoding="utf-8"))
QUICK = ("default, formulas", "default, rungs between", "own draws")


def test_every_way_to_an_answer_is_recorded():
    assert set(RECORD["answers"]) == set(RUNS) and len(RUNS) >= 15


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in RUNS]
)
def test_answers_are_those_on_record(name):
    expected, found = RECORD["answers"][name], numbers(RUNS[name]())
    if machine() == RECORD["machine"]:
        assert found == expected
        return
    # Another processor rounds otherwise, and chains then go other ways: the same answer, but not the same bits.
    if "error" not in expected:
        assert found.keys() == expected.keys()
        return
    value, error = (float.fromhex(expected[key]) for key in ("value", "error"))
    other_value, other_error = (float.fromhex(found[key]) for key in ("value", "error"))
    assert abs(value - other_value) < 5 * (error**2 + other_error**2) ** 0.5
