"""An edge: the draws of two posteriors read with each other's densities.

The chains are in two halves. Links and warps are fitted to each half and used on the other, so no draw is used twice.
Where the two ends barely overlap, rungs of chains of their own are put between.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from crossfade.analysis.judge import DIVERGENT
from crossfade.analysis.mixing import mixing
from crossfade.analysis.summary import Summary, headline_of_halves, summarise_halves
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Share, Union, check_data, union
from crossfade.methods.rung import Rung, legs_of, middle, overlaps
from crossfade.paths.fit import (
    WARPS,
    Fit,
    completed,
    fit,
    fitted_path,
    links_and_volumes,
    other_point,
    root_covariance,
)
from crossfade.paths.link import Noise, noise
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.draws import Draws, lengthened
from crossfade.sampling.evaluate import values
from crossfade.sampling.hmc import DENSE, Chains, Tuning, advance
from crossfade.sampling.view import View, view
from crossfade.sampling.warm_up import apart, warm_up
from crossfade.types import CrossfadeError, Leg

HEADLINE = "mbar"
GOOD_OVERLAP = 0.2  # of 0.5: below it a rung between costs less than more draws
MAX_RUNGS = 24
KEPT = 100  # draws per chain of which a rung remembers the place, for its neighbours to start from
N_GROUPS = 4  # of chains in each half, that are left out of the fits one after the other
PILOT_SEGMENTS = 4  # of draws at a new rung
N_SHORTER = 5  # times that steps at a new rung are shortened, because its trajectories diverge
MOST_UNDEFINED = 0.5  # of the draws of one model, at which the other's density may be NaN


class Edge(NamedTuple):
    """Two sets of draws, what was fitted to them, and the rungs from one to the other."""

    draws: tuple[Draws, Draws]
    union: Union
    seed: int
    warp: str
    fits: tuple[Fit, Fit]  # the fit that each half is read with: that of the other half
    rungs: tuple[Rung, ...]  # the two ends first and last
    views: tuple[View, View]  # the draws in the coordinates of the fits
    n_fitted: tuple[int, int] = (0, 0)  # draws per chain of each model that the fits are to

    @property
    def legs(self) -> tuple[Leg, ...]:
        return legs_of(self.rungs)

    def overlaps(self) -> list[float]:
        """Of neighbouring rungs, the worse of the two halves."""
        return overlaps(self.rungs)

    @property
    def fitted_share(self) -> float:
        """Of the draws at an end, those that the fits are to; 0 where fits can be made anew, which tells more."""
        if len(self.rungs) == 2:
            return 0.0
        return max(n / own.n_draws for n, own in zip(self.n_fitted, self.draws, strict=True) if own.u.shape[2])

    def summary(self) -> Summary:
        """Answer, opinions and checks, with errors that know of the fits: groups of chains leave these too."""
        return summarise_halves(self.legs, left_out(self), HEADLINE, self.fitted_share)

    def quick_summary(self) -> Summary:
        """The answer with the fits held fixed: too sure by what they add, but enough to see how far there is to go."""
        return headline_of_halves(self.legs, HEADLINE, self.fitted_share)


@in_float64
def fade(draws_1: Draws, draws_2: Draws, *, share: Share = None, seed: int = 0, max_rungs: int = MAX_RUNGS) -> Edge:
    """The edge between the posteriors of two models, from draws of `sample` (with equal numbers of chains).

    Links are fitted, and as many rungs put between as the overlap asks for (at most `max_rungs`). `.summary().headline`
    is the log Bayes factor of the second over the first, `.overlaps()` how much neighbouring rungs have in common.
    """
    check_data(draws_1.joint, draws_2.joint)
    edge = fitted(draws_1, draws_2, share=share, seed=seed)
    while min(edge.overlaps()) < GOOD_OVERLAP and len(edge.rungs) < max_rungs:
        edge = with_rung(edge)
    return edge


@in_float64
def fitted(draws_1: Draws, draws_2: Draws, *, share: Share = None, seed: int = 0) -> Edge:
    """The two ends alone, read in the way whose overlap is best on draws that it was not fitted to."""
    if draws_1.n_chains != draws_2.n_chains or draws_1.n_chains % 2 or draws_1.n_chains < 4:
        raise CrossfadeError(
            f"the draws have {draws_1.n_chains} and {draws_2.n_chains} chains: give both the same even number, at "
            "least 4"
        )
    if not (draws_1.n_draws and draws_2.n_draws):
        raise CrossfadeError("there are no draws to fit links to: draws.more(100) makes some")
    joined = union(draws_1.joint, draws_2.joint, share)
    views = tuple(view(own, joined.where[k] >= joined.n_shared) for k, own in enumerate((draws_1, draws_2)))
    edge = Edge((draws_1, draws_2), joined, seed, WARPS[0], (), (), views)  # type: ignore[arg-type]
    worth = [_worth(edge, half) for half in _halves(draws_1.n_chains)]
    if joined.n_shared == 0:
        return _refitted(edge, worth)
    found = [_refitted(edge._replace(warp=warp), worth) for warp in WARPS]
    scores = [min(own.overlaps()) for own in found]
    return next(own for own, score in zip(found, scores, strict=True) if score > max(scores) - 0.003)


def _refitted(edge: Edge, worth: list[tuple[float, float]]) -> Edge:
    """Fits to all draws so far, and the two ends read with them; `worth` in independent draws, of each half."""
    halves = _halves(edge.draws[0].n_chains)
    own = [_fit_of(edge, half, n) for half, n in zip(halves, worth, strict=True)]
    edge = edge._replace(fits=(own[1], own[0]), n_fitted=(edge.draws[0].n_draws, edge.draws[1].n_draws))
    return edge._replace(rungs=tuple(_end(edge, k) for k in (0, 1)))


def _halves(n_chains: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n_chains // 2), np.arange(n_chains // 2, n_chains)


def _fit_of(edge: Edge, chains: np.ndarray, worth: tuple[float, float]) -> Fit:
    """The fit to the draws of these chains, and what they are worth in independent draws."""
    u = [own.u[chains] for own in edge.views]
    flat = [own.reshape(own.shape[0] * own.shape[1], own.shape[2]) for own in u]
    return fit(edge.union, (flat[0], flat[1]), worth, edge.warp)


def _worth(edge: Edge, chains: np.ndarray) -> tuple[float, float]:
    """How many independent draws those of these chains are worth."""
    found = []
    for seen in edge.views:
        own = seen.u[chains]
        n = float(own.shape[0] * own.shape[1])
        found.append(min(mixing(own[:, :, :20]).typical, n) if own.shape[2] else n)
    return found[0], found[1]


def _noise(edge: Edge, k: int) -> Noise:
    """What completes the draws of end k by the other model's own coordinates."""
    own = edge.union.only[1 - k]
    draws = edge.draws[k]
    return noise((edge.seed, k), draws.n_chains, draws.n_draws, own.stop - own.start)


