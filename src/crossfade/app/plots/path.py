"""The path: the mean log ratio along it, whose integral is the answer, and how far neighbouring rungs overlap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crossfade.app.plots.draws import need_legs, one_path
from crossfade.app.plots.style import COLOURS, GREY, INK, LINES, MARKS, PALE, short, strip, tip, titled
from crossfade.app.words import with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate, Leg, Result, Trace

BINS = 60  # of a sweep, along tau
FEW = 12  # rungs between which the mean is computed; more of them show the curve by themselves
GRID = 21  # places on the path at which the mean is computed between rungs
GROUPS = 8  # of chains, left out in turn for the band
STRIPS = 21  # of tau, each with its values under the pointer
MANY = 10  # gaps above which bars have no labels


class Curve(NamedTuple):
    """The mean log ratio along the path, with its standard error."""

    tau: np.ndarray
    mean: np.ndarray
    error: np.ndarray


def curve_of(trace: Trace) -> Curve:
    """E_tau[log ratio]: between a few rungs from all draws together (MBAR), else at rungs, or in bins of tau."""
    few = trace.equilibrium and len(np.unique(trace.tau)) <= FEW
    return _between_rungs(trace) if few else _in_bins(trace)


def _in_bins(trace: Trace) -> Curve:
    """A point of each bin: the mean over chains, and its error from their spread."""
    rungs = np.unique(trace.tau)
    rows = []
    for part in np.array_split(rungs, min(len(rungs), BINS)):
        ratio = trace.log_ratio[:, np.isin(trace.tau, part)].astype(float)
        by_chain = np.where(np.isfinite(ratio), ratio, np.nan).reshape(trace.n_chains, -1)
        own = np.array([chain[np.isfinite(chain)].mean() for chain in by_chain if np.isfinite(chain).any()])
        if len(own) > 1:
            rows.append((part.mean(), own.mean(), own.std(ddof=1) / np.sqrt(len(own))))
    return Curve(*np.array(rows).reshape(-1, 3).T)


def _between_rungs(trace: Trace) -> Curve:
    """Weighted means at any tau, the weights of MBAR; the error by leaving groups of chains out, all computed anew.

    Under the mixture of all rungs a draw r has density sum_k n_k e^{tau_k r} / Z_k, so its weight at tau is e^{tau r}
    over that sum, and E_tau[r] is a ratio of two weighted sums.
    """
    from crossfade.analysis.bennett import mbar_log_z
    from crossfade.analysis.estimators import ratios

    grid = np.union1d(np.linspace(0, 1, GRID), np.unique(trace.tau))

    def means(part: Trace) -> np.ndarray:
        tau, samples = ratios(part)
        log_z = mbar_log_z(tau, samples)
        log_n = np.log([len(own) for own in samples])
        ratio = np.concatenate(samples)
        ratio = ratio[np.isfinite(ratio)]
        mixed = np.logaddexp.reduce(np.multiply.outer(tau, ratio) + (log_n - log_z)[:, None], axis=0)
        found = []
        for at in grid:
            log_weight = at * ratio - mixed
            weight = np.exp(log_weight - log_weight.max())
            found.append(weight @ ratio / weight.sum())
        return np.array(found)

    groups = np.array_split(np.arange(trace.n_chains), min(GROUPS, trace.n_chains))
    try:
        whole = means(trace)
        others = np.array([means(trace.take(chains=np.setdiff1d(np.arange(trace.n_chains), own))) for own in groups])
    except CrossfadeError:  # not a draw in common: the rungs are all there is
        return _in_bins(trace)
    n = len(groups)
    error = np.sqrt((n - 1) / n * ((others - others.mean(axis=0)) ** 2).sum(axis=0)) if n > 1 else np.zeros(len(grid))
    return Curve(grid, whole, error)


def draw_integrand(figure: Any, result: Result) -> None:
    """The mean log ratio along tau with a 95 % band; its mean over tau is the log Bayes factor."""
    legs = need_legs(result, "log ratios along a path")
    straight = one_path(legs)
    axis = figure.subplots()
    curves = [_draw_curve(axis, leg, k) for k, leg in enumerate(legs)]
    for at in np.linspace(0, 1, STRIPS):
        told = [f"{_called(leg)} {_at(own, at)}" for leg, own in zip(legs, curves, strict=True)]
        half = 0.5 / (STRIPS - 1)
        strip(axis, at - half, at + half, f"tau = {at:.2g}: {', '.join(told)}")
    ends = ("M1", "M2") if straight else ("no data", "all data")
    words = ""
    if straight and result.verdict != DO_NOT_USE:
        answer = result.log_bayes_factor
        words = f"mean over tau (dotted): log Bayes factor {with_error(answer)}"
        line = axis.axhline(answer.value, color=INK, linewidth=1.2, linestyle=(0, (1.2, 2)), zorder=2.5)
        tip(line, f"log Bayes factor {with_error(answer)}")
    bottom, top = axis.get_ylim()
    if straight and bottom < 0 < top:
        axis.axhline(0, color=PALE, linewidth=0.8, zorder=0)
    axis.ticklabel_format(axis="y", useOffset=False)
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], [f"0\n{ends[0]}", "¼", "½", "¾", f"1\n{ends[1]}"])
    axis.set_xlim(-0.03, 1.03)
    axis.set_xlabel("tau", labelpad=-8)
    axis.set_ylabel("mean log ratio" + " of M2 to M1" * straight)
    axis.legend(loc="best")
    titled(axis, "The integrand: mean log ratio along the path" + "s" * (not straight), words)


def _called(leg: Leg) -> str:
    return short(leg.name.partition(",")[0])


def _at(curve: Curve, tau: float) -> str:
    """The mean at the place of the curve that is nearest, with its standard error."""
    i = int(np.argmin(np.abs(curve.tau - tau)))
    return with_error(Estimate(float(curve.mean[i]), float(curve.error[i]), np.inf))


def _draw_curve(axis: Any, leg: Leg, k: int) -> Curve:
    tau, mean, error = curve = curve_of(leg.forward)
    colour, name = COLOURS[k % len(COLOURS)], _called(leg)
    axis.fill_between(tau, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.25, linewidth=0, zorder=1 + k)
    (line,) = axis.plot(tau, mean, color=colour, linestyle=LINES[k % len(LINES)], linewidth=1.8, zorder=2 + k)
    line.set_label(name)
    tip(line, f"{name}: from {mean[0]:.4g} at tau = 0 to {mean[-1]:.4g} at tau = 1")
    rungs = np.unique(leg.forward.tau)
    if leg.forward.equilibrium and len(rungs) <= GRID:
        for at in rungs:
            i = int(np.argmin(np.abs(curve.tau - at)))
            (dot,) = axis.plot([at], [mean[i]], MARKS[k % len(MARKS)], ms=5, color=colour, zorder=3 + k)
            tip(dot, f"{name}, rung at tau = {at:.3g}: mean {mean[i]:.4g} ± {error[i]:.2g}")
    return curve


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


def draw_overlap(figure: Any, result: Result) -> None:
    """A bar of each gap between rungs and of each half (or leg): 0.5 is the most, 0.1 and less is weak."""
    legs = need_legs(result, "rungs")
    gaps = [overlaps_of(leg.forward) for leg in legs]
    if not any(gaps):
        raise CrossfadeError(
            'a sweep moves tau at every draw and has no rungs whose draws could overlap: plot "integrand", or compare '
            'by method="MBAR"'
        )
    axis = figure.subplots()
    n = max(map(len, gaps))
    for k, (leg, own) in enumerate(zip(legs, gaps, strict=True)):
        name = _called(leg)
        if n > MANY:
            (line,) = axis.plot(range(len(own)), [shared for _, _, shared in own], color=COLOURS[k % 3], label=name)
            line.set(linestyle=LINES[k % 3], marker=MARKS[k % 3], ms=3)
            tip(line, f"{name}: overlaps from {min(own, key=_last)[2]:.3f} to {max(own, key=_last)[2]:.3f}")
        else:
            _draw_bars(axis, own, name, k, 0.8 / len(legs), (k - (len(legs) - 1) / 2) * 0.8 / len(legs))
    for level in (0.1, 0.5):
        axis.axhline(level, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axis.set_yticks([0, 0.1, 0.2, 0.3, 0.4, 0.5], ["0", "weak 0.1", "0.2", "0.3", "0.4", "most 0.5"])
    axis.set(ylim=(0, 0.66), xlim=(-0.6, n - 0.4), ylabel="overlap")
    if n <= MANY:
        axis.set_xticks(range(n), [f"{a:.2g} to {b:.2g}" for a, b, _ in max(gaps, key=len)])
        axis.tick_params(axis="x", rotation=0 if n <= 5 else 40)
        axis.set_xlabel("tau of the two neighbours (0 is M1, 1 is M2)" if one_path(legs) else "tau of the neighbours")
    else:
        axis.set_xlabel("gaps between rungs, in the order of tau")
    axis.legend(loc="upper right", ncols=2)
    worst = min(shared for own in gaps for _, _, shared in own)
    titled(axis, "How far neighbouring rungs overlap", f"the weakest overlap is {worst:.2f}; from 0.1 down it is weak")


def _last(gap: tuple[float, float, float]) -> float:
    return gap[2]


def _draw_bars(axis: Any, own: list[tuple[float, float, float]], name: str, k: int, width: float, at: float) -> None:
    fill: Any = {"color": COLOURS[k % 3]} if k == 0 else {"facecolor": "none", "hatch": "////"}
    for i, (start, end, shared) in enumerate(own):
        label = name if i == 0 else ""
        (bar,) = axis.bar(i + at, shared, width * 0.92, edgecolor=COLOURS[k % 3], label=label, **fill)
        tip(bar, f"{name}, tau {start:.3g} to {end:.3g}: overlap {shared:.3f}")
        if len(own) <= MANY // 2:
            clear: Any = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # of the dashed lines
            axis.text(i + at, shared + 0.015, f"{shared:.2f}", ha="center", va="bottom", fontsize=9, bbox=clear)
