"""Many runs at once are the same runs as one at a time; jobs are not done twice."""

import numpy as np
import pandas
import pytest
from linear_pairs import key, log_bayes_factor, nested

from crossfade.density.model import without_data
from crossfade.papers import jobs, rows, statistics
from crossfade.papers.jobs import Job, run_jobs
from crossfade.papers.rows import integrations, sweeps
from crossfade.paths.path import direct
from crossfade.sampling.ladder import sigmoid
from crossfade.types import CrossfadeError
from crossfade.worlds import linear

PAIR = nested(noise=linear.Noise(2.0, 1.5))


@pytest.mark.slow
@pytest.mark.parametrize("n_runs", [3])
def test_runs_do_not_depend_on_their_batches(n_runs, monkeypatch):
    path, kernel, tau = direct(*PAIR), linear.gibbs(*PAIR), sigmoid(200)
    together = sweeps(path, kernel, tau, n_runs, key(2)).values
    monkeypatch.setattr("crossfade.papers.rows.MOST", 2 * len(tau))
    np.testing.assert_allclose(sweeps(path, kernel, tau, n_runs, key(2)).values, together, rtol=1e-10)


@pytest.mark.slow
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


@pytest.mark.slow
def test_burn_in_and_length_are_those_of_the_paper():
    path, kernel = direct(without_data(PAIR[1]), PAIR[1]), linear.gibbs(without_data(PAIR[1]), PAIR[1])
    with pytest.raises(CrossfadeError, match="multiple of 40"):
        integrations(path, kernel, 1001, (10,), 2, key(0))


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


def test_other_arguments_are_another_job():
    one, two = (Job("half", f"{__name__}:half", {"n": n}) for n in (1, 2))
    assert one.made_from != two.made_from and one.made_from == Job("half", f"{__name__}:half", {"n": 1}).made_from


def test_a_change_of_the_code_behind_a_job_is_another_job(tmp_path, monkeypatch):
    """Of the file that defines it, of one that it uses and of the engine; but not of what only draws."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(jobs, "__package__", "neighbours")
    monkeypatch.setattr(jobs, "PACKAGE", tmp_path)
    monkeypatch.setattr(jobs, "AFTERWARDS", {"neighbours.charts"})
    files = {
        "neighbours/__init__.py": "",
        "neighbours/mine.py": "from neighbours import charts, used\ndef run(): return []\n",
        "neighbours/used.py": "from neighbours.deeper import f\n",
        "neighbours/deeper.py": "def f(): return 1\n",
        "neighbours/charts.py": "",
        "neighbours/other.py": "def run(): return []\n",
        "sampling/kernel.py": "",
        "worlds/glm/logistic.py": "",
        "data/radiata.csv": "x\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def made_from():
        jobs.code.cache_clear()
        return Job("a", "neighbours.mine:run", {}).made_from

    moved = set()
    for name, text in files.items():
        before = made_from()
        (tmp_path / name).write_text(text + "# changed\n")
        moved |= {name} if made_from() != before else set()
    jobs.code.cache_clear()
    idle = {"neighbours/__init__.py", "neighbours/charts.py", "neighbours/other.py"}
    assert moved == set(files) - idle


def test_the_numbers_of_an_experiment_depend_on_its_neighbours():
    assert jobs.used_by("crossfade.papers.radiata") == {
        f"crossfade.papers.{name}" for name in ("radiata", "regressions", "rows", "jobs")
    }
    assert {"crossfade.papers.pima", "crossfade.papers.radiocarbon"} <= jobs.used_by("crossfade.papers.future")
    names = {path.name for pattern in jobs.CODE for path in jobs.PACKAGE.glob(pattern)}
    assert {"api.py", "types.py", "kernel.py", "path.py", "mixture.py", "radiata.csv"} <= names