def _end(edge: Edge, k: int) -> Rung:
    """The rung at tau = k: posterior draws of model k, completed by the other's link."""
    ratios, places, undefined, random = [], [], 0.0, _noise(edge, k)
    for chains, own in zip(_halves(edge.draws[k].n_chains), edge.fits, strict=True):
        ratio, v = _read(edge, k, chains, own, random)
        nan = np.isnan(ratio)
        if nan.mean() > MOST_UNDEFINED:
            point = edge.views[1 - k].model_point(other_point(edge.union, own, 1 - k, v[nan][:1])[0])
            where = edge.draws[1 - k].coordinates.describe(point)
            raise CrossfadeError(
                f"the log joint of M{2 - k} is NaN at {nan.mean():.0%} of the draws of M{k + 1}, as at {where}: "
                "it must be a number or -inf. Guard the operation that fails (log of 0, division by 0, overflow), or "
                "narrow the prior."
            )
        undefined += float(nan.mean()) / 2
        ratios.append(_impossible(ratio, k))
        places.append(v[:, -KEPT:])
    divergent = edge.draws[k].divergent
    share = float(divergent.mean()) if divergent.size else 0.0
    return Rung(float(k), (ratios[0], ratios[1]), (places[0], places[1]), None, share, undefined)


def _impossible(ratio: np.ndarray, k: int) -> np.ndarray:
    """Log ratios at draws of end k: where the other end's density is NaN it counts as 0."""
    return np.where(np.isnan(ratio), np.inf if k else -np.inf, ratio)


def _read(edge: Edge, k: int, chains: np.ndarray, own: Fit, random: Noise) -> tuple[np.ndarray, np.ndarray]:
    """log q_1 - log q_0 at the draws of end k, and the draws in the union; model k's own density is known already."""
    seen = edge.views[k]
    v = completed(edge.union, own, k, seen.u[chains], random.take(chains))
    here = seen.log_density[chains] + links_and_volumes(edge.union, own, k, v)
    there = _log_density(edge, 1 - k, own, v) + links_and_volumes(edge.union, own, 1 - k, v)
    return (there - here if k == 0 else here - there), v


def _log_density(edge: Edge, k: int, own: Fit, v: np.ndarray) -> np.ndarray:
    """Model k's log density at points v of the union."""
    return values(edge.views[k].density, other_point(edge.union, own, k, v))


