"""Pictures of results, rankings and curves: each kind is a function that fills a figure, listed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from crossfade.app.plots.curves import draw_calibration, draw_many, draw_opinions, draw_sensitivity
from crossfade.app.plots.draws import draw_convergence, draw_ratios
from crossfade.app.plots.parameters import draw_differs
from crossfade.app.plots.path import draw_integrand, draw_overlap
from crossfade.app.plots.rankings import draw_network, draw_probabilities
from crossfade.app.plots.style import check_matplotlib, drawn
from crossfade.types import CrossfadeError

Kinds = Mapping[str, Callable[[Any, Any], None]]

OF_RESULT: Kinds = {
    "ratios": draw_ratios,
    "integrand": draw_integrand,
    "overlap": draw_overlap,
    "convergence": draw_convergence,
    "opinions": draw_opinions,
    "differs": draw_differs,
}
OF_RANKING: Kinds = {"probabilities": draw_probabilities, "network": draw_network}
CURVES: Kinds = {"sensitivity": draw_sensitivity, "calibration": draw_calibration, "many": draw_many}


def of_result(result: Any, kind: str, path: str | Path | None = None) -> Any:
    """A picture of a result, as matplotlib's Figure."""
    return plotted(OF_RESULT, result, kind, path)


def of_ranking(ranking: Any, kind: str, path: str | Path | None = None) -> Any:
    """A picture of a ranking."""
    return plotted(OF_RANKING, ranking, kind, path)


def of_curve(found: Any, kind: str, path: str | Path | None = None) -> Any:
    """A picture of what has one kind of picture alone."""
    return plotted(CURVES, found, kind, path)


def plotted(kinds: Kinds, what: Any, kind: str, path: str | Path | None = None) -> Any:
    """A picture of one of these kinds."""
    if kind not in kinds:
        raise CrossfadeError(f"unknown picture {kind!r}: choose one of {', '.join(kinds)}")
    draw = kinds[kind]
    return drawn(partial(_draw, draw, what), path)


def _draw(draw: Callable[[Any, Any], None], what: Any, figure: Any) -> None:
    draw(figure, what)


__all__ = [
    "CURVES",
    "OF_RANKING",
    "OF_RESULT",
    "Kinds",
    "check_matplotlib",
    "of_curve",
    "of_ranking",
    "of_result",
    "plotted",
]
