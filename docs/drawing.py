"""How the pictures of the manual look, for the scripts beside this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

COLOURS, INK, GREY = ("#1f6f8b", "#e07a3f", "#6a994e"), "#2b2b2b", "#9a9a9a"
PICTURES = Path(__file__).with_name("pictures")
STYLE: Any = {"font.size": 10.5, "axes.edgecolor": GREY, "text.color": INK, "axes.labelcolor": INK}
STYLE |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9.5}


@contextmanager
def figure_to(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """An empty figure, written to the path when it is drawn."""
    path.parent.mkdir(exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=160, layout="constrained")
        yield figure
        figure.savefig(path)
