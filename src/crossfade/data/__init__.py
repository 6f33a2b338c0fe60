"""The data sets of the worked examples; where each comes from is in SOURCES.md beside this file."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

NAMES = ("radiata", "pima", "radiocarbon", "galaxy", "diabetes", "circadian")


def load(name: str) -> pandas.DataFrame:
    """The data set of that name as a table: "radiata", "pima", "radiocarbon", "galaxy", "diabetes" or "circadian".

    As published, rows in the order of the source; where each comes from is in SOURCES.md.
    """
    import pandas

    if name not in NAMES:
        raise CrossfadeError(f"there is no data set {name!r}: choose one of {', '.join(NAMES)}")
    with (files(__name__) / f"{name}.csv").open("rb") as file:
        return pandas.read_csv(file)
