"""How the figures look: one colour and one marker per method, everywhere, in PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from crossfade.types import CrossfadeError

INK, GREY, PALE = "#2b2b2b", "#9a9a9a", "#e4e4e4"
COLOURS = {
    "NETI-DIFF": "#1f6f8b",
    "TI-standard": "#b8b8b8",
    "TI-optimal": "#e07a3f",
    "auto": "#6a994e",
    "exact": INK,
}
MORE = ("#1f6f8b", "#e07a3f", "#6a994e", "#8e6c8a", "#c9a227")
MARKERS = ("o", "s", "^", "D", "v")
STYLE: Any = {
    "font.size": 10,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "legend.frameon": False,
    "svg.hashsalt": "crossfade",
}


@contextmanager
def figure(folder: Path, name: str, size: tuple[float, float], title: str, written: list[Path]) -> Iterator[Any]:
    """An empty figure with a title that says what is seen, written to the folder as PNG and SVG when drawn."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise CrossfadeError("figures need matplotlib: pip install 'crossfade[plot]'") from None
    with matplotlib.rc_context(STYLE):
        drawn = Figure(figsize=size, dpi=130, layout="constrained")
        drawn.suptitle(title, x=0.01, ha="left", fontsize=11.5)
        yield drawn
        for suffix in ("png", "svg"):
            path = folder / f"{name}.{suffix}"
            drawn.savefig(path, metadata={"Date": None} if suffix == "svg" else None)
            written.append(path)


def colour(label: str, i: int) -> str:
    return COLOURS.get(label, MORE[i % len(MORE)])


def lines(axis: Any, series: dict[str, tuple[Any, Any, Any, Any]], *, log: bool = True) -> None:
    """Points (x, y, low, high) joined by a line for every label; x are iterations on a log axis."""
    shift = np.linspace(-0.06, 0.06, max(len(series), 2))
    for i, (label, (x, y, low, high)) in enumerate(series.items()):
        x, y, low, high = (np.asarray(values, float) for values in (x, y, low, high))
        bars = np.clip(np.array([y - low, high - y]), 0, None)
        axis.errorbar(
            x * np.exp(shift[i]), y, yerr=bars, color=colour(label, i), marker=MARKERS[i % len(MARKERS)],
            ms=4.5, lw=1.3, elinewidth=0.9, capsize=2, label=label,
        )  # fmt: skip
    axis.set_xscale("log")
    ticks = sorted({float(x) for values in series.values() for x in np.asarray(values[0], float)})
    axis.set_xticks(ticks, [thousands(tick) for tick in ticks])
    axis.minorticks_off()
    if log:
        log_axis(axis)
    axis.grid(axis="y", color=PALE, lw=0.7)


def log_axis(axis: Any) -> None:
    """A log axis with plain numbers at 1, 2 and 5, or at powers of ten if there are many of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 3e3 else (1.0, 2.0, 5.0), numticks=30))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_locator(LogLocator(subs=(1.0,)))


def bars(axis: Any, labels: list[str], series: dict[str, tuple[Any, Any, Any]], *, log: bool = False) -> None:
    """Grouped bars: for every label of the axis, one bar (height, low, high) of every series."""
    width = 0.8 / max(len(series), 1)
    for i, (label, (height, low, high)) in enumerate(series.items()):
        height, low, high = (np.asarray(values, float) for values in (height, low, high))
        at = np.arange(len(labels)) + (i - (len(series) - 1) / 2) * width
        whiskers = np.clip(np.array([height - low, high - height]), 0, None)
        axis.bar(at, height, 0.92 * width, color=colour(label, i), label=label)
        if whiskers.any():
            axis.errorbar(at, height, yerr=whiskers, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2)
    if log:
        log_axis(axis)
    axis.set_xticks(np.arange(len(labels)), labels)
    axis.grid(axis="y", color=PALE, lw=0.7)
    axis.set_axisbelow(True)


def thousands(n: float) -> str:
    return f"{n / 1000:g}k" if n >= 1000 else f"{n:g}"


def legend_below(drawn: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))


def label_outer(axes: Any, x: str, y: str) -> None:
    """Labels below and to the left of a grid of panels."""
    for axis in axes[-1]:
        axis.set_xlabel(x)
    for axis in axes[:, 0]:
        axis.set_ylabel(y)
