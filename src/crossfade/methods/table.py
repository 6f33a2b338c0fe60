"""`compare` and the table of methods: the one place that picks defaults."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import jax
import numpy as np

from crossfade.analysis.summary import summarise
from crossfade.density.model import Model, describe, without_data
from crossfade.methods.fitted import AUTO
from crossfade.paths.path import Path, direct, matched, reverse, unconstraining
from crossfade.sampling.anneal import Interrupted, Observe, Schedule, Score, anneal, chain_keys, nothing
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import LadderFn, power, sigmoid
from crossfade.sampling.placed import anneal_at_tangents, measured_length
from crossfade.types import VERDICTS, Array, CrossfadeError, Leg, NoAnswer, Result, Trace

KernelFn = Callable[[Model, Model], Kernel]


class Method(NamedTuple):
    """A row of the table: route, ladder, rungs x draws, estimator."""

    two_legs: bool  # each model from no data, or straight from M1 to M2
    ladder: LadderFn | str  # a function, or "tangents" / "length": placed by measurement
    n_rungs: int | None  # None: N x 1, one rung per iteration
    estimator: str


METHODS: dict[str, Method] = {
    "TI-standard": Method(True, power, 50, "trapezoid"),
    "TI-optimal": Method(True, "tangents", 50, "corrected_trapezoid"),
    "CTI": Method(True, power, 50, "controlled"),
    "NETI": Method(True, power, None, "trapezoid"),
    "NETI-DIFF": Method(False, sigmoid, None, "trapezoid"),
    "NETI-DIFF-length": Method(False, "length", None, "trapezoid"),
    "CTI-DIFF": Method(False, sigmoid, 50, "controlled"),
    "AIS": Method(False, sigmoid, None, "jarzynski"),
    "Crooks": Method(False, sigmoid, None, "crooks"),
    "stepping-stone": Method(False, sigmoid, 50, "stepping_stone"),
    "BAR": Method(False, sigmoid, 50, "bar"),
    "MBAR": Method(False, sigmoid, 50, "mbar"),
}


def by_table(
    m1: Model,
    m2: Model,
    method: str | Method,
    n_iter: int,
    seed: int,
    n_chains: int,
    kernel: KernelFn | None,
    log_prior_odds: float,
) -> Result:
    """Every method evaluates 2 n_iter likelihoods per chain (the straight path both of them at once).

    Each leg is run both ways: the way back gives the hysteresis. Burn-in comes on top: 1,000 steps at the start,
    and 20 % at every rung of K x draws.
    """
    began = time.perf_counter()
    row, name = row_of(method)
    _check(row, n_iter, n_chains)
    sharing = matched(m1, m2)
    kernel = kernel or _common_kernel(m1, m2)
    if isinstance(kernel, Kernel):
        raise CrossfadeError("kernel= takes a function of the two ends: pass kernel=lambda a, b: your_kernel")
    routes = [(m1, m2, +1, "M1 to M2")]
    if row.two_legs:
        routes = [(without_data(m1), m1, -1, "no data to M1"), (without_data(m2), m2, +1, "no data to M2")]
    ways = [_Ways(a, b, kernel, row, n_iter, _keys(seed, i, n_chains)) for i, (a, b, _, _) in enumerate(routes)]
    legs: list[Leg] = []
    for way, (_, _, sign, leg_name) in zip(ways, routes, strict=True):
        try:
            legs.append(Leg(leg_name, sign, way.there(), None))
        except Interrupted as stop:
            stop.legs = (*legs, Leg(leg_name, sign, stop.trace, None))
            raise
    with suppress(Interrupted):  # the way there is already an answer; without the way back it has no hysteresis
        for i, way in enumerate(ways):
            legs[i] = legs[i]._replace(reverse=way.back(legs[i].forward.tau))
    priors = {key: describe(model.priors[key]) for model in (m1, m2) for key in model.names}
    about = {
        "method": name,
        "estimator": row.estimator,
        "n_iter": n_iter,
        "n_chains": n_chains,
        "seed": seed,
        "log_prior_odds": float(log_prior_odds),
        "priors": priors,
        "tempered_priors": {key: (describe(m1.priors[key]), describe(m2.priors[key])) for key in sharing.tempered},
    }
    try:
        headline, opinions, differences, gap, warnings = summarise(tuple(legs), row.estimator)
    except CrossfadeError as error:
        raise NoAnswer(str(error), tuple(legs), about) from error
    about["seconds"] = time.perf_counter() - began
    verdict = VERDICTS[2 if headline.error > 1 else 1 if warnings else 0]
    checks = {} if gap is None else {"hysteresis": gap}
    return Result(headline, verdict, warnings, opinions, differences, checks, tuple(legs), sharing, about)


def row_of(method: str | Method) -> tuple[Method, str]:
    if isinstance(method, Method):
        known = [name for name, row in METHODS.items() if row == method]
        return method, known[0] if known else "custom"
    if method not in METHODS:
        raise CrossfadeError(f"unknown method {method!r}: choose one of {', '.join([AUTO, *METHODS])}")
    return METHODS[method], method


def _check(row: Method, n_iter: int, n_chains: int) -> None:
    if row.estimator == "controlled" and n_chains < 4:
        raise CrossfadeError(f"n_chains = {n_chains}: controlled moments need at least 4 chains")
    least = 100 if row.n_rungs is None else 4 * row.n_rungs
    if n_iter < least:
        raise CrossfadeError(f"n_iter = {n_iter} is too short for this method: give at least {least}")


def _common_kernel(m1: Model, m2: Model) -> KernelFn:
    if m1.kernel is None or m1.kernel is not m2.kernel:
        raise CrossfadeError(
            "these two models do not come from one world with a sampler of its own: use the default method, or pass "
            "kernel=, a function of the two ends that returns a Kernel, e.g. kernel=lambda a, b: Metropolis(step)"
        )
    return m1.kernel


def _keys(seed: int, leg: int, n_chains: int) -> Array:
    return chain_keys(jax.random.fold_in(jax.random.key(seed), leg), n_chains)


class _Ways(NamedTuple):
    """How one leg is run there and back."""

    a: Model
    b: Model
    kernel: KernelFn
    row: Method
    n_iter: int
    keys: Array

    def there(self) -> Trace:
        path, kernel, row = direct(self.a, self.b), self.kernel(self.a, self.b), self.row
        if row.ladder == "tangents":
            return anneal_at_tangents(path, kernel, self._n_rungs, self._own_keys(0), self._schedule)
        ladder = row.ladder if callable(row.ladder) else measured_length(path, kernel, self._own_keys(2))
        return self._run(path, kernel, ladder(self._n_rungs), 0)

    def back(self, tau: np.ndarray) -> Trace:
        path = reverse(direct(self.a, self.b))
        return self._run(path, self.kernel(self.b, self.a), 1 - tau[::-1], 1)

    def _run(self, path: Path, kernel: Kernel, tau: np.ndarray, direction: int) -> Trace:
        observe: Observe = nothing
        if self.row.estimator == "controlled":
            observe = Score(unconstraining(self.a, self.b))
        keys = self._own_keys(direction)
        return anneal(path, kernel, tau, keys, schedule=self._schedule, observe=observe)[0]

    def _own_keys(self, direction: int) -> Array:
        return jax.vmap(lambda key: jax.random.fold_in(key, direction))(self.keys)

    @property
    def _n_rungs(self) -> int:
        return self.row.n_rungs or self.n_iter

    @property
    def _schedule(self) -> Schedule:
        if self.row.n_rungs is None:
            return Schedule()
        n_draws = self.n_iter // self.row.n_rungs
        return Schedule(n_draws=n_draws, n_burn=n_draws // 5)
