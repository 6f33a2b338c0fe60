"""What the models do not have in common: the prior against the posterior of each such parameter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crossfade.app.plots.priors import distribution
from crossfade.app.plots.style import COLOURS, INK, LINES, short, tip
from crossfade.types import CrossfadeError, Result

MOST = 6  # panels of a picture
WIDER = 4.0  # times the posterior's range that a panel may be wide, to show where the prior is


class Own(NamedTuple):
    """A number that one model has and the other has not, or has with another prior."""

    name: str
    model: int  # 0 for M1, 1 for M2
    draws: np.ndarray
    prior: str  # in words


def own_parameters(result: Result) -> list[Own]:
    """Of M1, then of M2, then those with two priors; each number of a vector by itself."""
    about, sharing = result.about, result.sharing
    twice = about.get("tempered_priors", {})
    wanted = [(name, 0) for name in sharing.only_1] + [(name, 1) for name in sharing.only_2]
    wanted += [(name, k) for name in sharing.tempered for k in (0, 1)]
    found = []
    for name, k in wanted:
        if name not in result.draws[k]:
            continue
        # `priors` holds that of M2 where both models have a parameter of this name.
        known = {} if k == 0 and name in result.draws[1] else about.get("priors", {})
        prior = twice[name][k] if name in twice else known.get(name, "")
        values = np.asarray(result.draws[k][name], float)
        flat = values.reshape(values.shape[0] * values.shape[1], -1)
        labels = [""] if values.ndim == 2 else [f"[{i}]" for i in range(flat.shape[1])]
        found += [Own(name + label, k, flat[:, i], prior) for i, label in enumerate(labels)]
    return found


def draw_differs(figure: Any, result: Result) -> None:
    """A panel of each: the posterior as a histogram, the prior as a line where its words fix a density."""
    found = own_parameters(result)
    if not found:
        if not (result.sharing.only_1 or result.sharing.only_2 or result.sharing.tempered):
            raise CrossfadeError("the models have the same parameters with the same priors: none differs")
        raise CrossfadeError(
            "the result holds no posterior draws of the parameters that differ: compare by the default method "
            '(method="auto"), which keeps them'
        )
    shown = found[:MOST]
    columns = 1 if len(shown) == 1 else 2
    rows = -(-len(shown) // columns)
    figure.set_figheight(2.4 + 1.75 * (rows - 1) if columns == 2 else 3.3)
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.get_layout_engine().set(wspace=0.08, hspace=0.06)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis, own in zip(axes.flat, shown, strict=False):
        _draw(axis, own, result.about.get("priors", {}))
    more = f" (the first {MOST} of {len(found)})" if len(found) > MOST else ""
    figure.suptitle(f"What the data say of what differs{more}", x=0.01, ha="left", fontsize=11, fontweight="bold")


def _draw(axis: Any, own: Own, priors: dict[str, str]) -> None:
    draws = own.draws[np.isfinite(own.draws)]
    low, high = np.percentile(draws, [0.25, 99.75])
    width = max(high - low, 1e-12)
    prior = distribution(own.prior, priors)
    left, right = low - 0.1 * width, high + 0.1 * width
    if prior is not None:
        start, end = prior.support()
        reach = np.clip(prior.ppf([0.025, 0.975]), low - WIDER * width / 2, high + WIDER * width / 2)
        left, right = max(min(left, reach[0]), start), min(max(right, reach[1]), end)
    edges = np.linspace(left, right, 61 if right - left > 2 * width else 36)
    density = np.histogram(draws, edges)[0] / len(draws) / np.diff(edges)
    colour = COLOURS[own.model]
    fill = axis.stairs(density, edges, fill=True, facecolor=colour, alpha=0.55, edgecolor=colour, linewidth=0.8)
    fill.set_label("posterior")
    tip(fill, f"posterior of {own.name} in M{own.model + 1}: mean {draws.mean():.4g}, sd {draws.std():.3g}")
    said = own.prior or "not stated"
    if prior is not None:
        at = np.linspace(left, right, 241)
        at = at[1:-1]  # a density may be infinite at the edge of its support
        (line,) = axis.plot(at, prior.pdf(at), color=INK, linestyle=LINES[1], linewidth=1.5, label="prior")
        tip(line, f"prior of {own.name}: {said}")
    axis.set(yticks=[], xlim=(left, right), ylim=(-0.04 * density.max(), 1.45 * density.max()))
    axis.locator_params(axis="x", nbins=4)
    axis.legend(loc="upper right", fontsize=8, handlelength=1.8, borderaxespad=0.1)
    axis.set_title(f"{short(own.name, 20)} of M{own.model + 1}", loc="left", fontsize=10, pad=16)
    words = f"prior {short(said, 30)}"
    axis.annotate(words, (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points", fontsize=8.5)
