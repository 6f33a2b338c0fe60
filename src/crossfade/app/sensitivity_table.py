"""The curve of the log Bayes factor by a prior's scale, as a table of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from crossfade.app.table import LABEL_WIDTH, console, with_error
from crossfade.types import Estimate

if TYPE_CHECKING:
    from crossfade.methods.sensitivity import Sensitivity

LEGEND = "Pareto k: how heavy the tail of the weights is; from 0.7 on a number is not reliable, so compare anew there."


def print_sensitivity(sensitivity: Sensitivity) -> None:
    console().print(sensitivity_report(sensitivity))


def sensitivity_report(sensitivity: Sensitivity) -> RenderableType:
    """The rows, and in a sentence what they say."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("scale", justify="right", style="cyan", no_wrap=True)
    table.add_column("prior", min_width=LABEL_WIDTH, overflow="fold")
    table.add_column("log Bayes factor", justify="right", no_wrap=True)
    table.add_column("Pareto k", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for factor, words, value, error, k, reliable in sensitivity.table():
        style = "bold" if factor == 1 else "" if reliable else "dim"
        note = "" if reliable else "not reliable"
        answer = with_error(Estimate(value, error, 1.0))
        table.add_row(f"x {factor:.3g}", words, answer, f"{k:.2f}" if math.isfinite(k) else "-", note, style=style)
    title = Text(f"Prior of {sensitivity.name}", style="bold")
    rule = Rule(title, align="left", style="dim", characters="-")
    return Group(rule, table, Text(), Text(conclusion(sensitivity), style="bold"), Text(LEGEND, style="dim"))


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
