"""Bayes factors by fading one posterior into the other.

Names are imported when first used, so that `import crossfade` and the command line start without JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "compare": "crossfade.api",
    "compare_many": "crossfade.many",
    "load_many": "crossfade.app.stored_table",
    "calibrate": "crossfade.calibration",
    "evidence": "crossfade.api",
    "rank": "crossfade.ranking",
    "from_many_formulas": "crossfade.ranking.terms",
    "all_subsets": "crossfade.ranking.terms",
    "orders": "crossfade.ranking.terms",
    "load_ranking": "crossfade.app.rankings",
    "sample": "crossfade.api",
    "restored_draws": "crossfade.api",
    "fade": "crossfade.methods.edge",
    "begin": "crossfade.api",
    "step": "crossfade.methods.fitted",
    "result_of": "crossfade.methods.answer",
    "load": "crossfade.app.store",
    "METHODS": "crossfade.methods.table",
    "check": "crossfade.doctor",
    "first_look": "crossfade.methods.laplace",
    "prior_sensitivity": "crossfade.methods.sensitivity",
    "direct": "crossfade.paths.path",
    "reverse": "crossfade.paths.path",
    "reparametrise": "crossfade.paths.path",
    "Model": "crossfade.density.model",
    "without_data": "crossfade.density.model",
    "anneal": "crossfade.sampling.anneal",
    "float64": "crossfade.density.precision",
    "from_formulas": "crossfade.bridges.formula",
    "from_numpyro": "crossfade.bridges.numpyro",
    "from_pymc": "crossfade.bridges.pymc",
    "from_log_joint": "crossfade.bridges.log_joint",
    "from_numpy_log_joint": "crossfade.bridges.log_joint",
    "CrossfadeError": "crossfade.types",
}
__all__ = ["__version__", "data", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module("crossfade.data")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'crossfade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
