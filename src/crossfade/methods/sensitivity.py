"""How the log Bayes factor depends on the scale of one prior, from the draws of one run and without sampling anew.

Draws of the posterior p(theta | y) = L(theta) old(theta) / Z_old average the ratio of a new prior to the old one to

    E[new / old] = 1 / Z_old * integral of L(theta) new(theta) = Z_new / Z_old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from numpyro.distributions import Distribution

from crossfade.analysis.errors import Replicates, combine
from crossfade.analysis.weights import PARETO_K, pareto_k
from crossfade.density.digest import digest
from crossfade.density.joint import Joint, opened
from crossfade.density.model import Model, Prior, describe, log_density
from crossfade.density.precision import in_float64
from crossfade.density.rescale import Stretched, checked, no_scale, rescaled_prior, words
from crossfade.types import Array, CrossfadeError, Estimate, Float, Result, Theta

FACTORS = 4.0 ** (np.arange(-6, 7) / 6)  # a quarter to four times, 1 exactly in the middle
FEWEST = 100  # draws that are possible under the new prior


class Sensitivity(NamedTuple):
    """The log Bayes factor of M2 over M1 by the factor on a prior's scale."""

    name: str
    factors: np.ndarray  # increasing
    scales: tuple[str, ...]  # the new prior in words, at each factor
    estimates: tuple[Estimate, ...]
    pareto_k: Float[np.ndarray, "model factor"]  # of the weights; -inf where nothing changes

    @property
    def reliable(self) -> np.ndarray:
        """Where the weights of both models have tails light enough for their mean to be trusted."""
        return np.isfinite([estimate.value for estimate in self.estimates]) & (self.pareto_k < PARETO_K).all(axis=0)

    @property
    def flips(self) -> tuple[float, ...]:
        """Factors at which the answer changes sides, between reliable neighbours (linear in the log factor)."""
        value, log_factor = np.array([estimate.value for estimate in self.estimates]), np.log(self.factors)
        found = []
        for k in range(len(value) - 1):
            if self.reliable[k : k + 2].all() and value[k] * value[k + 1] < 0:
                share = value[k] / (value[k] - value[k + 1])
                found.append(float(np.exp(log_factor[k] + share * (log_factor[k + 1] - log_factor[k]))))
        return tuple(found)

    def table(self) -> list[list[Any]]:
        """A row per factor: factor, prior, log Bayes factor, its error, the larger Pareto k, reliable."""
        columns = (self.factors, self.scales, self.estimates, self.pareto_k.max(axis=0), self.reliable)
        return [
            [float(factor), words, estimate.value, estimate.error, float(k), bool(fine)]
            for factor, words, estimate, k, fine in zip(*columns, strict=True)
        ]

    def __str__(self) -> str:
        """The curve as a table, as the command line prints it."""
        return import_module("crossfade.app.terminal").plain(*import_module("crossfade.app.page").of_sensitivity(self))

    def plot(self, path: str | Path | None = None) -> Any:
        """The curve with its 95 % band, as matplotlib's Figure; also written to the path if there is one."""
        return import_module("crossfade.app.plots").of_curve(self, "sensitivity", path)


@in_float64
def prior_sensitivity(
    m1: Any,
    m2: Any,
    result: Result,
    name: str,
    *,
    factors: Sequence[float] | np.ndarray | None = None,
    prior: Callable[[float], Prior] | None = None,
) -> Sensitivity:
    """The log Bayes factor with the scale of the prior of `name` multiplied by each factor (a quarter to four times).

    `result` is that of `compare(m1, m2)`, whose draws are weighted anew. A parameter of both models changes in both.
    The scale is the argument of that name of NumPyro's distribution (of a LogNormal the standard deviation of the
    logarithm, of an Exponential 1 / rate), or of PyMC's; a prior without one needs `prior`, which gives the new prior
    of each factor and is then free to change anything but the support.

    log BF(factor) = log BF + log mean_2(new / old) - log mean_1(new / old), means over posterior draws. The errors of
    these means are jackknifed over chains. They come from the draws behind the headline, so their errors may go
    together with its error; the error of the sum is therefore the sum of the errors, which it cannot exceed.
    """
    if not np.isfinite(result.log_bayes_factor.value):
        raise CrossfadeError("the result has no finite log Bayes factor to start from: compare the models first")
    m1, m2 = opened(m1, "M1"), opened(m2, "M2")
    known = result.about.get("responses")
    if known and any(own not in ("", known) for own in (digest(m.data) for m in (m1, m2))):
        raise CrossfadeError("the models are of other data than the result: give those that were compared")
    for which, model, draws in zip(("M1", "M2"), (m1, m2), result.draws, strict=True):
        if strange := [own for own in draws if own not in model.names]:
            raise CrossfadeError(
                f"the result is of another {which}, with a parameter {strange[0]!r} that this one lacks: give the "
                "models that were compared"
            )
    values = _factors(factors, exact=prior is not None)
    changes = {k: _changes(model, k, result, name, values, prior) for k, model in _models_with(m1, m2, name).items()}
    tails, estimates, scales = np.full((2, len(values)), -np.inf), [], []
    for i, both in enumerate(zip(*changes.values(), strict=True)):
        shifts, tails[list(changes), i], said = zip(*both, strict=True)
        estimates.append(_moved(result.log_bayes_factor, dict(zip(changes, shifts, strict=True))))
        scales.append(said[0] if len(set(said)) == 1 else f"M1: {said[0]}, M2: {said[1]}")
    return Sensitivity(name, values, tuple(scales), tuple(estimates), tails)


