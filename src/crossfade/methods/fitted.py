"""The default method: sample both posteriors, fade one into the other along fitted links, stop in time, and judge.

A run in progress is data, and `step` is a pure function of it: whoever calls it may stop, store it, and go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.analysis.judge import (
    DIVERGENT,
    EFFECTIVE,
    R_HAT,
    Chains,
    judge,
    level,
    of_chains,
    of_checks,
    of_error,
    of_overlap,
    of_ratios,
)
from crossfade.analysis.mixing import NOTHING_AGAINST, mixing
from crossfade.analysis.summary import Summary
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Share
from crossfade.methods.budget import GROWTH, Asked
from crossfade.methods.edge import GOOD_OVERLAP, MAX_RUNGS, Edge, fitted, grown, with_rung
from crossfade.methods.rung import allocate
from crossfade.sampling.draws import Draws, warmed
from crossfade.sampling.hmc import SEGMENT
from crossfade.sampling.user_draws import brought
from crossfade.types import CrossfadeError, Result

PILOT = 4 * SEGMENT  # draws per chain before anything is decided
N_PILOTS = 4  # times that the first draws are thrown away, at most
SEPARATE = 1.5  # R-hat of chains that more of the same will not bring together
LONGER = 4  # times that a run whose error is small enough is doubled, because its chains are not yet good enough
MANY = 200  # coordinates above which half as many chains share the cost of warming up

Say = Callable[[str], None]


class Run(NamedTuple):
    """A run in progress: plain data, and what is wanted of it."""

    joints: tuple[Joint, Joint]
    asked: Asked
    seed: int
    n_chains: int
    share: Share = None
    may_give_up: bool = False  # leave pairs to another method whose posteriors are in pieces or far apart
    draws: tuple[Draws | None, Draws | None] = (None, None)
    edge: Edge | None = None
    summary: Summary | None = None  # of the edge as it is
    error_before: float = np.inf  # before the last draws were added
    n_longer: int = 0
    doing: str = ""  # what the last step did, for people
    given_up: str = ""  # why this method does not fit the pair
    stopped: str = ""  # why the run ended, if not because the asked error was reached
    finished: bool = False


def begin(
    joints: tuple[Joint, Joint],
    asked: Asked,
    seed: int,
    *,
    n_chains: int | None = None,
    share: Share = None,
    draws: tuple[Any, Any] = (None, None),
    may_give_up: bool = False,
) -> Run:
    """A run that has not begun, but for the draws that the user brings along."""
    if n_chains is None:
        n_chains = 32 if max(joint.coordinates.size for joint in joints) <= MANY else 16
    elif n_chains < 4 or n_chains % 2:
        raise CrossfadeError(f"n_chains = {n_chains}: the chains work in two halves; give an even number of at least 4")
    own = [
        None if posterior is None else brought(joint, posterior, n_chains, f"M{k + 1}")
        for k, (joint, posterior) in enumerate(zip(joints, draws, strict=True))
    ]
    if counts := [found.n_chains for found in own if found is not None]:
        n_chains = min(counts) // 2 * 2  # both ends need equally many chains: those brought along decide
        own = [None if found is None else found.regrouped(n_chains) for found in own]
    return Run(joints, asked, seed, n_chains, share, may_give_up, (own[0], own[1]))


@in_float64
def step(run: Run) -> Run:
    """The next thing that is due: warm up, draw, fit, put a rung between, look at the error, draw more."""
    for k in (0, 1):
        draws = run.draws[k]
        if draws is None:
            key = jax.random.fold_in(jax.random.key(run.seed), k)
            found = warmed(run.joints[k], key, run.n_chains, f"M{k + 1}")
            return _with_draws(run, k, found, f"warming up the chains of M{k + 1}" if run.joints[k].places else "")
        if draws.n_draws == 0:
            return _with_draws(run, k, _pilot(draws), f"drawing from the posterior of M{k + 1}")
    if run.edge is None:
        return _with_edge(run)
    if run.summary is None and _wants_rung(run):
        k = int(np.argmin(run.edge.overlaps()))
        edge = with_rung(run.edge)
        said = f"overlap {run.edge.overlaps()[k]:.2g}: a rung at tau = {edge.rungs[k + 1].tau:.3g}"
        return run._replace(edge=edge, doing=said)
    if run.summary is None:
        return _looked_at(run)
    return _grown(run)


def _with_draws(run: Run, k: int, draws: Draws, doing: str) -> Run:
    both = (draws, run.draws[1]) if k == 0 else (run.draws[0], draws)
    return run._replace(draws=both, doing=doing)


def _pilot(draws: Draws) -> Draws:
    """The first draws; where trajectories diverge or chains are slow they start again, in shorter steps or for longer.

    The draws so far are thrown away, so that none are of chains that had not settled.
    """
    draws = draws.more(PILOT)
    for _ in range(N_PILOTS):
        diverges = draws.chains is not None and draws.divergent.mean() > DIVERGENT[0]
        slow = R_HAT[0] < mixing(draws.u).r_hat < SEPARATE
        if not (diverges or slow):
            break
        again = draws.with_shorter_steps() if diverges else draws
        draws = again.emptied().more(draws.n_draws * (2 if slow else 1))
    return draws


def _with_edge(run: Run) -> Run:
    first, second = run.draws
    assert first is not None and second is not None
    if run.may_give_up:
        for which, draws in (("M1", first), ("M2", second)):
            mixed = mixing(draws.as_made)
            if mixed.r_hat > R_HAT[1]:
                where = draws.coordinates.labels()[mixed.r_hat_of]
                why = f"the chains of {which} stay in separate places (R-hat {mixed.r_hat:.2f} for {where})"
                return run._replace(given_up=why, finished=True)
    edge = fitted(first, second, share=run.share, seed=run.seed)
    return run._replace(edge=edge, doing="fitting links to the draws")


def _wants_rung(run: Run) -> bool:
    assert run.edge is not None
    return len(run.edge.rungs) < MAX_RUNGS and min(run.edge.overlaps()) < GOOD_OVERLAP


def _looked_at(run: Run) -> Run:
    """The error: first with the fits held fixed, and if that is small enough, as it is."""
    assert run.edge is not None
    if run.may_give_up and len(run.edge.rungs) >= MAX_RUNGS and min(run.edge.overlaps()) < GOOD_OVERLAP:
        return run._replace(given_up=f"{MAX_RUNGS} rungs do not connect the two posteriors", finished=True)
    with np.errstate(all="ignore"):  # a wild ratio spoils an opinion, not the headline; the verdict sees it
        summary = run.edge.quick_summary()
        if summary.headline.error <= run.asked.target_se:
            summary = run.edge.summary()
    run = run._replace(summary=summary, doing=f"error {summary.headline.error:.2g} so far")
    if summary.headline.error > run.asked.target_se:
        return run
    if run.n_longer < LONGER and _chains_are_short(run):
        return run._replace(n_longer=run.n_longer + 1, doing=f"{run.doing}, but the chains are still short")
    return run._replace(finished=True)


def _chains_are_short(run: Run) -> bool:
    """Whether what speaks against the answer is of the kind that more draws mend."""
    assert run.edge is not None
    mixed = [mixing(draws.as_made) for draws in run.edge.draws if draws.can_grow]
    levels = [max(level(own.r_hat, R_HAT), level(own.effective, EFFECTIVE)) for own in mixed]
    levels += [finding.level for finding in of_ratios(run.edge.legs)]
    return any(levels) and max(own.r_hat for own in mixed) < SEPARATE if mixed else False


def _grown(run: Run) -> Run:
    """More draws where they help most, as many as the error asks for and the budget of draws allows."""
    assert run.edge is not None and run.summary is not None
    error, rungs = run.summary.headline.error, run.edge.rungs
    factor = max((error / run.asked.target_se) ** 2 * 1.15, 2.0 if run.n_longer else 1.0)
    if not np.isfinite(factor):
        factor = GROWTH
    wanted = allocate(rungs, min(factor, GROWTH), PILOT)
    can = [run.edge.draws[0].can_grow, *[True] * (len(rungs) - 2), run.edge.draws[1].can_grow]
    counts = [n if able else 0 for n, able in zip(wanted, can, strict=True)]
    if not any(counts) or (not all(can) and error > 0.95 * run.error_before):
        return _ended(run, "the draws that were brought along are used up")
    if run.asked.max_draws is not None:
        room = [(run.asked.max_draws // run.n_chains - rung.n_draws) // SEGMENT * SEGMENT for rung in rungs]
        counts = [max(min(n, left), 0) for n, left in zip(counts, room, strict=True)]
        if not any(counts):
            return _ended(run, f"the budget of {run.asked.max_draws:,} draws per rung is used up")
    edge = grown(run.edge, counts, SEGMENT)
    return run._replace(draws=edge.draws, edge=edge, summary=None, error_before=error)


def _ended(run: Run, why: str) -> Run:
    """Stopped before the asked error: what there is, with its real error."""
    assert run.edge is not None
    with np.errstate(all="ignore"):
        return run._replace(summary=run.edge.summary(), stopped=why, finished=True)


def drive(run: Run, say: Say) -> Run:
    """Call `step` until it has finished, the time is used up, or somebody presses Ctrl-C."""
    began, forecast = time.perf_counter(), ""
    while not run.finished:
        spent = time.perf_counter() - began
        if run.summary is not None and run.asked.seconds is not None and spent > run.asked.seconds:
            return _ended(run, f"the budget of {run.asked.seconds:g} s is used up")
        if run.summary is not None and not forecast:
            factor = (run.summary.headline.error / run.asked.target_se) ** 2
            forecast = f"error {run.summary.headline.error:.2g} after {spent:.0f} s"
            if factor > 1:
                say(f"{forecast}; {run.asked.target_se:g} needs {factor:.1f} times as many draws")
        try:
            run = step(run)
        except KeyboardInterrupt:
            if run.summary is None:
                raise
            return _ended(run, "it was stopped by hand")  # what there was before still is an answer
        if run.doing and not run.finished:
            say(run.doing)
    return run


def chains_of(run: Run) -> list[Chains]:
    """How the chains of both ends and of the rungs between did."""
    assert run.edge is not None
    found = []
    for k, draws in enumerate(run.edge.draws):
        if draws.u.shape[2]:
            found.append(
                Chains(
                    f"M{k + 1}",
                    mixing(draws.as_made),
                    tuple(draws.coordinates.labels()),
                    float(draws.divergent.mean()),
                    draws.brought is not None,
                    draws.coordinates.lost(draws.u),
                    draws.elsewhere,
                    (draws.at_slopes(), draws.slope),
                )
            )
    for rung in run.edge.rungs[1:-1]:
        found.append(
            Chains(f"the rung at tau = {rung.tau:.3g}", NOTHING_AGAINST, run.edge.union.labels, rung.divergent)
        )
    return found


def result_of(run: Run) -> Result:
    """What a finished run says, and whether to trust it."""
    assert run.edge is not None and run.summary is not None
    summary, edge = run.summary, run.edge
    findings = of_error(summary.headline, run.asked.target_se, run.stopped)
    findings += [finding for chains in chains_of(run) for finding in of_chains(chains)]
    findings += [*of_overlap(edge.legs), *of_ratios(edge.legs), *of_checks(summary.checks, summary.headline)]
    about = {
        "path": description(edge),
        "n_chains": run.n_chains,
        "n_draws": {f"{rung.tau:.4g}": rung.n_draws * run.n_chains for rung in edge.rungs},
    }
    return Result(
        summary.headline,
        *judge(findings),
        summary.opinions,
        summary.differences,
        summary.checks,
        edge.legs,
        edge.union.sharing,
        about,
        (edge.draws[0].theta(), edge.draws[1].theta()),
    )


def description(edge: Edge) -> str:
    warp = {"identity": "as they are", "shift": "shifted to each posterior", "affine": "whitened by each posterior"}
    own, shared = edge.union.size - edge.union.n_shared, edge.union.n_shared
    coordinates = "coordinate" if own == 1 else "coordinates"
    words = [f"links fitted to the draws for {own} unshared {coordinates}" if own else "nothing unshared to link"]
    if shared:
        words.append(f"{shared} shared read {warp[edge.warp]}")
    between = len(edge.rungs) - 2
    rungs = "1 rung" if between == 1 else f"{between} rungs"
    words.append("the two ends overlap" if not between else f"{rungs} between the ends")
    return "fitted links: " + ", ".join(words)
