"""Compiled programs are let go when there are too many, and only then."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from crossfade.density import programs


def compiled():
    return jax.jit(lambda x: jnp.sum(jnp.sin(x) * 3.0))


@pytest.mark.parametrize("many", [True, False])
def test_programs_are_let_go_when_there_are_many(many, monkeypatch, tmp_path):
    function = compiled()
    function(jnp.ones(3))
    assert function._cache_size() == 1
    maps = tmp_path / "maps"
    maps.write_text("a map\n" * (programs.MANY + (1 if many else -1)))
    monkeypatch.setattr(programs, "MAPS", maps)
    programs.let_go()
    assert function._cache_size() == (0 if many else 1)
    assert float(function(jnp.zeros(3))) == 0.0  # compiled again where needed


def test_elsewhere_nothing_happens(monkeypatch, tmp_path):
    function = compiled()
    function(jnp.ones(3))
    monkeypatch.setattr(programs, "MAPS", tmp_path / "none")
    programs.let_go()
    assert function._cache_size() == 1


KEPT = """
import jax, jax.numpy as jnp
from crossfade.density.programs import kept_on_disk
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
with kept_on_disk():
    with kept_on_disk():
        jax.jit(lambda x: jnp.linalg.cholesky(jnp.sin(x) + 3 * jnp.eye(30)))(jnp.ones((30, 30)))
jax.jit(lambda x: jnp.linalg.cholesky(jnp.cos(x) + 3 * jnp.eye(31)))(jnp.ones((31, 31)))
print(len(hits), jax.config.jax_compilation_cache_dir)
"""


def in_another_process(tmp_path, **environment):
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": os.environ["PATH"], **environment}
    made = subprocess.run([sys.executable, "-c", KEPT], env=environment, capture_output=True, text=True, check=True)
    hits, where = made.stdout.split()
    return int(hits), where, sorted(path.name.split("-")[0] for path in tmp_path.rglob("*-cache"))


def test_programs_are_kept_for_the_next_process_and_jax_is_left_as_it_was(tmp_path):
    first = in_another_process(tmp_path)
    assert first[:2] == (0, "None") and "jit__lambda" in first[2]  # and not the one compiled outside
    assert first[2].count("jit__lambda") == 1
    second = in_another_process(tmp_path)
    assert second[0] > 0 and second[1] == "None" and second[2].count("jit__lambda") == 1


def test_the_cache_can_be_turned_off_and_gives_way_to_the_users_own(tmp_path):
    assert in_another_process(tmp_path, CROSSFADE_CACHE="0") == (0, "None", [])
    own = tmp_path / "own"
    _, where, _ = in_another_process(tmp_path, JAX_COMPILATION_CACHE_DIR=str(own))
    assert where == str(own) and not (tmp_path / "crossfade").exists()


def test_the_oldest_programs_go_when_all_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "LARGEST", 250)
    for i in range(4):
        (tmp_path / f"{i}").write_bytes(b"x" * 100)
        os.utime(tmp_path / f"{i}", (i, i))
    programs._prune(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]
