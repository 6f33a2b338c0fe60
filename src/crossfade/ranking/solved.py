"""Sums along the tree of a network: log evidences of all models, with their common noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossfade.analysis.errors import Replicates
from crossfade.ranking.network import Network, Pair, reading
from crossfade.types import Float


class Solved(NamedTuple):
    """Log evidences over that of the first name, and the same without each group; the readings of the tree."""

    names: list[str]
    values: Float[np.ndarray, " model"]
    left_out: Float[np.ndarray, "group model"]
    readings: dict[Pair, Replicates]

    def difference(self, pair: Pair) -> Replicates:
        i, j = (self.names.index(name) for name in pair)
        return Replicates(float(self.values[j] - self.values[i]), self.left_out[:, j] - self.left_out[:, i], 2)


def solved_of(network: Network, before: dict[Pair, Replicates]) -> Solved:
    """Sums along the tree; readings of pairs that have not changed are taken from `before`."""
    readings = {pair: before.get(pair) or reading(network.edges[pair]) for pair in network.tree}
    names = network.names
    at: dict[str, Replicates] = {names[0]: Replicates(0.0, np.zeros(2 * network.n_groups), 2)}
    while len(at) < len(names):
        for (a, b), own in readings.items():
            if a in at and b not in at:
                at[b] = Replicates(at[a].value + own.value, at[a].left_out + own.left_out, 2)
            elif b in at and a not in at:
                at[a] = at[b].minus(own)
    return Solved(
        names, np.array([at[name].value for name in names]), np.array([at[name].left_out for name in names]).T, readings
    )


def way(tree: tuple[Pair, ...], start: str, end: str) -> list[Pair]:
    """The pairs of the tree between two models."""
    came: dict[str, Pair | None] = {start: None}
    queue = [start]
    for name in queue:
        for pair in tree:
            if name in pair and (other := pair[pair[0] == name]) not in came:
                came[other] = pair
                queue.append(other)
    found, name = [], end
    while (step := came[name]) is not None:
        found.append(step)
        name = step[step[0] == name]
    return found
