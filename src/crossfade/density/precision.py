"""Float64 in a context: nobody's global switch is flipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def float64() -> Iterator[None]:
    """Everything JAX does inside this context is in double precision."""
    with jax.enable_x64(True):
        yield


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, run in double precision whatever the caller's setting."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with float64():
            return function(*args, **kwargs)

    return wrapped
