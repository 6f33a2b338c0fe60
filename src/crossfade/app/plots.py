"""Pictures: the answer by the scale of a prior, and the path that led to an answer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.app.store import check_folder
from crossfade.app.words import with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Leg, Result, Trace

if TYPE_CHECKING:
    from crossfade.calibration import Calibration
    from crossfade.methods.sensitivity import Sensitivity

COLOURS, INK, GREY, PALE = ("#1f6f8b", "#e07a3f", "#6a994e"), "#2b2b2b", "#9a9a9a", "#c8c8c8"
CERTAIN = 10.0  # log Bayes factors beyond which a picture shows no difference
MANY = 60  # rungs above which they are averaged in bins
STYLE: Any = {"font.size": 10.5, "axes.edgecolor": GREY, "text.color": INK, "axes.labelcolor": INK}
STYLE |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9.5}


def check_picture(path: str | Path) -> None:
    """That a picture can be drawn there."""
    try:
        import matplotlib.backend_bases
    except ImportError:
        raise CrossfadeError("pictures need matplotlib: pip install 'crossfade[plot]'") from None
    path = Path(path)
    check_folder(path)
    kinds = matplotlib.backend_bases.FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise CrossfadeError(f"{path}: end the name of the picture with one of .{', .'.join(sorted(kinds))}")


@contextmanager
def figure_to(path: str | Path, size: tuple[float, float]) -> Iterator[Any]:
    """An empty figure, written to the path when it is drawn. No state of pyplot's is touched."""
    check_picture(path)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=160, layout="constrained")
        yield figure
        figure.savefig(path)


def plot_sensitivity(sensitivity: Sensitivity, path: str | Path) -> None:
    """The log Bayes factor by the factor on a prior's scale, with its 95 % band; grey where it cannot be trusted."""
    factors, fine = sensitivity.factors, sensitivity.reliable
    value = np.array([estimate.value for estimate in sensitivity.estimates])
    low, high = np.array([estimate.interval() for estimate in sensitivity.estimates]).T
    with figure_to(path, (7.2, 4.6)) as figure:
        axis = figure.subplots()
        axis.set_xscale("log")
        axis.axhline(0, color=INK, linewidth=0.9, zorder=1)
        trusted = np.where(fine, value, np.nan)
        axis.fill_between(factors, low, high, where=fine, color=COLOURS[0], alpha=0.22, linewidth=0, label="95 % band")
        if not fine.all():
            doubtful = "not reliable: few draws carry the weight"
            axis.plot(factors, value, color=GREY, linewidth=1.4, linestyle=(0, (4, 3)), label=doubtful)
        axis.plot(factors, trusted, "-o", color=COLOURS[0], linewidth=1.8, ms=3.5, label="log Bayes factor")
        if fine.any():
            axis.set_ylim(*_limits(low[fine], high[fine], value))
        axis.set_xlim(factors[0] / 1.06, factors[-1] * 1.06)
        _sides(axis)
        for flip in sensitivity.flips:
            _mark_flip(axis, flip, rising=bool(np.interp(flip * 1.01, factors, value) > 0))
        axis.set_xlabel(f"scale of the prior of {sensitivity.name}, as a multiple of the one that was compared")
        axis.set_ylabel("log Bayes factor of M2 over M1")
        _titled(axis, f"How the answer depends on the prior of {sensitivity.name}", _as_asked(axis, sensitivity))
        axis.set_xticks(*_ticks(factors))
        axis.minorticks_off()
        axis.legend()


def _limits(low: np.ndarray, high: np.ndarray, doubtful: np.ndarray) -> tuple[float, float]:
    """All that can be trusted; the doubtful part and 0 as far as they do not make the rest small."""
    bottom, top = float(low.min()), float(high.max())
    room = max(top - bottom, 1.0)
    near = [x for x in doubtful if bottom - room < x < top + room]
    near += [0.0] if bottom - 3 * room < 0 < top + 3 * room else []
    bottom, top = min([bottom, *near]), max([top, *near])
    pad = 0.08 * max(top - bottom, 0.5)
    return bottom - pad, top + pad


def _sides(axis: Any) -> None:
    """Which side of 0 is whose, where 0 is in the picture."""
    bottom, top = axis.get_ylim()
    if bottom < 0 < top:
        where: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "annotation_clip": False}
        for words, y in (("for M2", 4), ("for M1", -11)):
            axis.annotate(words, (1, 0), xytext=(4, y), size=9, color=GREY, **where)


