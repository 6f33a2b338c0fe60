"""From the traces of a comparison to its headline, second opinions, hysteresis and warnings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from crossfade.analysis.diagnostics import acceptance_by_tau, partial_integrals, r_hat, weakest_overlap
from crossfade.analysis.errors import Replicates, combine, of_both_sides, paper_variance, replicates
from crossfade.analysis.estimators import ESTIMATORS, Estimator, crooks, legal, trapezoid, work
from crossfade.analysis.moments import controlled_values
from crossfade.types import CrossfadeError, Estimate, Leg, Trace

SUSPICIOUS = 0.002  # two-sided probability below which a difference from 0 is not chance (3.1 sigma of a normal)


class Summary(NamedTuple):
    """Everything that can be said from the traces alone."""

    headline: Estimate
    opinions: dict[str, Estimate]
    differences: dict[str, Estimate]  # opinion minus headline on the same chains
    hysteresis: Estimate | None
    warnings: tuple[str, ...]


def summarise(legs: tuple[Leg, ...], estimator: str, correlation: float = 0.0) -> Summary:
    """The headline by one estimator and the same number by every other one that the traces allow.

    `correlation` is that of the errors of two legs which are halves of one run, each read with a fit to the other.
    """
    two_sided = all(leg.reverse is not None for leg in legs)
    names = [name for name in legal(legs[0].forward) if name != estimator]
    if two_sided and not legs[0].forward.equilibrium and estimator != "crooks":
        names.append("crooks")
    runs = {estimator: [_sides(leg, estimator) for leg in legs]}
    refusals = []
    for name in names:  # only the headline may refuse: a second opinion that cannot be had is no reason to stop
        try:
            runs[name] = [_sides(leg, name) for leg in legs]
        except CrossfadeError as error:
            refusals.append(f"no second opinion by {name}: {error}")
    signs = [leg.sign for leg in legs]

    def total(sides: list[Sides], name: str) -> Estimate:
        sum_ = combine([(sign, of_both_sides(*side)) for sign, side in zip(signs, sides, strict=True)], name)
        return sum_._replace(error=sum_.error * float(np.sqrt(1 + correlation)))

    estimates = {name: total(sides, name) for name, sides in runs.items()}
    headline = estimates.pop(estimator)
    differences = {
        # the same chains are behind both, so the difference is jackknifed itself
        name: total([_minus(a, b) for a, b in zip(runs[name], runs[estimator], strict=True)], name)
        for name in estimates
    }
    gap = None
    if two_sided:
        try:
            gap = _hysteresis(legs, estimator)
        except CrossfadeError as error:
            refusals.append(f"the way back says nothing: {error}")
    warnings = (*_warnings(legs, headline, differences, gap), *refusals)
    return Summary(headline, estimates, differences, gap, warnings)


# An estimate jackknifed over the forward chains and over the reverse chains (which it may not depend on).
Sides = tuple[Replicates, Replicates]


def _sides(leg: Leg, estimator: str) -> Sides:
    if estimator == "crooks":
        back = way_back(leg)
        there = replicates(leg.forward, lambda part: crooks(part, back))
        return there, replicates(back, lambda part: crooks(leg.forward, part))
    there = replicates(*prepared(leg.forward, estimator))
    # Not a number of the way back: constant under deletion of its chains, so it adds no variance.
    n_back = leg.reverse.n_chains if leg.reverse is not None else 2
    return there, Replicates(there.value, np.full(n_back, there.value))


def _minus(a: Sides, b: Sides) -> Sides:
    return a[0].minus(b[0]), a[1].minus(b[1])


def prepared(trace: Trace, name: str) -> tuple[Trace, Estimator]:
    """The function behind a name that reads one trace, and the trace it reads.

    Control variates are fitted once, each half of the chains by the other, before chains are deleted.
    """
    if name == "controlled":
        plain = {"plain": trace.log_ratio}
        return trace._replace(log_ratio=controlled_values(trace), extra=plain), _controlled_trapezoid
    if name not in ESTIMATORS:
        known = ", ".join([*ESTIMATORS, "controlled", "crooks"])
        raise CrossfadeError(f"unknown estimator {name!r}: choose one of {known}")
    return trace, ESTIMATORS[name]


def _controlled_trapezoid(trace: Trace) -> float:
    """The trapezoid of controlled means, corrected by plain variances (CTI-2 of Oates et al. 2016).

    Controlled errors are so small that without the correction the trapezoid's own error would exceed them.
    """
    variance = trace.extra["plain"].var(axis=(0, 2), ddof=1)
    return trapezoid(trace) - float(np.diff(trace.tau) ** 2 @ np.diff(variance) / 12)


def discretisation(trace: Trace, estimator: str) -> float:
    """What the sum over rungs still misses, from every other rung left out: |T_h - T_2h| / (2^p - 1), order p."""
    order = {"trapezoid": 2, "corrected_trapezoid": 4, "controlled": 4}.get(estimator)
    if order is None or len(trace.tau) < 4:
        return 0.0
    whole, function = prepared(trace, estimator)
    last = len(trace.tau) - 1
    kept = np.unique([*range(0, last, 2), last])
    half = whole._replace(
        tau=whole.tau[kept],
        log_ratio=whole.log_ratio[:, kept],
        acceptance=whole.acceptance[:, kept],
        extra={name: values[:, kept] for name, values in whole.extra.items()},
    )
    return abs(function(whole) - function(half)) / (2**order - 1)


def independent_draws(trace: Trace) -> float:
    """Draws of a sweep divided by how much more its integral varies over chains than independent draws would.

    n / (Var_chains / mean paper_variance): the paper's formula takes the draws for independent, the chains know.
    """
    if not np.isfinite(trace.log_ratio).all():
        return np.inf
    over_chains = partial_integrals(trace)[:, -1].var(ddof=1)
    if over_chains <= 1e-20:
        return np.inf
    return max(len(trace.tau) * float(paper_variance(trace).mean() / over_chains), 0.0)


def way_back(leg: Leg) -> Trace:
    """The reverse trace of a leg."""
    if leg.reverse is None:
        raise CrossfadeError("crooks: needs the reverse run, which was not made or not finished: run it again")
    return leg.reverse


def sigmas(estimate: Estimate) -> float:
    """How far from 0, in standard errors (0 where both are exactly 0)."""
    return 0.0 if estimate.value == 0 else float(estimate.value / max(estimate.error, 1e-300))


def _hysteresis(legs: tuple[Leg, ...], estimator: str) -> Estimate:
    """Forward minus reverse log Bayes factor, by the headline's own one-sided estimator."""
    way = "jarzynski" if estimator == "crooks" else estimator
    terms = []
    for leg in legs:
        for trace in (leg.forward, way_back(leg)):
            terms.append((leg.sign, replicates(*prepared(trace, way)).estimate()))
    return combine(terms, "hysteresis")


