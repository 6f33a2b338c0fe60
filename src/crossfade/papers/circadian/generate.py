"""The data set: two networks, five instances, eleven conditions, thirteen times. The same seeds give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossfade.papers.circadian.design import CONDITIONS, NETWORKS, TIMES, light
from crossfade.papers.circadian.reactions import GENES, SPECIES
from crossfade.papers.circadian.regression import gradient, masked
from crossfade.papers.circadian.simulate import OMEGA, simulate

if TYPE_CHECKING:
    import pandas

INSTANCES = (1, 2, 3, 4, 5)
MRNA = [SPECIES.index(f"{gene}_m") for gene in GENES]


def seed(network: str, instance: int, condition: str) -> int:
    """Of one trajectory, and of its mask."""
    return 10_000 * (1 + list(NETWORKS).index(network)) + 100 * instance + 1 + list(CONDITIONS).index(condition)


def segment(network: str, instance: int, condition: str) -> pandas.DataFrame:
    """The thirteen rows of one trajectory."""
    import pandas

    about, key = CONDITIONS[condition], seed(network, instance, condition)
    counts = simulate(network, condition, [key])[0]
    hidden = [GENES.index(gene) for gene in about.knocked_out]
    # Rounded before the gradients are taken, so that they follow from the table.
    mrna = masked(counts[:, MRNA], hidden, np.random.default_rng(key)).round(4)
    light_p = counts[:, SPECIES.index("P")] / OMEGA * np.array([light(time, about) for time in TIMES])
    columns = {"network": network, "instance": instance, "condition": condition, "time": TIMES.round(6)}
    columns |= dict(zip(GENES, mrna.T, strict=True)) | {"LightP": light_p.round(6)}
    slopes = {f"d{gene}": gradient(x).round(4) + 0.0 for gene, x in zip(GENES, mrna.T, strict=True)}  # no minus zero
    return pandas.DataFrame(columns | slopes)


def table() -> pandas.DataFrame:
    """All 1430 rows."""
    import pandas

    keys = [(n, i, c) for n in NETWORKS for i in INSTANCES for c in CONDITIONS]
    return pandas.concat([segment(*key) for key in keys], ignore_index=True)


def generate(path: Path) -> None:
    """Write the data set."""
    table().to_csv(path, index=False, float_format="%.10g", lineterminator="\n")
