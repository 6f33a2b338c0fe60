"""Evidences of many regressions at once, without chains: closed forms, or importance sampling with common numbers.

Every coefficient has random numbers of its own, the same in all models that have it, so that what two models have in
common cancels in the difference of their evidences.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from crossfade.analysis.errors import variance_of
from crossfade.analysis.judge import Finding, of_error
from crossfade.analysis.weights import PARETO_K, pareto_k, weight_share
from crossfade.density.regression import Regression
from crossfade.methods.budget import Asked
from crossfade.methods.coupled import N_BLOCKS, Side, Stream, Weighted, around_mode, refined, weighted
from crossfade.methods.progress import Say, duration
from crossfade.ranking.record import Moments
from crossfade.types import CrossfadeError, Estimate

FEW, SOME = 32, 128  # points of a block at first, for many models and for a few
MANY = 16  # models
EVEN = 0.5  # share of the weights that count, above which there is no tail to look at
GOOD = 0.7  # share that is even enough for a ranking: a better fit costs more than more points
NEGLIGIBLE = 1e-4  # posterior probability of a model whose weights do not matter


class Evidences(NamedTuple):
    """Log evidences [model], the same without each block [block, model], and what speaks against them."""

    log_evidence: np.ndarray
    left_out: np.ndarray
    moments: tuple[dict[str, Moments], ...]
    findings: list[Finding]
    about: dict[str, str]


def evidences(models: Mapping[str, Regression], asked: Asked, seed: int, say: Say) -> Evidences:
    """Of regressions of one response, whatever their order."""
    if len(families := {own.family for own in models.values()}) > 1:
        raise CrossfadeError(f"the models have different families, {', '.join(sorted(families))}: rank one at a time")
    first = next(iter(models.values()))
    for name, own in models.items():
        if not np.array_equal(own.y, first.y):
            raise CrossfadeError(f"model {name!r} is of other data than {next(iter(models))!r}: rank models of one set")
    return _closed(models, say) if first.conjugate else _sampled(models, asked, seed, say)


def _closed(models: Mapping[str, Regression], say: Say) -> Evidences:
    found, moments = np.empty(len(models)), []
    for i, own in enumerate(models.values()):
        found[i] = own.log_evidence()
        moments.append(_named(own, *own.moments()))
        if i % 1000 == 999:
            say(f"{i + 1:,} of {len(models):,} models in closed form")
    say("")
    grounds = "All evidences have a closed form, so the ranking is exact."
    about = {"route": "closed form", "grounds": grounds}
    return Evidences(found, np.tile(found, (2, 1)), tuple(moments), [], about)


def _named(own: Regression, mean: np.ndarray, variance: np.ndarray) -> dict[str, Moments]:
    return {name: Moments(np.asarray(m), np.asarray(v)) for name, m, v in zip(own.names, mean, variance, strict=True)}


class Points:
    """One model's points so far: what is left of them is a mean weight for each block."""

    def __init__(self, model: Regression, order: list[str], seed: int, n: int):
        self.model = model.taken(sorted(range(len(model.names)), key=lambda i: order.index(model.names[i])))
        self.columns = [0, *(1 + order.index(name) for name in self.model.names)]
        side = Side(self.model.log_joint, around_mode(*self.model.mode_and_curvature()))
        self.side = refined(side, seed, n * N_BLOCKS, even=GOOD)
        self.log_sum, self.n = np.full(N_BLOCKS, -np.inf), 0
        self.sums: list[np.ndarray] = []
        self.tail = -np.inf

    def add(self, uniform: np.ndarray) -> None:
        """Points of all blocks [block, point, 1 + coefficient of all models]."""
        own = weighted(self.side, uniform[..., self.columns])
        self.log_sum = np.logaddexp(self.log_sum, np.asarray(logsumexp(own.log_weight, axis=1)))
        self.n += own.log_weight.shape[1]
        self._remember(own)
        # a tail that is looked at again with more points is better known
        self.tail = pareto_k(own.log_weight) if weight_share(own.log_weight) < EVEN else -np.inf

    def _remember(self, own: Weighted) -> None:
        points, flat = own.points.reshape(-1, own.points.shape[-1]), own.log_weight.ravel()
        top = flat.max()
        weight = np.exp(flat - top)
        self.sums.append(np.array([top, weight.sum(), *(weight @ points), *(weight @ points**2)]))

    @property
    def log_means(self) -> np.ndarray:
        return self.log_sum - np.log(self.n)

    def moments(self) -> dict[str, Moments]:
        sums = np.array(self.sums)
        scale = np.exp(sums[:, 0] - sums[:, 0].max())
        total, p = (sums[:, 1:] * scale[:, None]).sum(axis=0), len(self.model.names)
        mean = total[1 : 1 + p] / total[0]
        return _named(self.model, mean, np.maximum(total[1 + p :] / total[0] - mean**2, 0.0))


