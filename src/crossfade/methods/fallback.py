"""The fallback: each evidence on its own, from the prior by parallel tempering, for posteriors in separate pieces.

Where a mixture fits the pieces that tempering has found, the evidence is told from there (`methods/pieces`).
"""

from __future__ import annotations

import time
from functools import partial

import jax
import numpy as np

from crossfade.analysis.judge import Chains, judge, of_chains, of_error, of_gap, of_overlap, of_ratios, of_round_trips
from crossfade.analysis.mixing import NOTHING_AGAINST
from crossfade.analysis.summary import Summary, summarise
from crossfade.density.exchangeable import Times
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.methods.budget import GROWTH, Asked
from crossfade.methods.pieces import SMALL, trace_by_pieces
from crossfade.methods.progress import Say, duration
from crossfade.sampling.clock import OutOfTime, until
from crossfade.sampling.evaluate import undefined, values
from crossfade.sampling.starts import gradient_seconds
from crossfade.sampling.tempering import (
    LEAPFROGS,
    N_RUNGS,
    N_TUNING,
    Passage,
    Tempered,
    advance,
    begin,
    trace_of,
    tune,
)
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing

PILOT = 400  # steps of every rung
MOST = 2**25  # numbers in MBAR's matrix, draws x rungs: a quarter of a gigabyte, several times
N_REPLICATES = 16
TEMPERING = "tempering"
LEAST = 10.0  # seconds that it may take, whatever was spent before


@in_float64
def forecast(joints: tuple[Joint, Joint]) -> float:
    """Seconds until tempering has tuned itself and given its first answer, compilation aside."""
    n_chains, n_steps = N_REPLICATES * N_RUNGS, PILOT + N_TUNING
    return sum(gradient_seconds(joint) for joint in joints if joint.places) * n_chains * n_steps * LEAPFROGS / 2


@in_float64
def tempered(joints: tuple[Joint, Joint], asked: Asked, seed: int, why: str, say: Say, before: float = 0.0) -> Result:
    """Both evidences until their difference has the asked error, or nothing more can be spent; with a verdict.

    `before` is what was spent of the time already. The evidence of a model without parameters is known.
    """
    which = tuple(k for k in (0, 1) if joints[k].places)
    if len(which) == 1:
        known = float(joints[1 - which[0]].log_joint({}))
        (own,) = (joints[k] for k in which)
        assert own.log_likelihood is not None
        less = own._replace(log_likelihood=Times(own.log_likelihood, -known))
        joints = (less, joints[1]) if which == (0,) else (joints[0], less)
    began = time.perf_counter()
    seconds = np.inf if asked.seconds is None else max(asked.seconds - before, LEAST)
    key = jax.random.fold_in(jax.random.key(seed), 99)
    runs: list[Tempered] = []
    seen: list[Passage] = []
    summary, n_steps, stopped = None, PILOT, ""
    small = max(joint.coordinates.size for joint in joints) <= SMALL
    try:
        with until(began + 0.9 * seconds):
            for k in which:
                say(f"{why}: tempering M{k + 1} from its prior | {duration(time.perf_counter() - began)} so far")
                runs.append(tune(begin(joints[k], jax.random.fold_in(key, k), N_REPLICATES)))
            while not stopped:
                legs, runs, seen = _longer(which, runs, seen, n_steps)
                summary = summarise(legs, "mbar")
                if small:
                    legs, summary = _by_pieces(which, joints, seen, legs, summary, seed)
                if summary.headline.error <= asked.target_se and not _too_short(legs, seen):
                    break
                spent = time.perf_counter() - began
                n_steps, stopped = _affordable(asked, summary, seen, runs, spent, seconds)
                said = f"log Bayes factor {summary.headline.value:.3g} +- {summary.headline.error:.2g}"
                left = spent * n_steps / seen[0].log_likelihood.shape[2]
                say(f"tempering from the priors | {said} so far | about {duration(left)} left")
    except (OutOfTime, KeyboardInterrupt) as stop:
        by_hand = isinstance(stop, KeyboardInterrupt)
        stopped = "it was stopped by hand" if by_hand else f"the budget of {asked.seconds:g} s is used up"
        if summary is None:
            spent = time.perf_counter() - began
            said = (
                f"there is no answer yet: {why}, so both models must be tempered from their priors, and {stopped} "
                f"before that had given one. Give it about {duration(before + 4 * spent)}, or write the models so that "
                "their posteriors are in one piece"
            )
            raise (KeyboardInterrupt if by_hand else CrossfadeError)(said) from None
    say("")
    assert summary is not None
    return _result(which, joints, asked, why, legs, summary, seen, stopped)


