"""The judge's findings on runs of the paper's methods: chains that travel along a path."""

from __future__ import annotations

import numpy as np

from crossfade.analysis.diagnostics import acceptance_by_tau, discretisation, independent_draws, weakest_overlap
from crossfade.analysis.errors import replicates_of
from crossfade.analysis.estimators import estimator, work
from crossfade.analysis.judge import SWEEP_DRAWS, TABLE_OVERLAP, TABLE_R_HAT, Finding, chance, level, sigmas
from crossfade.analysis.mixing import mixing_at
from crossfade.analysis.summary import HYSTERESIS, Summary
from crossfade.types import Leg


def of_table(legs: tuple[Leg, ...], summary: Summary) -> list[Finding]:
    """Whether a run of the paper's methods can be trusted."""
    headline, name = summary.headline, summary.headline.name
    found = []
    if not headline.error <= 1:  # or not a number
        said = f"The standard error is {headline.error:.2g}: this is no answer yet. Raise n_iter."
        found.append(Finding(2, said))
    gap = summary.checks.get(HYSTERESIS)
    if gap is None:
        said = "The run back was not finished, or says nothing, so nobody knows whether the chains lag behind the path."
        found.append(Finding(1, f"{said} Run it again, or use bar or mbar."))
    elif now := level(chance(gap), (2e-3, 1e-6)):
        said = (
            f"The run there and the run back differ by {gap.value:.3g} ({sigmas(gap)} standard errors): the chains lag "
            "behind the path, and the error bar does not know. Raise n_iter."
        )
        found.append(Finding(now, said))
    for other, difference in summary.differences.items():
        # A coarse sum over rungs discredits itself, and a one-sided average its own tails: not the headline.
        coarse = estimator(other).order is not None and legs[0].forward.equilibrium
        one_sided = estimator(name).two_sided and not estimator(other).two_sided
        if coarse or one_sided or abs(difference.value) <= headline.error:  # smaller ones do no harm
            continue
        if chance(difference) < 2e-3:
            said = (
                f"By {other} the answer differs by {difference.value:.3g} ({sigmas(difference)} standard errors) on "
                "the same draws, so one of the two is biased. Use more rungs or iterations."
            )
            found.append(Finding(1, said))
    return found + [finding for leg in legs for finding in _of_leg(leg, name)]


def _of_leg(leg: Leg, name: str) -> list[Finding]:
    found, trace, own = [], leg.forward, estimator(name)
    tau, accepted = acceptance_by_tau(trace)
    if accepted.min() < 0.05:
        where = tau[np.argmin(accepted)]
        said = f"{leg.name}: only {accepted.min():.1%} of the moves near tau = {where:.3g} were accepted."
        found.append(Finding(1, f"{said} Use a kernel with smaller steps."))
    for way in (trace, leg.reverse):
        if way is not None and not way.equilibrium and (n := independent_draws(way)) < SWEEP_DRAWS:
            said = (
                f"{leg.name}: each sweep holds only some {n:.1g} independent draws, so the chains may never have left "
                "where they began. Raise n_iter, or use a kernel that moves further."
            )
            found.append(Finding(1, said))
            break
    if name == "jarzynski":
        weight = np.exp(work(trace) - work(trace).max())
        if weight.max() > 0.5 * weight.sum():
            said = f"{leg.name}: one sweep carries more than half of the weight. Raise n_iter or n_chains."
            found.append(Finding(1, said))
    if not trace.equilibrium:
        return found
    coarse = discretisation(trace, name)
    error = replicates_of(trace, name).estimate().error if coarse else 0.0
    if coarse > error:
        said = (
            f"{leg.name}: half of the rungs would move {name} by so much that some {coarse:.2g} is still missing, more "
            f"than the error bar of {error:.2g}. Add rungs, or use bar or mbar."
        )
        found.append(Finding(1, said))
    if own.by_overlap:
        shared, low, high = weakest_overlap(trace)
        if shared < TABLE_OVERLAP:
            said = f"{leg.name}: rungs {low:.3g} and {high:.3g} barely overlap ({shared:.2g} of 0.5). Add rungs."
            found.append(Finding(1, said))
    r_hats = np.array([mixing_at(trace, t).r_hat for t in np.unique(trace.tau)])
    if not (worst := float(r_hats.max())) < TABLE_R_HAT:
        where = np.unique(trace.tau)[np.argmax(r_hats)]
        said = f"{leg.name}: the chains do not agree (R-hat {worst:.2f} at tau = {where:.3g}). Raise n_iter."
        found.append(Finding(1, said))
    return found
