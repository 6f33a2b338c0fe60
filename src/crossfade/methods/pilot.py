"""The first draws of one model: warm up, draw, and start again where chains diverge, are slow, or do not meet."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from threading import Thread

import jax
import numpy as np

from crossfade.analysis.judge import DIVERGENT, EFFECTIVE, R_HAT, UNDEFINED, undefined_words
from crossfade.analysis.mixing import mixing, plain_r_hat, tail_effective
from crossfade.density.exchangeable import check_numbering, found_numbering
from crossfade.density.joint import Joint
from crossfade.methods.run import PILOT, Pilot, Run
from crossfade.sampling.ahead import compile_all, for_draws, for_starts
from crossfade.sampling.draws import Draws, warmed
from crossfade.sampling.evaluate import steps, undefined
from crossfade.sampling.hmc import SEGMENT
from crossfade.sampling.kept import decided
from crossfade.sampling.starts import gradient_seconds
from crossfade.types import CrossfadeError

N_PILOTS = 4  # times that the first draws are thrown away, at most
ROOM = (0.25, 0.5)  # of the draws that there is time for, that first draws of M1 and of M2 may take once more
MOST_PILOTS = 16  # times as many first draws, while chains have not come back to a place that they have left
SEPARATE = 1.5  # R-hat of chains that more of the same will not bring together
EXPENSIVE = 0.3  # of the time, that warming up may take: dearer models get fewer chains
N_GRADIENTS = 6000  # of each chain, until both models are warm and have been drawn from
FEWEST = 8  # chains
N_LOOKED_AT = 8  # coordinates that mix worst, in which steps are looked for


def compiled(run: Run) -> Run:
    """The programs of both models, and as many chains as these can be warmed up with in good time."""
    joints = [joint for joint, draws in zip(run.joints, run.draws, strict=True) if joint.places and draws is None]
    if joints:
        compile_all(joints, for_starts)
        if run.may_have_fewer and run.asked.seconds is not None:
            run = run._replace(n_chains=int(decided("chains", partial(_affordable, run, joints))))
        compile_all(joints, partial(for_draws, n_chains=run.n_chains))
        # slow to import, and needed once there are draws: compiled chains let go of the interpreter meanwhile
        Thread(target=import_module, args=("arviz_stats.base",), daemon=True).start()
    return run._replace(compiled=True)


def _affordable(run: Run, joints: list[Joint]) -> int:
    """Chains that can be warmed up in good time."""
    each, n_chains = np.mean([gradient_seconds(joint) for joint in joints]), run.n_chains
    while n_chains > FEWEST and n_chains * N_GRADIENTS * each > EXPENSIVE * (run.asked.seconds or np.inf):
        n_chains //= 2
    return n_chains


def settled(run: Run, k: int) -> Run:
    """With the first draws of one model."""
    while run.draws[k] is None or not run.pilots[k].settled:
        run = begun(run, k) if run.draws[k] is None else continued(run, k)
    return run


def begun(run: Run, k: int) -> Run:
    joint, key = run.joints[k], jax.random.fold_in(jax.random.key(run.seed), k)
    return run.with_model(k, joint, warmed(joint, key, run.n_chains, f"M{k + 1}"), run.pilots[k])


def continued(run: Run, k: int) -> Run:
    """Some more of the first draws; where trajectories diverge or chains are slow they start again.

    In shorter steps, or for longer; the draws so far are thrown away, so that none are of chains that had not settled.
    """
    joint, draws, pilot = run.joints[k], run.draws[k], run.pilots[k]
    assert draws is not None
    if draws.n_draws < pilot.n_draws:
        return run.with_model(k, joint, draws.more(SEGMENT), pilot)
    if pilot.n_before == 0 and (again := _with_numbering(run, k)) is not None:
        return again
    diverges = draws.chains is not None and draws.divergent.mean() > DIVERGENT[0]
    slow = _slow(draws)
    in_time = 2 * pilot.n_draws < ROOM[k] * run.room
    if (diverges or slow) and pilot.n_before < N_PILOTS and in_time:
        draws = (draws.with_shorter_steps() if diverges else draws).emptied()
        pilot = Pilot(pilot.n_draws * (2 if slow else 1), pilot.n_before + 1)
    else:
        if (again := _with_steps(run, k)) is not None:
            return again
        if draws.n_draws < MOST_PILOTS * PILOT and in_time and _missed(draws):
            return run.with_model(k, joint, draws, pilot._replace(n_draws=2 * draws.n_draws))
        share, where = undefined_among(draws)
        if share > UNDEFINED[1]:
            raise CrossfadeError(undefined_words(f"M{k + 1}", share, where))
        pilot = pilot._replace(settled=True)
    return run.with_model(k, joint, draws, pilot)


def _slow(draws: Draws) -> bool:
    """Whether chains have met but have hardly gone round: draws that follow are then free of where they began."""
    r_hat = mixing(draws.u).r_hat
    return r_hat < SEPARATE and (r_hat > R_HAT[0] or tail_effective(draws.u) < EFFECTIVE[0])


def _with_steps(run: Run, k: int) -> Run | None:
    """A fresh start for a model that mixes badly in parameters in which its density turns out to have steps."""
    draws, joint = run.draws[k], run.joints[k]
    assert draws is not None
    r_hat = np.atleast_1d(plain_r_hat(draws.u))
    if draws.chains is None or joint.discontinuous or not r_hat.size or r_hat.max() < R_HAT[0]:
        return None
    worst = np.argsort(-r_hat)[:N_LOOKED_AT]
    columns = steps(draws.density, draws.u, worst)
    if not len(columns):
        return None
    where = draws.coordinates
    names = tuple(name for name in joint.names if np.isin(where.stretch(name), columns).any())
    said = f"the log density of M{k + 1} has steps in {', '.join(names)}, moved there by Metropolis steps"
    return run.with_model(k, joint._replace(discontinuous=names, notes=(*joint.notes, said)), None, Pilot())


def _with_numbering(run: Run, k: int) -> Run | None:
    """A fresh start for a model whose chains do not meet because its components can be numbered in several ways."""
    draws, joint = run.draws[k], run.joints[k]
    assert draws is not None
    if draws.chains is None or (not joint.numbered and mixing(draws.u).r_hat < R_HAT[0]):
        return None
    if joint.numbered:  # as somebody said, who may have been wrong where no draw of the prior tells
        check_numbering(joint, joint.numbered, draws.last_places(), f"M{k + 1}")
        return None
    found = found_numbering(joint, draws.last_places(), f"M{k + 1}")
    return None if found is None else run.with_model(k, found, None, Pilot())


def _missed(draws: Draws) -> bool:
    """Whether chains have left a place on their way to which none has come back yet."""
    return draws.past is not None and draws.past.missed(draws.u, draws.log_density) is not None


def undefined_among(draws: Draws) -> tuple[float, str]:
    """Of chains that never came near such a place, nothing: their trajectories would have diverged."""
    return undefined(draws.density, draws.u) if draws.divergent.any() else (0.0, "")
