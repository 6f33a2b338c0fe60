"""Segments that were sampled before are found again: whoever keeps them loses no work, and none is sampled twice.

A segment is known by all that it is made from: places, random keys, step sizes, and the data of its target. Replaying a
run from its beginning therefore finds every segment that is kept, goes on where they end, and gives the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

Arrays = dict[str, np.ndarray]


class Keeper(Protocol):
    """A place for segments, by name."""

    def find(self, name: str) -> Arrays | None: ...

    def add(self, name: str, arrays: Arrays) -> None: ...

    def flush(self) -> None:
        """Everything that was added is safe from now on."""


class Memory(dict[str, Arrays]):
    """A keeper that lives as long as the process."""

    def find(self, name: str) -> Arrays | None:
        return self.get(name)

    def add(self, name: str, arrays: Arrays) -> None:
        self[name] = arrays

    def flush(self) -> None:
        """It lives as long as the process, no longer."""


_keeper: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def keeping(keeper: Keeper | None) -> Iterator[None]:
    """What is sampled inside this context is looked for in, and added to, a keeper."""
    token = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(token)


def keeper() -> Keeper | None:
    return _keeper.get()


Ahead = Callable[[Mapping[str, Any]], AbstractContextManager[None]]
_helper: ContextVar[Ahead | None] = ContextVar("helper", default=None)


@contextmanager
def helped(ahead: Ahead) -> Iterator[None]:
    """Inside this context others are asked first for draws of several models at once (`draws.lengthened`)."""
    token = _helper.set(ahead)
    try:
        yield
    finally:
        _helper.reset(token)


def asked_ahead(wanted: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Inside this context what was asked of others is found."""
    helper = _helper.get()
    return nullcontext() if helper is None else helper(wanted)


def found_or_made(made_from: Any, make: Callable[[], Arrays]) -> Arrays:
    """What `make` gives, from the keeper if it has been made of the same before."""
    keeper = _keeper.get()
    return make() if keeper is None else _found_or_made(keeper, f"segment {_digest(made_from)}", make)


def decided(what: str, decide: Callable[[], float]) -> float:
    """A decision that depends on the clock is made once: a run that goes on later, or elsewhere, keeps to it."""
    keeper = _keeper.get()
    if keeper is None:
        return decide()
    return float(_found_or_made(keeper, f"decision {what}", lambda: {"value": np.asarray(decide(), float)})["value"])


def _found_or_made(keeper: Keeper, name: str, make: Callable[[], Arrays]) -> Arrays:
    found = keeper.find(name)
    if found is None:
        found = make()
        keeper.add(name, found)
    return found


def _digest(made_from: Any) -> str:
    """Of all arrays in it, and their shapes; functions are those of the models, which the keeper knows."""
    import jax  # here, because tables of rows are kept without it

    found = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(made_from):
        if not isinstance(leaf, np.ndarray | np.generic | jax.Array):
            continue
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        array = np.ascontiguousarray(leaf)
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(array.data)
    return found.hexdigest()
