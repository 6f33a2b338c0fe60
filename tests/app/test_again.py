"""A stored run read with another estimator: honest errors, the same verdict, and plain refusals."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from crossfade.app import cli, store
from crossfade.app.again import read_with
from crossfade.app.stopped import unanswered
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing, Trace

EQUILIBRIUM = Trace(
    np.array([0.0, 0.5, 1.0]),
    np.random.default_rng(1).normal(2.0, 0.5, (4, 3, 100)),
    np.ones((4, 3)),
    True,
)


def of_default(**changes) -> Result:
    """The errors are larger than any that the traces alone could give."""
    run = Result(
        Estimate(2.0, 0.5, 9.0, "mbar"), "weak", ("The standard error is 0.5. Ask for more draws.",),
        {"bar": Estimate(2.1, 0.6, 9.0, "bar"), "stepping_stone": Estimate(2.5, 0.9, 9.0, "stepping_stone"),
         "jarzynski": Estimate(3.0, np.inf, 9.0, "jarzynski"), "trapezoid": Estimate(3.0, 51.0, 9.0, "trapezoid")},
        {"bar": Estimate(0.1, 0.02, 9.0), "stepping_stone": Estimate(0.5, 0.3, 9.0)},
        {"hysteresis": Estimate(0.1, 0.1, 9.0)}, (Leg("half 1", 1.0, EQUILIBRIUM, None),), Sharing((), (), ()),
        {"method": "auto"},
    )  # fmt: skip
    return run._replace(**changes)


def estimate(path: Path, *options: str):
    return CliRunner().invoke(cli.app, ["estimate", str(path), *options])


def words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


@pytest.fixture
def path(tmp_path) -> Path:
    store.save(of_default(), tmp_path / "run.nc")
    return tmp_path / "run.nc"


def test_an_opinion_of_the_default_method_keeps_its_error(path):
    shown = estimate(path, "--with", "bar")
    assert shown.exit_code == 0
    assert "log Bayes factor 2.10 ± 0.60 of M2 over M1 (bar)" in words(shown.stdout)
    assert "mbar 2.00 ± 0.50 -0.100 ± 0.020" in words(shown.stdout)


def test_an_opinion_that_becomes_the_answer_changes_nothing_else():
    run = of_default()
    again = read_with(run, "bar")
    assert list(again.opinions) == ["mbar", "stepping_stone", "jarzynski", "trapezoid"]
    assert again.differences == {"mbar": Estimate(-0.1, 0.02, 9.0)}
    kept = ("verdict", "reasons", "checks", "legs", "sharing", "about", "draws")
    assert all(getattr(again, name) is getattr(run, name) for name in kept)
    assert read_with(again, "mbar").raw_estimate == run.raw_estimate


def test_the_answer_s_own_estimator_changes_nothing(path):
    assert read_with(of_default(), "mbar") == of_default()
    assert estimate(path, "--with", "mbar").stdout == estimate(path).stdout


def test_between_two_rungs_bar_is_mbar():
    ends = EQUILIBRIUM._replace(tau=np.array([0.0, 1.0]), log_ratio=EQUILIBRIUM.log_ratio[:, :2])
    run = of_default(opinions={}, legs=(Leg("half 1", 1.0, ends, None),))
    assert read_with(run, "bar") == run._replace(raw_estimate=Estimate(2.0, 0.5, 9.0, "bar"))
    with pytest.raises(CrossfadeError, match="no answer by 'bar': choose one of mbar"):
        read_with(of_default(opinions={}), "bar")  # there are three


@pytest.mark.parametrize("name", ["crooks", "jarzynski", "trapezoid", "magic"])
def test_an_opinion_that_is_not_there_or_says_nothing_is_refused(path, name):
    refused = estimate(path, "--with", name)
    assert refused.exit_code == 2 and refused.stdout == ""
    expected = f"Error: this run has no answer by '{name}': choose one of mbar, bar, stepping_stone"
    assert words(refused.stderr) == expected
    assert "finish" not in refused.stderr


def test_a_run_of_the_second_format_keeps_its_errors(tmp_path):
    old = Path(__file__).with_name("format_2.nc.gz").read_bytes()
    (tmp_path / "old.nc").write_bytes(gzip.decompress(old))
    shown = words(estimate(tmp_path / "old.nc", "--with", "stepping_stone").stdout)
    assert "Verdict: trustworthy" in shown
    assert "6.8204 ± 0.0069 of M2 over M1 (stepping stone)" in shown


@pytest.mark.parametrize("options", [(), ("--with", "bar")])
@pytest.mark.parametrize("method", ["auto", "MBAR"])
def test_no_number_of_a_run_that_must_not_be_used(tmp_path, method, options):
    apart = EQUILIBRIUM.log_ratio + np.array([-9.0, -3.0, 3.0, 9.0])[:, None, None]  # every chain is elsewhere
    legs = (Leg("M1 to M2", 1.0, EQUILIBRIUM._replace(log_ratio=apart), None),)
    store.save(of_default(about={"method": method}, legs=legs, verdict="do not use"), tmp_path / "run.nc")
    shown = estimate(tmp_path / "run.nc", *options)
    assert shown.exit_code == 3 and "Verdict: do not use" in shown.stdout
    assert "Answer" not in shown.stdout and "2.00" not in shown.stdout and "2.10" not in shown.stdout


def test_a_method_of_the_table_is_computed_anew():
    run = of_default(about={"method": "MBAR"})
    again = read_with(run, "bar")
    assert again.raw_estimate.name == "bar" and again.raw_estimate.error < 0.1
    assert again.raw_estimate.value == pytest.approx(2.0, abs=0.2)
    assert again.verdict == ("weak" if again.reasons else "trustworthy") and again.checks == {}
    with pytest.raises(CrossfadeError, match="unknown estimator 'magic'"):
        read_with(run, "magic")


def test_a_method_of_the_table_is_judged_anew_by_its_own_rule():
    """Here the traces are sound, and it was the estimator that could not be used."""
    again = read_with(of_default(about={"method": "AIS"}, verdict="do not use"), "bar")
    assert again.verdict != "do not use" and np.isfinite(again.log_bayes_factor.value)


def test_a_run_without_an_answer_can_be_read_with_another_estimator(tmp_path):
    """As it is stored where the estimator of its method refuses the traces."""
    run = unanswered(of_default().legs, {"method": "MBAR"}, "MBAR did not converge: use 'bar'.")
    store.save(run, tmp_path / "run.nc")
    refused = estimate(tmp_path / "run.nc")
    assert refused.exit_code == 2 and "MBAR did not converge: use 'bar'." in words(refused.stderr)
    assert "M2 over M1 (bar)" in words(estimate(tmp_path / "run.nc", "--with", "bar").stdout)
    assert np.isnan(run.log_bayes_factor.value) and run.verdict == "do not use"
