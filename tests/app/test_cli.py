"""The command line: the jobs, the messages, the exit codes."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import run, words

from crossfade.app import arguments, options, store
from crossfade.app.tables import read_table
from crossfade.app.words import with_error
from crossfade.data import load
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing, Trace

QUICK = [
    "--method",
    "NETI-DIFF",
    "--n-iter",
    "2000",
    "--n-chains",
    "8",
]  # one size, so that what was compiled once serves again
PRIORS = ["--prior-mean", "0.5", "--prior-mean", "x=0.25", "--prior-precision", "2", "--noise-shape", "0.3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    load("radiata").to_csv(folder / "radiata.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def sweep(folder):
    """One short comparison, stored; most tests look at what it printed or wrote."""
    return run("compare", folder / "radiata.csv", "y ~ x", "y ~ z", *QUICK, *PRIORS, "--out", folder / "sweep.nc")


def test_compare_prints_the_page(sweep):
    assert sweep.exit_code == 0, sweep.output
    page = words(sweep.stdout)
    for expected in (
        "M1 y ~ x M2 y ~ z",
        "only in M1 x only in M2 z",
        "radiata.csv, 42 rows, gaussian family",
        "response and covariates standardised",
        "coefficients ~ N(0.5, variance/2), but x ~ N(0.25, variance/2); 1/variance ~ Gamma(0.3, rate 0.1)",
        "log Bayes factor",
        "95 % interval",
        "for M2",
        "p(M2 | data)",
        "crooks",
        "NETI-DIFF, 2,000 iterations x 8 chains, seed 0",
        "Stored in",
    ):
        assert expected in page, expected
    assert max(len(line) for line in sweep.stdout.splitlines() if "Stored" not in line) <= 80
    assert sweep.stderr == ""


def test_compare_is_right(folder, sweep):
    """Within 4 standard errors of the exact answer under the priors asked for, and the error is not huge."""
    from crossfade.bridges.formula import Prior, from_formulas
    from crossfade.worlds.linear import log_evidence

    prior = Prior(mean=0.5, means={"x": 0.25}, precision=2.0, noise_shape=0.3)
    m1, m2 = from_formulas(load("radiata"), "y ~ x", "y ~ z", prior=prior)
    estimate = store.load(folder / "sweep.nc").log_bayes_factor
    assert abs(estimate.value - (log_evidence(m2) - log_evidence(m1))) < 4 * estimate.error < 1


def test_the_same_seed_gives_the_same_answer(folder, sweep):
    first = store.load(folder / "sweep.nc")
    stored = folder / "again.nc"
    run("compare", folder / "radiata.csv", "y ~ x", "y ~ z", *QUICK, *PRIORS, "--out", stored)
    assert store.load(stored).log_bayes_factor == first.log_bayes_factor


def test_estimate_and_print_show_the_page_of_the_run(folder, sweep):
    page = sweep.stdout[: sweep.stdout.index("\nStored in")]
    shown = run("estimate", folder / "sweep.nc")
    assert shown.exit_code == 0 and shown.stdout == page
    assert f"{store.load(folder / 'sweep.nc')}\n" == page


def test_estimate_with_another_estimator(folder, sweep):
    result = store.load(folder / "sweep.nc")
    shown = words(run("estimate", folder / "sweep.nc", "--with", "crooks").stdout)
    assert "M2 over M1 (crooks)" in shown and "trapezoid" in shown
    assert f"log Bayes factor {with_error(result.opinions['crooks'])}" in shown


def test_estimate_refuses_an_illegal_pair_and_names_the_legal_ones(folder, sweep):
    refused = run("estimate", folder / "sweep.nc", "--with", "bar")
    assert refused.exit_code == 2 and refused.stdout == ""
    assert "bar: needs equilibrium draws" in words(refused.stderr)
    assert "legal on this trace: trapezoid, jarzynski" in words(refused.stderr)


@pytest.mark.slow
def test_estimate_bar_on_a_run_with_rungs(folder):
    done = run(
        "compare",
        folder / "radiata.csv",
        "y ~ x",
        "y ~ z",
        *QUICK,
        "--method",
        "MBAR",
        "--out",
        folder / "k.nc",
    )
    assert done.exit_code == 0, done.output
    assert "M2 over M1 (bar)" in words(run("estimate", folder / "k.nc", "--with", "bar").stdout)


def test_estimate_needs_no_jax(folder, sweep):
    code = (
        "import sys; from crossfade.app.cli import app\n"
        f"try: app(['estimate', {str(folder / 'sweep.nc')!r}, '--with', 'jarzynski'])\n"
        "except SystemExit as stop: print('code', stop.code, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "M2 over M1 (jarzynski)" in words(done.stdout)
    assert done.stdout.endswith("code 0 False\n")


@pytest.mark.slow
def test_demo_prints_the_exact_answer_beside_the_estimate(monkeypatch):
    import crossfade.api

    full, asked = crossfade.compare, {}
    module = sys.modules["crossfade.api"]

    def noted(m1, m2, **options):
        asked.update(options)
        return full(m1, m2, **options)

    monkeypatch.setattr(module, "compare", noted)
    shown = run("demo")
    assert shown.exit_code == 0, shown.output
    assert asked == {"target_se": 0.005, "seed": 0, "route": "path", "progress": True}
    page = words(shown.stdout)
    assert "Verdict: trustworthy" in page and "exact log Bayes factor can be computed: it is 8.8571" in page
    away = float(page.split("standard errors away")[0].split()[-1])
    assert away < 4


MODELS = """
import numpy as np, numpyro, numpyro.distributions as dist
import crossfade
y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
def likelihood(p): return dist.Normal(p["mu"], 1.0).log_prob(y).sum()
m1 = crossfade.Model({"mu": dist.Normal(0.0, 1.0)}, likelihood, data=y)
def m2():
    mu = numpyro.sample("mu", dist.Normal(1.0, 3.0))
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)
def made(): return m1
number = 3
"""


def test_models_in_a_file_and_a_stored_answer(tmp_path, monkeypatch):
    (tmp_path / "models.py").write_text(MODELS)
    models = tmp_path / "models.py"
    shown = run("compare", f"{models}:made", f"{models}:m2", "--target-se", "0.01", "--out", tmp_path / "run.nc")
    assert shown.exit_code == 0, shown.output
    assert "Verdict: trustworthy" in words(shown.stdout) and "only in M2 nothing" in words(shown.stdout)
    stored = store.load(tmp_path / "run.nc")
    assert stored.log_bayes_factor.value == pytest.approx(-0.9279, abs=4 * stored.log_bayes_factor.error)
    assert stored.verdict == "trustworthy" and stored.posteriors["M1"].posterior["mu"].ndim == 2
    assert shown.stdout.startswith(f"{stored}\n\nStored in")
    opinion = stored.opinions.get("bar", stored.raw_estimate)
    assert f"{with_error(opinion)} of M2 over M1 (bar)" in run("estimate", tmp_path / "run.nc", "--with", "bar").stdout
    for name, message in (
        (f"{models}:m3", "has no 'm3'"),
        (f"{models}:number", "is a int"),
        (f"{tmp_path / 'none.py'}:m1", "there is no file"),
        ("m1", "write it as FILE.py:NAME"),
    ):
        refused = run("compare", f"{models}:m1", name)
        assert refused.exit_code == 2 and message in words(refused.stderr), refused.output


@pytest.mark.parametrize("method", ["auto", "NETI"])
def test_without_an_answer_no_number_is_printed(folder, monkeypatch, method):
    import crossfade.api  # noqa: F401 - so that there is something to replace

    part = Trace(np.array([0.0, 1.0]), np.zeros((4, 2, 5)), np.ones((4, 2)), True)
    bad = Result(
        Estimate(7.654, 0.01, 9, "mbar"), "do not use", ("The chains of M1 disagree. Run them longer.",), {}, {}, {},
        (Leg("half 1", 0.5, part, None),), Sharing((), (), ()), {"method": method},
    )  # fmt: skip
    monkeypatch.setattr(sys.modules["crossfade.api"], "compare", lambda *_, **__: bad)
    shown = run("compare", folder / "radiata.csv", "y ~ x", "y ~ z", "--route", "path")
    assert shown.exit_code == 3
    assert "Verdict: do not use" in shown.stdout and "The chains of M1 disagree." in shown.stdout
    assert "7.65" not in shown.stdout and "Answer" not in shown.stdout


def csv(folder, name, content):
    path = folder / name
    path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: it needs a header line"),
        ("\n\n", "is empty: it needs a header line"),
        ("y\n1\n2\n", "has one column only, 'y'"),
        (
            "3040,29.2,25.4\n2470,24.7,22.2\n",
            "begins with numbers (3040, 29.2, 25.4): put a line with the columns' names",
        ),
        ("y,x,z\n1,2,3\n1,2,3,4,5\n", "is not a CSV file that can be read"),
        ("y,x,z\n1,2,3,4\n1,2,3,4\n", "is not a CSV file that can be read"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not CSV text in UTF-8 (byte 0 is 0x89)"),
        (b"y,x\n1,\x00\x00\n", "is not CSV but a binary file"),
        (b"PK\x03\x04rest", "is not CSV but a spreadsheet or archive: save it as CSV"),
        ("y,x\n1,2\n3,4\n5,7\n", "there is no column 'z' in the table: its columns are y, x"),
        ("y,x,z\n1,2,3\n1,,3\n2,3,9\n4,5,5\n", "values are missing in 1 of 4 rows: 'x' has 1 (row 2)"),
        ("y,x,z\n", "the table has no rows"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, message):
    refused = run("compare", csv(tmp_path, "data.csv", content), "y ~ x", "y ~ z")
    assert refused.exit_code == 2
    assert message in words(refused.stderr)
    assert "Traceback" not in refused.output and refused.stdout == ""


def test_files_that_are_no_files(tmp_path):
    assert "is a folder: give a CSV file" in words(run("compare", tmp_path, "y ~ x", "y ~ z").stderr)
    assert "there is no file" in run("compare", tmp_path / "nothing.csv", "y ~ x", "y ~ z").stderr
    assert "there is no file" in run("estimate", tmp_path / "nothing.nc").stderr


def test_byte_order_mark_and_spaces_are_read(tmp_path):
    path = csv(tmp_path, "data.csv", "﻿y, x\n1, 2\n3, 4\n".encode())
    pd.testing.assert_frame_equal(read_table(path)[0], pd.DataFrame({"y": [1, 3], "x": [2, 4]}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "magic"], "unknown method 'magic': choose one of auto, TI-standard,"),
        (["--family", "probit"], "unknown family 'probit'"),
        (["--scaling", "zscore"], "unknown scaling 'zscore'"),
        (["--prior-mean", "x=two"], "--prior-mean takes a number or NAME=NUMBER, not 'x=two'"),
        (["--prior-precision", "q=2"], "name 'q', which no formula has"),
        (["--prior-sd", "3"], "the gaussian family has no prior sd"),
        (["--n-chains", "1"], "n_chains = 1: the error bar needs at least 2"),
        (["--n-iter", "100"], "--n-iter is for other methods: name one with --method"),
        (["--budget", "later"], "budget = 'later': write it like \"90 s\""),
        (["--share", "q"], "--share q: M1 has no parameter 'q'; it has variance, Intercept, x"),
        (["--family", "logistic"], "'y' must be 0 or 1 in the logistic family"),
    ],
)
def test_options_that_cannot_be_used(folder, options, message):
    refused = run("compare", folder / "radiata.csv", "y ~ x", "y ~ z", *options)
    assert refused.exit_code == 2
    assert message in words(refused.stderr)


def test_a_missing_folder_is_noticed_before_the_run(folder, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the run was started")

    monkeypatch.setattr("crossfade.app.arguments.read_table", never)
    refused = run("compare", folder / "radiata.csv", "y ~ x", "y ~ z", "--out", folder / "nowhere" / "run.nc")
    assert refused.exit_code == 2
    assert "nowhere does not exist: create it" in words(refused.stderr)


def interrupted_by(stop: BaseException, folder, monkeypatch):
    import crossfade.api  # noqa: F401 - so that there is something to replace

    def stopped(*_, **__):
        raise stop

    monkeypatch.setattr(sys.modules["crossfade.api"], "compare", stopped)
    words = ("compare", folder / "radiata.csv", "y ~ x", "y ~ z", "--route", "path")
    return run(*words, "--out", folder / "stopped.nc")


def test_interrupt_says_what_was_finished(folder, monkeypatch):
    from crossfade.sampling.anneal import Interrupted

    part = Trace(np.array([0.0, 0.1, 0.25]), np.zeros((4, 3, 1)), np.ones((4, 3)), False)
    stopped = interrupted_by(Interrupted(part, None), folder, monkeypatch)
    assert stopped.exit_code == 130
    assert "4 chains had finished 3 rungs of a path, up to tau = 0.25" in words(stopped.stderr)
    assert not (folder / "stopped.nc").exists()


def test_an_interrupted_run_is_kept_but_is_no_answer(folder, monkeypatch):
    from crossfade.sampling.anneal import Interrupted

    part = Trace(np.array([0.0, 0.1, 0.25]), np.zeros((4, 3, 1)), np.ones((4, 3)), False)
    stop = Interrupted(part, None)
    stop.legs = (Leg("M1 to M2", 1, part, None),)
    stopped = interrupted_by(stop, folder, monkeypatch)
    assert stopped.exit_code == 130 and "unfinished run is kept in" in words(stopped.stderr)
    monkeypatch.undo()
    from crossfade.app import store

    np.testing.assert_array_equal(store.load(folder / "stopped.nc").legs[0].forward.tau, part.tau)
    (folder / "kept.nc").write_bytes((folder / "stopped.nc").read_bytes())
    (folder / "stopped.nc").unlink()
    shown = run("estimate", folder / "kept.nc")
    assert shown.exit_code == 2 and "stopped before its end" in words(shown.stderr)
    refused = run("estimate", folder / "kept.nc", "--with", "trapezoid")
    assert refused.exit_code == 2 and "stopped before its end" in words(refused.stderr)


def test_interrupt_before_the_first_rung(folder, monkeypatch):
    stopped = interrupted_by(KeyboardInterrupt(), folder, monkeypatch)
    assert stopped.exit_code == 130 and "Nothing was finished" in stopped.stderr


def test_a_bug_is_one_line_and_a_code_of_its_own(folder, monkeypatch):
    shown = interrupted_by(ZeroDivisionError("by\nnothing"), folder, monkeypatch)
    assert shown.exit_code == 1 and shown.stdout == ""
    said = "Error: ZeroDivisionError: by nothing. This is a bug in crossfade, or in a model that it was given: run it"
    assert words(shown.stderr).startswith(said) and "Traceback" not in shown.stderr
    shown = run("compare", folder / "radiata.csv", "y ~ x", "y ~ z", "--route", "path", "--debug")
    assert shown.exit_code == 1 and "Traceback" in shown.stderr and "ZeroDivisionError: by\nnothing" in shown.stderr
    assert interrupted_by(CrossfadeError("say what [x]"), folder, monkeypatch).stderr == "Error: say what [x]\n"


def test_help_names_everything_and_waits_for_nothing_slow():
    command = [sys.executable, "-X", "importtime", "-m", "crossfade.app.cli", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(command in shown.stdout for command in ("demo", "compare", "doctor", "estimate"))
    imported = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert "rich" in imported and "typer" in imported  # the list is read as it should be
    assert not imported & {"jax", "pandas", "scipy", "xarray", "formulaic", "numpyro", "matplotlib"}


def test_no_arguments_shows_help_and_version_is_the_package_s():
    assert "Usage: crossfade" in run().output
    assert run("--version").stdout == "crossfade 0.1.0\n"


def test_help_lists_the_methods_and_estimators_there_are(folder, sweep):
    from crossfade import METHODS

    assert ", ".join(METHODS) == options.METHODS
    refused = run("estimate", folder / "sweep.nc", "--with", "magic")
    assert refused.exit_code == 2
    assert f"unknown estimator 'magic': choose one of {options.ESTIMATORS}" in words(refused.stderr)


def test_prior_options():
    assert arguments.by_name("--prior-mean", None) == {}
    assert arguments.by_name("--prior-mean", ["2", "x=3", "I(x == 1)=-4e-1"]) == {
        "": 2.0,
        "x": 3.0,
        "I(x == 1)": -0.4,
    }


def test_compiled_programs_are_kept_where_the_user_says(tmp_path):
    code = (
        "from crossfade.app.terminal import keep_compiled; keep_compiled()\n"
        "import jax; print(jax.config.values['jax_compilation_cache_dir'])"
    )
    for given, expected in (
        ({"XDG_CACHE_HOME": str(tmp_path)}, tmp_path / "crossfade" / "jax"),
        ({"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "own")}, tmp_path / "own"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"HOME": str(tmp_path), **given},
        )
        assert done.stdout.strip() == str(expected)
