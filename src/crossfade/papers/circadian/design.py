"""The two networks, the eleven conditions, the light and the sampling times of Aderhold et al. (2014)."""

from __future__ import annotations

from math import tanh
from typing import NamedTuple

import numpy as np

from crossfade.papers.circadian.reactions import STOCHASTIC, SWITCHES

# The mutant makes the mRNA of PRR7 and PRR9 but no protein of it.
NETWORKS: dict[str, dict[str, float]] = {"wildtype": {}, "mutant": {"p8": 1e-4, "p9": 1e-4}}

TWILIGHT = 0.5  # hours
ENTRAINED = 120.0  # five days of 12 hours of light
# The published runs kept every 20th of 1440 points over 144 hours: 119.983, 121.985, ..., 144.
TIMES = 144 / 1439 * (1199 + 20 * np.arange(13))


class Condition(NamedTuple):
    """What happens on the day that is observed."""

    dusk: float = 12.0  # 0 for constant dark, 24 for constant light
    knocked_out: tuple[str, ...] = ()  # no transcription, from the beginning
    until: float = ENTRAINED  # when the entrainment ends


CONDITIONS: dict[str, Condition] = {
    "ko_GI": Condition(knocked_out=("GI",)),
    "ko_LHY": Condition(knocked_out=("LHY",)),
    "ko_TOC1": Condition(knocked_out=("TOC1",)),
    "ko_PRR7_PRR9": Condition(knocked_out=("PRR7", "PRR9")),
    "DD": Condition(dusk=0, until=117.6),  # earlier, or the rise of the light before dawn would leak in
    "LD12": Condition(),
    "LL": Condition(dusk=24),
    "LD4": Condition(dusk=4),
    "LD6": Condition(dusk=6),
    "LD8": Condition(dusk=8),
    "LD18": Condition(dusk=18),
}


def day(time: float, dusk: float) -> float:
    """The light of days with dawn at 0: 1 by day, 0 by night, and rising again before the next dawn."""
    if dusk in (0, 24):
        return float(dusk == 24)
    tau = time % 24
    return 0.5 * (1 + tanh(tau / TWILIGHT) - tanh((tau - dusk) / TWILIGHT) + tanh((tau - 24) / TWILIGHT))


def light(time: float, condition: Condition) -> float:
    """L(t): days of 12 hours until the entrainment ends, then those of the condition."""
    return day(time, 12.0 if time < condition.until else condition.dusk)


def numbers(network: str, condition: Condition) -> dict[str, float]:
    """The parameters and switches of one run."""
    return STOCHASTIC | NETWORKS[network] | SWITCHES | {f"tx_{gene}": 0.0 for gene in condition.knocked_out}
