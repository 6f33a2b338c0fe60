"""How every picture looks: one column of a journal wide, readable in grey and at 300 pixels, no state of pyplot's."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crossfade.app.store import check_folder
from crossfade.app.words import number, printable, with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate, Result

# A dark, a light and a middle tone: they stay apart in grey and for all kinds of colour blindness.
COLOURS, INK, GREY, PALE = ("#14546b", "#e8894a", "#7a9a4e"), "#222222", "#6b6b6b", "#d4d4d4"
LINES: Any = ("-", (0, (5, 2)), (0, (1.5, 1.5)))  # beside colour, so that lines are told apart without it
MARKS = ("o", "s", "D")
WIDTH, DPI = 4.8, 250  # inches; 1,200 pixels
STYLE: Any = {"font.size": 10, "axes.edgecolor": GREY, "text.color": INK, "axes.labelcolor": INK}
STYLE |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9}
STYLE |= {"xtick.color": INK, "ytick.color": INK, "xtick.labelsize": 9, "ytick.labelsize": 9, "axes.linewidth": 0.8}
STYLE |= {"text.parse_math": False, "svg.fonttype": "none", "hatch.linewidth": 0.7}  # a name may hold dollar signs
TIP, STRIP = "tip: ", "strip: "  # begin the ids of artists, and of stretches, with something to say under the pointer


def check_matplotlib() -> None:
    """Pictures are an extra, so it may not be there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise CrossfadeError("pictures need matplotlib: pip install 'crossfade[plot]'") from None


def check_picture(path: str | Path) -> None:
    """That a picture can be drawn there."""
    check_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(path)
    check_folder(path)
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise CrossfadeError(f"{path}: end the name of the picture with one of .{', .'.join(sorted(kinds))}")


def drawn(draw: Callable[[Any], None], path: str | Path | None = None, height: float = 3.3) -> Any:
    """A figure that `draw` has filled, also written to the path if there is one."""
    check_matplotlib() if path is None else check_picture(path)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
        draw(figure)
        figure.draw_without_rendering()  # makes every tick now, in this style
        if path is not None:
            figure.savefig(path)
    return figure


def as_svg(figure: Any, salt: str) -> str:
    """The figure as SVG; `salt` keeps the ids of two of them apart."""
    import matplotlib

    written = io.StringIO()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": salt}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()


def tip(artist: Any, words: str) -> Any:
    """Words for the pointer, kept where an SVG keeps them: as the id of the artist."""
    artist.set_gid(TIP + printable(words))
    return artist


def strip(axis: Any, low: float, high: float, words: str) -> None:
    """Words for the pointer anywhere above a stretch of the horizontal axis; nothing is seen of it."""
    axis.axvspan(low, high, alpha=0, linewidth=0, zorder=0.1).set_gid(STRIP + printable(words))


def short(name: str, width: int = 28) -> str:
    """One line of a name, cut in its middle where it is too long: ends tell formulas apart as often as beginnings."""
    name = printable(" ".join(name.split()))
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"


def titled(axis: Any, title: str, below: str = "") -> None:
    """A title of at most two lines at the left edge of the picture, and smaller words under it."""
    lines = textwrap.wrap(printable(title), 52)[:2]
    smaller = textwrap.wrap(printable(below), 70)[:3]
    height = 13 * len(smaller) + 5
    # The layout leaves room for an empty title; the words begin at the edge of the picture, not at that of the axis.
    axis.set_title("\n".join(" " for _ in lines), fontsize=11, pad=height + 3)
    where: Any = {"xycoords": ("figure fraction", "axes fraction"), "textcoords": "offset points", "va": "bottom"}
    for words, up, font in ((lines, height, {"size": 11, "weight": "bold"}), (smaller, 5, {"size": 9})):
        if words:
            axis.annotate("\n".join(words), (0.012, 1), xytext=(0, up), linespacing=1.15, **where, **font)
            axis.texts[-1].set_in_layout(False)


def mark_answer(axis: Any, result: Result, upright: bool = True) -> None:
    """The answer as a line with its 95 % interval, where there is one."""
    if result.verdict == DO_NOT_USE:
        return
    answer = result.log_bayes_factor
    line, span = (axis.axvline, axis.axvspan) if upright else (axis.axhline, axis.axhspan)
    far: Any = (0, 0.82) if upright else (0, 1)  # upright lines end below the legend
    if answer.error:
        low, high = answer.interval()
        tip(span(low, high, *far, color=GREY, alpha=0.3, linewidth=0, zorder=0.5), said(answer))
    tip(line(answer.value, *far, color=INK, linewidth=1.2, zorder=3), said(answer))


def said(estimate: Estimate) -> str:
    """The answer and its interval in words, for the pointer."""
    words = f"log Bayes factor {with_error(estimate)}"
    if not estimate.error:
        return words
    low, high = (number(end, estimate.error) for end in estimate.interval())
    return f"{words}, 95 % interval {low} to {high}"
