"""A limit of time, kept by everything that samples: it is looked at between compiled steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float] = ContextVar("end", default=float("inf"))


class OutOfTime(Exception):
    """The time that was given is over."""


@contextmanager
def until(end: float) -> Iterator[None]:
    """Sampling inside this context raises OutOfTime once time.perf_counter() is past `end`."""
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def look_at_clock() -> None:
    if time.perf_counter() > _end.get():
        raise OutOfTime
