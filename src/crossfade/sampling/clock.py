"""A limit of time, kept by everything that samples: it is looked at between compiled steps. And work side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event
from typing import TypeVar

T = TypeVar("T")

_end: ContextVar[float] = ContextVar("end", default=float("inf"))
_halted: ContextVar[Event | None] = ContextVar("halted", default=None)


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


def seconds_left() -> float:
    return _end.get() - time.perf_counter()


def look_at_clock() -> None:
    halted = _halted.get()
    if time.perf_counter() > _end.get() or (halted is not None and halted.is_set()):
        raise OutOfTime


def side_by_side(tasks: list[Callable[[], T]]) -> list[T]:
    """What they return, each run in a thread: compilers and compiled programs let go of the interpreter.

    Where one fails, or somebody presses Ctrl-C, the others stop at their next look at the clock.
    """
    if len(tasks) <= 1:
        return [task() for task in tasks]
    halted = Event()
    token = _halted.set(halted)
    try:
        with ThreadPoolExecutor(len(tasks)) as pool:
            running = [pool.submit(copy_context().run, task) for task in tasks]
            try:
                return [task.result() for task in running]
            except BaseException:
                halted.set()
                raise
    finally:
        _halted.reset(token)
