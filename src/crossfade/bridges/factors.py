"""Terms of a NumPyro model without a distribution (numpyro.factor): do they look like a part of the likelihood?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from crossfade.bridges import sites
from crossfade.bridges.sites import Program
from crossfade.types import CrossfadeError, Theta

LIKELIHOOD = "likelihood"


def accepted(factors: str | None) -> bool:
    """Whether the user says that such terms belong to the likelihood."""
    if factors not in (None, LIKELIHOOD):
        raise CrossfadeError(
            f'factors = {factors!r}: give factors="likelihood" if the terms without a distribution are part of the '
            "likelihood, or leave it out (an argument of your model by this name is bound with functools.partial)"
        )
    return factors is not None


def trust(what: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """What the user should know of them, said with the result."""
    said = "is a normalised probability of data, given the parameters, is taken on trust"
    return tuple(f"that {what} {name!r} {said}" for name in names)


def check_factors(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, ...]
) -> None:
    """A refusal of factors that stay the same when all data move: those are rather a part of the prior.

    What moves are the arrays among the arguments, or the numbers if there is no array; floats, whole numbers and
    booleans by turns, as a model may not run with some of them moved.
    """
    leaves, layout = jax.tree.flatten((args, kwargs))

    def run(leaves: list[Any], theta: Theta) -> dict[str, Any]:
        own, named = jax.tree.unflatten(layout, leaves)
        return Program([], lambda _: model(*own, **named)).run(theta)

    found = run(leaves, {})
    theta = {name: site["value"] for name, site in found.items() if sites.is_latent(site)}
    before = {name: _value(found[name]) for name in names}
    silent: set[str] | None = None  # those that have stayed the same so far; None: nothing could be moved
    for moved in _moved(leaves):
        try:
            after = run(moved, theta)
            same = {name for name in names if np.isfinite(before[name]) and _value(after[name]) == before[name]}
        except Exception:  # a model may raise anything at data that are not its own
            continue
        silent = same if silent is None else silent & same
    if silent:
        raise CrossfadeError(
            f"the numpyro.factor {min(silent)!r} does not change when the data do, so it looks like part of the prior, "
            "whose normalisation is not known: write it as a distribution, or, if it is part of the likelihood, give "
            "the model the data it reads as an array argument"
        )


def _value(site: Any) -> float:
    return float(jnp.sum(sites.log_prob(site)))


def _moved(leaves: list[Any]) -> list[list[Any]]:
    """The arguments with all floats, all whole numbers or all booleans moved; each by an amount of its own."""
    kinds = [np.asarray(leaf).dtype.kind if _is_number(leaf) else "" for leaf in leaves]
    if any(kind and np.ndim(leaf) for kind, leaf in zip(kinds, leaves, strict=True)):
        kinds = [kind if np.ndim(leaf) else "" for kind, leaf in zip(kinds, leaves, strict=True)]
    random = np.random.default_rng(0)
    found = []
    for moving in ("f", "iu", "b"):
        moved = [
            _other(leaf, kind, random) if kind and kind in moving else leaf
            for kind, leaf in zip(kinds, leaves, strict=True)
        ]
        if any(kind and kind in moving for kind in kinds):
            found.append(moved)
    return found


def _is_number(leaf: Any) -> bool:
    """Not a Python boolean: that is a switch, no data."""
    return isinstance(leaf, np.ndarray | np.generic | jax.Array | int | float) and not isinstance(leaf, bool)


def _other(leaf: Any, kind: str, random: np.random.Generator) -> Any:
    value = np.asarray(leaf)
    if kind == "b":
        return ~value
    step = 1 if kind in "iu" else 1e-3 * (1 + np.abs(value)) * random.uniform(0.5, 1.5, size=value.shape)
    return value + step if np.ndim(leaf) else (value + step).item()
