"""From the traces of a comparison to its answer, second opinions and checks, each with its error."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from crossfade.analysis.bennett import neighbour_overlaps
from crossfade.analysis.errors import Replicates, combine, of_both_sides, replicates, replicates_of
from crossfade.analysis.estimators import ESTIMATORS, estimator, legal, ratios, stepping_stone, too_coarse
from crossfade.analysis.mixing import mixing_at
from crossfade.analysis.weights import pareto_k, weight_share
from crossfade.analysis.which_end import slope
from crossfade.types import CrossfadeError, Estimate, Leg, Trace

HYSTERESIS, SLOPE, HALVES = CHECKS = ("hysteresis", "slope", "halves")
ONE_SIDED = ("stepping_stone", HYSTERESIS)  # averages of weights
NO_VARIANCE = 0.5  # Pareto k of weights without a variance
FEW, MOST = 0.2, 0.8  # share of the weights that count: below, too few to tell a tail; above, no tail to tell


class Summary(NamedTuple):
    """Everything that can be said from the traces alone."""

    headline: Estimate
    opinions: dict[str, Estimate]
    differences: dict[str, Estimate]  # opinion minus headline on the same chains
    checks: dict[str, Estimate]


def summarise(legs: tuple[Leg, ...], name: str) -> Summary:
    """The headline by one estimator and the same number by every other one that the traces allow.

    Errors are jackknifed over the chains of each leg and direction, which are independent of each other.
    """
    one_way = estimator(name).one_way or name
    for leg in legs:
        if why := too_coarse(leg.forward, one_way):
            raise CrossfadeError(f"{name}: {why}; legal on this trace: {', '.join(legal(leg.forward)) or 'none'}")
    two_ways = all(leg.reverse is not None for leg in legs)
    names = [other for other in legal(legs[0].forward) if all(other in legal(leg.forward) for leg in legs)]
    if two_ways:
        names += [other for other, own in ESTIMATORS.items() if own.one_way in (*names, name)]
    runs = {name: [_sides(leg, name) for leg in legs]}
    for other in names:
        if other != name:
            with suppress(CrossfadeError):  # only the headline may refuse: a second opinion is no reason to stop
                runs[other] = [_sides(leg, other) for leg in legs]

    def total(sides: list[Sides], name: str) -> Estimate:
        return combine([(leg.sign, of_both_sides(*side)) for leg, side in zip(legs, sides, strict=True)], name)

    estimates = {other: total(sides, other) for other, sides in runs.items()}
    headline = estimates.pop(name)
    differences = {
        # the same chains are behind both, so the difference is jackknifed itself
        other: total([(a.minus(c), b.minus(d)) for (a, b), (c, d) in zip(runs[other], runs[name], strict=True)], other)
        for other in estimates
    }
    checks = {}
    with suppress(CrossfadeError):  # one of the ways may say nothing
        if two_ways:  # forward minus reverse, by the headline's own one-sided estimator
            ways = [(leg.sign, trace) for leg in legs for trace in (leg.forward, leg.reverse) if trace is not None]
            gaps = [(sign, replicates_of(trace, one_way).estimate()) for sign, trace in ways]
            checks[HYSTERESIS] = combine(gaps, HYSTERESIS)
    return Summary(headline, estimates, differences, checks)


# An estimate jackknifed over the forward chains and over the reverse chains (which it may not depend on).
Sides = tuple[Replicates, Replicates]


def _sides(leg: Leg, name: str) -> Sides:
    own = estimator(name)
    if own.one_way:
        if (back := leg.reverse) is None:
            raise CrossfadeError(f"{name}: needs the run back as well, which was not made: run it again")
        there = replicates(leg.forward, lambda part: own.function(part, back))
        return there, replicates(back, lambda part: own.function(leg.forward, part))
    there = replicates_of(leg.forward, name)
    # Not a number of the way back: constant under deletion of its chains, so it adds no variance.
    n_back = leg.reverse.n_chains if leg.reverse is not None else 2
    return there, Replicates(there.value, np.full(n_back, there.value))


def summarise_halves(
    legs: tuple[Leg, ...], without: Sequence[tuple[Leg, ...]], name: str, fitted_share: float = 0.0
) -> Summary:
    """Answer, opinions and checks of two halves of one run, each read with a fit to the other half.

    `without` holds the halves once more without each group of chains, of the first half and then of the second, with
    the fits made anew. Of a mean S of both halves and their difference D, with the fits held fixed the jackknife knows
    the variances of the halves; refitting tells their covariance, since leaving a group of one half out of everything
    then moves both: 2 Cov = Var_refit(S) - Var_refit(D) / 4. Where nothing can be made anew, `without` is empty and the
    correlation of the halves is taken as large as it can be, which is `fitted_share` (`of_fixed_fits`).
    """
    whole = [_statistics(leg.forward, name) for leg in legs]
    fixed = [[_statistics(part, name) for part in leg.forward.left_out()] for leg in legs]
    again = [[_statistics(leg.forward, name) for leg in part] for part in without]
    if any(_heavy_tails(leg.forward) for leg in legs):  # averages of one side mean nothing there, nor do their errors
        whole = [{key: own for key, own in half.items() if key not in ONE_SIDED} for half in whole]
    everywhere = [*whole, *fixed[0], *fixed[1], *(half for part in again for half in part)]
    keys = [key for key in whole[0] if all(key in part for part in everywhere)]

    def estimate(key: str, minus: str = "", sign: float = 1.0, least: float = 0.0) -> Estimate:
        """Of the mean of both halves where sign is 1, and of their difference where it is -1.

        `least` is the smallest error that is believed of chains with fits held fixed.
        """

        def of(part: dict[str, float]) -> float:
            return part[key] - part[minus] if minus else part[key]

        values = [of(half) for half in whole]
        halves = [Replicates(v, np.array([of(part) for part in own])) for v, own in zip(values, fixed, strict=True)]
        if sign > 0:
            found = of_fixed_fits(halves, fitted_share, key)
        else:
            found = combine([(1.0, halves[0].estimate()), (-1.0, halves[1].estimate())], key)
        found = found._replace(error=max(found.error, least))
        moved = np.array([[of(half) for half in part] for part in again]).reshape(-1, 2)
        if sign < 0 or not len(moved):
            return found  # a covariance would only make the error of a difference smaller
        mean, gap = (Replicates(0.0, own, 2).variance for own in (moved.mean(axis=1), np.diff(moved)))
        covariance = max((mean - gap / 4) / 2, 0.0)  # it is noisy, and below 0 it would be noise alone
        return found._replace(error=float(np.sqrt(found.error**2 + covariance / 2)))

    estimates = {key: estimate(key) for key in keys}
    differences = {key: estimate(key, minus=name) for key in keys if key not in (name, *CHECKS)}
    checks = {key: estimates.pop(key) for key in CHECKS if key in estimates}
    checks[HALVES] = estimate(name, sign=-1.0)._replace(name=HALVES)
    estimates.pop(name)
    finite = {key: check for key, check in checks.items() if np.isfinite([check.value, check.error]).all()}
    return Summary(estimate(name, least=expected_error(legs)), estimates, differences, finite)


def expected_error(legs: tuple[Leg, ...]) -> float:
    """Bennett's asymptotic error from overlaps and effective draws: variance (2/O - 4)/n per pair of rungs.

    O is the overlap, 1/2 at best, and n the effective draws of both rungs. An error over 32 chains is itself uncertain
    by an eighth, and one that is small by chance ends a run: so the larger of the two is taken.
    """
    variance = 0.0
    for leg in legs:
        tau, samples = ratios(leg.forward)
        worth = [mixing_at(leg.forward, t).effective for t in tau]
        pairs = zip(neighbour_overlaps(tau, samples), worth[:-1], worth[1:], strict=True)
        variance += leg.sign**2 * sum(max(2 / max(o, 1e-300) - 4, 0.0) / (a + b) for o, a, b in pairs)
    return float(np.sqrt(variance))


def _heavy_tails(trace: Trace) -> bool:
    """Whether the weights from a rung to a neighbour, one way or the other, have no variance, so no honest error."""
    tau, samples = ratios(trace)
    steps = zip(np.diff(tau), samples[:-1], samples[1:], strict=True)
    ways = [way[np.isfinite(way)] for d, below, above in steps for way in (d * below, -d * above)]
    shares = [weight_share(way) for way in ways]
    # Where nearly all weights count the same, the shape of their tail says nothing.
    return any(s < FEW or (s < MOST and pareto_k(way) > NO_VARIANCE) for s, way in zip(shares, ways, strict=True))


def of_fixed_fits(halves: Sequence[Replicates], fitted_share: float, name: str) -> Estimate:
    """The mean of two halves, each read with a fit to the other half that is held fixed.

    A fit to x_A reads x_B with an error of x_A'K x_B, and that to x_B reads x_A with x_B'K x_A: the same number for a
    symmetric K. If only a share of the draws was fitted to, the correlation of the two is at most that share.
    """
    found = combine([(0.5, half.estimate()) for half in halves], name)
    covariance = fitted_share * float(np.sqrt(halves[0].variance * halves[1].variance))
    return found._replace(error=float(np.sqrt(found.error**2 + covariance / 2)))


def headline_of_halves(legs: tuple[Leg, ...], name: str, fitted_share: float = 0.0) -> Summary:
    """The answer alone, its fits held fixed: to see how far there is to go."""
    halves = [replicates(leg.forward, ESTIMATORS[name].function) for leg in legs]
    found = of_fixed_fits(halves, fitted_share, name)
    return Summary(found._replace(error=max(found.error, expected_error(legs))), {}, {}, {})


def _statistics(trace: Trace, name: str) -> dict[str, float]:
    """Every number that is told of one half: the answer, opinions, and the checks whose value is known in advance."""
    found: dict[str, float] = {}
    for other in dict.fromkeys([name, *legal(trace)]):
        if other == "bar" != name and len(np.unique(trace.tau)) == 2:
            continue  # between two rungs it is mbar
        try:
            found[other] = ESTIMATORS[other].function(trace)
        except CrossfadeError:
            if other == name:
                raise
    found[SLOPE] = slope(*ratios(trace))
    with suppress(CrossfadeError):  # some draws are impossible one step on: only two-sided estimates exist
        there = found["stepping_stone"] if "stepping_stone" in found else stepping_stone(trace)
        found[HYSTERESIS] = there + stepping_stone(reversed_trace(trace))
    return found


def are_halves(legs: tuple[Leg, ...]) -> bool:
    """Two halves of the chains along one ladder, not two different ways."""
    return len(legs) == 2 and legs[0].sign == legs[1].sign


def reversed_trace(trace: Trace) -> Trace:
    """The same equilibrium draws, read from tau = 1 to tau = 0."""
    back = trace.take(rungs=slice(None, None, -1))
    return back._replace(tau=1 - back.tau, log_ratio=-back.log_ratio)