def _unlikely(estimate: Estimate) -> bool:
    return bool(2 * student.sf(abs(sigmas(estimate)), estimate.dof) < SUSPICIOUS)


def _warnings(
    legs: tuple[Leg, ...], headline: Estimate, differences: dict[str, Estimate], gap: Estimate | None
) -> tuple[str, ...]:
    found, estimator = [], headline.name
    if headline.error > 1:
        found.append(f"the error bar is {headline.error:.2g}: this is no answer yet. Raise n_iter.")
    if gap is not None and _unlikely(gap):
        found.append(
            f"the run there and the run back differ by {gap.value:.3g} ({abs(sigmas(gap)):.1f} sigma): the chains lag "
            "behind the path, and the error bar does not know. Raise n_iter."
        )
    for name, difference in differences.items():
        # A coarse sum over rungs discredits itself, not the estimators that need no fine ladder.
        coarse = name == "trapezoid" and legs[0].forward.equilibrium
        if _unlikely(difference) and abs(difference.value) > headline.error / 2 and not coarse:
            found.append(
                f"{name} differs from {estimator} by {difference.value:.3g} ({abs(sigmas(difference)):.1f} sigma) on "
                "the same draws: one of them is biased. Use more rungs or iterations."
            )
    for leg in legs:
        found += _warnings_of(leg, estimator)
    return tuple(found)


def _warnings_of(leg: Leg, estimator: str) -> list[str]:
    found = []
    trace = leg.forward
    tau, accepted = acceptance_by_tau(trace)
    if accepted.min() < 0.05:
        where = tau[np.argmin(accepted)]
        found.append(f"{leg.name}: only {accepted.min():.1%} of the moves near tau = {where:.3g} were accepted")
    for way in (trace, leg.reverse):
        if way is not None and not way.equilibrium and (n := independent_draws(way)) < 50:
            found.append(
                f"{leg.name}: each sweep holds only some {n:.1g} independent draws, so the chains may never have left "
                "where they began. Raise n_iter, or use a kernel that moves further."
            )
            break
    if estimator == "jarzynski":
        weight = np.exp(work(trace) - work(trace).max())
        if weight.max() > 0.5 * weight.sum():
            found.append(f"{leg.name}: one sweep carries more than half of the weight. Raise n_iter or n_chains.")
    if trace.equilibrium:
        coarse = discretisation(trace, estimator)
        error = replicates(*prepared(trace, estimator)).estimate().error if coarse else 0.0
        if coarse > error:
            found.append(
                f"{leg.name}: half of the rungs would move {estimator} by so much that some {coarse:.2g} is still "
                f"missing, more than the error bar of {error:.2g}. Add rungs, or use bar or mbar."
            )
        if estimator in ("stepping_stone", "bar", "mbar"):
            overlap, low, high = weakest_overlap(trace)
            if overlap < 0.03:
                found.append(f"{leg.name}: rungs {low:.3g} and {high:.3g} hardly overlap ({overlap:.2g}). Add rungs.")
        worst = r_hat(trace)
        if worst.max() > 1.05:
            where = trace.tau[np.argmax(worst)]
            found.append(
                f"{leg.name}: the chains have not mixed (R-hat {worst.max():.2f} at tau = {where:.3g}). Raise n_iter."
            )
    return found
