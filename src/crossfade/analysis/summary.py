"""From the traces of a comparison to its answer, second opinions and checks, each with its error."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from crossfade.analysis.errors import Replicates, combine, of_both_sides, replicates, replicates_of
from crossfade.analysis.estimators import ESTIMATORS, estimator, legal, ratios, stepping_stone, too_coarse
from crossfade.analysis.which_end import slope
from crossfade.types import CrossfadeError, Estimate, Leg, Trace

HYSTERESIS, SLOPE, HALVES = "hysteresis", "slope", "halves"


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
    for leg in legs:
        if why := too_coarse(leg.forward, estimator(name).one_way or name):
            raise CrossfadeError(f"{name}: {why}; legal on this trace: {', '.join(legal(leg.forward)) or 'none'}")
    two_ways = all(leg.reverse is not None for leg in legs)
    names = [other for other in legal(legs[0].forward) if all(other in legal(leg.forward) for leg in legs)]
    if two_ways:
        names += [other for other, own in ESTIMATORS.items() if own.both_ways and own.one_way in (*names, name)]
    runs = {name: [_sides(leg, name) for leg in legs]}
    for other in names:
        if other != name:
            with suppress(CrossfadeError):  # only the headline may refuse: a second opinion is no reason to stop
                runs[other] = [_sides(leg, other) for leg in legs]
    signs = [leg.sign for leg in legs]

    def total(sides: list[Sides], name: str) -> Estimate:
        return combine([(sign, of_both_sides(*side)) for sign, side in zip(signs, sides, strict=True)], name)

    estimates = {other: total(sides, other) for other, sides in runs.items()}
    headline = estimates.pop(name)
    differences = {
        # the same chains are behind both, so the difference is jackknifed itself
        other: total([_minus(a, b) for a, b in zip(runs[other], runs[name], strict=True)], other)
        for other in estimates
    }
    gap = there_and_back(legs, name) if two_ways else None
    return Summary(headline, estimates, differences, {} if gap is None else {HYSTERESIS: gap})


# An estimate jackknifed over the forward chains and over the reverse chains (which it may not depend on).
Sides = tuple[Replicates, Replicates]


def _sides(leg: Leg, name: str) -> Sides:
    own = estimator(name)
    if own.both_ways:
        back = way_back(leg, name)
        there = replicates(leg.forward, lambda part: own.function(part, back))
        return there, replicates(back, lambda part: own.function(leg.forward, part))
    there = replicates_of(leg.forward, name)
    # Not a number of the way back: constant under deletion of its chains, so it adds no variance.
    n_back = leg.reverse.n_chains if leg.reverse is not None else 2
    return there, Replicates(there.value, np.full(n_back, there.value))


def _minus(a: Sides, b: Sides) -> Sides:
    return a[0].minus(b[0]), a[1].minus(b[1])


def way_back(leg: Leg, name: str) -> Trace:
    """The reverse trace of a leg."""
    if leg.reverse is None:
        raise CrossfadeError(f"{name}: needs the run back as well, which was not made: run it again")
    return leg.reverse


def there_and_back(legs: tuple[Leg, ...], name: str) -> Estimate | None:
    """Forward minus reverse log Bayes factor, by the headline's own one-sided estimator; None if one says nothing."""
    way, terms = estimator(name).one_way or name, []
    try:
        for leg in legs:
            for trace in (leg.forward, way_back(leg, name)):
                terms.append((leg.sign, replicates_of(trace, way).estimate()))
    except CrossfadeError:
        return None
    return combine(terms, HYSTERESIS)


def statistics(legs: tuple[Leg, ...], name: str) -> dict[str, float]:
    """Every number that the default method tells of its two halves: answer, opinions and checks, without errors."""
    traces = [leg.forward for leg in legs]
    found: dict[str, float] = {}
    for other in dict.fromkeys([name, *legal(traces[0])]):
        if other == "bar" != name and len(np.unique(traces[0].tau)) == 2:
            continue  # between two rungs it is mbar
        try:
            found[other] = sum(
                leg.sign * ESTIMATORS[other].function(trace) for leg, trace in zip(legs, traces, strict=True)
            )
        except CrossfadeError:
            if other == name:
                raise
    if are_halves(legs):
        first, second = (ESTIMATORS[name].function(trace) for trace in traces)
        found[HALVES] = first - second
        found[SLOPE] = float(np.mean([slope(*ratios(trace)) for trace in traces]))
    try:
        gaps = [
            leg.sign * (stepping_stone(t) + stepping_stone(reversed_trace(t)))
            for leg, t in zip(legs, traces, strict=True)
        ]
        found[HYSTERESIS] = sum(gaps)
    except CrossfadeError:  # some draws are impossible one step on: only two-sided estimates exist
        pass
    return found


def from_statistics(whole: dict[str, float], left_out: Sequence[dict[str, float]], n_strata: int, name: str) -> Summary:
    """Errors of all statistics from their values with each group of chains left out of everything, fits included."""
    kept = [key for key in whole if all(key in part for part in left_out)]
    found = {key: Replicates(whole[key], np.array([part[key] for part in left_out]), n_strata) for key in kept}
    headline = found.pop(name)
    checks = {key: found.pop(key).estimate(key) for key in (HYSTERESIS, SLOPE, HALVES) if key in found}
    return Summary(
        headline.estimate(name),
        {other: own.estimate(other) for other, own in found.items()},
        {other: own.minus(headline).estimate(other) for other, own in found.items()},
        {key: check for key, check in checks.items() if np.isfinite([check.value, check.error]).all()},
    )


def are_halves(legs: tuple[Leg, ...]) -> bool:
    """Two halves of the chains along one ladder, not two different ways."""
    return len(legs) == 2 and legs[0].sign == legs[1].sign


def reversed_trace(trace: Trace) -> Trace:
    """The same equilibrium draws, read from tau = 1 to tau = 0."""
    return trace._replace(
        tau=1 - trace.tau[::-1],
        log_ratio=-trace.log_ratio[:, ::-1],
        acceptance=trace.acceptance[:, ::-1],
        extra={name: values[:, ::-1] for name, values in trace.extra.items()},
    )
