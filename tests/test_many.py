"""One pair, many data sets: rows as of single comparisons, failures in their rows, nothing lost by a kill."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import numpyro
import pandas
import pytest
from numpyro import distributions as dist
from typer.testing import CliRunner

import crossfade
from crossfade import compare, compare_many, from_formulas
from crossfade import many as many_module
from crossfade.app.cli import app
from crossfade.many import COLUMNS, EFFECT, OF_COMPARE, UNFINISHED
from crossfade.runs import chunks as chunks_module
from crossfade.runs.chunks import Chunks
from crossfade.types import CrossfadeError

RANDOM = np.random.default_rng(3)


def table(effect=0.0, n=30):
    x, z = RANDOM.normal(size=(2, n))
    return pandas.DataFrame({"y": 1 + 0.5 * x + effect * z + RANDOM.normal(size=n), "x": x, "z": z})


TABLES = {"a": table(), "b": table(0.8), "flat": table().assign(x=1.0), "c": table(0.3)}
FORMULAS = ("y ~ x", "y ~ x + z")


def exact(rows):
    return compare(*from_formulas(rows, *FORMULAS)).log_bayes_factor.value


def test_rows_are_those_of_single_comparisons_and_failures_say_why():
    found = compare_many(*FORMULAS, TABLES)
    rows = found.table
    assert list(rows.index) == list(TABLES)
    for name in ("a", "b", "c"):
        assert rows.loc[name, "log_bayes_factor"] == pytest.approx(exact(TABLES[name]), abs=1e-10)
        assert rows.loc[name, "verdict"] == "trustworthy"
    assert rows.loc["flat", "verdict"] == "failed" and "'x' is constant" in rows.loc["flat", "reason"]
    assert np.isnan(rows.loc["flat", "log_bayes_factor"])
    assert found.verdicts == {"trustworthy": 3, "failed": 1}
    assert "4 data sets: 3 trustworthy, 1 failed" in str(found)


def test_a_row_says_how_large_the_effect_is():
    """Against the normal equations by hand; the twin is the slope without a prior."""
    (row,) = compare_many(*FORMULAS, {"b": TABLES["b"]}).rows
    standard = (TABLES["b"] - TABLES["b"].mean()) / TABLES["b"].std()
    design = np.column_stack([np.ones(30), standard["x"], standard["z"]])
    gram = design.T @ design
    mean = np.linalg.solve(gram + np.eye(3), design.T @ standard["y"])[2]
    plain = np.linalg.solve(gram, design.T @ standard["y"])[2]
    sd = (row["effect_high"] - row["effect_low"]) / 4
    assert row["effect_low"] < mean < row["effect_high"] and 0.05 < sd < 0.3
    assert abs(row["effect"] - mean) < 4 * sd / 4096**0.5 < abs(row["effect"] - plain)
    (label,) = compare_many("y ~ x", "y ~ x + kind", {"b": TABLES["b"].assign(kind=[*"uv"] * 15)}).rows
    assert label["effect_high"] - label["effect_low"] > 1.5 * 4 * sd  # from one level to the other is two sds
    both = compare_many("y ~ 1", "y ~ x + z", {"b": TABLES["b"]}).rows[0]  # two numbers differ, so it is neither
    assert [both[name] for name in EFFECT] == [None] * 3


def test_a_row_depends_on_its_own_name_alone():
    counts = {name: rows.assign(y=np.round(np.exp(rows["y"] / 3))) for name, rows in TABLES.items() if name != "flat"}
    some = compare_many(*FORMULAS, dict(reversed(counts.items())), family="poisson").table
    alone = compare_many(*FORMULAS, {"b": counts["b"]}, family="poisson").table
    columns = ["log_bayes_factor", "error", "seed"]
    assert some.loc["b", columns].tolist() == alone.loc["b", columns].tolist()
    other = compare_many(*FORMULAS, {"b": counts["b"]}, family="poisson", seed=1).table
    assert other.loc["b", "log_bayes_factor"] != alone.loc["b", "log_bayes_factor"]


def narrow(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def wide(y):
    mu = numpyro.sample("mu", dist.Normal(0, 3))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def log_evidence(y, sd):
    cover = np.eye(len(y)) + sd**2
    return -0.5 * (y @ np.linalg.solve(cover, y) + np.linalg.slogdet(2 * np.pi * cover)[1])


def test_numpyro_models_of_many_data_sets():
    sets = [RANDOM.normal(1.0, 1.0, size=8) for _ in range(3)]
    rows = compare_many(narrow, wide, sets, target_se=0.02).table
    for row, y in zip(rows.itertuples(), sets, strict=True):
        truth = log_evidence(y, 3.0) - log_evidence(y, 1.0)
        assert row.error <= 0.02 and abs(row.log_bayes_factor - truth) < 4 * row.error


def made(y, sd):
    def likelihood(theta):
        return dist.Normal(theta["mu"], 1.0).log_prob(y).sum()

    return crossfade.Model({"mu": dist.Normal(0.0, sd)}, likelihood, data=y)


def test_functions_that_make_models_with_named_data():
    y = RANDOM.normal(size=6)
    rows = compare_many(lambda y: made(y, 1.0), lambda y: made(y, 3.0), {"one": {"y": y}}, target_se=0.02).table
    truth = log_evidence(y, 3.0) - log_evidence(y, 1.0)
    assert abs(rows.loc["one", "log_bayes_factor"] - truth) < 4 * rows.loc["one", "error"]


def test_what_cannot_be_done_is_said_before_the_work(tmp_path):
    with pytest.raises(CrossfadeError, match="two formulas, or two functions"):
        compare_many(made(np.ones(3), 1.0), made(np.ones(3), 2.0), [])
    with pytest.raises(CrossfadeError, match=r"written as \.csv, \.jsonl, \.parquet"):
        compare_many(*FORMULAS, TABLES, out=tmp_path / "table.txt")
    with pytest.raises(CrossfadeError, match="does not exist"):
        compare_many(*FORMULAS, TABLES, out=tmp_path / "nowhere" / "table.csv")
    with pytest.raises(CrossfadeError, match="two data sets are called '1'"):
        compare_many(*FORMULAS, {1: TABLES["a"], "1": TABLES["b"]})


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_tables_are_written_by_their_ending(tmp_path, ending):
    out = tmp_path / f"table.{ending}"
    found = compare_many(*FORMULAS, TABLES, out=out)
    back = pandas.read_csv(out) if ending == "csv" else pandas.read_json(out, lines=True)
    np.testing.assert_allclose(back["log_bayes_factor"], found.table["log_bayes_factor"], rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name]


def test_parquet_or_what_is_missing(tmp_path):
    out = tmp_path / "table.parquet"
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        with pytest.raises(CrossfadeError, match="Parquet needs pyarrow"):
            compare_many(*FORMULAS, TABLES, out=out)
    else:
        compare_many(*FORMULAS, TABLES, out=out)
        assert len(pandas.read_parquet(out)) == len(TABLES)


def stopped_before_the_table(out, monkeypatch):
    """All rows are made, a chunk each, and the process ends before it writes the table."""
    with monkeypatch.context() as patch:
        patch.setattr(chunks_module, "SECONDS", 0.0)
        patch.setattr("crossfade.many.Many.save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compare_many(*FORMULAS, TABLES, out=out)
    return out.with_name(out.name + UNFINISHED)


def test_finished_rows_are_not_made_again(tmp_path, monkeypatch):
    out, whole, made = tmp_path / "table.csv", compare_many(*FORMULAS, TABLES), []
    folder = stopped_before_the_table(out, monkeypatch)
    every = sorted(folder.glob("*.npz"))
    assert len(every) == len(TABLES)
    every[1].write_bytes(every[1].read_bytes()[:-7])  # one is cut off
    own = many_module._row
    monkeypatch.setattr(many_module, "_row", lambda *args: made.append(args[0]) or own(*args))
    again = compare_many(*FORMULAS, TABLES, out=out)
    assert len(made) == 1 and not folder.exists() and out.is_file()
    for before, after in zip(whole.rows, again.rows, strict=True):
        assert before["log_bayes_factor"] == after["log_bayes_factor"]


def test_rows_of_other_settings_or_other_data_are_not_taken(tmp_path, monkeypatch):
    out = tmp_path / "table.csv"
    stopped_before_the_table(out, monkeypatch)
    with pytest.raises(CrossfadeError, match="scaling was not given and is 'centre'"):
        compare_many(*FORMULAS, TABLES, out=out, scaling="centre")
    with pytest.raises(CrossfadeError, match="holds another run: seed was 0 and is 1"):
        compare_many(*FORMULAS, TABLES, out=out, seed=1)
    changed = {**TABLES, "a": TABLES["a"].assign(y=TABLES["a"]["y"] * np.linspace(0.5, 2, 30))}
    found = compare_many(*FORMULAS, changed, out=out)
    assert found.table.loc["a", "log_bayes_factor"] == pytest.approx(exact(changed["a"]), abs=1e-10)


def shifted(sd):
    def model(y):
        return crossfade.Model({"m": dist.Normal(0, sd)}, lambda theta: -((y - theta["m"]) ** 2).sum() / 2, data=y)

    return model


def test_rows_of_another_model_with_the_same_text_are_not_taken(tmp_path):
    data = {"a": np.array([1.0, 2.0])}

    def asked(sd):
        return compare_many(shifted(1.0), shifted(sd), data, directory=tmp_path / "run", target_se=0.1, progress=False)

    assert abs(asked(1.0).rows[0]["log_bayes_factor"]) < 1e-6
    with pytest.raises(CrossfadeError, match="holds another run: models was 'shifted"):
        asked(50.0)


def test_a_failure_that_may_pass_is_not_kept(tmp_path):
    disk = tmp_path / "disk"

    def model(y):
        if not disk.exists():
            raise OSError("the disk was away for a second")
        return shifted(1.0)(y)

    def row():
        asked = {"directory": tmp_path / "run", "target_se": 0.1, "progress": False}
        return compare_many(model, shifted(1.0), {"a": np.array([1.0, 2.0])}, **asked).rows[0]

    assert row()["reason"].startswith("OSError: the disk was away") and set(row()) == set(COLUMNS)
    disk.touch()
    assert row()["verdict"] == "trustworthy"


def test_a_directory_stays_and_is_found_again(tmp_path, monkeypatch):
    first = compare_many(*FORMULAS, TABLES, directory=tmp_path / "run")
    monkeypatch.setattr(many_module, "_row", None)  # nothing is made any more
    assert compare_many(*FORMULAS, TABLES, directory=tmp_path / "run", out=tmp_path / "a.csv").rows == first.rows
    assert (tmp_path / "run").is_dir() and (tmp_path / "a.csv").is_file()


def command(folder, *options):
    joined = pandas.concat([rows.assign(gene=name) for name, rows in TABLES.items()])
    joined.to_csv(folder / "genes.csv", index=False)
    return ["compare", str(folder / "genes.csv"), *FORMULAS, "--by", "gene", *options]


def test_the_command_line_by_groups(tmp_path):
    done = CliRunner().invoke(app, command(tmp_path, "--out", str(tmp_path / "table.csv"), "--quiet"))
    assert done.exit_code == 0, done.output
    assert "4 groups: 3 trustworthy, 1 failed." in done.stdout and "flat: " in done.stdout
    assert "effect [95 %]" in done.stdout
    rows = pandas.read_csv(tmp_path / "table.csv", index_col="name")
    assert rows.loc["b", "log_bayes_factor"] == pytest.approx(exact(TABLES["b"]), abs=1e-10)
    refused = CliRunner().invoke(app, command(tmp_path, "--plot", "a.png"))
    assert refused.exit_code == 2 and "--plot is for one comparison" in refused.output
    refused = CliRunner().invoke(app, [*command(tmp_path)[:-1], "name"])
    assert refused.exit_code == 2 and "--by name: there is no such column" in refused.output


@pytest.mark.slow
def test_a_killed_job_goes_on_where_it_stopped(tmp_path):
    """A real process, killed in the middle of 60 groups."""
    rows = pandas.concat([table().assign(gene=f"g{i}") for i in range(60)])
    rows["y"] = np.round(np.exp(rows["y"] / 3))
    rows.to_csv(tmp_path / "genes.csv", index=False)
    out = tmp_path / "table.jsonl"
    code = "from crossfade.runs import chunks; chunks.SECONDS = 0.2; from crossfade.app.cli import main; main()"
    words = [sys.executable, "-c", code, "compare", "genes.csv", *FORMULAS, "--family", "poisson"]
    words += ["--by", "gene", "--out", out.name, "--quiet"]
    folder = out.with_name(out.name + UNFINISHED)
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    for _ in range(2400):
        if len(list(folder.glob("*.npz"))) > 2:
            break
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    chunks = Chunks(folder, print)
    kept = [row for name in chunks.where for row in json.loads(chunks.find(name)["json"].tobytes())]
    assert 3 <= len(kept) < 60 and not out.exists()
    subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    final = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["name"] for row in final] == [f"g{i}" for i in range(60)]
    assert all(row in final for row in kept)  # to the second that they took


def test_settings_that_are_wrong_for_all_are_refused_at_once():
    sets = [pandas.DataFrame({"y": [1.0, 2.0, 4.0], "x": [1.0, 2.0, 3.0]})]
    with pytest.raises(CrossfadeError, match="takes no 'target_es': choose from method, target_se"):
        compare_many("y ~ 1", "y ~ x", sets, target_es=0.1)
    with pytest.raises(CrossfadeError, match="target_se"):
        compare_many("y ~ 1", "y ~ x", sets, target_se=-1)


def test_all_settings_of_a_row_are_known():
    of_the_table = {"m1", "m2", "seed", "directory", "client", "progress"}
    assert set(inspect.signature(crossfade.compare).parameters) == of_the_table | set(OF_COMPARE)
