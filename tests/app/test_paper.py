"""`crossfade paper`: the whole way from jobs to tables and figures, on experiments cut down to seconds."""

import json

import pandas
import pytest
from typer.testing import CliRunner

from crossfade.app.cli import app
from crossfade.app.paper import NAMES


def run(*arguments):
    return CliRunner().invoke(app, ["paper", *map(str, arguments)])


# Per experiment: what is cut down, and what must come out.
SMALL = {
    "radiata": ({"regressions.LENGTHS": {False: (4_000, 8_000)}}, {"errors", "variances", "ratios", "ladders"}),
    "pima": ({"regressions.LENGTHS": {False: (4_000, 8_000)}}, {"errors", "variances", "ratios", "ladders"}),
    "radiocarbon": (
        {"radiocarbon.LENGTH": {False: 8_000}},
        {"errors", "variances", "ratios", "paths", "partial"},
    ),
    "biopathway": (
        {
            "biopathway.LENGTHS": {False: (2_000, 4_000)},
            "biopathway.FIXED_LENGTH": {False: 2_000},
            "biopathway.TARGET": {False: 0.1},
        },
        {"ladders", "boxes", "variances", "errors", "ratios", "convergence"},
    ),
    "graphical": (
        {
            "graphical.BETAS": (0.3,),
            "graphical.N_DATA_SETS": 2,
            "graphical.N_POPULATION": 50,
            "graphical.LENGTH": {False: 2_000},
            "graphical.GIBBS_LENGTH": {False: 1_000},
        },
        {""},
    ),
    "galaxy": ({"galaxy.LENGTHS": {False: (4_000, 8_000)}, "galaxy.BUDGET": {False: 300.0}}, {""}),
    "future": ({"future.LENGTHS": {False: (1_000, 2_000)}}, {""}),
    "runtime": ({"runtime.UNIT": 10_000}, {""}),
}


def test_every_experiment_is_tried():
    assert set(SMALL) == set(NAMES)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_tables_and_figures_come_out(name, tmp_path, monkeypatch):
    settings, figures = SMALL[name]
    for target, value in settings.items():
        monkeypatch.setattr(f"crossfade.papers.{target}", value)
    result = run(name, "--out", tmp_path, "--repeats", 3)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "quick"
    for figure in figures:
        stem = f"{name}-{figure}" if figure else name
        for suffix in ("png", "svg"):
            assert (folder / f"{stem}.{suffix}").stat().st_size > 5_000
    for table in folder.glob("*.csv"):
        assert len(pandas.read_csv(table)), table
    before = {path: path.stat().st_mtime_ns for path in (folder / "jobs" / name).iterdir()}
    again = run(name, "--out", tmp_path, "--repeats", 3, "--finished")
    assert again.exit_code == 0, again.output
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "jobs" / name).iterdir()}
    status = json.loads(CliRunner().invoke(app, ["status", str(tmp_path), "--json"]).output)
    assert status["done"] == status["jobs"] and status["done"][name] > 0
    resumed = CliRunner().invoke(app, ["resume", str(tmp_path)])
    assert resumed.exit_code == 0 and resumed.output.splitlines()[-3:] == again.output.splitlines()[-3:]
    shared = CliRunner().invoke(app, ["work", str(tmp_path), "--quiet"])
    assert shared.exit_code == 0 and ("0 of 0 tasks" in shared.output) == (name != "runtime"), shared.output


def test_what_cannot_be_run_is_said(tmp_path):
    for arguments, message in (
        (("moon",), "there is no experiment 'moon'"),
        (("radiata", "--quick", "--full"), "not both"),
        (("radiata", "--finished", "--out", tmp_path), "no job of radiata is done"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2 and message in " ".join(result.output.split())