def _mark_flip(axis: Any, flip: float, rising: bool) -> None:
    """A point on the line of 0, and its words on the side where the curve is not."""
    left = axis.transAxes.inverted().transform(axis.transData.transform((flip, 0)))[0] > 0.6
    above = rising == left
    axis.plot([flip], [0], "D", ms=6, color=COLOURS[1], zorder=4)
    axis.annotate(
        f"changes sides at × {flip:.3g}", (flip, 0), xytext=(-9 if left else 9, 7 if above else -15),
        textcoords="offset points", ha="right" if left else "left", color=COLOURS[1], fontweight="bold", size=9.5,
    )  # fmt: skip


def _as_asked(axis: Any, sensitivity: Sensitivity) -> str:
    """Marks the result itself, and says what it is."""
    (here,) = np.nonzero(sensitivity.factors == 1)
    if not len(here):
        return ""
    estimate = sensitivity.estimates[here[0]]
    axis.axvline(1, color=PALE, linewidth=0.9, zorder=0)
    axis.plot([1], [estimate.value], "o", ms=8, color=COLOURS[0], markerfacecolor="white", markeredgewidth=2)
    return f"at × 1: {with_error(estimate)} with {sensitivity.scales[here[0]]}"


def _ticks(factors: np.ndarray) -> tuple[list[float], list[str]]:
    """Powers of 2 within the factors, or of 10 where these would be too many."""
    for base in (2.0, 10.0):
        first, last = (int(np.round(np.log(x) / np.log(base), 6)) for x in (factors[0], factors[-1]))
        if last - first <= 10:
            break
    powers = [base**k for k in range(first, last + 1)]
    return powers, [f"× {x:g}" if x >= 1 else f"× 1/{1 / x:g}" for x in powers]


