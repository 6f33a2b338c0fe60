"""Bayes factors by fading one posterior into the other.

Names are imported when first used, so that `import crossfade` and the command line start without JAX.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "METHODS": "crossfade.compare",
    "direct": "crossfade.sampling.path",
    "reverse": "crossfade.sampling.path",
    "reparametrise": "crossfade.sampling.path",
    "Model": "crossfade.sampling.model",
    "without_data": "crossfade.sampling.model",
    "anneal": "crossfade.sampling.anneal",
    "float64": "crossfade.sampling.precision",
    "from_formulas": "crossfade.bridges.formula",
    "CrossfadeError": "crossfade.types",
}
__all__ = ["__version__", "compare", "data", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module("crossfade.data")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'crossfade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `crossfade.compare` the function: importing the module of that name would put it in its place."""

    @property
    def compare(self) -> Any:
        return import_module("crossfade.compare").compare

    @compare.setter
    def compare(self, module: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
