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
    "check": "crossfade.doctor",
    "first_look": "crossfade.evidence",
    "prior_sensitivity": "crossfade.sensitivity",
    "direct": "crossfade.sampling.path",
    "reverse": "crossfade.sampling.path",
    "reparametrise": "crossfade.sampling.path",
    "Model": "crossfade.sampling.model",
    "without_data": "crossfade.sampling.model",
    "anneal": "crossfade.sampling.anneal",
    "float64": "crossfade.sampling.precision",
    "from_formulas": "crossfade.bridges.formula",
    "from_numpyro": "crossfade.bridges.numpyro",
    "from_pymc": "crossfade.bridges.pymc",
    "from_log_joint": "crossfade.bridges.log_joint",
    "from_numpy_log_joint": "crossfade.bridges.log_joint",
    "CrossfadeError": "crossfade.types",
}
__all__ = ["__version__", "compare", "data", "evidence", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module("crossfade.data")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'crossfade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `crossfade.compare` and `evidence` functions: importing modules of these names would put them in place."""

    @property
    def compare(self) -> Any:
        return import_module("crossfade.compare").compare

    @compare.setter
    def compare(self, module: ModuleType) -> None:
        pass

    @property
    def evidence(self) -> Any:
        return import_module("crossfade.evidence").evidence

    @evidence.setter
    def evidence(self, module: ModuleType) -> None:
        pass


sys.modules[__name__].__class__ = _Package
