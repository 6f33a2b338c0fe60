"""Many runs at once are the same runs as one at a time; jobs are not done twice."""

import jax
import numpy as np
import pandas
import pytest
from linear_pairs import key, log_bayes_factor, nested

from crossfade.analysis import trapezoid
from crossfade.density.model import without_data
from crossfade.papers import jobs, rows, statistics
from crossfade.papers.jobs import Job, run_jobs
from crossfade.papers.runs import Moments, integrations, sweep_weights, sweeps
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.sampling.ladder import Rung, place_by_tangents, power, sigmoid
from crossfade.types import CrossfadeError
from crossfade.worlds import linear

PAIR = nested(noise=linear.Noise(2.0, 1.5))


def exact_rung(tau):
    """Mean and variance of log_ratio on the path to M2, from the closed form."""
    with jax.enable_x64(True):
        log_z = linear.pair(without_data(PAIR[1]), PAIR[1]).log_normaliser
        return Rung(tau, float(jax.grad(log_z)(tau)), float(jax.grad(jax.grad(log_z))(tau)))


def test_rungs_of_many_runs_are_placed_as_those_of_one():
    one = place_by_tangents(exact_rung, 12)
    ends = np.array([exact_rung(0.0), exact_rung(1.0)])
    both = Moments(*(np.tile(column, (2, 1)) for column in ends.T))
    for _ in range(10):
        tau = both.next_tau()
        both = both.with_rung(tau, *np.array([exact_rung(t)[1:] for t in tau]).T)
    np.testing.assert_allclose(both.tau, np.tile([rung.tau for rung in one], (2, 1)), rtol=1e-12)
    exact = linear.log_evidence(PAIR[1])
    assert abs(both.corrected()[0] - exact) < 0.02 < abs(both.trapezoid()[0] - exact)


def test_next_tau_falls_back_to_the_middle():
    flat = Moments(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]), np.array([[2.0, 2.0]]))
    outside = flat._replace(variance=np.array([[1.1, 1.05]]))
    assert flat.next_tau() == 0.5 == outside.next_tau()


def test_weights_are_the_trapezoid_rule():
    path, kernel, tau = direct(*PAIR), linear.gibbs(*PAIR), sigmoid(301)
    trace, _ = anneal(path, kernel, tau, chain_keys(key(1), 2), schedule=Schedule(n_warm_up=10))
    for chain in range(2):
        ours = trace.log_ratio[chain, :, 0] @ sweep_weights(tau)
        assert ours == pytest.approx(trapezoid(trace.take(chains=[chain])), abs=1e-12)


@pytest.mark.parametrize("n_runs", [3])
def test_runs_do_not_depend_on_their_batches(n_runs, monkeypatch):
    path, kernel, tau = direct(*PAIR), linear.gibbs(*PAIR), sigmoid(200)
    together = sweeps(path, kernel, tau, n_runs, key(2)).values
    monkeypatch.setattr("crossfade.papers.runs.MOST", 2 * len(tau))
    np.testing.assert_allclose(sweeps(path, kernel, tau, n_runs, key(2)).values, together, rtol=1e-10)


def test_both_kinds_of_runs_find_the_exact_answer_and_a_wrong_one_does_not():
    problem = rows.Problem(*PAIR, linear.gibbs, log_bayes_factor(PAIR))
    found = rows.two_legs(problem, 8_000, (10, 20), 16, key(3)) + rows.neti_diff(problem, 8_000, 16, key(4))
    summary = statistics.of_runs(pandas.DataFrame(found))
    assert len(summary) == 5
    rough = (summary["method"] == "TI-standard") & (summary["rungs"] == 10)  # its rule has an error of its own
    z = (summary["bias"] / summary["bias_error"])[~rough]
    assert (z.abs() < 4).all() and (summary["bias_error"] < 0.1).all()
    wrong = statistics.of_runs(pandas.DataFrame(found).assign(truth=problem.truth + 1))
    assert ((wrong["bias"] / wrong["bias_error"]).abs() > 4).all()


def test_burn_in_and_length_are_those_of_the_paper():
    path, kernel = direct(without_data(PAIR[1]), PAIR[1]), linear.gibbs(without_data(PAIR[1]), PAIR[1])
    with pytest.raises(CrossfadeError, match="multiple of 40"):
        integrations(path, kernel, 1001, (10,), 2, key(0))
    assert power(10)[0] == 0 and power(10)[-1] == 1


def test_a_ratio_of_five_runs_each_says_little():
    low, high = statistics.ratio_interval(5, 5, 1.0)
    assert (low, high) == pytest.approx((1 / 9.60, 9.60), abs=0.01)


def test_finished_jobs_are_not_done_again(tmp_path):
    said = []
    work = [Job(f"half-{n}", f"{__name__}:half", {"n": n}) for n in (2, 3)]
    first = run_jobs(work, tmp_path, say=said.append)
    CALLS.clear()
    again = run_jobs([*work, Job("half-5", f"{__name__}:half", {"n": 5})], tmp_path, say=said.append)
    assert CALLS == [5]
    pandas.testing.assert_frame_equal(again.head(2), first)
    assert "2 of 3 jobs are done already" in said


CALLS = []


def half(n):
    CALLS.append(n)
    return [{"n": n, "half": n / 2}]


def test_a_killed_job_leaves_nothing_that_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs.pandas.DataFrame, "to_csv", lambda self, path, index: path.write_text("n,ha"))
    monkeypatch.setattr(jobs.Path, "replace", lambda self, target: (_ for _ in ()).throw(KeyboardInterrupt))
    job = Job("half-7", f"{__name__}:half", {"n": 7})
    with pytest.raises(KeyboardInterrupt):
        run_jobs([job], tmp_path, say=lambda text: None)
    monkeypatch.undo()
    assert run_jobs([job], tmp_path, say=lambda text: None)["half"].tolist() == [3.5]


def test_other_arguments_or_other_code_are_another_job(monkeypatch):
    one, two = Job("a", "m:f", {"n": 1}), Job("a", "m:f", {"n": 2})
    before = one.file_name
    assert before != two.file_name and before == Job("a", "m:f", {"n": 1}).file_name
    assert {"auto.py", "kernel.py", "michaelis_menten.py", "runs.py"} <= {
        path.name for pattern in jobs.CODE for path in jobs.PACKAGE.glob(pattern)
    }
    monkeypatch.setattr(jobs, "code", lambda: "other")
    assert one.file_name != before
