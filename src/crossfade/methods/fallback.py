"""The fallback: each evidence on its own, from the prior by parallel tempering, for posteriors in separate pieces."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax

from crossfade.analysis.judge import Chains, judge, of_chains, of_error, of_overlap, of_ratios, of_round_trips
from crossfade.analysis.mixing import NOTHING_AGAINST
from crossfade.analysis.summary import Summary, summarise
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.methods.budget import GROWTH, Asked
from crossfade.sampling.tempering import Passage, Tempered, advance, begin, trace_of, tune
from crossfade.types import Leg, Result, Sharing

PILOT = 400  # steps of every rung
MOST = 2**27  # numbers in MBAR's matrix, draws x rungs: a gigabyte
N_REPLICATES = 16


@in_float64
def tempered(joints: tuple[Joint, Joint], asked: Asked, seed: int, why: str, say: Callable[[str], None]) -> Result:
    """Both evidences until their difference has the asked error, or nothing more can be spent; with a verdict."""
    began = time.perf_counter()
    key = jax.random.fold_in(jax.random.key(seed), 99)
    runs: list[Tempered] = []
    for k, joint in enumerate(joints):
        say(f"tempering M{k + 1} from its prior")
        runs.append(tune(begin(joint, jax.random.fold_in(key, k), N_REPLICATES)))
    seen: list[Passage | None] = [None, None]
    n_steps, stopped = PILOT, ""
    while True:
        for k in (0, 1):
            runs[k], passage = advance(runs[k], n_steps)
            seen[k] = Passage.joined([*([] if seen[k] is None else [seen[k]]), passage])  # type: ignore[list-item]
        passages = [passage for passage in seen if passage is not None]
        legs = tuple(
            Leg(f"no data to M{k + 1}", sign, trace_of(runs[k], passages[k]), None) for k, sign in ((0, -1.0), (1, 1.0))
        )
        summary = summarise(legs, "mbar")
        if summary.headline.error <= asked.target_se:
            break
        n_steps, stopped = _affordable(asked, summary, passages, runs, time.perf_counter() - began)
        if stopped:
            break
        say(f"error {summary.headline.error:.2g} so far, {n_steps} more steps")
    return _result(joints, asked, why, legs, summary, passages, stopped)


def _affordable(
    asked: Asked, summary: Summary, passages: list[Passage], runs: list[Tempered], spent: float
) -> tuple[int, str]:
    """Steps that the error asks for and the budget allows, or why there are none."""
    n_now = passages[0].log_likelihood.shape[2]
    n_more = n_now * (min(1.15 * (summary.headline.error / asked.target_se) ** 2, GROWTH) - 1)
    limits = {"more draws would not fit into memory": MOST / N_REPLICATES / max(len(r.tau) for r in runs) ** 2 - n_now}
    if asked.seconds is not None:
        limits[f"the budget of {asked.seconds:g} s is used up"] = n_now * (asked.seconds / spent - 1)
    if asked.max_draws is not None:
        said = f"the budget of {asked.max_draws:,} draws per rung is used up"
        limits[said] = asked.max_draws / N_REPLICATES - n_now
    why = min(limits, key=lambda said: limits[said])
    n_steps = int(min(n_more, limits[why]))
    return (n_steps, "") if n_steps >= PILOT // 2 or n_steps >= n_more else (0, why)


def _result(
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
    for k, joint in enumerate(joints):
        edge = joint.coordinates.lost(u[k])
        findings += of_chains(Chains(f"M{k + 1}", NOTHING_AGAINST, ("",), 0.0, False, edge))
    findings += [*of_overlap(legs), *of_ratios(legs), *of_round_trips(min(trips))]
    about = {
        "path": f"both evidences from the priors by parallel tempering, because {why}",
        "n_chains": N_REPLICATES,
        "n_draws": {leg.name: leg.forward.log_ratio.size for leg in legs},
        "round_trips": trips,
    }
    draws = tuple(joint.coordinates.constrained(own) for joint, own in zip(joints, u, strict=True))
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
