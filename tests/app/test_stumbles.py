"""Full disks, endings in capitals, files of other versions, models that print: nothing is lost, and all is said."""

import errno
import json
import os
from pathlib import Path
from typing import get_type_hints

import pytest
from command_line import run, words

from crossfade import load_many
from crossfade.app import output, runs, store
from crossfade.data import load
from crossfade.files import appearing
from crossfade.many import COLUMNS, Many
from crossfade.runs.plan import gathered
from crossfade.types import CrossfadeError, Estimate, Result, Sharing

FORMULAS = ("y ~ x", "y ~ z")
LOST = "cannot be written (No space left on device): make room, or give another name"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load("radiata").assign(half=[*"ab"] * 21).to_csv("data.csv", index=False)
    return "data.csv"


@pytest.fixture
def full(monkeypatch):
    def refused(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("crossfade.files._sync", refused)


def one(text: str) -> dict:
    assert text.count("\n") == 1
    return json.loads(text)


@pytest.mark.parametrize(
    ("asked", "names", "says"),
    [
        (("compare", *FORMULAS), ("run.nc", "run.html"), "log Bayes factor"),
        (("compare", *FORMULAS, "--by", "half"), ("rows.csv",), "2 groups: 2 trustworthy"),
        (("rank", *FORMULAS), ("ranking.json", "ranking.html"), "the best of 2 models"),
        (("rank", *FORMULAS), ("ranking.csv",), "the best of 2 models"),
    ],
)
def test_a_full_disk_takes_no_answer_along(table, full, tmp_path, asked, names, says, monkeypatch):
    monkeypatch.setattr("crossfade.runs.chunks.write_whole", lambda path, data: path.write_bytes(data))
    monkeypatch.setattr("crossfade.runs.plan.write_whole", lambda path, data: path.write_bytes(data))
    command, *rest = asked
    options = [part for pair in zip(("--out", "--report"), names, strict=False) for part in pair]
    shown = run(command, table, *rest, *options, "--quiet")
    assert shown.exit_code == 2 and says in words(shown.stdout), shown.output
    assert "Stored in" not in shown.stdout and "are in" not in shown.stdout and "is in" not in shown.stdout
    assert all(f"{name} {LOST}" in words(shown.stderr) for name in names) and "bug" not in shown.stderr
    assert "The answer itself has been printed." in words(shown.stderr)
    shown = run(command, table, *rest, *options, "--json")
    found = one(shown.stdout)
    assert shown.exit_code == 2 and found["kind"] != "error" and f"{names[0]} {LOST}" in words(shown.stderr)
    assert found["not_written"] == {name: f"{name} {LOST}" for name in names}
    assert found.get("stored_in") is None and "report" not in found
    assert not any((tmp_path / name).exists() for name in names)
    documented = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    assert "`not_written`" in documented.split(f"## {found['kind']}\n")[1].split("\n## ")[0]


def test_groups_are_written_in_one_piece_and_their_rows_go(table, tmp_path):
    shown = run("compare", table, *FORMULAS, "--by", "half", "--out", "rows.csv", "--json")
    assert shown.exit_code == 0 and one(shown.stdout)["stored_in"] == "rows.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "rows.csv"]


def test_whoever_reads_may_go_away_before_the_file_is_written(monkeypatch):
    def gone(*_):
        raise BrokenPipeError

    monkeypatch.setattr(output, "show", gone)
    output.first()


def test_a_run_is_packed_in_memory(tmp_path, monkeypatch):
    """HDF5 that cannot close its file may take the process with it."""
    result = Result(Estimate(1.0, 0.1, 9.0, "bar"), "weak", (), {}, {}, {}, (), Sharing((), (), ()), {})
    store.save(result, tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()

    def short(path, data):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(Path, "write_bytes", short)
    with pytest.raises(OSError, match="quota"):
        store.save(result, tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_two_processes_of_one_number_do_not_share_a_file_and_folders_need_not_sync(tmp_path, monkeypatch):
    with appearing(tmp_path / "a") as first, appearing(tmp_path / "a") as second:
        assert first != second and first.name.endswith(".unfinished")
        first.write_text("1")
        second.write_text("2")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["1"]
    real = os.fsync

    def files_only(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "no")
        real(descriptor)

    monkeypatch.setattr("crossfade.files.os.fsync", files_only)
    with appearing(tmp_path / "b") as path:
        path.write_text("3")
    assert (tmp_path / "b").read_text() == "3"


def test_all_paths_are_paths_again():
    hints = {name: get_type_hints(command) for name, command in runs.COMMANDS.items()}
    own = {name for each in hints.values() for name, kind in each.items() if kind == Path | None}
    assert own - {"directory"} == set(runs.PATHS) <= runs.MAY_CHANGE


def test_a_run_with_a_report_is_gone_on_with_from_anywhere(table, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    first = run("compare", table, *FORMULAS, "--dir", "run", "--out", "run.nc", "--report", "run.html", "--quiet")
    assert first.exit_code == 0, first.output
    for path in (tmp_path / "run.nc", tmp_path / "run.html"):
        path.unlink()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for again in (run("resume", "../run", "--json"), run("extend", "../run", "--target-se", 0.1, "--json")):
        assert again.exit_code == 0, again.output
        assert one(again.stdout)["report"] == str(tmp_path / "run.html") and (tmp_path / "run.html").is_file()
    assert (tmp_path / "run.nc").is_file() and not list((tmp_path / "elsewhere").iterdir())
    monkeypatch.chdir(tmp_path)
    other = run("compare", table, *FORMULAS, "--dir", "run", "--report", "other.html", "--quiet")
    assert other.exit_code == 0 and (tmp_path / "other.html").is_file()


def test_a_long_formula_is_no_file(table):
    long = "y ~ " + " + ".join(["x"] * 100)
    shown = run("compare", table, "y ~ z", long, "--dir", "run", "--json")
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"command": "bake"}, "the command 'bake' is not the same in this one"),
        ({"arguments": {"what": ["data.csv", *FORMULAS], "colour": "red"}}, "the option 'colour'"),
        ({"arguments": {}}, "the option 'what'"),
        ({"arguments": [1]}, "cannot be read"),
    ],
)
def test_a_folder_of_another_version(table, tmp_path, change, said):
    run("compare", table, *FORMULAS, "--dir", "run", "--plan")
    path = tmp_path / "run" / runs.COMMAND
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for command in ("resume", "status"):
        refused = run(command, "run")
        assert refused.exit_code == 2 and said in words(refused.stderr), refused.output
        assert "bug" not in refused.stderr


