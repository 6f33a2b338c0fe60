"""One word on whether to trust an answer, and the reasons, a sentence each: what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from crossfade.analysis.diagnostics import weakest_overlap
from crossfade.analysis.mixing import Mixing, mixing_at
from crossfade.analysis.summary import HALVES, SLOPE, are_halves
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
HARMLESS = 1 / 3  # of the standard error, by which mass that is never visited may move the answer
UNDEFINED = (0.002, 0.02)  # fraction of points among the draws at which the log density is NaN
ELSEWHERE_UNDEFINED = (0.05, 0.5)  # fraction of one model's draws at which the other's log density is NaN
ROUND_TRIPS = (40, 5)  # from posterior to prior and back: with fewer, not all pieces have been seen often enough
SWEEP_DRAWS = 50  # independent draws in a sweep
TABLE_OVERLAP = 0.03
TABLE_R_HAT = 1.1  # the worst of all rungs: of fifty, one is often above 1.05


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
    return 1.0 if off == 0 else float(2 * stdtr(estimate.dof, -off / max(estimate.error, 1e-300)))


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
    undefined: tuple[float, str] = (0.0, "")  # fraction of points among the draws where the density is NaN, and one
    n_draws: int | None = None  # of all chains; None where nobody has counted what they are worth

    @property
    def missing(self) -> float:
        """The mass behind trajectories that diverged, about.

        Of independent draws as many would go into a region as it has of the mass. As many trajectories as are worth one
        such draw try it once, so it is the share of those that diverged, times their number.
        """
        if self.n_draws is None:
            return np.inf
        return self.divergent * max(self.n_draws / max(self.mixing.effective, 1.0), 1.0)


def of_chains(chains: Chains, error: float) -> list[Finding]:
    """Whether the draws of one posterior are draws of it, as far as they tell themselves; `error` is the answer's."""
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
    now = level(chains.divergent, DIVERGENT)
    if now > 1 or (now and chains.missing > HARMLESS * error):
        said = (
            f"{chains.divergent:.2%} of the trajectories in {name} diverged, so part of it may never be visited. Write "
            "the model in other parameters (standardised effects for a funnel, a support of its own for a hard edge)."
        )
        found.append(Finding(now, said))
    if now := level(chains.undefined[0], UNDEFINED):
        found.append(Finding(now, undefined_words(name, *chains.undefined)))
    return found + of_scores(chains)


def undefined_words(name: str, share: float, where: str) -> str:
    return (
        f"The log density of {name} is NaN at {share:.1%} of the points among its draws, for example at {where}, so "
        "mass may be missing there. Guard the operation that fails (log of 0, division by 0, overflow), or narrow the "
        "prior."
    )


def of_undefined(shares: Iterable[float]) -> list[Finding]:
    """Draws of each model at which the density of the other is NaN: they count as impossible there."""
    found = []
    for k, share in enumerate(shares):
        said = (
            f"The log density of M{2 - k} is NaN at {share:.1%} of the draws of M{k + 1}, taken as impossible "
            f"under M{2 - k}. Guard the operation that fails, so that these draws count as what they are."
        )
        found.append(Finding(level(share, ELSEWHERE_UNDEFINED), said))
    return found


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
        p = np.minimum(2 * mean.size * stdtr(n - 1, -t), 1.0)  # as many chances as coordinates
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
    """The worst R-hat and the fewest effective draws of the log ratio; halves of one run are taken together."""
    apart: list[tuple[float, float]] = []  # R-hat and tau
    few: list[tuple[float, float]] = []  # effective draws and tau
    for group in [legs] if are_halves(legs) else [(leg,) for leg in legs]:
        for t in np.unique(group[0].forward.tau):
            # each half has a fit, and so a ratio, of its own
            own = [mixing_at(leg.forward, t) for leg in group]
            apart.append((float(np.max([m.r_hat for m in own])), float(t)))
            few.append((float(sum(m.effective for m in own)), float(t)))
    found = []
    r_hat, t = max(apart, key=lambda own: np.inf if np.isnan(own[0]) else own[0])
    if now := level(r_hat, R_HAT):
        also = _elsewhere([own for own, _ in apart], R_HAT)
        found.append(Finding(now, f"The log ratio at tau = {t:.3g} differs between chains (R-hat {r_hat:.2f}){also}."))
    effective, t = min(few, key=lambda own: -np.inf if np.isnan(own[0]) else own[0])
    if now := level(effective, EFFECTIVE):
        also = _elsewhere([own for own, _ in few], EFFECTIVE)
        said = f"The log ratio at tau = {t:.3g} rests on only {effective:.0f} independent draws{also}."
        found.append(Finding(now, said))
    return [Finding(own.level, f"{own.text} Run longer.") for own in found]


def _elsewhere(values: list[float], limits: tuple[float, float]) -> str:
    others = sum(level(value, limits) > 0 for value in values) - 1
    return f", and at {others} more tau too" if others else ""


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


def of_gap(name: str, difference: Estimate, instead: str = "") -> list[Finding]:
    """A second opinion from other draws or points, minus the answer."""
    if now := level(chance(difference), CHANCE):
        said = f"{name.capitalize()} differs from the answer by {difference.value:.3g}"
        return [Finding(now, f"{said} ({sigmas(difference)} standard errors). Give a larger budget{instead}.")]
    return []


def of_round_trips(fewest: int) -> list[Finding]:
    if now := level(fewest, ROUND_TRIPS):
        said = f"Only {fewest} states travelled from the prior to the posterior and back: some pieces may be missing."
        return [Finding(now, f"{said} Give a larger budget.")]
    return []