@in_float64
def check_sensitivity(m1: Any, m2: Any, name: str) -> None:
    """What can be known before anything is sampled: whether the prior can be taken out and has a scale."""
    for k, model in _models_with(m1, m2, name).items():
        # Others are looked at where there are draws.
        if isinstance(prior := _prior(model, name), Distribution | Stretched):
            rescaled_prior(prior, 2.0, {}, f"{name!r} in M{k + 1}")


def _models_with(m1: Any, m2: Any, name: str) -> dict[int, Model | Joint]:
    """Those of the two that have the parameter and know its prior."""
    both = opened(m1, "M1"), opened(m2, "M2")
    found = {}
    for k, model in enumerate(both):
        if name not in model.names:
            continue
        if isinstance(model, Joint) and model.model is not None:
            model = model.model
        if isinstance(model, Joint) and name not in (model.factors or {}):
            raise CrossfadeError(
                f"M{k + 1} is known by its log joint alone, so the prior of {name!r} cannot be taken out of it: build "
                "it as a crossfade.Model, with from_numpyro or with from_pymc, and compare again"
            )
        found[k] = model
    if not found:
        raise CrossfadeError(
            f"there is no parameter {name!r}: M1 has {list(both[0].names)}, M2 has {list(both[1].names)}"
        )
    return found


def _prior(model: Model | Joint, name: str) -> Prior | Stretched:
    if isinstance(model, Model):
        return model.priors[name]
    assert model.factors is not None  # _models_with has looked
    origin = None if model.origin is None else model.origin(name)
    said = model.priors.get(name, "one that is known by its density alone")
    return Stretched(model.factors[name], origin, model.places[name][1], np.asarray(1.0), name, said)


def _moved(headline: Estimate, shifts: dict[int, Replicates]) -> Estimate:
    """The answer with log Z_new - log Z_old of M1 (0), M2 (1) or both."""
    with np.errstate(invalid="ignore"):
        shift = combine([(2 * k - 1, own.estimate()) for k, own in shifts.items()])
    value = headline.value + shift.value
    if not np.isfinite([shift.value, shift.error]).all():  # all the weight is in one chain, or there is none
        return Estimate(value, np.inf, headline.dof, headline.name)
    return Estimate(value, headline.error + shift.error, min(headline.dof, shift.dof), headline.name)


def _factors(factors: Sequence[float] | np.ndarray | None, exact: bool) -> np.ndarray:
    """In increasing order; 1, where the curve meets the result, is among them unless `prior` gives them a meaning."""
    found = np.unique(np.asarray(FACTORS if factors is None else factors, float))
    if found.size == 0 or not (np.isfinite(found).all() and found[0] > 0):
        raise CrossfadeError(f"factors = {factors}: give positive numbers, e.g. [0.5, 1, 2]")
    return found if exact else np.union1d(found, [1.0])