def test_options_that_an_older_version_had_not_are_as_when_left_out(table, tmp_path):
    run("compare", table, *FORMULAS, "--dir", "run", "--plan")
    path = tmp_path / "run" / runs.COMMAND
    path.write_text(json.dumps({"command": "compare", "arguments": {"what": [str(tmp_path / table), *FORMULAS]}}))
    assert "log Bayes factor so far" in run("status", "run").stdout
    assert run("resume", "run").exit_code == 0


def test_status_shows_no_number_that_would_mislead(table, monkeypatch):
    run("compare", table, *FORMULAS, "--dir", "run", "--plan")
    bad = Result(Estimate(7.654, 0.01, 9.0, "mbar"), "do not use", ("No.",), {}, {}, {}, (), Sharing((), (), ()), {})
    monkeypatch.setattr(runs, "compared", lambda *_, **__: bad)
    shown = run("status", "run")
    assert "There is no number to be used so far." in shown.stdout and "7.65" not in shown.output
    assert "Verdict so far: do not use" in shown.stdout
    found = one(run("status", "run", "--json").stdout)
    assert found["value"] is None and found["nulls"] == {"value": "the verdict is 'do not use'"}
    assert "7.65" not in found["said"]


@pytest.mark.parametrize("command", [("compare", "--by", "half"), ("rank",)])
def test_the_data_are_not_written_over(table, command, tmp_path):
    before = (tmp_path / table).read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    for out in (table, tmp_path / table, "link.csv"):
        refused = run(command[0], table, *FORMULAS, *command[1:], "--out", out)
        assert refused.exit_code == 2 and "is the data, which would be lost" in words(refused.stderr)
    assert (tmp_path / table).read_bytes() == before


