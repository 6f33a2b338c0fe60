"""How numbers are computed: in double precision, on one thread of linear algebra; nobody's global switch is flipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import jax
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _libraries() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - its LAPACK is the one that JAX calls, and must be loaded to be found

    return ThreadpoolController()


@contextmanager
def float64() -> Iterator[None]:
    """Everything JAX does inside this context is in double precision, and BLAS and LAPACK use one thread.

    Threads of OpenBLAS fight with those of XLA: with them, small Cholesky factors take up to forty times as long.
    """
    with jax.enable_x64(True), _libraries().limit(limits=1, user_api="blas"):
        yield


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, run in double precision whatever the caller's setting."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with float64():
            return function(*args, **kwargs)

    return wrapped
