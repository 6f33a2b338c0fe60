"""The default method: sample both posteriors, fade one into the other along fitted links, stop in time, and judge.

A run in progress is data, and `step` is a pure function of it: whoever calls it may stop, store it, and go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from crossfade.analysis.judge import EFFECTIVE, R_HAT, level, of_ratios
from crossfade.analysis.mixing import mixing
from crossfade.density.exchangeable import check_numbering, found_numbering
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Share, still_shared
from crossfade.methods import pilot, refine
from crossfade.methods.budget import GROWTH, Asked
from crossfade.methods.edge import GOOD_OVERLAP, MAX_RUNGS, fitted, grown, with_rung
from crossfade.methods.run import PILOT, Pilot, Run
from crossfade.methods.rung import allocate
from crossfade.sampling.draws import Draws
from crossfade.sampling.hmc import SEGMENT
from crossfade.sampling.user_draws import brought
from crossfade.types import CrossfadeError

LONGER = 4  # times that a run whose error is small enough is doubled, because its chains are not yet good enough
MANY = 200  # coordinates above which half as many chains share the cost of warming up


def begin(
    joints: tuple[Joint, Joint],
    asked: Asked,
    seed: int,
    *,
    n_chains: int | None = None,
    share: Share = None,
    draws: tuple[Any, Any] = (None, None),
    may_give_up: bool = False,
    points: bool = True,
) -> Run:
    """A run that has not begun, but for draws brought along; with `points` it may end in importance sampling."""
    may_have_fewer = n_chains is None
    if n_chains is None:
        n_chains = usual_chains(joints)
    elif n_chains < 4 or n_chains % 2:
        raise CrossfadeError(f"n_chains = {n_chains}: the chains work in two halves; give an even number of at least 4")
    sides = [
        _side(joint, posterior, n_chains, f"M{k + 1}")
        for k, (joint, posterior) in enumerate(zip(joints, draws, strict=True))
    ]
    joints, own = (sides[0][0], sides[1][0]), [found for _, found in sides]
    if counts := [found.n_chains for found in own if found is not None]:
        n_chains = min(counts) // 2 * 2  # both ends need equally many chains: those brought along decide
        own = [None if found is None else found.regrouped(n_chains) for found in own]
        may_have_fewer = False
    pilots = tuple(Pilot(settled=found is not None) for found in own)
    return Run(
        joints,
        asked,
        seed,
        n_chains,
        share,
        may_have_fewer,
        may_give_up=may_give_up,
        draws=(own[0], own[1]),
        pilots=(pilots[0], pilots[1]),
        points_tried=not points,
    )


def _side(joint: Joint, posterior: Any, n_chains: int, which: str) -> tuple[Joint, Draws | None]:
    """A model and the draws that were brought for it, in one numbering if its components have several.

    Chains of a mixture often stay in one numbering, and then nothing in the draws says that there are others.
    """
    if posterior is None:
        return joint, None
    draws = brought(joint, posterior, n_chains, which)
    if joint.numbered:
        check_numbering(joint, joint.numbered, draws.last_places(), which)
        return joint, draws
    numbered = found_numbering(joint, draws.last_places(), which)
    return (joint, draws) if numbered is None else (numbered, brought(numbered, posterior, n_chains, which))


def usual_chains(joints: Iterable[Joint]) -> int:
    return 32 if max(joint.coordinates.size for joint in joints) <= MANY else 16


def due(run: Run) -> str:
    """What the next step does, in words."""
    return _next(run)[0]


@in_float64
def step(run: Run) -> Run:
    """The run (of `begin`) after the next thing that is due: warm up, draw, fit, put a rung between, draw more."""
    return _next(run)[1](run)


def _next(run: Run) -> tuple[str, Callable[[Run], Run]]:
    if not run.compiled:
        return "compiling both models", pilot.compiled
    for k in (0, 1):
        if run.draws[k] is None:
            return f"warming up the chains of M{k + 1}", partial(pilot.begun, k=k)
        if not run.pilots[k].settled:
            return f"drawing from the posterior of M{k + 1}", partial(pilot.continued, k=k)
    if run.edge is None:
        return "fitting links to the draws", with_edge
    if run.summary is not None:
        if not run.points_tried and run.summary.headline.error > run.asked.target_se and refine.fits(run.edge):
            return "importance sampling from fits to the draws", _by_points
        return "drawing more from both posteriors", _grown
    n_rungs = len(run.edge.rungs)
    if n_rungs < MAX_RUNGS and (overlap := min(run.edge.overlaps())) < GOOD_OVERLAP:
        return f"overlap {overlap:.2g}: putting rung {n_rungs - 1} between the posteriors", _with_rung
    return "computing the error", _looked_at


def _with_rung(run: Run) -> Run:
    assert run.edge is not None
    return run._replace(edge=with_rung(run.edge))


def with_edge(run: Run) -> Run:
    first, second = run.draws
    assert first is not None and second is not None
    if run.may_give_up:
        for which, draws in (("M1", first), ("M2", second)):
            if not draws.u.shape[2]:
                continue
            mixed = mixing(draws.as_made)
            if mixed.r_hat > R_HAT[1]:
                where = draws.coordinates.labels()[mixed.r_hat_of]
                why = f"the chains of {which} stay in separate places (R-hat {mixed.r_hat:.2f} for {where})"
                return run._replace(given_up=why, finished=True)
    share, gone = still_shared(*run.joints, run.share)
    if gone:
        run = run.with_model(0, run.joints[0]._replace(notes=(*run.joints[0].notes, *gone)), first, run.pilots[0])
    return run._replace(share=share, edge=fitted(first, second, share=share, seed=run.seed))


def _looked_at(run: Run) -> Run:
    """The error: first with the fits held fixed, and if that is small enough, as it is."""
    assert run.edge is not None
    if run.may_give_up and len(run.edge.rungs) >= MAX_RUNGS and min(run.edge.overlaps()) < GOOD_OVERLAP:
        return run._replace(given_up=f"{MAX_RUNGS} rungs do not connect the two posteriors", finished=True)
    with np.errstate(all="ignore"):  # a wild ratio spoils an opinion, not the headline; the verdict sees it
        summary = run.edge.quick_summary()
        if summary.headline.error <= run.asked.target_se:
            summary = run.edge.summary()
    run = run._replace(summary=summary)
    if summary.headline.error > run.asked.target_se:
        return run
    if run.n_longer < LONGER and _chains_are_short(run):
        return run._replace(n_longer=run.n_longer + 1)
    return run._replace(finished=True)


def _by_points(run: Run) -> Run:
    """Chains have shown what there is; where points are cheaper than more draws, they give the answer."""
    assert run.edge is not None
    if _chains_are_short(run):
        return run._replace(points_tried=True)
    summary = run.edge.summary()  # its error knows that links were fitted: the points are held against it
    found = refine.by_points(run.edge, summary.headline, run.asked, run.seed)
    return run._replace(points=found, points_tried=True, summary=summary, finished=found is not None)


def _chains_are_short(run: Run) -> bool:
    """Whether what speaks against the answer is of the kind that more draws mend."""
    assert run.edge is not None
    mixed = [mixing(draws.as_made) for draws in run.edge.draws if draws.can_grow]
    levels = [max(level(own.r_hat, R_HAT), level(own.effective, EFFECTIVE)) for own in mixed]
    levels += [finding.level for finding in of_ratios(run.edge.legs)]
    return any(levels) and max(own.r_hat for own in mixed) < pilot.SEPARATE if mixed else False


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
        return ended(run, "the draws that were brought along are used up")
    if run.asked.max_draws is not None:
        room = [(run.asked.max_draws // run.n_chains - rung.n_draws) // SEGMENT * SEGMENT for rung in rungs]
        counts = [max(min(n, left), 0) for n, left in zip(counts, room, strict=True)]
        if not any(counts):
            return ended(run, f"the budget of {run.asked.max_draws:,} draws per rung is used up")
    if sum(counts) > run.room:
        counts = [int(n * run.room / sum(counts)) // SEGMENT * SEGMENT for n in counts]
        if not any(counts):
            return ended(run, f"the budget of {run.asked.seconds:g} s is used up")
    edge = grown(run.edge, counts, SEGMENT)
    return run._replace(draws=edge.draws, edge=edge, summary=None, error_before=error)


def ended(run: Run, why: str) -> Run:
    """Stopped before the asked error: what there is, with its real error."""
    assert run.edge is not None
    with np.errstate(all="ignore"):
        return run._replace(summary=run.edge.summary(), stopped=why, finished=True)
