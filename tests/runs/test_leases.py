"""Several machines in one folder: each task has one holder, and a holder that died is replaced."""

import os
import time

import pytest
from command_line import run, words

from crossfade.data import load
from crossfade.runs.leases import Leases


def test_one_holder_at_a_time_and_done_is_done(tmp_path):
    first, second = Leases(tmp_path, print), Leases(tmp_path, print)
    with first.held("M1") as ours:
        assert ours and second.state("M1") == "taken"
        with second.held("M1") as theirs:
            assert not theirs
        with second.held("M2") as theirs:
            assert theirs
    assert first.state("M1") == second.state("M2") == "done"
    with second.held("M1") as theirs:
        assert not theirs


def test_a_holder_that_died_is_replaced_and_one_that_failed_leaves_nothing(tmp_path):
    dead, alive = Leases(tmp_path, print), Leases(tmp_path, print)
    assert dead._take(dead.path("M1"), "M1")
    assert alive.state("M1") == "taken"
    long_ago = time.time() - 1000
    os.utime(dead.path("M1"), (long_ago, long_ago))
    with alive.held("M1") as ours:
        assert ours
    with pytest.raises(ValueError, match="failed"), alive.held("M2"):
        raise ValueError("failed")
    assert alive.state("M2") == ""


def test_a_lease_that_was_cut_off_while_it_was_written_expires_too(tmp_path):
    own = Leases(tmp_path, print)
    own.path("M1").touch()
    assert own.state("M1") == "taken"
    long_ago = time.time() - 1000
    os.utime(own.path("M1"), (long_ago, long_ago))
    with own.held("M1") as ours:
        assert ours


def test_a_group_whose_rows_have_changed_is_another_task(tmp_path):
    table, folder = load("radiata"), tmp_path / "run"
    table["half"] = ["a", "b"] * 21
    command = ["compare", tmp_path / "data.csv", "y ~ x", "y ~ z", "--by", "half", "--dir", folder]
    for change in (0.0, 1.0):
        table["y"] += change * (table["half"] == "b")
        table.to_csv(tmp_path / "data.csv", index=False)
        assert run(*command, "--plan").exit_code == 0
        assert run("work", folder).exit_code == 0
        assert "2 of 2 groups are done" in words(run("status", folder).stdout)


@pytest.mark.parametrize("shift", [-1e6, 1e6])
def test_a_clock_that_jumps_frees_a_lease_and_loses_nothing(tmp_path, shift):
    own = Leases(tmp_path, print)
    assert own._take(own.path("M1"), "M1")
    now = time.time() + shift
    os.utime(own.path("M1"), (now, now))
    with own.held("M1") as ours:
        assert ours


def test_a_holder_goes_on_touching_its_lease(tmp_path):
    own, other = Leases(tmp_path, print, expires=0.4), Leases(tmp_path, print, expires=0.4)
    with own.held("M1"):
        for _ in range(5):
            time.sleep(0.2)
            assert other.state("M1") == "taken"


@pytest.mark.slow
def test_work_and_the_answer(tmp_path):
    load("radiata").to_csv(tmp_path / "radiata.csv", index=False)
    asked = ("compare", tmp_path / "radiata.csv", "y ~ x", "y ~ z", "--route", "path", "--n-chains", 8, "--quiet")
    assert "give --dir" in words(run(*asked, "--plan").output)
    folder = tmp_path / "run"
    assert run(*asked, "--dir", folder, "--plan").exit_code == 0 and not list(folder.glob("*.npz"))
    with Leases(folder, print).held("M1"):  # by another machine
        said = words(run("work", folder, "--quiet").output)
        assert said.startswith("1 of 2 tasks are done, 1 are worked on elsewhere. The answer so far:")
    Leases(folder, print).path("M1").unlink()
    assert "2 of 2 tasks are done" in words(run("work", folder, "--quiet").output)
    chunks = len(list(folder.glob("*.npz")))
    assert chunks >= 2
    there, plain = run("resume", folder), run(*asked)
    assert there.exit_code == 0, there.output
    assert there.output.rpartition("seed 0")[0] == plain.output.rpartition("seed 0")[0]
