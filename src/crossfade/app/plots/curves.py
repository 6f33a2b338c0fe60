"""Curves and tables of numbers: the answer by the scale of a prior, second opinions, calibration, many data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.app.page import worth_telling
from crossfade.app.plots.style import COLOURS, GREY, INK, PALE, said, short, tip, titled
from crossfade.app.words import with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate, Result

if TYPE_CHECKING:
    from crossfade.calibration import Calibration
    from crossfade.many import Many
    from crossfade.methods.sensitivity import Sensitivity

CERTAIN = 10.0  # log Bayes factors beyond which a picture shows no difference
ROWS = 40  # data sets of a picture


def draw_sensitivity(figure: Any, sensitivity: Sensitivity) -> None:
    """The log Bayes factor by the factor on a prior's scale, with its 95 % band; grey where it cannot be trusted."""
    factors, fine = sensitivity.factors, sensitivity.reliable
    value = np.array([estimate.value for estimate in sensitivity.estimates])
    low, high = np.array([estimate.interval() for estimate in sensitivity.estimates]).T
    axis = figure.subplots()
    axis.set_xscale("log")
    axis.axhline(0, color=INK, linewidth=0.9, zorder=1)
    axis.fill_between(factors, low, high, where=fine, color=COLOURS[0], alpha=0.25, linewidth=0, label="95 % band")
    if not fine.all():
        axis.plot(factors, value, color=GREY, linewidth=1.4, linestyle=(0, (4, 3)), label="not reliable")
    axis.plot(factors, np.where(fine, value, np.nan), color=COLOURS[0], linewidth=1.8)
    for factor, words, estimate, reliable in zip(factors, sensitivity.scales, sensitivity.estimates, fine, strict=True):
        style: Any = {"color": COLOURS[0] if reliable else GREY, "ms": 4.5 if reliable else 3.5}
        (dot,) = axis.plot([factor], [estimate.value], "o", **style)
        tip(dot, f"× {factor:.3g}, {words}: {said(estimate)}" + ("" if reliable else ", not reliable"))
    if fine.any():
        axis.set_ylim(*_limits(low[fine], high[fine], value))
    axis.set_xlim(factors[0] / 1.06, factors[-1] * 1.06)
    _sides(axis)
    for flip in sensitivity.flips:
        _mark_flip(axis, flip, rising=bool(value[np.searchsorted(factors, flip)] > 0))
    name = short(sensitivity.name, 24)
    axis.set_xlabel(f"scale of the prior of {name} (× 1: as compared)")
    axis.set_ylabel("log Bayes factor of M2 over M1")
    titled(axis, f"The answer by the prior of {name}", _as_asked(axis, sensitivity))
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
            axis.annotate(words, (1, 0), xytext=(4, y), size=8.5, color=GREY, **where)


