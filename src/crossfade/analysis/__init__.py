"""From a trace to an estimate: NumPy and SciPy only, so that a stored run can be read anywhere."""

from crossfade.analysis.bennett import bar_difference
from crossfade.analysis.diagnostics import (
    acceptance_by_tau,
    disagreement,
    hysteresis,
    overlap,
    partial_integrals,
    r_hat,
    weakest_overlap,
)
from crossfade.analysis.errors import (
    combine,
    effective_draws,
    jackknife,
    jackknife_pair,
    paper_variance,
    relaxation,
    within_chain,
)
from crossfade.analysis.estimators import (
    ESTIMATORS,
    bar,
    corrected_trapezoid,
    crooks,
    jarzynski,
    legal,
    mbar,
    stepping_stone,
    trapezoid,
    work,
)
from crossfade.analysis.moments import Moments, controlled, controlled_values, plain

__all__ = [
    "ESTIMATORS",
    "Moments",
    "acceptance_by_tau",
    "bar",
    "bar_difference",
    "combine",
    "controlled",
    "controlled_values",
    "corrected_trapezoid",
    "crooks",
    "disagreement",
    "effective_draws",
    "hysteresis",
    "jackknife",
    "jackknife_pair",
    "jarzynski",
    "legal",
    "mbar",
    "overlap",
    "paper_variance",
    "partial_integrals",
    "plain",
    "r_hat",
    "relaxation",
    "stepping_stone",
    "trapezoid",
    "weakest_overlap",
    "within_chain",
    "work",
]
