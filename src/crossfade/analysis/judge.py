"""One word on whether to trust a run of the short path, and the reasons, one sentence each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from crossfade.analysis.bennett import neighbour_overlaps
from crossfade.analysis.errors import combine, jackknife
from crossfade.analysis.estimators import mbar, ratios, stepping_stone
from crossfade.analysis.mixing import Mixing, mixing
from crossfade.types import CrossfadeError, Estimate, Leg, Trace

WORDS = ("trustworthy", "weak", "do not use")

# Each pair: beyond the first an answer is weak, beyond the second it is none.
R_HAT = (1.05, 1.2)
EFFECTIVE = (400.0, 100.0)  # effective draws, of a posterior's worst coordinate and of the ratio at every rung
OVERLAP = (0.1, 0.02)  # of neighbouring rungs; 0.5 is perfect
CHANCE = (1e-3, 1e-6)  # probability of a disagreement at least as large, were it chance
SATURATED = (0.001, 0.02)  # fraction of draws at the edge of floating point
DIVERGENT = (0.001, 0.05)  # fraction of trajectories
PARETO_K = 0.7
FEW_WEIGHTS = 20  # effective weights below which there is no tail to fit


class Verdict(NamedTuple):
    """The word, and why."""

    word: str
    reasons: tuple[str, ...]


class Posterior(NamedTuple):
    """How the chains of one model (or of the rungs between) did."""

    name: str
    mixing: Mixing
    labels: tuple[str, ...]
    divergent: float
    brought: bool  # by the user: then there is nothing to run longer
    saturated: tuple[float, str] = (0.0, "")  # fraction of draws at the edge of floating point, and of what
    elsewhere: str = ""  # a likely place that the draws do not know


def judge(
    legs: tuple[Leg, ...],
    headline: Estimate,
    posteriors: tuple[Posterior, ...],
    target_se: float,
    stopped: str = "",
    correlation: float = 0.0,
) -> Verdict:
    """The worst of all findings decides."""
    found: list[tuple[int, str]] = []
    if not np.isfinite(headline.error) or headline.error > max(1.0, 10 * target_se):
        found.append((2, f"The standard error is {headline.error:.2g}: this is no answer yet."))
    elif headline.error > target_se:
        found.append((1, f"The standard error is {headline.error:.2g}, above the asked {target_se:g}: {stopped}."))
    for posterior in posteriors:
        found += _of_posterior(posterior)
    found += _of_overlap(legs)
    for group in [legs] if _are_halves(legs) else [(leg,) for leg in legs]:
        found += _of_ratios(group)
    found += _of_agreement(legs, headline, correlation)
    expected = expected_error(legs)
    if 0 < headline.error < expected / 2:
        found.append(
            (
                1,
                f"The error over chains, {headline.error:.2g}, is below half of what their overlap and autocorrelation "
                f"let expect, {expected:.2g}.",
            )
        )
    level = max((level for level, _ in found), default=0)
    reasons = tuple(reason for own, reason in sorted(found, key=lambda pair: -pair[0]) if own > 0)
    return Verdict(WORDS[level], reasons)


def expected_error(legs: tuple[Leg, ...]) -> float:
    """Bennett's asymptotic error from overlaps and effective draws: variance (2/O - 4)/n per pair of rungs.

    O is the overlap, 1/2 at best, and n the effective draws of both rungs: a second error beside that over chains.
    """
    variance = 0.0
    for leg in legs:
        tau, samples = ratios(leg.forward)
        try:
            shared = neighbour_overlaps(tau, samples)
        except CrossfadeError:
            return np.inf
        worth = [_mixing_of(by_tau(leg.forward, t)).effective for t in tau]
        pairs = zip(shared, worth[:-1], worth[1:], strict=True)
        variance += leg.sign**2 * sum(max(2 / max(o, 1e-300) - 4, 0.0) / (a + b) for o, a, b in pairs)
    return float(np.sqrt(variance))


def _are_halves(legs: tuple[Leg, ...]) -> bool:
    """Two halves of the chains along one ladder, not two different ways."""
    return len(legs) == 2 and legs[0].sign == legs[1].sign


def _level(value: float, bounds: tuple[float, float]) -> int:
    """0, 1 or 2: how many of the bounds are passed (in the direction in which they are ordered)."""
    if np.isnan(value):
        return 2
    rising = bounds[1] > bounds[0]
    return sum((value > bound) if rising else (value < bound) for bound in bounds)


def _of_posterior(posterior: Posterior) -> list[tuple[int, str]]:
    name, mixed = posterior.name, posterior.mixing
    found = []
    if level := _level(mixed.r_hat, R_HAT):
        where = posterior.labels[mixed.r_hat_of]
        found.append(
            (level, f"The chains of {name} have not found the same place (R-hat {mixed.r_hat:.2f} for {where}).")
        )
    if level := _level(mixed.effective, EFFECTIVE):
        where = posterior.labels[mixed.effective_of]
        what = "Bring longer chains." if posterior.brought else "Reparametrise it, or ask for a smaller target_se."
        found.append(
            (level, f"The draws of {name} are worth only {mixed.effective:.0f} independent ones of {where}. {what}")
        )
    if level := _level(posterior.saturated[0], SATURATED):
        share, where = posterior.saturated
        found.append(
            (
                level,
                f"{share:.1%} of the draws of {name} are closer to the edge of the support of {where} than numbers can "
                "tell: mass is lost there. Write the model in the logarithm or the logit of it.",
            )
        )
    if posterior.elsewhere:
        place = posterior.elsewhere
        found.append((1, f"There is a place as likely as the draws of {name} and far from all of them: {place}."))
    if level := _level(posterior.divergent, DIVERGENT):
        found.append(
            (
                level,
                f"{posterior.divergent:.2%} of the trajectories in {name} diverged: part of it may never be visited. "
                "Reparametrise it (a funnel wants standardised effects, a hard edge a support of its own).",
            )
        )
    return found


def _of_overlap(legs: tuple[Leg, ...]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for leg in legs:
        tau, samples = ratios(leg.forward)
        try:
            shared = neighbour_overlaps(tau, samples)
        except CrossfadeError:
            return [(2, "Neighbouring rungs do not overlap at all.")]
        k = int(np.argmin(shared))
        if level := _level(shared[k], OVERLAP):
            found.append((level, f"Rungs {tau[k]:.3g} and {tau[k + 1]:.3g} hardly overlap ({shared[k]:.2g} of 0.5)."))
    return found[:1]


def _of_ratios(legs: tuple[Leg, ...]) -> list[tuple[int, str]]:
    """R-hat and effective draws of the log ratio at every rung, and the tails of its weights both ways."""
    found: list[tuple[int, str]] = []
    tau = np.unique(legs[0].forward.tau)
    for t in tau:
        own = [_mixing_of(by_tau(leg.forward, t)) for leg in legs]  # each half has a fit, and so a ratio, of its own
        r_hat, effective = max(m.r_hat for m in own), sum(m.effective for m in own)
        if level := _level(r_hat, R_HAT):
            found.append((level, f"The log ratio at tau = {t:.3g} differs between chains (R-hat {r_hat:.2f})."))
        if level := _level(effective, EFFECTIVE):
            found.append((level, f"The log ratio at tau = {t:.3g} rests on {effective:.0f} independent draws."))
    for k, step in enumerate(np.diff(tau)):
        worst = 0.0
        for leg in legs:
            ways = step * by_tau(leg.forward, tau[k]), -step * by_tau(leg.forward, tau[k + 1])
            # where no weight stands out the shape of the tail says nothing
            worst = max(worst, min(pareto_k(way) if weight_share(way) < 0.8 else 0.0 for way in ways))
        if worst > PARETO_K:
            gap = f"tau = {tau[k]:.3g} and {tau[k + 1]:.3g}"
            found.append((1, f"Between {gap} the weights have heavy tails both ways (Pareto k {worst:.2f} or more)."))
    return found


def _mixing_of(ratio: np.ndarray) -> Mixing:
    if np.ptp(ratio[np.isfinite(ratio)]) == 0:
        return Mixing(1.0, 0, np.inf, 0, np.inf)  # the ends are equal: nothing to average
    return mixing(np.where(np.isfinite(ratio), ratio, -1e300)[:, :, None])


def weight_share(log_weight: np.ndarray) -> float:
    """(sum w)^2 / (n sum w^2): 1 if all weights are equal, 1/n if one has it all."""
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight.size * (weight**2).sum()))


def by_tau(trace: Trace, tau: float) -> np.ndarray:
    """All draws of one tau [chain, draw], in order: a rung may be written as several."""
    columns = trace.log_ratio[:, trace.tau == tau]
    return columns.reshape(len(columns), -1)


def pareto_k(log_weight: np.ndarray) -> float:
    """Shape of the generalised Pareto tail of the weights: above 0.7 their mean cannot be trusted."""
    flat = log_weight[np.isfinite(log_weight)]
    if len(flat) < 100 or np.ptp(flat) < 1e-9:
        return -np.inf
    if weight_share(flat) * len(flat) < FEW_WEIGHTS:
        return np.inf
    from arviz_stats.base import array_stats  # slow to import

    try:
        return float(array_stats.psislw(-flat)[1])  # it takes the log density that weights are divided by
    except ValueError:  # a tail of equal values
        return np.inf


def _of_agreement(legs: tuple[Leg, ...], headline: Estimate, correlation: float) -> list[tuple[int, str]]:
    """The two halves with each other, and importance sampling there with importance sampling back."""
    found = []
    gap = hysteresis(legs, correlation)
    if gap is not None and (level := _level(_chance(gap), CHANCE)) and abs(gap.value) > max(headline.error, 1e-9):
        found.append(
            (
                level,
                f"The way there and the way back differ by {gap.value:.3g} ({_sigmas(gap)} sigma) on the same draws.",
            )
        )
    if _are_halves(legs):
        first, second = (jackknife(leg.forward, mbar) for leg in legs)
        apart = combine([(1, first), (-1, second)])
        if (level := _level(_chance(apart), CHANCE)) and abs(apart.value) > 1e-9:
            found.append(
                (
                    level,
                    f"The two halves of the chains differ by {apart.value:.3g} ({_sigmas(apart)} sigma).",
                )
            )
    return found


def hysteresis(legs: tuple[Leg, ...], correlation: float = 0.0) -> Estimate | None:
    """Importance sampling from every rung to the next, minus that from every rung to the one before."""

    def both(trace: Trace) -> float:
        return stepping_stone(trace) + stepping_stone(reversed_trace(trace))

    try:
        gap = combine([(leg.sign, jackknife(leg.forward, both)) for leg in legs], "hysteresis")
    except CrossfadeError:  # some draws are impossible one step on: only two-sided estimates exist
        return None
    return gap._replace(error=gap.error * float(np.sqrt(1 + correlation)))  # the halves share the noise of the fits


def reversed_trace(trace: Trace) -> Trace:
    """The same equilibrium draws, read from tau = 1 to tau = 0."""
    return trace._replace(
        tau=1 - trace.tau[::-1], log_ratio=-trace.log_ratio[:, ::-1], acceptance=trace.acceptance[:, ::-1]
    )


def _sigmas(estimate: Estimate) -> str:
    return f"{abs(estimate.value) / max(estimate.error, 1e-300):.1f}"


def _chance(estimate: Estimate) -> float:
    if estimate.value == 0:
        return 1.0
    return float(2 * student.sf(abs(estimate.value) / max(estimate.error, 1e-300), estimate.dof))