def _mark_flip(axis: Any, flip: float, rising: bool) -> None:
    """A point on the line of 0, and its words on the side where the curve is not."""
    left = axis.transAxes.inverted().transform(axis.transData.transform((flip, 0)))[0] > 0.6
    above = rising == left
    axis.plot([flip], [0], "D", ms=6, color=COLOURS[1], zorder=4)
    axis.annotate(
        f"changes sides at × {flip:.3g}", (flip, 0), xytext=(-9 if left else 9, 7 if above else -15),
        textcoords="offset points", ha="right" if left else "left", fontweight="bold", size=9,
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
    """Powers of 2 within the factors, or of 4 or 10 where these would be too many to read."""
    for base in (2.0, 4.0, 10.0):
        first, last = (int(np.round(np.log(x) / np.log(base), 6)) for x in (factors[0], factors[-1]))
        if last - first <= 6:
            break
    powers = [base**k for k in range(first, last + 1)]
    return powers, [f"× {x:g}" if x >= 1 else f"× 1/{1 / x:g}" for x in powers]


def draw_opinions(figure: Any, result: Result) -> None:
    """The answer and the same number by every other estimator that says something about it, with 95 % intervals."""
    if result.verdict == DO_NOT_USE:
        raise CrossfadeError(
            'the verdict is "do not use", so its number is not drawn: plot "ratios", "integrand" or "overlap"'
        )
    answer, others = result.log_bayes_factor, worth_telling(result)
    if not others:
        raise CrossfadeError(
            "there are no second opinions: between two ends, and without chains, there is one estimator alone; compare "
            'by method="MBAR" (or another of the table) to have more'
        )
    rows = [(f"answer: {answer.name}", answer), *others.items()]
    figure.set_figheight(1.6 + 0.3 * len(rows))
    axis = figure.subplots()
    low, high = answer.interval()
    axis.axvspan(low, high, color=GREY, alpha=0.25, linewidth=0, zorder=0)
    for i, (name, own) in enumerate(rows):
        words, half = name.replace("_", " "), (own.interval()[1] - own.interval()[0]) / 2
        colour, mark = (COLOURS[0], "o") if i == 0 else (INK, "s")
        drawn = axis.errorbar(own.value, -i, xerr=half, fmt=mark, ms=6 if i == 0 else 5, color=colour, capsize=3)
        tip(drawn.lines[0], f"{words}: {said(own)}")
    axis.set_yticks([-i for i in range(len(rows))], [short(name.replace("_", " "), 22) for name, _ in rows])
    axis.get_yticklabels()[0].set_fontweight("bold")
    axis.set_ylim(-len(rows) + 0.4, 0.6)
    axis.tick_params(axis="y", length=0)
    axis.locator_params(axis="x", nbins=6)
    axis.set_xlabel("log Bayes factor, 95 % intervals")
    titled(axis, "The same number by other estimators", f"grey: the answer, {with_error(answer)}")


def draw_calibration(figure: Any, found: Calibration) -> None:
    """The share of data sets that M2 made against p(M2 | data), and the log Bayes factors under each model."""
    bins = found.bins
    figure.set_figheight(6.0)
    axis, other = figure.subplots(2, 1, height_ratios=[1.5, 1])
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
    titled(axis, f"{'Calibrated' if found.calibrated else 'Not calibrated'}: {len(found.made_by_2)} data sets")
    low, high = np.clip(np.percentile(found.log_bayes_factor, [0.5, 99.5]), -CERTAIN, CERTAIN)
    edges = np.linspace(low - 0.5, high + 0.5, 31)
    for k in (0, 1):
        own = np.clip(found.log_bayes_factor[found.made_by_2 == k], edges[0], edges[-1])
        style = {"histtype": "stepfilled", "alpha": 0.45, "edgecolor": COLOURS[k], "linewidth": 1.4}
        other.hist(own, edges, color=COLOURS[k], label=f"made by M{k + 1}", **style)
    other.axvline(0, color=INK, linewidth=0.9)
    beyond = "those beyond the ends are counted at the ends" * bool(np.ptp(found.log_bayes_factor) > np.ptp(edges))
    other.set_xlabel("log Bayes factor of M2 over M1")
    other.set_ylabel("data sets")
    other.legend()
    titled(other, "What data of this size can show", beyond)


def draw_many(figure: Any, many: Many) -> None:
    """Log Bayes factors of the data sets with their 95 % intervals, in order; the strongest of both sides if many."""
    rows = sorted((row for row in many.rows if row["log_bayes_factor"] is not None), key=_value)
    if not rows:
        raise CrossfadeError("no data set has an answer, so there is nothing to draw: see .table for the reasons")
    left = len(rows) - ROWS
    shown = rows if left <= 0 else [*rows[: ROWS // 2], *rows[-ROWS // 2 :]]
    figure.set_figheight(1.5 + 0.17 * max(len(shown), 4))
    axis = figure.subplots()
    axis.axvline(0, color=INK, linewidth=0.9)
    for i, row in enumerate(shown):
        own = Estimate(row["log_bayes_factor"], row["error"], np.inf)
        weak = row["verdict"] != "trustworthy"
        drawn = axis.errorbar(
            own.value, i, xerr=1.96 * own.error, fmt="o", ms=4, color=COLOURS[own.value > 0], elinewidth=1.2,
            markerfacecolor="white" if weak else COLOURS[own.value > 0],
        )  # fmt: skip
        tip(drawn.lines[0], f"{row['name']}: {said(own)}, {row['verdict']}")
    axis.set_yticks(range(len(shown)), [short(str(row["name"]), 24) for row in shown], fontsize=7.5)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(-0.8, len(shown) - 0.2)
    axis.set_xlabel("log Bayes factor (left: for M1, right: for M2)")
    words = "filled: trustworthy, open: weak" + (f"; {left:,} data sets in the middle are left out" if left > 0 else "")
    titled(axis, f"{len(rows):,} data sets", words)


def _value(row: dict[str, Any]) -> float:
    return float(row["log_bayes_factor"])
