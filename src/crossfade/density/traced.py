"""A function as a program and its data: what it closes over becomes arguments of everything that is compiled from it.

Models with equal programs and other data of the same shapes share one compilation, whoever wrote them and however
often: programs are compared operation by operation, never by the identity of functions, which may hide data that have
changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from crossfade.density.precision import in_float64

CALLS = ("jit", "pjit", "closed_call", "core_call")  # opened, so that what they close over comes to light
# Primitives with functions among their parameters that only say how the value shown beside them is differentiated.
WITH_RULES = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
_alone = count()


class Program:
    """A jaxpr and the form of its result. Equal to another one if every operation is, and every rule for gradients."""

    def __init__(self, jaxpr: Jaxpr, result: Any, rules: Any = None):
        self.jaxpr, self.result = jaxpr, result
        digest = hashlib.sha256(repr(result).encode())
        for tokens in (_tokens(jaxpr), _of(rules)):
            for token in tokens:
                digest.update(token)
        self.digest = digest.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class Traced(eqx.Module):
    """The function of a program and what it closes over. Of arguments by name it takes those that it knows."""

    data: list[Any]
    program: Program = eqx.field(static=True)
    names: tuple[tuple[str, ...] | None, ...] = eqx.field(static=True)  # of each argument, if it is a dict

    @in_float64
    def __call__(self, *args: Any) -> Any:
        pairs = zip(args, self.names, strict=True)
        known = [arg if names is None else {name: arg[name] for name in names} for arg, names in pairs]
        specs = self.program.jaxpr.invars
        leaves = [_as(leaf, spec.aval) for leaf, spec in zip(jax.tree.leaves(known), specs, strict=True)]
        return jax.tree.unflatten(self.program.result, jax.core.eval_jaxpr(self.program.jaxpr, self.data, *leaves))


def _as(leaf: Any, aval: Any) -> Any:
    """Of the type that the function was read with: theta may come in single precision."""
    return leaf if getattr(leaf, "dtype", None) == aval.dtype else jnp.asarray(leaf, aval.dtype)


@in_float64
def traced(function: Callable[..., Any], *args: Any) -> Traced:
    """The function, read once at arguments of these shapes."""
    leaves, layout = jax.tree.flatten(args)
    form: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        found, result = jax.tree.flatten(function(*jax.tree.unflatten(layout, leaves)))
        form[:] = [result]
        return found

    closed = jax.make_jaxpr(flat)(*leaves)
    if _hides_data(closed.jaxpr):
        closed = jax.make_jaxpr(partial(_opened, closed.jaxpr, closed.consts))(*leaves)
    names = tuple(tuple(arg) if isinstance(arg, dict) else None for arg in args)
    program = Program(closed.jaxpr, form[0], _gradient(closed, leaves) if _has_rules(closed.jaxpr) else None)
    return Traced([jnp.asarray(value) for value in closed.consts], program, names)


def _gradient(closed: ClosedJaxpr, leaves: list[Any]) -> Any:
    """The program of the gradient, whose constants are data that only rules for gradients see: they are part of it.

    What cannot be differentiated is like nothing else.
    """
    numbers = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.inexact)]

    def gradient(data: list[Any], leaves: list[Any]) -> list[Any]:
        def value(*moved: Any) -> list[Any]:
            at = dict(enumerate(leaves)) | dict(zip(numbers, moved, strict=True))
            found = jax.core.eval_jaxpr(closed.jaxpr, data, *at.values())
            return [own for own in found if jnp.issubdtype(own.dtype, jnp.inexact)]

        out, back = jax.vjp(value, *(leaves[i] for i in numbers))
        return [*out, *back([jnp.ones_like(own) for own in out])]

    try:
        return jax.make_jaxpr(gradient)(closed.consts, leaves)
    except Exception:  # of a rule of the user's, which may raise anything
        return f"number {next(_alone)}"


def _has_rules(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive.name in WITH_RULES or any(map(_has_rules, _inner(eqn))) for eqn in jaxpr.eqns)


def _inner(eqn: Any) -> Iterator[Jaxpr]:
    """The programs that an operation holds: bodies of loops, branches, calls."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr | Jaxpr):
                yield part.jaxpr if isinstance(part, ClosedJaxpr) else part


def _called(eqn: Any) -> ClosedJaxpr | None:
    """The compiled function that an operation calls, if it is such a call."""
    inner = eqn.params.get("jaxpr") if eqn.primitive.name in CALLS else None
    return inner if isinstance(inner, ClosedJaxpr) else None


def _hides_data(jaxpr: Jaxpr) -> bool:
    inner = [called for eqn in jaxpr.eqns if (called := _called(eqn)) is not None]
    return any(called.consts or _hides_data(called.jaxpr) for called in inner)


def _opened(jaxpr: Jaxpr, consts: Any, *args: Any) -> list[Any]:
    """The jaxpr's values, with calls of compiled functions written out."""
    known: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def value(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        if (inner := _called(eqn)) is not None:
            found = _opened(inner.jaxpr, inner.consts, *map(value, eqn.invars))
        else:
            invars = list(dict.fromkeys(atom for atom in eqn.invars if not isinstance(atom, Literal)))
            alone = jaxpr.replace(constvars=[], invars=invars, outvars=eqn.outvars, eqns=[eqn])
            found = jax.core.eval_jaxpr(alone, [], *map(value, invars))
        known.update(zip(eqn.outvars, found, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _tokens(jaxpr: Jaxpr) -> Iterator[bytes]:
    """All that the jaxpr does, piece by piece: operations, their settings, which values go where, and shapes."""
    numbers: dict[Any, int] = {}

    def name(atom: Any) -> str:
        return f"{numbers.setdefault(atom, len(numbers))}:{atom.aval}"

    yield " ".join(name(atom) for atom in (*jaxpr.constvars, *jaxpr.invars)).encode()
    for eqn in jaxpr.eqns:
        rules = eqn.primitive.name in WITH_RULES
        yield eqn.primitive.name.encode()
        for key, value in sorted(eqn.params.items()):
            if not (rules and callable(value)):
                yield key.encode()
                yield from _of(value)
        for atom in eqn.invars:
            yield from _of(atom.val) if isinstance(atom, Literal) else [name(atom).encode()]
        yield " ".join(name(atom) for atom in eqn.outvars).encode()
    for atom in jaxpr.outvars:
        yield from _of(atom.val) if isinstance(atom, Literal) else [name(atom).encode()]


def _of(value: Any) -> Iterator[bytes]:
    """One setting. What cannot be read, such as a Python function that is called back, is its identity."""
    if isinstance(value, ClosedJaxpr):
        yield from _tokens(value.jaxpr)
        yield from _of(list(value.consts))
    elif isinstance(value, Jaxpr):
        yield from _tokens(value)
    elif isinstance(value, np.ndarray | np.generic | jax.Array):
        own = np.asarray(value)
        yield f"{own.dtype}{own.shape}".encode()
        yield own.tobytes()
    elif type(value) in (tuple, list):
        yield f"{len(value)}".encode()
        for part in value:
            yield from _of(part)
    elif callable(value) and not isinstance(value, type):
        yield f"{getattr(value, '__qualname__', '')} {id(value)}".encode()
    else:
        yield f"{type(value).__name__} {value!r}".encode()