def _sampled(models: Mapping[str, Regression], asked: Asked, seed: int, say: Say) -> Evidences:
    began = time.perf_counter()
    count = Counter(name for own in models.values() for name in own.names)
    order = sorted(count, key=lambda name: (-count[name], name))
    n = FEW if len(models) > MANY else SOME
    stream = Stream(1 + len(order), (seed, 1))
    uniform = stream.more(n)
    points = []
    for i, (name, model) in enumerate(models.items()):
        points.append(Points(model, order, seed, n))
        points[-1].add(uniform)
        if i % 50 == 49:
            left = (time.perf_counter() - began) / (i + 1) * (len(models) - i - 1)
            say(f"{i + 1:,} of {len(models):,} models | last: {name} | about {duration(left)} left")
    stopped = ""
    while not stopped:
        values, left_out = _evidence(points)
        errors = relative_errors(values, left_out)
        if not (short := np.flatnonzero(errors > asked.target_se)).size:
            break
        spent = time.perf_counter() - began
        if asked.seconds is not None and spent * (1 + points[0].n / n * len(short) / len(points)) > asked.seconds:
            stopped = f"the budget of {asked.seconds:g} s is used up"
            break
        if asked.max_draws is not None and 2 * N_BLOCKS * points[short[0]].n > asked.max_draws:
            stopped = f"the budget of {asked.max_draws:,} draws is used up"
            break
        uniform = stream.more(max(own.n for own in points))
        best = int(np.argmax(values))
        for i in {*short.tolist(), best}:
            points[i].add(uniform)
        say(f"{len(short):,} of {len(points):,} models need more points | worst error {errors.max():.2g}")
    say("")
    worst = int(np.argmax(errors))
    findings = of_error(Estimate(values[worst], float(errors[worst]), N_BLOCKS - 1), asked.target_se, stopped)
    mass = np.exp(values - logsumexp(values))
    for (name, _), own, p in zip(models.items(), points, mass, strict=True):
        if own.tail >= PARETO_K and p > NEGLIGIBLE:
            said = f"The weights of {name} have a heavy tail (Pareto k {own.tail:.2f}), so its evidence is uncertain."
            findings.append(Finding(1, f'{said} Use route="path", which samples it.'))
    n_points = sum(own.n for own in points) * N_BLOCKS
    grounds = (
        f"Each posterior has one peak; {n_points:,} points in all, in {N_BLOCKS} independent sets, of which the errors "
        "are the differences."
    )
    about = {"route": "importance sampling", "grounds": grounds}
    return Evidences(values, left_out, tuple(own.moments() for own in points), findings, about)


def _evidence(points: list[Points]) -> tuple[np.ndarray, np.ndarray]:
    """Log evidences from all blocks, and without each."""
    logs = np.array([own.log_means for own in points])  # [model, block]
    top = logs.max(axis=1, keepdims=True)
    mean = np.exp(logs - top)
    whole = top[:, 0] + np.log(mean.mean(axis=1))
    left_out = top + np.log((mean.sum(axis=1, keepdims=True) - mean) / (N_BLOCKS - 1))
    return whole, left_out.T


def relative_errors(values: np.ndarray, left_out: np.ndarray, n_strata: int = 1) -> np.ndarray:
    """Of log evidences over that of the best model."""
    relative = left_out - left_out[:, [int(np.argmax(values))]]
    return np.sqrt(variance_of(relative, n_strata))
