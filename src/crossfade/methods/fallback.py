"""The fallback: each evidence on its own, from the prior by parallel tempering, for posteriors in separate pieces."""

from __future__ import annotations

import time
from typing import NamedTuple

import jax
import numpy as np

from crossfade.analysis.summary import Summary, summarise
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.methods.short import GROWTH, Asked, Say
from crossfade.sampling.tempering import Passage, Tempered, advance, begin, trace_of, tune
from crossfade.types import Array, Leg

PILOT = 8  # segments of steps of every rung
MOST = 2**27  # numbers in MBAR's matrix, draws x rungs: a gigabyte
FEW_TRIPS = 40  # round trips from posterior to prior and back: fewer of them have not seen all pieces often enough


class Tempering(NamedTuple):
    """A finished fallback."""

    legs: tuple[Leg, ...]
    summary: Summary
    u: tuple[np.ndarray, np.ndarray]  # draws of both posteriors [replicate, draw, size]
    round_trips: tuple[int, int]
    stopped: str


@in_float64
def tempered_legs(joints: tuple[Joint, Joint], asked: Asked, key: Array, n_replicates: int, say: Say) -> Tempering:
    """Both evidences until their difference has the asked error, or nothing more can be spent."""
    began = time.perf_counter()
    runs: list[Tempered] = []
    for k, joint in enumerate(joints):
        say(f"tempering M{k + 1} from its prior")
        runs.append(tune(begin(joint, jax.random.fold_in(key, k), n_replicates)))
    seen: list[list[Passage]] = [[], []]
    n_segments, stopped = PILOT, ""
    while True:
        for k in (0, 1):
            runs[k], passage = advance(runs[k], n_segments)
            seen[k].append(passage)
        joined = [_joined(passages) for passages in seen]
        legs = tuple(
            Leg(f"no data to M{k + 1}", sign, trace_of(runs[k], joined[k]), None) for k, sign in ((0, -1.0), (1, 1.0))
        )
        summary = summarise(legs, "mbar")
        n_now = joined[0].log_likelihood.shape[2]
        spent = time.perf_counter() - began
        factor = (summary.headline.error / asked.target_se) ** 2
        if factor <= 1:
            break
        n_more = n_now * (min(1.15 * factor, GROWTH) - 1)
        if asked.seconds is not None and spent * (1 + n_more / n_now) > asked.seconds:
            n_more = n_now * (asked.seconds / spent - 1)  # what still fits
            stopped = f"the budget of {asked.seconds:g} s is used up"
        if asked.max_draws is not None and (n_now + n_more) * n_replicates > asked.max_draws:
            n_more = asked.max_draws / n_replicates - n_now
            stopped = f"the budget of {asked.max_draws:,} draws per rung is used up"
        room = MOST / n_replicates / max(len(run.tau) for run in runs) ** 2 - n_now
        if n_more > room:
            n_more, stopped = room, "more draws would not fit into memory"
        n_segments = int(np.ceil(n_more / 50)) if n_more > 0 else 0
        if stopped and n_segments < 4:
            break
        say(f"error {summary.headline.error:.2g} so far, {n_segments * 50} more steps")
        stopped = ""
    places = tuple(passage.u[:, -1] for passage in joined)
    trips = (joined[0].round_trips, joined[1].round_trips)
    return Tempering(legs, summary, (places[0], places[1]), trips, stopped)


def _joined(passages: list[Passage]) -> Passage:
    """One passage of all; of the places only those of the posterior are kept."""
    return Passage(
        np.concatenate([p.log_likelihood for p in passages], axis=2),
        np.concatenate([p.u[:, -1:] for p in passages], axis=2),
        np.mean([p.rejection for p in passages], axis=0),
        np.mean([p.acceptance for p in passages], axis=0),
        sum(p.round_trips for p in passages),
    )
