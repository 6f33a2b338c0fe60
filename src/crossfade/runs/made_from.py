"""What something is made from, as one short text: data, and functions with all that they hold. Without JAX."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

NUMBERED = ("pymc", "pytensor")  # libraries whose objects hold numbers that are others in every process


def made_from(*values: Any) -> str:
    """Different for other data, other functions, or functions that hold other numbers."""
    found = hashlib.sha256()
    for part in _of(values, set()):
        found.update(part)
    return found.hexdigest()[:16]


def called(function: Any) -> str:
    """The name of a function, and what it is made from."""
    return f"{getattr(function, '__qualname__', type(function).__name__)} ({made_from(function)})"


def _of(value: Any, seen: set[int]) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for name in sorted(value, key=str):
            yield f"{type(name).__name__} {name}".encode()
            yield from _of(value[name], seen)
    elif isinstance(value, tuple | list):
        yield f"sequence {len(value)}".encode()
        for part in value:
            yield from _of(part, seen)
    elif isinstance(value, set | frozenset):
        yield from _of(sorted(map(repr, value)), seen)
    elif hasattr(value, "to_csv"):
        yield from _of_table(value)
    elif isinstance(value, functools.partial):
        yield from _of((value.func, value.args, value.keywords), seen)
    elif isinstance(value, MethodType):
        yield from _of((value.__func__, value.__self__), seen)
    elif isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif callable(value) and hasattr(value, "__wrapped__"):  # compiled, or decorated
        yield from _of(value.__wrapped__, seen)
    elif isinstance(value, type) or not hasattr(value, "__dict__") or hasattr(value, "__array__"):
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):  # JAX's random keys are no numbers
            yield _words(value).encode()
            return
        yield f"{array.dtype}{array.shape}".encode()
        yield array.tobytes() if array.dtype != object else _words(array.tolist()).encode()
    elif id(value) not in seen:  # an object: its class and what it holds
        seen.add(id(value))
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        if type(value).__module__.split(".")[0] not in NUMBERED:
            yield from _of(vars(value), seen)


def _of_table(table: Any) -> Iterator[bytes]:
    """Types too: text does not tell 1 from "1", nor the order of the levels of a factor."""
    frame = table.to_frame() if hasattr(table, "to_frame") else table
    for name, kind in frame.dtypes.items():
        yield f"{name} {kind} {list(getattr(kind, 'categories', ()))} {getattr(kind, 'ordered', None)}".encode()
    yield frame.to_csv().encode()


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[bytes]:
    """Its text, its defaults, what it closes over, and functions and values of its module that it reads."""
    if id(function) in seen:
        return
    seen.add(id(function))
    if "site-packages" in function.__code__.co_filename:  # of a library, whose versions the plan knows
        yield f"{function.__module__}.{function.__qualname__}".encode()
        return
    try:
        yield inspect.getsource(function).encode()
    except (OSError, TypeError):  # written on a prompt
        yield from _of_code(function.__code__)
    yield from _of((function.__defaults__ or (), function.__kwdefaults__ or {}), seen)
    for cell in function.__closure__ or ():
        try:
            yield from _of(cell.cell_contents, seen)
        except ValueError:  # not filled yet
            yield b"empty"
    here = function.__globals__
    for name in sorted(_names(function.__code__) & here.keys()):
        own = here[name]
        ours = isinstance(own, FunctionType) and own.__module__ == function.__module__
        plain = isinstance(own, bool | int | float | complex | str | bytes | tuple | list | dict)
        if ours or plain or (hasattr(own, "__array__") and not isinstance(own, type)):
            yield name.encode()
            yield from _of(own, seen)


def _of_code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    for const in code.co_consts:
        yield from _of_code(const) if isinstance(const, CodeType) else [repr(const).encode()]
    yield " ".join(code.co_names).encode()


def _names(code: CodeType) -> set[str]:
    """Of all that a function and those inside it read from outside."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _words(value: Any) -> str:
    """Without addresses in memory, which another process would not have."""
    words = repr(value)
    return words if " at 0x" not in words else type(value).__qualname__
