"""Runs in folders from the command line: resumed, looked at, extended, gathered."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from command_line import run, words

from crossfade.data import load
from crossfade.runs import chunks as chunks_module

FORMULAS = ("y ~ npreg + glu", "y ~ npreg + glu + bmi")
CHAINS = ("--family", "logistic", "--route", "path", "--n-chains", 8, "--quiet")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "pima.csv"
    load("pima").head(60).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def first(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patched:  # several chunks, however fast it is
        patched.setattr(chunks_module, "SECONDS", 0.2)
        return folder, run("compare", table, *FORMULAS, *CHAINS, "--target-se", 0.05, "--dir", folder)


@pytest.fixture
def folder(first, tmp_path):
    return shutil.copytree(first[0], tmp_path / "copy")


def answer(page):
    return next(line for line in page.output.splitlines() if line.startswith("log Bayes factor"))


def test_a_run_is_shown_again_by_its_folder_alone(first, folder, table):
    assert first[1].exit_code == 0, first[1].output
    before = {path.name for path in folder.glob("*.npz")}
    again = run("resume", folder)
    assert again.exit_code == 0 and answer(again) == answer(first[1])
    assert {path.name for path in folder.glob("*.npz")} == before
    plain = run("compare", table, *FORMULAS, *CHAINS, "--target-se", 0.05)
    assert answer(plain) == answer(first[1])


def test_status_samples_nothing_and_says_what_there_is(first, folder):
    found = json.loads(run("status", folder, "--json").output)
    assert (
        found["verdict"] == "trustworthy"
        and found["error"] <= 0.05
        and found["chunks"] == len(list(folder.glob("*.npz")))
    )
    for path in folder.glob("*.npz"):
        path.unlink()
    said = words(run("status", folder).output)
    assert said.startswith("0 chunks, 0.0 MB There is no answer yet, because what is kept of it ends here")
    assert not list(folder.glob("*.npz"))


@pytest.mark.slow
def test_extended(folder):
    further = run("extend", folder, "--target-se", 0.02, "--json")
    assert further.exit_code == 0, further.output
    found = json.loads(further.stdout)
    assert found["kind"] == "comparison" and found["log_bayes_factor"]["error"] <= 0.02
    again = run("resume", folder, "--json")
    assert json.loads(again.stdout)["log_bayes_factor"] == found["log_bayes_factor"] and again.stderr == ""
    assert json.loads(run("status", folder, "--json").output)["error"] <= 0.02


def test_gathered(first, folder, tmp_path):
    every = sorted(folder.glob("*.npz"))
    other = shutil.copytree(folder, tmp_path / "other")
    every[0].unlink()
    (other / every[-1].name).write_bytes(b"spoilt")
    into = tmp_path / "joined"
    said = words(run("gather", into, folder, other).output)
    assert "chunks added. Go on with: crossfade resume" in said
    assert {path.name for path in into.glob("*.npz")} == {path.name for path in every}
    once_more = json.loads(run("gather", into, folder, "--json").stdout)
    assert (once_more["kind"], once_more["added"], once_more["left_out"]) == ("gathered", 0, [])
    assert answer(run("resume", into)) == answer(first[1])
    plan = other / "plan.json"
    plan.write_text(plan.read_text(encoding="utf-8").replace('"seed": "0"', '"seed": "1"'))
    refused = run("gather", into, other)
    assert refused.exit_code == 2 and "holds another run" in words(refused.output)


def test_other_data_are_refused(first, folder, table, tmp_path):
    load("pima").head(61).to_csv(other := tmp_path / "pima.csv", index=False)
    refused = run("compare", other, *FORMULAS, *CHAINS, "--dir", folder)
    assert refused.exit_code == 2 and "M1 has another likelihood or other data" in words(refused.output)
    assert answer(run("resume", folder)) == answer(first[1])  # what the folder is a run of is not forgotten


def test_what_is_no_run_is_said(tmp_path, table):
    assert "holds no run of the command line" in words(run("resume", tmp_path).output)
    (tmp_path / "command.json").write_text("[]")
    assert "cannot be read" in words(run("status", tmp_path).output)


@pytest.fixture
def groups(tmp_path):
    load("pima").head(120).assign(site=[f"site {i % 3}" for i in range(120)]).to_csv(
        tmp_path / "sites.csv", index=False
    )
    return ("compare", tmp_path / "sites.csv", *FORMULAS, "--family", "logistic", "--by", "site", "--quiet")


def test_groups_are_kept_looked_at_and_gone_on_with(groups, tmp_path):
    folder = tmp_path / "run"
    assert run(*groups, "--dir", folder, "--plan").exit_code == 0
    assert "has been sampled yet" in words(run("status", folder).output)
    first = run(*groups, "--dir", folder, "--out", tmp_path / "a.csv")
    assert first.exit_code == 0, first.output
    assert "3 of 3 groups are done: 3 trustworthy" in words(run("status", folder).output)
    again = run("resume", folder)
    assert again.output == first.output
    assert json.loads(run("status", folder, "--json").output)["done"] == 3
    assert "done: 3 trustworthy" in words(run("status", folder).output)
    refused = run(groups[0], groups[1], "y ~ 1", "y ~ glu", *groups[4:], "--dir", folder, "--plan")
    assert refused.exit_code == 2 and "holds another run, crossfade compare" in words(refused.output)
    refused = run(*groups, "--dir", folder, "--seed", 3)
    assert refused.exit_code == 2 and "seed was 0 and is 3" in words(refused.output)


def test_a_group_of_which_nothing_is_left_has_its_row(groups, tmp_path):
    table = pd.read_csv(groups[1])
    table.loc[table["site"] == "site 1", "glu"] = np.nan
    table.to_csv(groups[1], index=False)
    shown = run(*groups, "--drop-missing", "--json")
    rows = {row["name"]: row for row in json.loads(shown.stdout)["rows"]}
    assert list(rows) == ["site 0", "site 1", "site 2"] and "missing" in rows["site 1"]["reason"]
    assert rows["site 1"]["verdict"] == "failed" and json.loads(shown.stdout)["M1"] == FORMULAS[0]


def test_a_smaller_error_makes_the_rows_again(groups, tmp_path):
    run(*groups, "--dir", tmp_path / "run")
    further = run("extend", tmp_path / "run", "--target-se", 0.001)
    assert further.exit_code == 0, further.output
    rows = json.loads(run("resume", tmp_path / "run", "--json").stdout)["rows"]
    assert all(row["error"] <= 0.001 for row in rows)


def test_array_jobs_share_groups(groups, tmp_path):
    folder = tmp_path / "run"
    run(*groups, "--dir", folder, "--plan")
    assert "3 of 3 tasks are done" in words(run("work", folder, "--quiet").output)
    assert "3 of 3 groups are done" in words(run("status", folder).output)
    assert answers(run("resume", folder)) == answers(run(*groups))


def answers(page):
    return [line for line in page.output.splitlines() if line.startswith("site")]


def test_a_run_in_an_object_store(first, tmp_path):
    """fsspec's store in memory stands for any other: the same calls, no file of this machine."""
    import fsspec

    store = fsspec.filesystem("memory")
    for path in first[0].iterdir():
        store.pipe_file(f"/bucket/run/{path.name}", path.read_bytes())
    try:
        here, there = (json.loads(run("status", own, "--json").output) for own in (first[0], "memory://bucket/run"))
        assert here.pop("folder") == str(first[0]) and there.pop("folder") == "memory://bucket/run"
        assert here == there and here["error"] <= 0.05
        n = here["chunks"]
        assert f"{n} chunks added" in words(run("gather", tmp_path / "run", "memory://bucket/run").output)
        assert answer(run("resume", tmp_path / "run")) == answer(first[1])
        assert f"{n} chunks added" in words(run("gather", "memory://bucket/copy", first[0]).output)
        assert len(store.glob("/bucket/copy/*.npz")) == n and store.exists("/bucket/copy/command.json")
        assert "holds no run" in words(run("gather", tmp_path / "b", "memory://bucket/none").output)
        assert "cannot be reached" in words(run("status", "nowhere://bucket/run").output)
    finally:
        store.rm("/bucket", recursive=True)


@pytest.mark.slow
def test_rankings_are_kept_too(table, tmp_path):
    asked = ("rank", table, *FORMULAS, "y ~ bmi", *CHAINS, "--dir", tmp_path / "run")
    first = run(*asked)
    assert first.exit_code == 0, first.output
    chunks = {path.name for path in (tmp_path / "run").glob("*.npz")}
    again = run("resume", tmp_path / "run")
    assert again.output == first.output and {path.name for path in (tmp_path / "run").glob("*.npz")} == chunks
    found = json.loads(run("status", tmp_path / "run", "--json").output)
    assert len(found["models"]) == 3 and found["error"] <= 0.05
