"""Checks that run the default method: a comparison whose answer is 0, and one number computed in two ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Normal, constraints

from crossfade.api import compare, evidence
from crossfade.density.joint import Joint
from crossfade.density.model import Model
from crossfade.doctor.finding import BOTH, Finding
from crossfade.paths.path import fresh
from crossfade.types import Array, Estimate, Result, Theta

TARGET_SE = 0.05
N_SIGMA = 4.0
DO_NOT_USE = "do not use"


class _Ignoring(eqx.Module):
    """A function of the other parameters."""

    function: Callable[[Theta], Array]
    name: str = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Array:
        return self.function({name: value for name, value in theta.items() if name != self.name})


class _Times(eqx.Module):
    """A density of the other parameters times a standard normal of the placebo."""

    function: _Ignoring

    def __call__(self, theta: Theta) -> Array:
        placebo = theta[self.function.name]
        return self.function(theta) - placebo**2 / 2 - jnp.log(2 * jnp.pi) / 2


class _Start(eqx.Module):
    start: Callable[[Array], Theta]
    name: str = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        own, rest = jax.random.split(key)
        return {**self.start(rest), self.name: jax.random.normal(own)}


def placebo(model: Model | Joint) -> Any:
    """The model with one parameter more, N(0, 1), that the likelihood ignores: the evidence stays what it is."""
    name, i = "placebo", 1
    while name in model.names:
        i += 1
        name = f"placebo_{i}"
    if isinstance(model, Model):
        priors = {**{own: model.priors[own] for own in model.names}, name: Normal(np.asarray(0.0), np.asarray(1.0))}
        return Model(priors, _Ignoring(fresh(model.log_likelihood), name), data=model.data)

    def ignoring(function: Any) -> Any:
        return None if function is None else _Ignoring(fresh(function), name)

    def times(function: Any) -> Any:
        return None if function is None else _Times(_Ignoring(fresh(function), name))

    return model._replace(
        places={**model.places, name: ((), constraints.real)},
        start=_Start(model.start, name),
        whole=times(model.whole),
        log_prior=times(model.log_prior),
        log_likelihood=ignoring(model.log_likelihood),
    )


def placebo_test(
    model: Model | Joint, which: str, *, twin: Callable[[Any], Any] = placebo, **settings: Any
) -> list[Finding]:
    """The Bayes factor of the model with a placebo over the model itself is 1."""
    result = compare(model, twin(model), target_se=TARGET_SE, **settings)
    found = result.log_bayes_factor
    said = f"with a parameter that the likelihood ignores the log Bayes factor is {_shown(found)}"
    if refusal := _refusal(result):
        said += f", but the run (M1: without it, M2: with it) is not to be used: {refusal}"
        return [Finding("placebo", which, False, said)]
    if abs(found.value) > N_SIGMA * found.error + 1e-9:
        off = f"{said}, not 0: something is not normalised, or changes between calls (is a function random?)"
        return [Finding("placebo", which, False, off)]
    return [Finding("placebo", which, True, f"{said}, as it must be")]


def cross_check(j1: Joint, j2: Joint, draws: tuple[Any, Any], seed: int, **settings: Any) -> list[Finding]:
    """log p(data | M2) - log p(data | M1) is the log Bayes factor. Other seeds, so that the draws are other ones."""
    settings = {"target_se": TARGET_SE, **settings}
    direct = compare(j1, j2, draws=draws, seed=seed, **settings)
    apart = [evidence((j1, j2)[k], draws=draws[k], seed=(seed + 1 + k) % 2**32, **settings) for k in (0, 1)]
    for words, result in zip(("compare(M1, M2)", "evidence(M1)", "evidence(M2)"), (direct, *apart), strict=True):
        if refusal := _refusal(result):
            return [Finding("two ways", BOTH, False, f"{words} is not to be used: {refusal}")]
    first, second = (result.log_bayes_factor for result in apart)
    straight = direct.log_bayes_factor
    error = float(np.hypot(first.error, second.error))
    gap, total = second.value - first.value - straight.value, float(np.hypot(error, straight.error))
    difference = Estimate(second.value - first.value, error, np.inf)
    said = f"evidence(M2) - evidence(M1) is {_shown(difference)}, compare(M1, M2) {_shown(straight)}"
    if abs(gap) > N_SIGMA * total:
        far = f"{said}: {abs(gap) / total:.1f} sigma apart, so a posterior has a part that not all runs find"
        return [Finding("two ways", BOTH, False, f"{far} (several modes?): run longer, or reparametrise")]
    return [Finding("two ways", BOTH, True, f"{said}: {abs(gap) / total:.1f} sigma apart")]


def _refusal(result: Result) -> str:
    return " ".join(result.reasons) or "its error is too large" if result.verdict == DO_NOT_USE else ""


def _shown(found: Estimate) -> str:
    return f"{found.value:.4f} ± {found.error:.4f}"
