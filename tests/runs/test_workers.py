"""Work on other processes: the same bits as one process, whoever dies on the way."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import run, words
from numpyro import distributions as dist

import crossfade
from crossfade import compare, compare_many
from crossfade.data import load
from crossfade.ranking import rank
from crossfade.runs.longer import grown_ahead
from crossfade.runs.workers import _called, _packed, cluster, worked
from crossfade.sampling.draws import lengthened
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
ASKED = {"target_se": 0.02, "seed": 4, "progress": False, "n_chains": 8}


@pytest.fixture(scope="module")
def client():
    with cluster(2, None, None) as found:
        yield found


def pair(y=Y):
    """Written here, so that they must travel as they are."""
    import numpyro
    from numpyro import distributions as dist

    def normal(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)

    def student(y):
        mu, sd = numpyro.sample("mu", dist.Normal(0, 1)), numpyro.sample("sd", dist.HalfNormal(1))
        numpyro.sample("y", dist.StudentT(4, mu, sd), obs=y)

    return (normal, y), (student, y)


def bits(result):
    return [float(v).hex() for v in result.raw_estimate[:2]], [leg.forward.log_ratio.tobytes() for leg in result.legs]


def test_a_comparison_has_the_bits_of_one_process(client, tmp_path):
    plain = compare(*pair(), **ASKED)
    said = []
    there = compare(*pair(), **{**ASKED, "progress": said.append}, client=client, directory=tmp_path)
    assert bits(there) == bits(plain)
    assert any("M2 is sampled, 2 of 2" in line or "M1 is sampled, 2 of 2" in line for line in said)
    assert bits(compare(*pair(), **ASKED, directory=tmp_path)) == bits(plain)  # what they made is kept
    again = []  # and nobody is asked for it twice
    compare(*pair(), **{**ASKED, "progress": again.append}, client=client, directory=tmp_path)
    assert any("sampling M1, M2 on" in line for line in said) and not any("sampling" in line for line in again)


@pytest.fixture
def nothing_here(monkeypatch):
    """This process samples nothing itself."""

    def refused(*_):
        raise AssertionError("a segment was sampled here")

    monkeypatch.setattr("crossfade.sampling.hmc._recorded", refused)


LONG = {**ASKED, "target_se": 0.008, "route": "path"}  # more than the first draws give


def test_more_draws_are_made_by_workers_too(client, request):
    plain = compare(*pair(), **LONG)
    assert plain.legs[0].forward.log_ratio.size > 1000  # the first draws are 4 chains, 100 draws, 2 ends
    request.getfixturevalue("nothing_here")
    assert bits(compare(*pair(), **LONG, client=client)) == bits(plain)
    with pytest.raises(AssertionError, match="sampled here"):  # the twin: nobody helps
        compare(*pair(), **LONG)


@pytest.mark.slow
def test_a_ranking_has_the_bits_of_one_process(client, request):
    models = dict(zip("ab", pair(), strict=True))
    plain = rank(models, **LONG)
    assert plain.about["n_draws"]["b"] > 800
    request.getfixturevalue("nothing_here")
    there = rank(models, **LONG, client=client)
    assert (plain.log_evidence == there.log_evidence).all() and (plain.left_out == there.left_out).all()


def test_components_and_steps_that_were_found_are_so_on_workers(client, request):
    """What a run has found out of a model goes along: the worker's chains are the run's, to the bit."""

    def two(p):
        near = [dist.Normal(p["mu"][k], 0.7).log_prob(np.array([-1.0, 1.2, 0.8])) for k in (0, 1)]
        return jnp.logaddexp(*near).sum() - jnp.floor(p["at"])

    model = crossfade.Model({"mu": dist.Normal(np.zeros(2), 2.0).to_event(1), "at": dist.Uniform(0.0, 3.0)}, two)
    hints = {"exchangeable": ["mu"], "discontinuous": ["at"]}
    draws = crossfade.sample(model, n_chains=8, **hints)
    assert draws.joint.numbered == ("mu",) and draws.joint.discontinuous == ("at",)
    plain = draws.more(50)
    request.getfixturevalue("nothing_here")
    with grown_ahead(client, {"two": model}, print):
        longer = lengthened({"two": (draws, 50)})["two"]
    np.testing.assert_array_equal(longer.u, plain.u)


def test_rows_are_made_by_workers(client, tmp_path):
    sets = {f"gene {k}": load("radiata").sample(20, random_state=k) for k in range(6)}
    asked = {"progress": False, "target_se": 0.05}
    plain = compare_many("y ~ x", "y ~ z", sets, **asked)
    there = compare_many("y ~ x", "y ~ z", sets, **asked, client=client, out=tmp_path / "rows.csv")
    assert list(plain.table["log_bayes_factor"]) == list(there.table["log_bayes_factor"])
    assert (tmp_path / "rows.csv").is_file()


def test_what_a_model_prints_on_a_worker_is_not_in_the_output_of_the_command(capsys):
    def loud(x):
        print("hello")
        return x

    assert _called(_packed("loud", loud, (3,))) == 3
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced():
    def slow_square(x):
        time.sleep(1.0)
        return os.getpid(), x**2

    with cluster(2, None, None) as own:
        tasks = [(f"task {k}", slow_square, (k,)) for k in range(6)]
        found = worked(own, tasks, print)
        first, (victim, _) = next(found)
        os.kill(victim, signal.SIGKILL)
        rest = dict(found)
    assert {first, *rest} == {name for name, *_ in tasks}
    assert sorted(square for _, square in rest.values()) == sorted({0, 1, 4, 9, 16, 25} - {int(first[5:]) ** 2})


@contextmanager
def started(folder):
    """As on a cluster: a scheduler and a worker, processes of their own; the scheduler and its file."""
    file, quiet = folder / "scheduler.json", {"stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--port", "0"]
    scheduler = subprocess.Popen([*command, "--no-dashboard", "--host", "127.0.0.1"], **quiet)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1"]
    worker = subprocess.Popen([*command, "--no-dashboard", "--no-nanny"], **quiet)
    try:
        yield scheduler, file
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_scheduler_that_runs_already(tmp_path):
    with started(tmp_path) as (_, file):
        load("radiata").to_csv(tmp_path / "radiata.csv", index=False)
        asked = ("compare", tmp_path / "radiata.csv", "y ~ x", "y ~ z", "--route", "path", "--n-chains", 8, "--quiet")
        plain = run(*asked)
        there = run(*asked, "--scheduler-file", file)
        assert plain.exit_code == there.exit_code == 0, there.output
        first, second = (page.output.rpartition("seed 0")[0] for page in (plain, there))  # then come the seconds
        assert first == second and "Bayes factor" in first


@pytest.mark.slow
def test_a_scheduler_that_dies_is_not_needed(tmp_path):
    """Killed when the first of two models is sampled: the rest is done here, to the same bits."""
    plain, said = compare(*pair(), **ASKED), []
    with started(tmp_path) as (scheduler, file), cluster(None, None, str(file)) as own:

        def say(line):
            said.append(line)
            if line.endswith("1 of 2"):
                scheduler.kill()

        assert bits(compare(*pair(), **{**ASKED, "progress": say}, client=own)) == bits(plain)
    assert any("the scheduler is gone" in line for line in said)


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_named():
    with cluster(2, None, None) as own, pytest.raises(CrossfadeError, match="deadly was given to several workers"):
        list(worked(own, [("deadly", os._exit, (1,))], print))


@pytest.mark.slow
def test_dask_of_others_is_left_alone(client):
    """A client that is Dask's default, and one that does not come up, would keep others from computing at all."""
    import dask

    assert dask.config.get("scheduler", None) is None
    with pytest.raises(CrossfadeError, match="does not answer"), cluster(None, "tcp://127.0.0.1:1"):
        pass
    assert dask.config.get("scheduler", None) is None


def test_what_cannot_be_done_is_said(tmp_path):
    with pytest.raises(CrossfadeError, match="at least 1"), cluster(0, None, None):
        pass
    load("radiata").to_csv(tmp_path / "radiata.csv", index=False)
    asked = ("compare", tmp_path / "radiata.csv", "y ~ x", "y ~ z", "--route", "path")
    assert "at least 1" in words(run(*asked, "--workers", 0).output)
    lock = (crossfade, __import__("threading").Lock())
    with pytest.raises(CrossfadeError, match="here cannot be sent to a worker"):
        list(worked(object(), [("here", print, lock)], print))


@pytest.mark.slow
def test_over_tcp_with_tls():
    """Credentials are made for the occasion; a client without them is not let in."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, security=True, dashboard_address=":0") as own:
        assert own.scheduler_address.startswith("tls://127.0.0.1")
        with Client(own) as safe:
            assert bits(compare(*pair(), **ASKED, client=safe)) == bits(compare(*pair(), **ASKED))
        with pytest.raises(CrossfadeError, match="does not answer"), cluster(None, own.scheduler_address):
            pass