def _by_pieces(
    which: tuple[int, ...],
    joints: tuple[Joint, Joint],
    passages: list[Passage],
    legs: tuple[Leg, ...],
    summary: Summary,
    seed: int,
) -> tuple[tuple[Leg, ...], Summary]:
    """Both evidences from mixtures fitted to the pieces, if that has the smaller error; else as they are."""
    traces = [
        trace_by_pieces(partial(_log_density, joints[k]), passage.u[:, -1], seed + k)
        for k, passage in zip(which, passages, strict=True)
    ]
    found = tuple(leg._replace(forward=trace) for leg, trace in zip(legs, traces, strict=True))
    try:
        again = summarise(found, "mbar").headline
    except CrossfadeError:  # nothing overlaps
        return legs, summary
    if not again.error < summary.headline.error:
        return legs, summary
    before = summary.headline._replace(name=TEMPERING)
    gap = Estimate(before.value - again.value, before.error, before.dof, TEMPERING)
    return found, Summary(again, {TEMPERING: before}, {TEMPERING: gap}, {})


def _log_density(joint: Joint, points: np.ndarray) -> np.ndarray:
    found = values(joint.density, points)
    return np.where(np.isnan(found), -np.inf, found)


def _too_short(legs: tuple[Leg, ...], passages: list[Passage]) -> bool:
    """Whether what speaks against the answer is of the kind that more steps mend."""
    return bool([*of_ratios(legs), *of_round_trips(min(passage.round_trips() for passage in passages))])


def _longer(
    which: tuple[int, ...], runs: list[Tempered], seen: list[Passage], n_steps: int
) -> tuple[tuple[Leg, ...], list[Tempered], list[Passage]]:
    """The evidences, n_steps further."""
    made = [advance(run, n_steps) for run in runs]
    runs = [run for run, _ in made]
    passages = [Passage.joined([*seen[k : k + 1], passage]) for k, (_, passage) in enumerate(made)]
    legs = tuple(
        Leg(f"no data to M{k + 1}", (-1.0, 1.0)[k], trace_of(run, passage), None)
        for k, run, passage in zip(which, runs, passages, strict=True)
    )
    return legs, runs, passages


def _affordable(
    asked: Asked, summary: Summary, passages: list[Passage], runs: list[Tempered], spent: float, seconds: float
) -> tuple[int, str]:
    """Steps that the error asks for and the budget allows, or why there are none."""
    n_now = passages[0].log_likelihood.shape[2]
    n_more = n_now * (min(max(1.15 * (summary.headline.error / asked.target_se) ** 2, 2.0), GROWTH) - 1)
    limits = {"more draws would not fit into memory": MOST / N_REPLICATES / max(len(r.tau) for r in runs) ** 2 - n_now}
    if asked.seconds is not None:
        limits[f"the budget of {asked.seconds:g} s is used up"] = n_now * (seconds / spent - 1)
    if asked.max_draws is not None:
        said = f"the budget of {asked.max_draws:,} draws per rung is used up"
        limits[said] = asked.max_draws / N_REPLICATES - n_now
    why = min(limits, key=lambda said: limits[said])
    n_steps = int(min(n_more, limits[why]))
    return (n_steps, "") if n_steps >= PILOT // 2 or n_steps >= n_more else (0, why)


def _result(
    which: tuple[int, ...],
    joints: tuple[Joint, Joint],
    asked: Asked,
    why: str,
    legs: tuple[Leg, ...],
    summary: Summary,
    passages: list[Passage],
    stopped: str,
) -> Result:
    u = [passage.u[:, -1] for passage in passages]
    trips = [passage.round_trips() for passage in passages]
    findings = of_error(summary.headline, asked.target_se, stopped)
    for k, own in zip(which, u, strict=True):
        edge = joints[k].coordinates.lost(own)
        near = undefined(joints[k].density, own)
        chains = Chains(f"M{k + 1}", NOTHING_AGAINST, ("",), 0.0, False, edge, undefined=near)
        findings += of_chains(chains, summary.headline.error)
    findings += [*of_overlap(legs), *of_ratios(legs), *of_round_trips(min(trips))]
    findings += [] if (gap := summary.differences.get(TEMPERING)) is None else of_gap(TEMPERING, gap)
    words = "" if TEMPERING not in summary.opinions else ", then from mixtures fitted to the pieces that it found"
    what = "both evidences from the priors" if len(which) == 2 else "the evidence from the prior"
    about = {
        "path": f"{what} by parallel tempering{words}, because {why}",
        "n_chains": N_REPLICATES,
        "n_draws": {leg.name: leg.forward.log_ratio.size for leg in legs},
        "round_trips": trips,
    }
    draws: list[dict[str, np.ndarray]] = [{}, {}]
    for k, own in zip(which, u, strict=True):
        draws[k] = joints[k].coordinates.constrained(own)
    return Result(
        summary.headline,
        *judge(findings),
        summary.opinions,
        summary.differences,
        {},
        legs,
        Sharing((), (), ()),
        about,
        (draws[0], draws[1]),
    )
