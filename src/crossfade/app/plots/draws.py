"""Log ratios under both ends, and the answer with a growing number of draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossfade.app.plots.style import COLOURS, LINES, MARKS, mark_answer, strip, tip, titled
from crossfade.app.words import with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Leg, Result, Trace

TAIL = 0.5  # per cent of the draws of an end that may lie outside of the picture, on each side
FEW = 50  # values too few for a histogram alone
SHARES = np.linspace(0.1, 1.0, 10)  # of the draws, in a picture of convergence


def need_legs(result: Result, what: str) -> tuple[Leg, ...]:
    """The traces, or why there are none."""
    if legs := tuple(leg for leg in result.legs if len(leg.forward.tau) > 1):
        return legs
    route = result.about.get("route", "a run that holds no log ratios")
    raise CrossfadeError(
        f'there are no {what} to draw: the answer is from {route}, without chains. Compare with route="path" '
        '(--route path) to have chains, or plot "differs"'
    )


def one_path(legs: tuple[Leg, ...]) -> bool:
    """Whether all legs lead from M1 to M2, as halves of one run do, and not from no data to each model."""
    return bool(np.isclose(sum(leg.sign for leg in legs), 1)) and all(leg.sign > 0 for leg in legs)


def draw_ratios(figure: Any, result: Result) -> None:
    """Densities of the log ratio under M1 and under M2, which cross at the log Bayes factor: p2(r) = p1(r) e^r / BF."""
    ends, what = ends_of(need_legs(result, "log ratios"))
    axis = figure.subplots()
    span = np.concatenate([np.percentile(own, [TAIL, 100 - TAIL]) for own in ends])
    low, high = span.min(), span.max()
    if result.verdict != DO_NOT_USE:
        low, high = min(low, result.log_bayes_factor.value), max(high, result.log_bayes_factor.value)
    pad = 0.05 * max(high - low, 1e-6)
    n_bins = int(np.clip(2 * min(map(len, ends)) ** 0.4, 6, 60))
    edges = np.linspace(low - pad, high + pad, n_bins + 1)
    counts = [np.histogram(own, edges)[0] / len(own) for own in ends]
    for low, high, *shares in zip(edges[:-1], edges[1:], *counts, strict=True):
        told = " and ".join(f"{share:.1%} of {what} M{k + 1}" for k, share in enumerate(shares))
        strip(axis, low, high, f"{low:.3g} to {high:.3g}: {told}")
    for k, (own, name) in enumerate(zip(ends, ("M1", "M2"), strict=True)):
        density = counts[k] / np.diff(edges)
        fill: Any = {"facecolor": COLOURS[0], "alpha": 0.45} if k == 0 else {"fill": False, "hatch": "////"}
        axis.stairs(density, edges, **({"fill": True} | fill), edgecolor=COLOURS[k], linewidth=0, zorder=1 + k)
        (line,) = axis.plot(
            edges, [*density, density[-1]], drawstyle="steps-post", color=COLOURS[k], linestyle=LINES[k]
        )
        line.set_label(f"{what} {name}")
        line.set(linewidth=1.8, zorder=2 + k)
        tip(line, f"{what} {name}: {len(own):,}, mean {own.mean():.4g}, sd {own.std():.3g}")
        if len(own) < FEW:
            axis.plot(own, np.full(len(own), -0.03 * (k + 1) * density.max()), "|", ms=7, color=COLOURS[k])
    mark_answer(axis, result)
    axis.set(xlim=(edges[0], edges[-1]), yticks=[])
    axis.set_ylim(top=axis.get_ylim()[1] * 1.28)  # room for the legend
    axis.set_xlabel("log density of M2 over that of M1" if what == "draws of" else "work: log weight of a sweep")
    axis.set_ylabel("density")
    axis.legend(loc="upper left", ncols=2, columnspacing=1.2, handlelength=2.4)
    words = "" if result.verdict == DO_NOT_USE else f"log Bayes factor {with_error(result.log_bayes_factor)}"
    crossing = f"The two densities cross at the {'answer' if words else 'log Bayes factor'}"
    titled(axis, crossing if min(map(len, ends)) >= FEW else "Works of the sweeps from both ends", words)


def ends_of(legs: tuple[Leg, ...]) -> tuple[list[np.ndarray], str]:
    """Log ratios at both ends; of sweeps the works there and back, which cross at the same place (Crooks 2000)."""
    if not one_path(legs):
        raise CrossfadeError(
            "this method goes from no data to each model by itself, so no two densities cross at its answer: "
            'compare by method="auto" for this picture, or plot "integrand"'
        )
    if all(leg.forward.equilibrium for leg in legs):
        ends = [np.concatenate([_at(leg.forward, tau) for leg in legs]) for tau in (0.0, 1.0)]
        return _some(ends), "draws of"
    from crossfade.analysis.estimators import work

    (leg,) = legs
    if leg.reverse is None:
        raise CrossfadeError("the run back was not made, so there are no two densities: compare again to its end")
    return _some([work(leg.forward), -work(leg.reverse)]), "sweeps from"


def _at(trace: Trace, tau: float) -> np.ndarray:
    return trace.log_ratio[:, trace.tau == tau].ravel().astype(float)


def _some(ends: list[np.ndarray]) -> list[np.ndarray]:
    """The finite ones; draws that are impossible under the other model have no place on the axis."""
    found = [own[np.isfinite(own)] for own in ends]
    if min(map(len, found)) < 2:
        raise CrossfadeError("fewer than 2 draws of one end are possible under the other: there is nothing to draw")
    return found


def draw_convergence(figure: Any, result: Result) -> None:
    """The estimate by the first draws of each half of the chains, and the final interval."""
    legs = need_legs(result, "chains")
    if result.verdict == DO_NOT_USE:
        raise CrossfadeError(
            'the verdict is "do not use", so its number is not drawn: plot "ratios", "integrand" or "overlap"'
        )
    name = result.raw_estimate.name
    halves, shares, unit, total = halves_of(legs)
    axis = figure.subplots()
    named = _readable(name, legs)
    for k, half in enumerate(halves):
        found = [(n, _estimate(half, n, unit, named)) for n in shares]
        at = np.array([(n * total / shares[-1], value) for n, value in found if np.isfinite(value)])
        if not len(at):
            continue
        axis.plot(*at.T, color=COLOURS[k], linestyle=LINES[k], linewidth=1.8, label=f"half {k + 1}")
        for n, value in at:
            (dot,) = axis.plot([n], [value], MARKS[k], ms=3, color=COLOURS[k])
            tip(dot, f"half {k + 1}, first {n:,.0f} {unit}: {value:.4f}")
    mark_answer(axis, result, upright=False)
    answer = result.log_bayes_factor
    axis.set_xlabel(f"{unit} used of each half" if unit == "chains" else "draws used of each half of the chains")
    axis.set_ylabel("log Bayes factor")
    axis.set_xlim(0, total * 1.02)
    axis.ticklabel_format(axis="y", useOffset=False)
    axis.locator_params(axis="both", nbins=6)
    axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axis.legend(loc="best", title=f"by {named.replace('_', ' ')}", alignment="left")
    band = "" if answer.error == 0 else ", grey: 95 % interval"
    titled(axis, f"The estimate with a growing number of {unit}", f"line: {with_error(answer)}{band}")


Half = list[tuple[float, Trace, Trace | None]]  # sign, there, back


def halves_of(legs: tuple[Leg, ...]) -> tuple[list[Half], list[int], str, int]:
    """Two halves of the chains, the numbers of draws (or of sweeps) to look at, what they count, and how many in all.

    A run of the default method is two halves already, each read with links fitted to the other.
    """
    if len(legs) == 2 and one_path(legs):
        halves: list[Half] = [[(1.0, leg.forward, None)] for leg in legs]
    else:
        halves = [[], []]
        for leg in legs:
            there, back = (None if t is None else np.array_split(np.arange(t.n_chains), 2) for t in leg[2:])
            assert there is not None
            for k in (0, 1):
                reverse = None if leg.reverse is None or back is None else leg.reverse.take(chains=back[k])
                halves[k].append((leg.sign, leg.forward.take(chains=there[k]), reverse))
    first = halves[0][0][1]
    if first.n_draws == 1:
        n = min(trace.n_chains for half in halves for _, trace, _ in half)
        if n < 3:
            raise CrossfadeError("a half of the chains has fewer than 3: compare with more chains (n_chains=16)")
        return halves, list(range(2, n + 1)), "chains", n
    n = min(trace.n_draws for half in halves for _, trace, _ in half)
    shares = sorted({max(round(share * n), 2) for share in SHARES})
    return halves, shares, "draws", n * first.n_chains * len(first.tau) * len(halves[0])


def _readable(name: str, legs: tuple[Leg, ...]) -> str:
    """The answer's own estimator where the traces allow it: importance sampling reads points, not traces."""
    from crossfade.analysis.estimators import ESTIMATORS, legal

    if name in ESTIMATORS:
        return name
    return next(own for own in ("mbar", "trapezoid") if all(own in legal(leg.forward) for leg in legs))


def _estimate(half: Half, n: int, unit: str, name: str) -> float:
    from crossfade.analysis.estimators import ESTIMATORS

    own, sum_ = ESTIMATORS[name], 0.0
    part: Any = {"chains": slice(n)} if unit == "chains" else {"draws": slice(n)}
    for sign, there, back in half:
        try:
            traces = [own.prepare(there.take(**part))]
            if own.one_way and back is not None:
                traces.append(back.take(**part))
            sum_ += sign * own.function(*traces)
        except CrossfadeError:  # too few draws for this estimator: the line begins later
            return np.nan
    return sum_
