"""A run of the default method in progress: plain data, so that whoever drives it may stop, store it, and go on."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from crossfade.analysis.summary import Summary
from crossfade.density.joint import Joint
from crossfade.density.sharing import Share
from crossfade.methods.budget import Asked
from crossfade.methods.edge import Edge
from crossfade.methods.refine import Refined
from crossfade.sampling.draws import Draws
from crossfade.sampling.hmc import SEGMENT

T = TypeVar("T")
PILOT = 4 * SEGMENT  # draws per chain before anything is decided


class Pilot(NamedTuple):
    """The first draws of a model: how many are wanted, how often they were thrown away, whether they may stay."""

    n_draws: int = PILOT
    n_before: int = 0
    settled: bool = False


class Run(NamedTuple):
    """A run in progress: plain data, and what is wanted of it."""

    joints: tuple[Joint, Joint]
    asked: Asked
    seed: int
    n_chains: int
    share: Share = None
    may_have_fewer: bool = False  # chains than that, if the models are expensive
    compiled: bool = False
    may_give_up: bool = False  # leave pairs to another method whose posteriors are in pieces or far apart
    draws: tuple[Draws | None, Draws | None] = (None, None)
    pilots: tuple[Pilot, Pilot] = (Pilot(), Pilot())
    edge: Edge | None = None
    summary: Summary | None = None  # of the edge as it is
    error_before: float = np.inf  # before the last draws were added
    n_longer: int = 0
    points: Refined | None = None  # the answer by importance sampling, where that was cheaper
    points_tried: bool = False
    room: float = np.inf  # draws per chain that the time still allows
    given_up: str = ""  # why this method does not fit the pair
    stopped: str = ""  # why the run ended, if not because the asked error was reached
    finished: bool = False

    def with_model(self, k: int, joint: Joint, draws: Draws | None, pilot: Pilot) -> Run:
        """One of the two models, as it has become."""
        return self._replace(
            joints=_with(self.joints, k, joint),
            draws=_with(self.draws, k, draws),
            pilots=_with(self.pilots, k, pilot),
        )


def _with(pair: tuple[T, T], k: int, new: T) -> tuple[T, T]:
    return (new, pair[1]) if k == 0 else (pair[0], new)