def _titled(axis: Any, title: str, below: str = "") -> None:
    lines = textwrap.wrap(below, 90)
    axis.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=8 + 13 * len(lines))
    axis.annotate(
        "\n".join(lines), (0, 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points", fontsize=9.5
    )


def plot_path(result: Result, path: str | Path) -> None:
    """The log ratio along the path, mean and standard deviation at every rung, and the overlap of neighbours."""
    legs = [leg for leg in result.legs if len(leg.forward.tau) > 1]
    if not legs:
        raise CrossfadeError("the result has no path to draw: it holds no draws of 2 rungs or more")
    overlaps = [gap for leg in legs for gap in overlaps_of(leg.forward)]
    one_path = np.isclose(sum(leg.sign for leg in legs), 1) and all(leg.sign > 0 for leg in legs)
    with figure_to(path, (7.2, 5.6 if overlaps else 4.2)) as figure:
        if overlaps:
            axis, gap_axis = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
            _draw_overlaps(gap_axis, overlaps)
        else:
            axis = gap_axis = figure.subplots()
        for k, leg in enumerate(legs):
            _draw_leg(axis, leg, COLOURS[k % len(COLOURS)], (k - (len(legs) - 1) / 2) * 0.012 * one_path)
        if one_path and result.verdict != DO_NOT_USE:
            estimate = result.log_bayes_factor
            label = f"log Bayes factor {with_error(estimate)}, the mean over tau"
            axis.axhline(estimate.value, color=INK, linewidth=1, linestyle=(0, (5, 4)), zorder=0, label=label)
        if one_path:
            axis.axhline(0, color=PALE, linewidth=0.8, zorder=0)
        ends = ("M1", "M2") if one_path else ("start", "end")
        gap_axis.set_xticks([0, 0.25, 0.5, 0.75, 1], [ends[0], "¼", "½", "¾", ends[1]])
        gap_axis.set_xlabel(f"tau: how far {ends[0]} has faded into {ends[1]}" if one_path else "tau, along each path")
        gap_axis.set_xlim(-0.04, 1.04)
        axis.set_ylabel("log ratio" + (" of M2 to M1" if one_path else "") + "\n(mean ± sd of the draws)")
        _titled(axis, "Log ratio along the path" + (" from M1 to M2" if one_path else "s"))
        axis.legend()


def overlaps_of(trace: Trace) -> list[tuple[float, float, float]]:
    """(tau, next tau, overlap) of every gap; nothing for a sweep, whose rungs hold one draw each."""
    from crossfade.analysis.bennett import neighbour_overlaps
    from crossfade.analysis.estimators import ratios

    if not trace.equilibrium:
        return []
    tau, samples = ratios(trace)
    found = []
    for k in range(len(tau) - 1):
        try:
            (shared,) = neighbour_overlaps(tau[k : k + 2], samples[k : k + 2])
        except CrossfadeError:  # not a draw in common
            shared = 0.0
        found.append((float(tau[k]), float(tau[k + 1]), shared))
    return found


def _draw_leg(axis: Any, leg: Leg, colour: str, shift: float) -> None:
    tau, mean, sd = _moments(leg.forward)
    if len(np.unique(leg.forward.tau)) > MANY:
        axis.fill_between(tau, mean - sd, mean + sd, color=colour, alpha=0.22, linewidth=0)
        axis.plot(tau, mean, color=colour, linewidth=1.8, label=leg.name)
        return
    bars = {"capsize": 3, "elinewidth": 1.2, "linewidth": 1.2}
    axis.errorbar(tau + shift, mean, sd, fmt="-o", ms=5, color=colour, label=leg.name, **bars)


def _moments(trace: Trace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """tau, mean and standard deviation of the finite ratios at each rung, or in bins where there are many."""
    rungs = np.unique(trace.tau)
    rows = []
    for part in np.array_split(rungs, min(len(rungs), MANY)):
        ratio = trace.log_ratio[:, np.isin(trace.tau, part)]
        ratio = ratio[np.isfinite(ratio)]
        if ratio.size:
            rows.append((part.mean(), ratio.mean(), ratio.std()))
    return tuple(np.array(rows).T)


def _draw_overlaps(axis: Any, overlaps: list[tuple[float, float, float]]) -> None:
    """A bar per gap, as wide as the gap, with the weakest of the legs written on it."""
    by_gap: dict[tuple[float, float], float] = {}
    for start, end, shared in overlaps:
        by_gap[start, end] = min(shared, by_gap.get((start, end), 1.0))
    for (start, end), shared in by_gap.items():
        axis.bar((start + end) / 2, shared, end - start, color=GREY, alpha=0.35, edgecolor="white", linewidth=1)
        if end - start > 0.06:
            axis.text((start + end) / 2, shared + 0.02, f"{shared:.2g}", ha="center", fontsize=9.5)
    axis.axhline(0.1, color=COLOURS[1], linewidth=1, linestyle=(0, (2, 2)))
    axis.set(ylim=(0, 0.62), ylabel="overlap of\nneighbours")
    axis.set_yticks([0, 0.1, 0.5], ["0", "weak: 0.1", "best: 0.5"])


def plot_calibration(found: Calibration, path: str | Path) -> None:
    """The share of data sets that M2 made against p(M2 | data), and the log Bayes factors under each model."""
    bins = found.bins
    with figure_to(path, (8.6, 4.2)) as figure:
        axis, other = figure.subplots(1, 2, width_ratios=[1, 1.15])
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, zorder=1)
        p, share, sd = bins["probability"], bins["made_by_2"], bins["sd"]
        axis.fill_between(
            p,
            np.maximum(p - 2 * sd, 0),
            np.minimum(p + 2 * sd, 1),
            color=PALE,
            alpha=0.5,
            linewidth=0,
            label="95 % by chance",
        )
        axis.scatter(p, share, s=20 + 200 * bins["sets"] / bins["sets"].sum(), color=COLOURS[0], zorder=3)
        axis.set_xlabel("p(M2 | data), mean of the bin")
        axis.set_ylabel("share of the data sets that M2 made")
        axis.set_xlim(-0.03, 1.03)
        axis.set_ylim(-0.03, 1.03)
        axis.set_aspect("equal")
        axis.legend(loc="upper left")
        _titled(axis, f"{'Calibrated' if found.calibrated else 'Not calibrated'}: {len(found.made_by_2)} data sets")
        low, high = np.clip(np.percentile(found.log_bayes_factor, [0.5, 99.5]), -CERTAIN, CERTAIN)
        edges = np.linspace(low - 0.5, high + 0.5, 31)
        for k in (0, 1):
            own = np.clip(found.log_bayes_factor[found.made_by_2 == k], edges[0], edges[-1])
            style = {"histtype": "stepfilled", "alpha": 0.45, "edgecolor": COLOURS[k], "linewidth": 1.4}
            other.hist(own, edges, color=COLOURS[k], label=f"made by M{k + 1}", **style)
        other.axvline(0, color=INK, linewidth=0.9)
        beyond = ", all beyond the ends within them" * bool(np.ptp(found.log_bayes_factor) > np.ptp(edges))
        other.set_xlabel(f"log Bayes factor of M2 over M1{beyond}")
        other.set_ylabel("data sets")
        other.legend()
        _titled(other, "What data of this size can show")
