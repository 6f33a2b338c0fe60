"""The curve of the log Bayes factor by a prior's scale, as a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from crossfade.app.page import FAINT, STRONG, Column, Row, Section
from crossfade.app.words import with_error
from crossfade.types import Estimate

if TYPE_CHECKING:
    from crossfade.methods.sensitivity import Sensitivity

COLUMNS = (Column("scale", True), Column("prior"), Column("log Bayes factor", True), Column("Pareto k", True), Column())
LEGEND = "Pareto k: how heavy the tail of the weights is; from 0.7 on a number is not reliable, so compare anew there."


def page(sensitivity: Sensitivity) -> tuple[Section, ...]:
    """The rows, and in a sentence what they say."""
    rows = []
    for factor, words, value, error, k, reliable in sensitivity.table():
        answer, tail = with_error(Estimate(value, error, 1.0)), f"{k:.2f}" if math.isfinite(k) else "-"
        cells = (f"x {factor:.3g}", words, answer, tail, "" if reliable else "not reliable")
        rows.append(Row(cells, STRONG if factor == 1 else "" if reliable else FAINT))
    title = f"Prior of {sensitivity.name}"
    return Section(title, COLUMNS, tuple(rows)), Section(lines=(conclusion(sensitivity),), note=LEGEND)


def conclusion(sensitivity: Sensitivity) -> str:
    """Whether the answer depends on the prior, as far as the draws can tell."""
    fine = sensitivity.factors[sensitivity.reliable]
    if not len(fine):
        return "None of these scales can be reached from the draws at hand."
    reach = f"from x {fine[0]:.3g} to x {fine[-1]:.3g}"
    if sensitivity.flips:
        where = " and ".join(f"x {flip:.3g}" for flip in sensitivity.flips)
        return f"The answer changes sides at {where}: it depends on the prior of {sensitivity.name}."
    estimates = [e for e, reliable in zip(sensitivity.estimates, sensitivity.reliable, strict=True) if reliable]
    values = [estimate.value for estimate in estimates]
    if min(values) < 0 < max(values):
        return f"The answer changes sides within a part {reach} that is not reliable."
    if len(values) == 1:
        return f"Reliable at x {fine[0]:.3g} alone."
    span = f"{reach} (a log Bayes factor of {min(values):.2f} to {max(values):.2f})"
    if any(low < 0 < high for low, high in (estimate.interval() for estimate in estimates)):
        return f"The answer does not change sides {span}, but 0 is within the error of some."
    return f"The same model is favoured {span}."
