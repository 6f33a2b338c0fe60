"""For all tests: compiled programs of tests gone by are let go, as between comparisons; double precision on demand."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import pytest

from crossfade.density.precision import float64
from crossfade.density.programs import let_go

EVERY = 5  # tests: counting takes some milliseconds
number = count(1)


def pytest_configure(config):
    # The first import of a day of arviz, which PyMC imports, moves a file into place: two workers at once trip over it.
    if config.getoption("numprocesses", None):
        subprocess.run([sys.executable, "-W", "ignore", "-c", "import arviz"], check=True)


@pytest.fixture(autouse=True)
def programs_are_let_go():
    yield
    if next(number) % EVERY == 0:
        let_go()


@pytest.fixture
def double_precision():
    with float64():
        yield
