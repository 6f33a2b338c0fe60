"""For all tests: compiled programs of tests gone by are let go, as between comparisons; double precision on demand."""

from __future__ import annotations

from itertools import count

import pytest

from crossfade.density.precision import float64
from crossfade.density.programs import let_go

EVERY = 5  # tests: counting takes some milliseconds
number = count(1)


@pytest.fixture(autouse=True)
def programs_are_let_go():
    yield
    if next(number) % EVERY == 0:
        let_go()


@pytest.fixture
def double_precision():
    with float64():
        yield