@in_float64
def with_rung(edge: Edge) -> Edge:
    """One rung more, where neighbours overlap least: half of its chains come from each, so a gap shows as R-hat."""
    k = int(np.argmin(edge.overlaps()))
    left, right = edge.rungs[k : k + 2]
    tau = middle(left, right)
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(edge.seed), 4), len(edge.rungs))
    chains = []
    for h, own in enumerate(edge.fits):
        near = left.v[h], right.v[h]
        both = np.concatenate([v.reshape(-1, edge.union.size) for v in near])
        n = len(near[0])
        starts = np.where((np.arange(n) % 2 == 0)[:, None], near[0][:, -1], near[1][:, -1])
        scale = apart(both, _jumps(edge), partial(_root_of, both))
        tuning = Tuning(both.mean(axis=0), scale, np.full(n, 0.3), 2.2)
        path = fitted_path((edge.views[0].density, edge.views[1].density), edge.union, own)
        keys = chain_keys(jax.random.fold_in(key, h), n)
        chains.append(warm_up(Chains(path, np.full(n, tau), keys, starts, tuning, jumps=_jumps(edge)), n_windows=2))
    n = len(left.v[0])
    none, nowhere = np.zeros((n, 0)), np.zeros((n, 0, edge.union.size))
    empty = Rung(tau, (none, none), (nowhere, nowhere), (chains[0], chains[1]))
    rung = _extended(edge, empty, PILOT_SEGMENTS)
    for _ in range(N_SHORTER):
        if rung.divergent <= DIVERGENT[0] / 2:  # what few trajectories show is not quite what many will
            break
        assert empty.chains is not None
        empty = empty._replace(chains=(empty.chains[0].with_shorter_steps(), empty.chains[1].with_shorter_steps()))
        rung = _extended(edge, empty, PILOT_SEGMENTS)
    return edge._replace(rungs=(*edge.rungs[: k + 1], rung, *edge.rungs[k + 1 :]))


def _root_of(v: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return root_covariance(v[:, columns], DENSE)


def _jumps(edge: Edge) -> np.ndarray | None:
    """The union's coordinates in which one of the log densities has steps."""
    found = [edge.union.where[k][own] for k in (0, 1) if (own := edge.draws[k].joint.jumps) is not None]
    return np.unique(np.concatenate(found)) if found else None


def _extended(edge: Edge, rung: Rung, n_segments: int) -> Rung:
    """The same chains of a rung, n_segments further."""
    if n_segments == 0 or rung.chains is None:
        return rung
    chains, ratios, places, divergent = [], [], [], 0.0
    for h, own in enumerate(edge.fits):
        now, new = advance(rung.chains[h], n_segments)
        ends = [_log_density(edge, k, own, new.u) + links_and_volumes(edge.union, own, k, new.u) for k in (0, 1)]
        ratios.append(np.concatenate([rung.ratio[h], ends[1] - ends[0]], axis=1))
        places.append(np.concatenate([rung.v[h], new.u], axis=1)[:, -KEPT:])
        chains.append(now)
        divergent += float(new.divergent.mean()) / 2
    share = new.u.shape[1] / ratios[0].shape[1]
    share_divergent = share * divergent + (1 - share) * rung.divergent
    return Rung(rung.tau, (ratios[0], ratios[1]), (places[0], places[1]), (chains[0], chains[1]), share_divergent)


@in_float64
def grown(edge: Edge, n_draws: list[int], segment: int) -> Edge:
    """As many draws more per chain at each rung."""
    between = [_extended(edge, rung, n // segment) for rung, n in zip(edge.rungs[1:-1], n_draws[1:-1], strict=True)]
    edge = edge._replace(rungs=(edge.rungs[0], *between, edge.rungs[-1]))
    longer = lengthened({"M1": (edge.draws[0], n_draws[0]), "M2": (edge.draws[1], n_draws[-1])})
    return with_draws(edge, (longer["M1"], longer["M2"]))


@in_float64
def with_draws(edge: Edge, draws: tuple[Draws, Draws]) -> Edge:
    """More draws of both models; they are fitted anew, unless rungs belong to the old fit."""
    views = (edge.views[0].again(draws[0]), edge.views[1].again(draws[1]))
    edge = edge._replace(draws=draws, views=views)
    if len(edge.rungs) == 2:
        return _refitted(edge, [_worth(edge, half) for half in _halves(draws[0].n_chains)])
    return edge._replace(rungs=(_end(edge, 0), *edge.rungs[1:-1], _end(edge, 1)))


def left_out(edge: Edge) -> list[tuple[Leg, ...]]:
    """The legs without each group of chains of both models, the fits to that group's half made anew without it.

    Half h without the group is read as before, and the other half with the new fit to h. Rungs between were sampled
    with their fits, so there nothing can be made anew.
    """
    if len(edge.rungs) > 2:
        return []
    halves = _halves(edge.draws[0].n_chains)
    random = [_noise(edge, k) for k in (0, 1)]
    found = []
    for h, half in enumerate(halves):
        worth = _worth(edge, half)
        for group in np.array_split(np.arange(len(half)), min(N_GROUPS, len(half))):
            kept = np.setdiff1d(np.arange(len(half)), group)
            share = len(kept) / len(half)
            own = _fit_of(edge, half[kept], (share * worth[0], share * worth[1]))
            rungs = []
            for k, rung in enumerate(edge.rungs):
                again, _ = _read(edge, k, halves[1 - h], own, random[k])
                ratio = (rung.ratio[h][kept], _impossible(again, k))
                rungs.append(rung._replace(ratio=ratio if h == 0 else ratio[::-1]))
            found.append(legs_of(tuple(rungs)))
    return found
