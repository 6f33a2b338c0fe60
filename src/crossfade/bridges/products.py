"""Names of interactions: x:z and z:x are one coefficient, whichever way a formula writes it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np


class Matrices(NamedTuple):
    """One formula's side of the data, before scaling."""

    y: np.ndarray
    columns: np.ndarray
    names: tuple[str, ...]
    terms: dict[str, list[int]]  # the columns of every term
    spec: Any  # formulaic's


def factors(name: str) -> frozenset[str]:
    """What a product is of; levels of factors, such as group[T.10:30], may hold colons as well."""
    return frozenset(re.split(r":(?![^\[]*\])", name))


def is_product(name: str) -> bool:
    """Whether a coefficient is of an interaction."""
    return len(factors(name)) > 1


def in_one_order(every: dict[str, Matrices]) -> dict[str, Matrices]:
    """Products and terms by the name that the first formula with them gives."""
    known: dict[frozenset[str], str] = {}

    def first(name: str) -> str:
        return known.setdefault(factors(name), name)

    return {
        which: own._replace(
            names=tuple(map(first, own.names)), terms={first(term): columns for term, columns in own.terms.items()}
        )
        for which, own in every.items()
    }
