"""Rankings: the network of pairs that gave the answer, and the probabilities of the models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.app.plots.style import COLOURS, GREY, INK, PALE, short, tip, titled
from crossfade.app.rankings import chance
from crossfade.app.words import number, with_error
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

if TYPE_CHECKING:
    from crossfade.ranking.record import Ranking

SHOWN = 12  # models with a line in a picture
LABELLED = 12  # edges above which their errors are under the pointer alone
Pair = tuple[str, str]


def refuse_do_not_use(ranking: Ranking) -> None:
    if ranking.verdict == DO_NOT_USE:
        raise CrossfadeError(
            'the verdict is "do not use", so no numbers are drawn: read the reasons, change what they say, rank again'
        )


def labels(names: Sequence[str], width: int) -> list[str]:
    """Names for a picture: formulas of one response without it, and with their rank where they are cut alike."""
    sides = [name.partition("~") for name in names]
    if len(names) > 1 and len({before.strip() for before, _, _ in sides}) == 1 and all(own for _, own, _ in sides):
        names = [after.strip() for _, _, after in sides]
    found = [short(name, width) for name in names]
    return [f"{i + 1}. {own}" if found.count(own) > 1 else own for i, own in enumerate(found)]


def draw_probabilities(figure: Any, ranking: Ranking) -> None:
    """p(model | data) with 95 % Monte-Carlo intervals, best first, and the probabilities before the data."""
    refuse_do_not_use(ranking)
    found = ranking.probabilities
    names = ranking.names[:SHOWN]
    figure.set_figheight(1.55 + 0.27 * max(len(names), 3))
    axis = figure.subplots()
    for i, name in enumerate(names):
        own, prior = found[name], float(ranking.prior[i])
        low, high = np.clip(_interval(own), 0, 1)
        (bar,) = axis.barh(-i, own.value, 0.62, color=COLOURS[0], alpha=1.0 if i == 0 else 0.6)
        words = f"{name}: probability {chance(own)}, 95 % interval {low:.3g} to {high:.3g}, before the data {prior:.3g}"
        tip(bar, words)
        if high > low:
            axis.plot([low, high], [-i, -i], color=INK, linewidth=1.4, solid_capstyle="butt")
            axis.plot([low, high], [-i, -i], "|", color=INK, ms=6)
        axis.plot([prior, prior], [-i - 0.36, -i + 0.36], color=COLOURS[1], linewidth=2)
        end: Any = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
        axis.annotate(chance(own), (max(high, prior, own.value), -i), **end)
    axis.plot([], [], color=COLOURS[1], linewidth=2, label="before the data")
    axis.plot([], [], color=INK, linewidth=1.4, marker="|", label="95 % interval")
    axis.set_yticks([-i for i in range(len(names))], labels(names, 28))
    axis.tick_params(axis="y", length=0)
    top = max(max(_interval(own)[1] for own in found.values()), float(ranking.prior[: len(names)].max()))
    axis.set_xlim(0, min(top, 1.0) * 1.35)
    axis.set_xticks([x for x in axis.get_xticks() if 0 <= x <= min(1.0, axis.get_xlim()[1])])
    axis.set_ylim(-len(names) + 0.4, 0.6)
    axis.set_xlabel("probability of the model, given the data")
    axis.legend(loc="lower right", handlelength=1.4)
    left = len(ranking.names) - len(names)
    rest = sum(found[name].value for name in ranking.names[SHOWN:])
    titled(axis, "How probable each model is", f"{left:,} more models together: {rest:.2g}" if left > 0 else "")


def _interval(own: Estimate) -> tuple[float, float]:
    return own.interval() if own.error > 0 else (own.value, own.value)


def edges_of(ranking: Ranking) -> list[Pair]:
    """The pairs of the tree that both have an answer."""
    found = []
    for words in ranking.about.get("tree", ()):
        # A name may hold the bar that joins two of them; the one way to read it is the one that names two models.
        parts = str(words).split(" | ")
        ways = ((" | ".join(parts[:i]), " | ".join(parts[i:])) for i in range(1, len(parts)))
        found += [(a, b) for a, b in ways if a in ranking.names and b in ranking.names][:1]
    return found


def draw_network(figure: Any, ranking: Ranking) -> None:
    """Models as circles with their rank, as large as they are probable; pairs as lines with the error of each."""
    refuse_do_not_use(ranking)
    edges = edges_of(ranking)
    if not edges:
        route = ranking.about.get("route", "no pairs")
        raise CrossfadeError(
            f"there is no network of pairs: these evidences are from {route}, each model by itself. Plot "
            '"probabilities", or rank with route="path" (--route path)'
        )
    names, found = ranking.names, ranking.probabilities
    shown = min(len(names), SHOWN)
    depth = _depths(names, edges)
    where = _places(names, edges, depth)
    figure.set_figheight(3.0 + 0.19 * shown)
    axis, key = figure.subplots(2, 1, height_ratios=[2.6, 0.19 * shown + 0.2])
    for own in ranking.closure:
        if own.first in where and own.second in where:
            (line,) = axis.plot(*zip(where[own.first], where[own.second], strict=True), color=PALE, linewidth=1)
            line.set(linestyle=(0, (3, 3)), zorder=1)
            tip(line, f"{own.first} beside {own.second}: {with_error(own.residual)} from the way round (0 is expected)")
    for a, b in edges:
        estimate = ranking.log_bayes_factor(a, b)
        (line,) = axis.plot(*zip(where[a], where[b], strict=True), color=GREY, linewidth=1.8, zorder=2)
        tip(line, f"log Bayes factor of {b} over {a}: {with_error(estimate)}")
        if len(edges) <= LABELLED:
            middle = np.mean([where[a], where[b]], axis=0)
            box: Any = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
            said = f"± {number(estimate.error, estimate.error)}"
            axis.text(*middle, said, fontsize=8, ha="center", va="center", bbox=box, zorder=3)
    for i, name in enumerate(names):
        size = 130 + 500 * found[name].value
        dot = axis.scatter(*where[name], s=size, color="white", edgecolor=COLOURS[0], linewidth=1.6, zorder=4)
        if i == 0:
            dot.set_facecolor(COLOURS[0])
        tip(dot, f"{i + 1}. {name}: probability {chance(found[name])}")
        colour = "white" if i == 0 else INK
        axis.text(*where[name], f"{i + 1}", ha="center", va="center", fontsize=8.5, color=colour, zorder=5)
    axis.margins(0.1, 0.14)
    axis.axis("off")
    key.axis("off")
    key.set(xlim=(0, 1), ylim=(-shown + 0.3, 0.7))
    for i, (name, label) in enumerate(zip(names[:shown], labels(names[:shown], 44), strict=True)):
        key.text(0.0, -i, f"{i + 1}", fontsize=8.5, fontweight="bold", va="center")
        key.text(0.06, -i, label, fontsize=8.5, va="center")
        key.text(1.0, -i, chance(found[name]), fontsize=8.5, va="center", ha="right")
    dashed = "; dashed: pairs that check it" if ranking.closure else ""
    worst = max(ranking.log_bayes_factor(a, b).error for a, b in edges)
    words = f"on lines: errors of log Bayes factors (at most {number(worst, worst)}){dashed}"
    titled(axis, "The pairs that the ranking is read from", words)


def _depths(names: tuple[str, ...], edges: list[Pair]) -> dict[str, int]:
    """Steps from the best model; models that no pair leads to stand at the end."""
    depth = {names[0]: 0}
    while more := {b: depth[a] + 1 for one in edges for a, b in (one, one[::-1]) if a in depth and b not in depth}:
        depth |= more
    last = max(depth.values()) + 1
    return depth | {name: last for name in names if name not in depth}


def _places(names: tuple[str, ...], edges: list[Pair], depth: dict[str, int]) -> dict[str, tuple[float, float]]:
    """From left to right by steps from the best model; leaves one below the other, parents in the middle of theirs."""
    children: dict[str, list[str]] = {name: [] for name in names}
    for a, b in edges:
        parent, child = (a, b) if depth[a] < depth[b] else (b, a)
        children[parent].append(child)
    height: dict[str, float] = {}
    n_leaves = 0
    # Deepest last in the first pass (order of leaves), first in the second (parents from their children).
    order: list[str] = []
    waiting = [name for name in names if depth[name] == 0 or not any(name in own for own in children.values())]
    while waiting:
        name = waiting.pop(0)
        order.append(name)
        waiting = [*children[name], *waiting]
        if not children[name]:
            height[name] = -float(n_leaves)
            n_leaves += 1
    for name in reversed(order):
        if children[name]:
            height[name] = float(np.mean([height[child] for child in children[name]]))
    return {name: (float(depth[name]), height[name]) for name in names}
