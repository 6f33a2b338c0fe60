"""Runs in folders: nothing is sampled twice, whatever happened to a process or a chunk, and the bits are the same."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from crossfade import Model, compare, evidence
from crossfade.runs import chunks as chunks_module
from crossfade.runs import plan as plan_module
from crossfade.runs.chunks import DAMAGED, Chunks
from crossfade.sampling import anneal, hmc
from crossfade.types import CrossfadeError
from crossfade.worlds import linear

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
ASKED = {"target_se": 0.02, "seed": 4, "route": "path", "progress": False, "n_chains": 16}


def model(y=Y, sd=2.0, free=False):
    def log_likelihood(theta):
        return jnp.sum(dist.Normal(theta["mu"], jnp.exp(theta["s"]) if free else 1.0).log_prob(y))

    priors = {"mu": dist.Normal(0.0, sd)} | ({"s": dist.Normal(0.0, 1.0)} if free else {})
    return Model(priors, log_likelihood, data=y)


def pair(y=Y, sd=2.0):
    return model(y, sd), model(y, sd, free=True)


def bits(result):
    return [float(v).hex() for v in result.raw_estimate[:2]], [leg.forward.log_ratio.tobytes() for leg in result.legs]


@pytest.fixture(scope="module")
def plain():
    return compare(*pair(), **ASKED)


@pytest.fixture
def counted(monkeypatch):
    """How many segments are sampled."""
    made = []
    own = hmc._recorded
    monkeypatch.setattr(hmc, "_recorded", lambda now: made.append(1) or own(now))
    return made


def test_a_run_in_a_folder_has_the_same_bits_and_is_found_again(plain, counted, tmp_path):
    assert bits(compare(*pair(), **ASKED, directory=tmp_path / "a" / "run")) == bits(plain)
    n = len(counted)
    assert n > 20 and list((tmp_path / "a" / "run").glob("*.npz"))
    assert bits(compare(*pair(), **ASKED, directory=tmp_path / "a" / "run")) == bits(plain)
    assert len(counted) == n


def test_a_smaller_error_adds_to_what_there_is(counted, tmp_path):
    compare(*pair(), **{**ASKED, "target_se": 0.05}, directory=tmp_path)
    before = len(counted)
    further = compare(*pair(), **{**ASKED, "target_se": 0.005}, directory=tmp_path)
    made = len(counted) - before
    del counted[:]
    alone = compare(*pair(), **{**ASKED, "target_se": 0.005})
    assert bits(further) == bits(alone) and made == len(counted) - before


@pytest.mark.parametrize(
    "how", ["flipped", "deleted", *(pytest.param(own, marks=pytest.mark.slow) for own in ("truncated", "empty"))]
)
def test_a_damaged_chunk_is_set_aside_and_made_again(plain, counted, tmp_path, monkeypatch, how):
    monkeypatch.setattr(chunks_module, "BYTES", 2**16)  # many small chunks
    compare(*pair(), **ASKED, directory=tmp_path)
    n = len(counted)
    victim = sorted(tmp_path.glob("*.npz"))[1]
    data = victim.read_bytes()
    if how == "deleted":
        victim.unlink()
    else:
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        victim.write_bytes({"truncated": data[: len(data) // 2], "flipped": bytes(changed), "empty": b""}[how])
    del counted[:]
    said = []
    again = compare(*pair(), **{**ASKED, "progress": said.append}, directory=tmp_path)
    assert bits(again) == bits(plain) and 0 < len(counted) < n
    damaged = list(tmp_path.glob(f"*{DAMAGED}"))
    assert len(damaged) == (how != "deleted")
    assert any(victim.name[:12] in line for line in said) == (how != "deleted")


def test_another_run_is_refused_and_told_apart(tmp_path):
    compare(*pair(), **ASKED, directory=tmp_path)
    other = {
        "M1 has another likelihood or other data": (pair(Y + 1e-6), {}),
        "another prior of mu": (pair(sd=3.0), {}),
        "other parameters": ((model(free=True), model()), {}),
        "seed was 4 and is 5": (pair(), {"seed": 5}),
    }
    for words, (models, changed) in other.items():
        with pytest.raises(CrossfadeError, match=words):
            compare(*models, **{**ASKED, **changed}, directory=tmp_path)
    plan = tmp_path / "plan.json"
    plan.write_text(plan.read_text(encoding="utf-8").replace('"jax": "', '"jax": "9'))
    with pytest.raises(CrossfadeError, match="jax was 9"):
        compare(*pair(), **ASKED, directory=tmp_path)
    plan.write_text("{")
    with pytest.raises(CrossfadeError, match=r"plan\.json cannot be read"):
        compare(*pair(), **ASKED, directory=tmp_path)
    plan.unlink()
    with pytest.raises(CrossfadeError, match="chunks but no plan"):
        compare(*pair(), **ASKED, directory=tmp_path)


def test_of_two_other_runs_that_begin_at_once_one_is_refused(tmp_path, monkeypatch):
    """The second one looks before the first has written its plan, and writes its own after that."""
    plan_module.opened(tmp_path, {}, {"seed": 1}, print)
    looks = iter([None])
    really = plan_module.read_plan
    monkeypatch.setattr(plan_module, "read_plan", lambda folder: None if next(looks, 1) is None else really(folder))
    with pytest.raises(CrossfadeError, match="holds another run: seed was 1 and is 2"):
        plan_module.opened(tmp_path, {}, {"seed": 2}, print)
    assert plan_module.opened(tmp_path, {}, {"seed": 1}, print).where == {}
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.slow
def test_folders_of_one_run_are_joined_by_copying(plain, counted, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks_module, "BYTES", 2**16)
    compare(*pair(), **ASKED, directory=tmp_path / "whole")
    every = sorted((tmp_path / "whole").glob("*.npz"))
    (tmp_path / "joined").mkdir()
    for path in [*every[::2], tmp_path / "whole" / "plan.json"]:
        (tmp_path / "joined" / path.name).write_bytes(path.read_bytes())
    del counted[:]
    assert bits(compare(*pair(), **ASKED, directory=tmp_path / "joined")) == bits(plain)
    assert len(counted) > 0


def test_a_disk_that_is_full_is_said_and_loses_nothing(plain, counted, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks_module, "BYTES", 2**16)
    own, left = os.fsync, [5]

    def full(number):
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= 1
        own(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CrossfadeError, match=r"No space left.*resume"):
        compare(*pair(), **ASKED, directory=tmp_path)
    assert not list(tmp_path.glob("*.unfinished")) and list(tmp_path.glob("*.npz"))
    left[0] = -1
    n = len(counted)
    assert bits(compare(*pair(), **ASKED, directory=tmp_path)) == bits(plain)
    assert len(counted) - n < n + 40


LIMITED = """
import resource, signal, sys
sys.path[:0] = {path!r}
from runs.test_directory import ASKED, compare, pair
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # bytes that a file may have
try:
    compare(*pair(), **ASKED, directory={folder!r})
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_quota_of_the_system_is_said(tmp_path):
    code = LIMITED.format(path=[str(Path(__file__).parents[1])], folder=str(tmp_path / "run"))
    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "CrossfadeError" in said and "cannot be written to (File too large)" in said and "resume" in said
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["plan.json"]


