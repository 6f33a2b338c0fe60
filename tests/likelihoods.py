"""Likelihoods that carry their data as arguments: models that differ in data alone share a compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx


class Likelihood(eqx.Module):
    """A function of (theta, data) that is compiled once."""

    function: Callable[[Any, Any], Any] = eqx.field(static=True)
    data: Any

    def __call__(self, theta):
        return self.function(theta, self.data)


@eqx.filter_jit
def evaluate(function, *args):
    """Compiled, so that models that differ in data alone share the program."""
    return function(*args)
