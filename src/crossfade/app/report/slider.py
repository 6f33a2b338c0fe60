"""A slider along the scale of a prior: every position has the words that the table of the curve has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crossfade.app.plots.style import said
from crossfade.app.report.html import text

if TYPE_CHECKING:
    from crossfade.methods.sensitivity import Sensitivity


def positions(curve: Sensitivity) -> list[str]:
    """What the page says at each factor; the script only shows them."""
    found = []
    for factor, words, estimate, fine in zip(curve.factors, curve.scales, curve.estimates, curve.reliable, strict=True):
        known = said(estimate) if np.isfinite([estimate.value, estimate.error]).all() else "not known"
        found.append(f"× {factor:.3g}, {words}: {known}" + ("" if fine else " (not reliable)"))
    return found


def start(curve: Sensitivity) -> int:
    """The position of the prior that was compared."""
    return int(np.argmin(np.abs(np.log(curve.factors))))


def slider(curve: Sensitivity) -> str:
    here = start(curve)
    label = f'<label for="scale">Scale of the prior of {text(curve.name)}</label>'
    last = len(curve.factors) - 1
    given = f'type="range" id="scale" min="0" max="{last}" step="1" value="{here}"'
    words = text(positions(curve)[here])
    return (
        f'<div class="slider">{label}<input {given} aria-valuetext="{words}">'
        f'<output for="scale" id="at">{words}</output></div>'
    )