@pytest.mark.slow
def test_a_real_disk_that_is_full(plain, tmp_path):
    """A file system of 200 kB in memory; when it is larger the run goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)], check=True)  # needs root
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunks_module, "BYTES", 2**16)
            with pytest.raises(CrossfadeError, match=r"No space left.*resume"):
                compare(*pair(), **ASKED, directory=disk / "run")
        kept = list((disk / "run").glob("*.npz"))
        assert kept and not list((disk / "run").glob(".*unfinished"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert bits(compare(*pair(), **ASKED, directory=disk / "run")) == bits(plain)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_to(plain, tmp_path):
    """A file system that is mounted read-only, since no permission keeps root out: the answer is there all the same."""
    compare(*pair(), **ASKED, directory=tmp_path / "run")
    where = tmp_path / "mounted"
    where.mkdir()
    subprocess.run(["mount", "--bind", str(tmp_path / "run"), str(where)], check=True)  # needs root
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(where)], check=True)
        assert bits(compare(*pair(), **ASKED, directory=where)) == bits(plain)
        with pytest.raises(CrossfadeError, match="cannot be written to"):
            compare(*pair(), **{**ASKED, "target_se": 0.005}, directory=where)
        with pytest.raises(CrossfadeError, match="cannot be made"):
            compare(*pair(), **ASKED, directory=where / "inside")
    finally:
        subprocess.run(["umount", str(where)], check=True)


@pytest.mark.slow
def test_an_evidence_is_kept_too(counted, tmp_path):
    first = evidence(model(), target_se=0.02, n_chains=16, progress=False, directory=tmp_path)
    n = len(counted)
    again = evidence(model(), target_se=0.02, n_chains=16, progress=False, directory=tmp_path)
    assert bits(first) == bits(again) and len(counted) == n


@pytest.mark.slow
@pytest.mark.parametrize("method", ["NETI", "NETI-DIFF"])
def test_the_methods_of_the_table_are_kept_too(tmp_path, monkeypatch, method):
    """Cut off in the middle, the run goes on with the segments that there are."""
    monkeypatch.setattr(anneal, "_segment_length", lambda *_: 250)
    models = linear.radiata()  # the same ones, so that they compile once
    asked = {"method": method, "n_iter": 1_000, "n_chains": 4, "seed": 1, "progress": False}
    plain, made, own = compare(*models, **asked), [], anneal._segment
    monkeypatch.setattr(anneal, "_segment", lambda *args: made.append(1) or own(*args))
    left = [3]

    def killed(*args):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("killed")
        return own(*args)

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="killed"):
        patch.setattr(anneal, "_segment", killed)
        compare(*models, **asked, directory=tmp_path)
    assert bits(compare(*models, **asked, directory=tmp_path)) == bits(plain)
    n = len(made)
    assert bits(compare(*models, **asked, directory=tmp_path)) == bits(plain) and len(made) == n
    del made[:]
    compare(*models, **asked)
    assert n == len(made) - 3
    with pytest.raises(CrossfadeError, match="n_iter was 1000 and is 3000"):
        compare(*models, **{**asked, "n_iter": 3_000}, directory=tmp_path)


def test_names_and_arrays_come_back(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False])}
    with Chunks(tmp_path, print) as own:
        own.add("segment x", arrays)
        own.add("decision chains", {"value": np.asarray(8.0)})
    again = Chunks(tmp_path, print)
    found = again.find("segment x")
    assert found is not None and all(np.array_equal(found[name], arrays[name]) for name in arrays)
    assert again.find("segment") is None and again.find("decision chains") == {"value": 8.0}


KILLED = """
import sys
sys.path[:0] = {path!r}
from runs.test_directory import ASKED, bits, compare, pair
from crossfade.runs import chunks
chunks.SECONDS = 0.0  # every segment is a chunk
print("begun", flush=True)
result = compare(*pair(), **ASKED, directory={folder!r})
print("RESULT", bits(result)[0], flush=True)
"""


def until_killed(folder: Path, seconds: float | None) -> str:
    """What a process printed that was killed so long after it had begun (None: it may end)."""
    code = KILLED.format(path=[str(Path(__file__).parents[1])], folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    if seconds is not None:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    return process.communicate()[0]


def killed_again_and_again(folder: Path, n_kills: int, seed: int) -> str:
    random = np.random.default_rng(seed)
    before: set[str] = set()
    for _ in range(n_kills):
        if "RESULT" in (said := until_killed(folder, random.uniform(1.0, 6.0))):
            return said
        now = {path.name for path in folder.glob("*.npz")}
        assert before <= now and not list(folder.glob(f"*{DAMAGED}"))
        before = now
    return until_killed(folder, None)


def test_a_killed_run_goes_on_to_the_same_bits(plain, tmp_path):
    assert str(bits(plain)[0]) in killed_again_and_again(tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_run_that_is_killed_twenty_times(plain, tmp_path, seed):
    assert str(bits(plain)[0]) in killed_again_and_again(tmp_path, 20, 100 + seed)


@pytest.mark.slow
def test_two_processes_in_one_folder(plain, tmp_path):
    code = KILLED.format(path=[str(Path(__file__).parents[1])], folder=str(tmp_path))
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert all(str(bits(plain)[0]) in own for own in said)
    assert not list(tmp_path.glob(f"*{DAMAGED}")) and not list(tmp_path.glob("*.unfinished"))
