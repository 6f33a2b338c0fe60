"""One word on whether to trust an answer, and the reasons, a sentence each: what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from crossfade.analysis.diagnostics import acceptance_by_tau, discretisation, independent_draws, weakest_overlap
from crossfade.analysis.errors import replicates_of
from crossfade.analysis.estimators import estimator, work
from crossfade.analysis.mixing import Mixing, mixing_at
from crossfade.analysis.summary import HALVES, HYSTERESIS, SLOPE, Summary, are_halves
from crossfade.analysis.which_end import scores
from crossfade.types import VERDICTS, CrossfadeError, Estimate, Leg

# Each pair: beyond the first an answer is weak, beyond the second it is none.
R_HAT = (1.05, 1.2)
EFFECTIVE = (400.0, 100.0)  # effective draws, of a posterior's worst coordinate and of the ratio at every rung
OVERLAP = (0.1, 0.02)  # of neighbouring rungs; 0.5 is perfect
CHANCE = (1e-3, 1e-6)  # probability of a disagreement at least as large, were it chance
SCORE_CHANCE = (1e-4, 1e-6)  # the same for the draws of a posterior and its gradients
SCORE_SIZE = (0.1, 0.25)  # in standard deviations of the posterior: less does no harm
SATURATED = (0.001, 0.02)  # fraction of draws at the edge of floating point
DIVERGENT = (0.001, 0.05)  # fraction of trajectories
ROUND_TRIPS = (40, 5)  # from posterior to prior and back: with fewer, not all pieces have been seen often enough
SWEEP_DRAWS = 50  # independent draws in a sweep
TABLE_OVERLAP = 0.03


class Finding(NamedTuple):
    """What speaks against an answer: 1 makes it weak, 2 makes it none."""

    level: int
    text: str


class Verdict(NamedTuple):
    """The word, and why."""

    word: str
    reasons: tuple[str, ...]


def judge(findings: Iterable[Finding]) -> Verdict:
    """The worst of all findings decides; the worst is said first."""
    counted = sorted((finding for finding in findings if finding.level), key=lambda finding: -finding.level)
    level = counted[0].level if counted else 0
    return Verdict(VERDICTS[level], tuple(dict.fromkeys(finding.text for finding in counted)))


def level(value: float, bounds: tuple[float, float]) -> int:
    """0, 1 or 2: how many of the bounds are passed (in the direction in which they are ordered)."""
    if np.isnan(value):
        return 2
    return int(sum((value > bound) if bounds[1] > bounds[0] else (value < bound) for bound in bounds))


def chance(estimate: Estimate, expected: float = 0.0) -> float:
    """The probability of a value at least so far from what is expected."""
    off = abs(estimate.value - expected)
    return 1.0 if off == 0 else float(2 * student.sf(off / max(estimate.error, 1e-300), estimate.dof))


def sigmas(estimate: Estimate, expected: float = 0.0) -> str:
    return f"{abs(estimate.value - expected) / max(estimate.error, 1e-300):.1f}"


def of_error(headline: Estimate, target_se: float, stopped: str) -> list[Finding]:
    """The error bar against what was asked for."""
    if not np.isfinite(headline.error) or headline.error > max(1.0, 10 * target_se):
        return [Finding(2, f"The standard error is {headline.error:.2g}: this is no answer yet. Run longer.")]
    if headline.error > target_se:
        return [Finding(1, f"The standard error is {headline.error:.2g}, above the asked {target_se:g}: {stopped}.")]
    return []


class Chains(NamedTuple):
    """How the chains of one model (or of a rung between) did."""

    name: str
    mixing: Mixing
    labels: tuple[str, ...]
    divergent: float
    brought: bool = False  # by the user: then there is nothing to run longer
    saturated: tuple[float, str] = (0.0, "")  # fraction of draws at the edge of floating point, and of what
    elsewhere: str = ""  # a likely place that the draws do not know
    scores: tuple[np.ndarray, np.ndarray] | None = None  # (draws, gradients) [chain, point, size]


def of_chains(chains: Chains) -> list[Finding]:
    """Whether the draws of one posterior are draws of it, as far as they tell themselves."""
    name, mixed, found = chains.name, chains.mixing, []
    longer = (
        "Bring longer chains." if chains.brought else "Give a larger budget, or write the model in other parameters."
    )
    if now := level(mixed.r_hat, R_HAT):
        where = chains.labels[mixed.r_hat_of]
        said = f"The chains of {name} do not agree about {where} (R-hat {mixed.r_hat:.2f}). {longer}"
        found.append(Finding(now, said))
    if now := level(mixed.effective, EFFECTIVE):
        where = chains.labels[mixed.effective_of]
        said = f"The draws of {name} are worth only {mixed.effective:.0f} independent draws of {where}. {longer}"
        found.append(Finding(now, said))
    if now := level(chains.saturated[0], SATURATED):
        share, where = chains.saturated
        said = (
            f"{share:.1%} of the draws of {name} are closer to the edge of the support of {where} than numbers can "
            "tell, so mass is lost there. Write the model in the logarithm or the logit of it."
        )
        found.append(Finding(now, said))
    if chains.elsewhere:
        said = f"There is a place as likely as the draws of {name} and far from all of them: {chains.elsewhere}."
        found.append(Finding(1, f"{said} Bring draws that visit it too, or let the model be sampled here."))
    if now := level(chains.divergent, DIVERGENT):
        said = (
            f"{chains.divergent:.2%} of the trajectories in {name} diverged, so part of it may never be visited. Write "
            "the model in other parameters (standardised effects for a funnel, a support of its own for a hard edge)."
        )
        found.append(Finding(now, said))
    return found + of_scores(chains)


def of_scores(chains: Chains) -> list[Finding]:
    """Score identities: over draws of a density, its mean gradient is 0 and coordinate times gradient is -1."""
    if chains.scores is None or chains.scores[1].size == 0 or len(chains.scores[1]) < 4:
        return []
    found: list[Finding] = []
    shifts, widths = scores(*chains.scores)
    identities = (shifts, "mean gradient", 0.0), (widths, "mean of coordinate times gradient", -1.0)
    for per_chain, what, expected in identities:
        n, mean = len(per_chain), per_chain.mean(axis=0)
        t = np.abs(mean) / np.maximum(per_chain.std(axis=0, ddof=1) / np.sqrt(n), 1e-300)
        p = np.minimum(2 * mean.size * student.sf(t, n - 1), 1.0)  # as many chances as coordinates
        levels = [min(level(a, SCORE_CHANCE), level(abs(b), SCORE_SIZE)) for a, b in zip(p, mean, strict=True)]
        if now := max(levels):
            worst = int(np.argmax(np.where(np.array(levels) == now, np.abs(mean), -1.0)))
            said = (
                f"The draws of {chains.name} are not draws of its posterior: for {chains.labels[worst]} the {what} is "
                f"{mean[worst] + expected:.2g} and should be {expected:g}. "
            )
            said += (
                "Check that they are of this model, with these priors and these data."
                if chains.brought
                else "Give a larger budget, or check the gradient of the model."
            )
            found.append(Finding(now, said))
    return sorted(found, key=lambda finding: -finding.level)[:1]


def of_overlap(legs: tuple[Leg, ...]) -> list[Finding]:
    """The worst overlap of two neighbouring rungs, of all legs."""
    try:
        worst, low, high = min(weakest_overlap(leg.forward) for leg in legs)
    except CrossfadeError:
        return [Finding(2, "Two neighbouring rungs do not overlap at all. Give a larger budget.")]
    if now := level(worst, OVERLAP):
        where = f"tau = {low:.3g} and {high:.3g}"
        return [Finding(now, f"The draws at {where} barely overlap ({worst:.2g} of 0.5). Run longer.")]
    return []


def of_ratios(legs: tuple[Leg, ...]) -> list[Finding]:
    """R-hat and effective draws of the log ratio at every rung; halves of one run are taken together."""
    found: list[Finding] = []
    for group in [legs] if are_halves(legs) else [(leg,) for leg in legs]:
        for t in np.unique(group[0].forward.tau):
            # each half has a fit, and so a ratio, of its own
            own = [mixing_at(leg.forward, t) for leg in group]
            r_hat, effective = float(np.max([m.r_hat for m in own])), sum(m.effective for m in own)
            if now := level(r_hat, R_HAT):
                said = f"The log ratio at tau = {t:.3g} differs between chains (R-hat {r_hat:.2f}). Run longer."
                found.append(Finding(now, said))
            if now := level(effective, EFFECTIVE):
                said = f"The log ratio at tau = {t:.3g} rests on only {effective:.0f} independent draws. Run longer."
                found.append(Finding(now, said))
    return found


def of_checks(checks: dict[str, Estimate], headline: Estimate) -> list[Finding]:
    """Which end did a draw come from, and do the halves of the chains agree."""
    found = []
    if SLOPE in checks and (now := level(chance(checks[SLOPE], 1.0), CHANCE)):
        own = checks[SLOPE]
        said = (
            f"The log ratio does not tell which model a draw came from as it should (slope {own.value:.2f} ± "
            f"{own.error:.2g} instead of 1): some draws are not of the density they are read with. Check the draws, "
            "the data and the gradients of both models."
        )
        found.append(Finding(now, said))
    if HALVES in checks and abs(checks[HALVES].value) > max(1e-9, headline.error):
        own = checks[HALVES]
        if now := level(chance(own), CHANCE):
            said = f"The two halves of the chains differ by {own.value:.3g} ({sigmas(own)} standard errors)."
            found.append(Finding(now, f"{said} Run longer."))
    return found


def of_round_trips(fewest: int) -> list[Finding]:
    if now := level(fewest, ROUND_TRIPS):
        said = f"Only {fewest} states travelled from the prior to the posterior and back: some pieces may be missing."
        return [Finding(now, f"{said} Give a larger budget.")]
    return []


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
        if coarse or one_sided or abs(difference.value) <= headline.error / 2:
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
    if level(worst := float(r_hats.max()), R_HAT):
        where = np.unique(trace.tau)[np.argmax(r_hats)]
        said = f"{leg.name}: the chains do not agree (R-hat {worst:.2f} at tau = {where:.3g}). Raise n_iter."
        found.append(Finding(1, said))
    return found
