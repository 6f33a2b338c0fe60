"""The circadian clock as regressions: how fast the mRNA of a gene changes, given the genes that may regulate it.

The data set `circadian` holds counts; here they get the scale of Aderhold et al. (2014), which the priors of the
Michaelis-Menten models are made for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crossfade.data import load
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

GENES: tuple[str, ...] = ("GI", "LHY", "NI", "PRR7", "PRR9", "TOC1", "Y")
LIGHT = "LightP"  # light times the protein that it destroys: the acute response at dawn
INSTANCES = (1, 2, 3, 4, 5)

# Who regulates whom: +1 activates, -1 inhibits. Read off the rates of P2010; the same as the published gold standards.
WILDTYPE: dict[str, dict[str, int]] = {
    "GI": {"LHY": -1, "TOC1": -1, "LightP": +1},
    "LHY": {"TOC1": +1, "PRR9": -1, "PRR7": -1, "NI": -1, "LightP": +1},
    "NI": {"LHY": +1, "PRR7": +1},
    "PRR7": {"LHY": +1, "PRR9": +1},
    "PRR9": {"LHY": +1, "TOC1": -1, "LightP": +1},
    "TOC1": {"LHY": -1, "Y": +1},
    "Y": {"LHY": -1, "TOC1": -1, "LightP": +1},
}
# Without the proteins of PRR7 and PRR9 their four edges are gone.
MUTANT: dict[str, dict[str, int]] = {
    gene: {regulator: sign for regulator, sign in regulators.items() if regulator not in ("PRR7", "PRR9")}
    for gene, regulators in WILDTYPE.items()
}
NETWORKS = {"wildtype": WILDTYPE, "mutant": MUTANT}

# Where a gene was knocked out there is nothing of it to regulate.
KNOCKED_OUT = {"GI": "ko_GI", "LHY": "ko_LHY", "TOC1": "ko_TOC1", "PRR7": "ko_PRR7_PRR9", "PRR9": "ko_PRR7_PRR9"}


class Response(NamedTuple):
    """One gene as the response of a regression; the rows are the samples of all conditions, in order."""

    gene: str
    y: np.ndarray  # z-scored gradient, rows kept
    own: np.ndarray  # scaled expression of the gene itself (degradation term), >= 0
    regulators: dict[str, np.ndarray]  # name -> scaled expression (>= 0), the other genes and LightP


@cache
def _table() -> pandas.DataFrame:
    return load("circadian")


def response(network: str, instance: int, gene: str, *, drop_knocked_out: bool = True) -> Response:
    """The regression of one gene on data of one network: 143 rows, or 130 without those where it was knocked out.

    Expressions are (x - min) / sd and y is (y - mean) / sd, with n - 1, over all 143 rows whatever is dropped later.
    """
    if network not in NETWORKS or instance not in INSTANCES or gene not in GENES:
        raise CrossfadeError(
            f"there are no data of gene {gene!r} in instance {instance!r} of network {network!r}: choose a gene of "
            f"{', '.join(GENES)}, an instance from 1 to 5, a network of {', '.join(NETWORKS)}"
        )
    table = _table()
    table = table[(table["network"] == network) & (table["instance"] == instance)]
    kept = np.ones(len(table), bool)
    if drop_knocked_out and gene in KNOCKED_OUT:
        kept = table["condition"].to_numpy() != KNOCKED_OUT[gene]

    def expression(name: str) -> np.ndarray:
        x = table[name].to_numpy(float)
        return ((x - x.min()) / x.std(ddof=1))[kept]

    slope = table[f"d{gene}"].to_numpy(float)
    y = ((slope - slope.mean()) / slope.std(ddof=1))[kept]
    others = [name for name in (*GENES, LIGHT) if name != gene]
    return Response(gene, y, expression(gene), {name: expression(name) for name in others})