def _changes(
    model: Model | Joint, k: int, result: Result, name: str, factors: np.ndarray, prior: Callable[[float], Prior] | None
) -> list[tuple[Replicates, float, str]]:
    """By factor: the change of the log evidence, Pareto k of the weights, and the new prior in words."""
    whose = f"{name!r} in M{k + 1}"
    old = _prior(model, name)
    draws = _draws(model.names, old, result, k, name)
    first = {key: values[0, 0] for key, values in draws.items()}
    if prior is None:
        new = [rescaled_prior(old, factor, first, whose) for factor in factors]
    else:
        new = [checked(prior(float(factor)), old, name, first, whose) for factor in factors]
        if name in result.about.get("numbered", [[], []])[k]:
            _check_components(new, name, first, whose)
    found = []
    for own, factor, log_weight in zip(new, factors, _log_weights(old, new, name, draws), strict=True):
        if prior is None and factor == 1 and np.abs(log_weight).max() > 1e-3:
            raise CrossfadeError(no_scale(old, whose))  # its arguments do not make it again
        # Infinity where there is too little to fit a tail to.
        tail = pareto_k(log_weight) if np.isfinite(log_weight).sum() >= FEWEST else np.inf
        found.append((_log_mean(log_weight), tail, _named(own, old, factor)))
    return found


def _check_components(new: Sequence[Prior], name: str, theta: Theta, whose: str) -> None:
    """Draws are in one numbering of the components, which tells of the others if the prior is the same for all."""
    for own in new:
        there = {**theta, name: np.roll(theta[name], 1, axis=0)}
        before, after = (float(log_density(own, name, at)) for at in (theta, there))
        if not np.isclose(before, after, rtol=1e-9, atol=1e-6):
            raise CrossfadeError(
                f"the components of {whose} may be numbered in any order, and prior= tells them apart: give them one "
                "prior, or compare models that have the new prior"
            )


def _named(new: Prior | Stretched, old: Prior | Stretched, factor: float) -> str:
    """The new prior in words, which are the old one's where the scale is an array."""
    text = words(new)
    return f"{text}, factor {factor:.3g}" if text == words(old) and factor != 1 else text


def _draws(
    names: tuple[str, ...], prior: Prior | Stretched, result: Result, k: int, name: str
) -> dict[str, np.ndarray]:
    """Posterior draws of what the prior needs; the prior in the result must be the model's."""
    which, draws = f"M{k + 1}", result.draws[k]
    needed = (name,) if isinstance(prior, Distribution) else names
    if missing := [key for key in needed if key not in draws]:
        raise CrossfadeError(
            f"the result holds no posterior draws of {missing[0]!r} in {which}: compare by the default method "
            '(method="auto"), which keeps them'
        )
    said = _said(result, name, k)
    if said not in (None, describe(prior)) and isinstance(prior, Distribution | eqx.Module):
        raise CrossfadeError(
            f"the result was made with {name} ~ {said}, but in this {which} it is {describe(prior)}: bring the model "
            "that was compared"
        )
    if draws[name].shape[0] < 2:
        raise CrossfadeError(f"the draws of {name!r} in {which} are of 1 chain: the error bar needs 2 or more")
    return {key: np.asarray(draws[key], float) for key in needed}


def _said(result: Result, name: str, k: int) -> str | None:
    """The prior that the result was made with, if it says so for this model."""
    if name in (different := result.about.get("tempered_priors", {})):
        return different[name][k]
    if k == 0 and name in result.draws[1]:  # `priors` holds that of M2
        return None
    return result.about.get("priors", {}).get(name)


def _log_weights(
    old: Prior | Stretched, new: list[Any], name: str, draws: dict[str, np.ndarray]
) -> Iterator[np.ndarray]:
    """log new - log old at every draw [chain, draw], for each new prior."""

    @eqx.filter_jit  # of this call alone, since plain functions may hide data
    def over_draws(prior: Prior | Stretched, theta: Theta) -> Array:
        def at(one: Theta) -> Array:
            return prior.log_density(one) if isinstance(prior, Stretched) else log_density(prior, name, one)

        return jax.vmap(jax.vmap(at))(theta)

    def log_prior(prior: Prior | Stretched) -> np.ndarray:
        # Numbers become arrays, or each would be compiled for itself.
        arrays = jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, float) else leaf, prior)
        return np.asarray(over_draws(arrays, draws))

    before = log_prior(old)
    if not np.isfinite(before).all():
        raise CrossfadeError(f"some draws of {name!r} are impossible under its prior: are they of this model?")
    for prior in new:
        yield log_prior(prior) - before


def _log_mean(log_weight: np.ndarray) -> Replicates:
    """log mean of the weights over all chains, and without each of them."""
    top = log_weight.max()
    if top == -np.inf:  # no draw is possible under the new prior
        return Replicates(-np.inf, np.zeros(len(log_weight)))
    of_chain = np.exp(log_weight - top).mean(axis=1)
    others = (1 - np.eye(len(of_chain))) @ of_chain / (len(of_chain) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Replicates(float(top + np.log(of_chain.mean())), top + np.log(others))
