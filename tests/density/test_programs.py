"""Compiled programs are let go when there are too many, and only then."""

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
