"""Checks that run the default method: a comparison whose answer is 0, and one number computed in two ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from numpyro.distributions import Normal, constraints

from crossfade.api import AnyModel, compare, evidence
from crossfade.density.joint import Joint, LogDensity, PriorFactor, Sum, as_joint
from crossfade.density.model import describe
from crossfade.doctor.finding import BOTH, Finding
from crossfade.types import DO_NOT_USE, Array, Estimate, Result, Theta

TARGET_SE = 0.05
N_SIGMA = 4.0


class WithoutPlacebo(eqx.Module):
    """A function of the other parameters."""

    function: LogDensity
    name: str = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Array:
        return self.function({name: value for name, value in theta.items() if name != self.name})


class StartWithPlacebo(eqx.Module):
    """A start of the other parameters, and a draw of the placebo."""

    start: Callable[[Array], Theta]
    name: str = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        own, rest = jax.random.split(key)
        return {**self.start(rest), self.name: jax.random.normal(own)}


def placebo(model: AnyModel) -> Joint:
    """The model with one parameter more, N(0, 1), that the likelihood ignores: the evidence stays what it is."""
    joint = as_joint(model)
    names = ("placebo", *(f"placebo_{i}" for i in range(2, len(joint.names) + 2)))
    name = next(name for name in names if name not in joint.names)
    own = PriorFactor(Normal(np.asarray(0.0), np.asarray(1.0)), name)

    def ignoring(function: LogDensity) -> LogDensity:
        return WithoutPlacebo(function, name)

    def times(function: LogDensity | None) -> LogDensity | None:
        return None if function is None else Sum(ignoring(function), own)

    others = {key: ignoring(factor) for key, factor in (joint.factors or {}).items()}
    return joint._replace(
        places={**joint.places, name: ((), constraints.real)},
        start=StartWithPlacebo(joint.start, name),
        whole=times(joint.whole),
        log_prior=times(joint.log_prior),
        log_likelihood=None if joint.log_likelihood is None else ignoring(joint.log_likelihood),
        factors=None if joint.factors is None else {**others, name: own},
        priors={**joint.priors, name: describe(own.prior)},
        origin=None,  # it knows nothing of the placebo
        model=None,
    )


def placebo_test(
    joint: Joint, which: str, *, twin: Callable[[Joint], Joint] = placebo, **settings: Any
) -> list[Finding]:
    """The Bayes factor of the model with a placebo over the model itself is 1."""
    result = compare(joint, twin(joint), target_se=TARGET_SE, **settings)
    if refusal := _refusal(result):
        said = (
            f"do not use a comparison with a parameter that the likelihood ignores (M1: without, M2: with): {refusal}"
        )
        return [Finding("placebo", which, False, said)]
    found = result.log_bayes_factor
    ok = abs(found.value) <= N_SIGMA * found.error + 1e-9
    said = f"adding a parameter that the likelihood ignores gives a log Bayes factor of {_shown(found)}"
    wrong = "not 0: normalise the prior, and let no function change between calls (does one draw random numbers?)"
    return [Finding("placebo", which, ok, f"{said}, {'as it must be' if ok else wrong}")]


def cross_check(j1: Joint, j2: Joint, draws: tuple[Any, Any], seed: int, **settings: Any) -> list[Finding]:
    """log p(data | M2) - log p(data | M1) is the log Bayes factor. Other seeds, so that the draws are other ones."""
    settings = {"target_se": TARGET_SE, **settings}
    direct = compare(j1, j2, draws=draws, seed=seed, **settings)
    apart = [evidence((j1, j2)[k], draws=draws[k], seed=(seed + 1 + k) % 2**32, **settings) for k in (0, 1)]
    for words, result in zip(("compare(M1, M2)", "evidence(M1)", "evidence(M2)"), (direct, *apart), strict=True):
        if refusal := _refusal(result):
            return [Finding("two ways", BOTH, False, f"do not use {words}: {refusal}")]
    first, second = (result.log_bayes_factor for result in apart)
    straight = direct.log_bayes_factor
    difference = Estimate(second.value - first.value, float(np.hypot(first.error, second.error)), np.inf)
    sigma = abs(difference.value - straight.value) / float(np.hypot(difference.error, straight.error))
    said = f"evidence(M2) - evidence(M1) gives {_shown(difference)} and compare(M1, M2) gives {_shown(straight)}"
    said += f", {sigma:.1f} standard errors apart"
    if sigma > N_SIGMA:
        said += ": some runs miss a part of a posterior (several modes?). Run longer, or reparametrise"
    return [Finding("two ways", BOTH, sigma <= N_SIGMA, said)]


def _refusal(result: Result) -> str:
    return " ".join(result.reasons) or "its error is too large" if result.verdict == DO_NOT_USE else ""


def _shown(found: Estimate) -> str:
    return f"{found.value:.4f} ± {found.error:.4f}"
