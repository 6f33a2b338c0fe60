"""The paper's methods, as rows of one table: chains that travel along a path."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.analysis.judge import judge
from crossfade.analysis.judge_table import of_table
from crossfade.analysis.summary import summarise
from crossfade.density.joint import Joint
from crossfade.density.model import Model
from crossfade.density.precision import in_float64
from crossfade.density.sharing import Share, match
from crossfade.paths.path import direct, named_sharing, reverse, union_coordinates
from crossfade.sampling.anneal import Interrupted, Observe, Schedule, Score, anneal, chain_keys, nothing
from crossfade.sampling.kernel import HMC, Cycle, Gibbs, Kernel, Metropolis
from crossfade.sampling.ladder import LadderFn, power, sigmoid
from crossfade.sampling.placed import anneal_at_tangents, measured_length
from crossfade.sampling.travel import Way, ways
from crossfade.types import Array, CrossfadeError, Leg, NoAnswer, Result, Trace

N_ITER = 16_000
N_CHAINS = 16

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
"""The methods of the paper and their kin by name, for `compare(method=...)`."""


@in_float64
def by_table(
    j1: Joint,
    j2: Joint,
    method: str | Method,
    *,
    n_iter: int | None,
    n_chains: int | None,
    seed: int,
    kernel: KernelFn | None,
    share: Share,
) -> Result:
    """Every method evaluates 2 n_iter likelihoods per chain (the straight path both of them at once).

    Each leg is run both ways: the way back gives the hysteresis. Burn-in comes on top: 1,000 steps at the start,
    and 20 % at every rung of K x draws.
    """
    row, name = row_of(method)
    for which, joint in (("M1", j1), ("M2", j2)):
        if not joint.places:
            raise CrossfadeError(
                f"{which} has no parameters, along which the methods of the table could travel: leave method= out, the "
                "default takes such models"
            )
    n_iter, n_chains = N_ITER if n_iter is None else n_iter, n_chains or N_CHAINS
    _check(row, n_iter, n_chains)
    sharing = named_sharing(j1, j2, share)
    routes: list[tuple[Joint, Joint, int, str]] = [(j1, j2, +1, "M1 to M2")]
    if row.two_legs:
        routes = [(j1.without_data(), j1, -1, "no data to M1"), (j2.without_data(), j2, +1, "no data to M2")]
    travels = []
    for i, (a, b, _, _) in enumerate(routes):
        own, start = None if row.two_legs else share, jax.random.fold_in(jax.random.key(seed), 10 + i)
        found = ways_of(a, b, kernel, own, start, controlled=row.estimator == "controlled")
        keys = chain_keys(jax.random.fold_in(jax.random.key(seed), i), n_chains)
        travels.append(Travel(*found, row, n_iter, keys))
    legs: list[Leg] = []
    for travel, (_, _, sign, leg_name) in zip(travels, routes, strict=True):
        try:
            legs.append(Leg(leg_name, sign, travel.forward(), None))
        except Interrupted as stop:
            stop.legs = (*legs, Leg(leg_name, sign, stop.trace, None))
            raise
    with suppress(Interrupted):  # the way there is already an answer; without the way back it has no hysteresis
        for i, travel in enumerate(travels):
            legs[i] = legs[i]._replace(reverse=travel.backward(legs[i].forward.tau))
    about: dict[str, Any] = {"method": name, "estimator": row.estimator, "n_iter": n_iter, "n_chains": n_chains}
    about["kernels"] = sorted({move for travel in travels for move in moves_of(travel.there.kernel)})
    try:
        summary = summarise(tuple(legs), row.estimator)
    except CrossfadeError as error:
        raise NoAnswer(str(error), tuple(legs), about) from error
    findings = of_table(tuple(legs), summary)
    return Result(
        summary.headline,
        *judge(findings),
        summary.opinions,
        summary.differences,
        summary.checks,
        tuple(legs),
        sharing,
        about,
    )


def moves_of(kernel: Kernel) -> list[str]:
    """What the chains move by, in the words of `sampling.kernel` where it is one of those."""
    if isinstance(kernel, Cycle):
        return [move for own in kernel.kernels for move in moves_of(own)]
    return [next((own.__name__ for own in (HMC, Gibbs, Metropolis) if isinstance(kernel, own)), type(kernel).__name__)]


def row_of(method: str | Method) -> tuple[Method, str]:
    if isinstance(method, Method):
        known = [name for name, row in METHODS.items() if row == method]
        return method, known[0] if known else "custom"
    if method not in METHODS:
        raise CrossfadeError(f"unknown method {method!r}: choose one of {', '.join(['auto', *METHODS])}")
    return METHODS[method], method


def _check(row: Method, n_iter: int, n_chains: int) -> None:
    if not isinstance(n_iter, int | np.integer):
        raise CrossfadeError(f"n_iter = {n_iter!r}: give a whole number")
    if row.estimator == "controlled" and n_chains < 4:
        raise CrossfadeError(f"n_chains = {n_chains}: controlled moments need at least 4 chains")
    least = 100 if row.n_rungs is None else 4 * row.n_rungs
    if n_iter < least:
        raise CrossfadeError(f"n_iter = {n_iter} is too short for this method: give at least {least}")


def ways_of(
    a: Joint, b: Joint, kernel: KernelFn | None, share: Share, key: Array, *, controlled: bool = False
) -> tuple[Way, Way, Observe]:
    """There, back and what to record: by the kernel that was given, by that of the models' own world, or by HMC."""
    if isinstance(kernel, Kernel):
        raise CrossfadeError("kernel= takes a function of the two ends: pass kernel=lambda a, b: your_kernel")
    m1, m2 = a.model, b.model
    if m1 is None or m2 is None or (kernel is None and not _of_one_world(a, b, share)):
        if kernel is not None:
            raise CrossfadeError("kernel= is for models with a prior per parameter: leave it out, and HMC is used")
        return *ways(a, b, key, share), Score() if controlled else nothing
    make = kernel or m1.kernel
    assert make is not None
    path, observe = direct(a, b, share=share), Score(union_coordinates(a, b, share)) if controlled else nothing
    return Way(path, make(m1, m2)), Way(reverse(path), make(m2, m1)), observe


def _of_one_world(a: Joint, b: Joint, share: Share) -> bool:
    """Whether both models have one sampler, which matches parameters by their names."""
    same = a.model is not None and b.model is not None and a.model.kernel is b.model.kernel is not None
    matched = match(a, b, share)
    return same and all(x == y for x, y in matched.whole.items()) and set(matched.whole) == set(a.names) & set(b.names)


class Travel(NamedTuple):
    """How one leg is run there and back."""

    there: Way
    back: Way
    observe: Observe
    row: Method
    n_iter: int
    keys: Array

    def forward(self) -> Trace:
        (path, kernel), row = self.there, self.row
        if row.ladder == "tangents":
            return anneal_at_tangents(path, kernel, self._n_rungs, self._own_keys(0), self._schedule)
        ladder = row.ladder if callable(row.ladder) else measured_length(path, kernel, self._own_keys(2))
        return self._run(self.there, ladder(self._n_rungs), 0)

    def backward(self, tau: np.ndarray) -> Trace:
        return self._run(self.back, 1 - tau[::-1], 1)

    def _run(self, way: Way, tau: np.ndarray, direction: int) -> Trace:
        return anneal(*way, tau, self._own_keys(direction), schedule=self._schedule, observe=self.observe)[0]

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
