"""Compiled programs of tests gone by are let go before the kernel's limit of memory maps (65,530) is reached."""

from __future__ import annotations

import gc
from itertools import count
from pathlib import Path

import equinox as eqx
import jax
import pytest

MAPS = Path("/proc/self/maps")
MANY = 20_000
EVERY = 5  # tests: counting takes some milliseconds
number = count(1)


@pytest.fixture(autouse=True)
def programs_are_let_go():
    yield
    if next(number) % EVERY == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY:
        eqx.clear_caches()
        jax.clear_caches()
        gc.collect()