def test_a_page_of_data_is_not_written_over(table, tmp_path):
    (tmp_path / table).rename("data.html")
    refused = run("rank", "data.html", *FORMULAS, "--report", "data.html")
    assert refused.exit_code == 2 and "--report data.html is the data" in words(refused.stderr)


def test_endings_in_capitals(table, tmp_path):
    shown = run("compare", table, *FORMULAS, "--out", "R.NC", "--report", "R.HTML", "--quiet")
    assert shown.exit_code == 0 and (tmp_path / "R.HTML").is_file(), shown.output
    assert run("report", "R.NC", "--out", "S.HTML").exit_code == 0
    assert run("rank", table, *FORMULAS, "--out", "T.CSV", "--quiet").exit_code == 0
    assert (tmp_path / "T.CSV").read_text().startswith("model,")
    assert run("rank", table, *FORMULAS, "--out", "T.JSON", "--quiet").exit_code == 0
    assert run("report", "T.JSON").exit_code == 0
    for name in ("M.CSV", "M.JSONL"):
        assert run("compare", table, *FORMULAS, "--by", "half", "--out", name, "--quiet").exit_code == 0
        assert [row["name"] for row in load_many(name).rows] == ["a", "b"]
        assert run("report", name, "--out", "many.html").exit_code == 0
    assert (tmp_path / "M.CSV").read_text().startswith("name,")


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_data_sets_may_be_called_nothing(tmp_path, ending):
    names = ["NA", "None", "nan", "007", "null"]
    rows = (dict.fromkeys(COLUMNS) | {"name": name, "verdict": "failed", "seed": 1} for name in names)
    Many(tuple(rows)).save(path := tmp_path / f"table{ending}")
    assert [row["name"] for row in load_many(path).rows] == names
    assert all(row["log_bayes_factor"] is None for row in load_many(path).rows)


def test_models_that_print_leave_the_output_alone(tmp_path, monkeypatch):
    (tmp_path / "loud.py").write_text(
        "from crossfade import Model\n"
        "import numpyro.distributions as dist\n"
        "print('read')\n"
        "def m1():\n"
        "    print('made')\n"
        "    return Model({'a': dist.Normal(0, 1)}, lambda a: -(a**2))\n"
        "m2 = m1()\n"
    )
    monkeypatch.chdir(tmp_path)
    shown = run("compare", "loud.py:m1", "loud.py:m2", "--dir", "run", "--plan", "--json")
    assert shown.exit_code == 0, shown.output
    assert one(shown.stdout)["kind"] == "plan" and shown.stderr.count("made") == 2 and "read" in shown.stderr


@pytest.mark.parametrize("workers", [0, -1])
def test_workers_are_counted_before_it_is_known_whether_they_are_needed(table, workers):
    for command in ("compare", "rank"):
        refused = run(command, table, *FORMULAS, "--workers", workers)
        assert refused.exit_code == 2 and f"--workers {workers}: give a number of at least 1" in words(refused.stderr)


def test_gathering_into_what_cannot_be_a_folder(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").write_text('{"format": 1, "models": {}, "settings": {}, "versions": {}}')
    (tmp_path / "file").write_text("")
    with pytest.raises(CrossfadeError, match=r"file/into cannot be made .*: choose another folder for the run"):
        gathered(tmp_path / "file" / "into", [tmp_path / "run"], print)
