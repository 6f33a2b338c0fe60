"""Rows of another model or of other data have another digest; the same ones have the same, in any process."""

import os
import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pandas
import pytest

from crossfade.runs.made_from import called, made_from

SCALE = 2.0


def helper(y):
    return y + 1


def reads_its_module(y):
    return helper(y) * SCALE


def closed_over(sd):
    def model(y):
        return y / sd

    return model


def with_default(y, sd=1.0):
    return y / sd


def table(kind):
    return pandas.DataFrame({"g": pandas.Categorical(["a", "b"], categories=kind), "x": [1, 2]})


class Holder:
    def __init__(self, sd):
        self.sd = sd

    def model(self, y):
        return y / self.sd


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (closed_over(1.0), closed_over(2.0)),
        (closed_over(np.ones(2)), closed_over(np.ones(3))),
        (closed_over(closed_over(1.0)), closed_over(closed_over(2.0))),
        (partial(with_default, sd=1.0), partial(with_default, sd=2.0)),
        (Holder(1.0).model, Holder(2.0).model),
        (table(["a", "b"]), table(["b", "a"])),
        (table(["a", "b"]), table(["a", "b"]).assign(x=["1", "2"])),
        ([1, 2, [3]], [1, [2, 3]]),
        ({"a": 1}, {"b": 1}),
        ({1: 0.0}, {"1": 0.0}),
        (np.arange(4.0), np.arange(4.0).reshape(2, 2)),
        (closed_over(jax.random.key(1)), closed_over(jax.random.key(2))),
        (closed_over({"a", "b"}), closed_over({"a", "c"})),
    ],
)
def test_what_differs_has_another_digest(one, other):
    assert made_from(one) != made_from(other)
    assert made_from(one) == made_from(one)


def test_equal_functions_made_twice_are_the_same():
    assert made_from(closed_over(1.0)) == made_from(closed_over(1.0))
    assert made_from(partial(with_default, sd=1.0)) == made_from(partial(with_default, sd=1.0))


@pytest.mark.parametrize(("name", "value"), [("SCALE", 3.0), ("helper", lambda y: y + 2)])
def test_what_a_function_reads_of_its_module_counts(monkeypatch, name, value):
    before = made_from(reads_its_module)
    if callable(value):
        value.__module__ = __name__
    monkeypatch.setitem(globals(), name, value)
    assert made_from(reads_its_module) != before


def test_another_process_says_the_same():
    code = """
import numpy as np, jax.numpy as jnp
from functools import partial
from crossfade.runs.made_from import called
def model(y, sd=frozenset({'a', 'b', 'c'})): return jnp.exp(y / sd)
print(called(partial(model, sd=np.ones(3))), called(jnp.exp), called(model))
"""
    said = set()
    for seed in ("1", "2"):  # of Python's own hashes
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
        said.add(done.stdout)
    assert len(said) == 1
    assert called(closed_over(1.0)).startswith("closed_over.<locals>.model (")
