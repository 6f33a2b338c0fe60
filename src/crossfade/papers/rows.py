"""Runs as rows of a tidy table: what was run, its estimate, the truth, and what it cost.

One convention for all: `n_iter` is the number of kept steps of a sweep over both models, or on each of the two models;
burn-in comes on top, as in the paper. `evaluations` counts likelihoods of either model, burn-in included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.analysis.estimators import corrected_trapezoid, trapezoid
from crossfade.api import compare
from crossfade.density.model import Model, without_data
from crossfade.density.precision import in_float64
from crossfade.papers.jobs import Rows
from crossfade.paths.path import Path, direct
from crossfade.sampling.anneal import Schedule, anneal, apart, begin, chain_keys
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import power, sigmoid
from crossfade.sampling.placed import anneal_together
from crossfade.types import Array, Float

LADDERS = {"sigmoid": sigmoid, "power": power}
STANDARD, OPTIMAL, NETI_DIFF, AUTO = "TI-standard", "TI-optimal", "NETI-DIFF", "auto"
WARM_UP = 1000  # steps of NETI-DIFF at tau = 0 before the sweep
APPROACH = 2000  # steps of TI-optimal from tau = 0 to its second rung, 1, which a chain from the prior would not find
MOST = 2**23  # numbers of a trace held at a time
LONGEST = 400  # steps of TI in a compiled program: short, so that runs of many lengths have it in common


class Problem(NamedTuple):
    """Two models, how to go between them, and the log Bayes factor if it is known."""

    m1: Model
    m2: Model
    kernel: Callable[[Model, Model], Kernel]
    truth: float = float("nan")
    path: Callable[[Model, Model], Path] = direct

    def swapped(self) -> Problem:
        return self._replace(m1=self.m2, m2=self.m1, truth=-self.truth)


def rows(values: np.ndarray, **about: Any) -> Rows:
    return [{**about, "run": run, "estimate": float(value)} for run, value in enumerate(values)]


class Runs(NamedTuple):
    """Estimates of log Z_1 - log Z_0 by independent runs, and what one of them cost."""

    values: Float[np.ndarray, " run"]
    cpu: float  # seconds per run, compilation not counted


@in_float64
def sweeps(path: Path, kernel: Kernel, tau: np.ndarray, n_runs: int, key: Array) -> Runs:
    """Non-equilibrium runs: one draw per rung, started after 1,000 steps at tau = 0."""
    together = int(max(1, min(n_runs, MOST // len(tau))))
    keys, values, cpu = chain_keys(key, n_runs), [], 0.0
    segment = min(2**17 // together, 4096)
    anneal(path, kernel, tau[:1], keys[:together], schedule=Schedule(n_warm_up=1), segment=segment)  # compiles
    for first in range(0, n_runs, together):
        began = time.process_time()
        own = keys[np.arange(first, first + together) % n_runs]  # one shape: the last batch repeats some chains
        trace, _ = anneal(path, kernel, tau, own, schedule=Schedule(n_warm_up=WARM_UP), segment=segment)
        cpu += time.process_time() - began  # of the sampling: reading a trace is the same for all methods
        values += [trapezoid(run) for run in apart(trace)]
    return Runs(np.array(values[:n_runs]), cpu / len(values))


@in_float64
def integrations(
    path: Path, kernel: Kernel, n_iter: int, n_rungs: tuple[int, ...], n_runs: int, key: Array
) -> dict[tuple[str, int], Runs]:
    """Runs of TI-standard and TI-optimal with each number of rungs, `n_iter` kept steps in all; by method and K."""
    groups = [(method, k) for method in (STANDARD, OPTIMAL) for k in n_rungs]
    ladders = [power(k) if method == STANDARD else k for method, k in groups for _ in range(n_runs)]
    keys = chain_keys(key, len(ladders))
    turn = 5 * n_iter // (4 * max(n_rungs))  # steps of a rung when there are most rungs
    segment = max(size for size in range(1, LONGEST + 1) if turn % size == 0)
    way = np.tile(power(50), (len(keys), 1))
    plan = Schedule(n_draws=APPROACH // 50, n_warm_up=0)
    _, last = anneal(path, kernel, way, jax.random.split(key, len(keys)), schedule=plan, segment=segment)  # compiles
    ends = begin(path, keys, np.array(0.0)), last
    began = time.process_time()
    traces = anneal_together(path, kernel, ladders, n_iter, keys, ends, segment)
    cpu = (time.process_time() - began) / len(keys)
    found = {}
    for i, (method, k) in enumerate(groups):
        estimator = trapezoid if method == STANDARD else corrected_trapezoid
        own = traces[i * n_runs : (i + 1) * n_runs]
        found[method, k] = Runs(np.array([estimator(trace) for trace in own]), cpu)
    return found


def neti_diff(
    problem: Problem, n_iter: int, n_runs: int, key: Any, ladder: str = "sigmoid", back: bool = False
) -> Rows:
    """Sweeps from M1 to M2, or back from M2 to M1 (the estimate is of M2 over M1 all the same)."""
    way = problem.swapped() if back else problem
    runs = sweeps(way.path(way.m1, way.m2), way.kernel(way.m1, way.m2), LADDERS[ladder](n_iter), n_runs, key)
    about = {"method": NETI_DIFF, "ladder": ladder, "start": "M2" if back else "M1", "rungs": n_iter, "n_iter": n_iter}
    cost = {"truth": problem.truth, "cpu": runs.cpu, "evaluations": 2 * (n_iter + WARM_UP)}
    return rows(-runs.values if back else runs.values, **about, **cost)


def two_legs(problem: Problem, n_iter: int, n_rungs: tuple[int, ...], n_runs: int, key: Any) -> Rows:
    """TI-standard and TI-optimal with each number of rungs: the log evidence of M2 minus that of M1."""
    legs = [
        integrations(
            problem.path(empty, m), problem.kernel(empty, m), n_iter, n_rungs, n_runs, jax.random.fold_in(key, leg)
        )
        for leg, (empty, m) in enumerate((without_data(m), m) for m in (problem.m1, problem.m2))
    ]
    found: Rows = []
    for method, k in legs[0]:
        one, two = (leg[method, k] for leg in legs)
        about = {"method": method, "ladder": "power" if method == STANDARD else "tangents", "start": "no data"}
        cost = {"truth": problem.truth, "cpu": one.cpu + two.cpu, "evaluations": 5 * n_iter // 2}
        found += rows(two.values - one.values, **about, rungs=k, n_iter=n_iter, **cost)
    return found


def default_method(problem: Problem, n_runs: int, seed: int, target_se: float, compiled: bool = False) -> Rows:
    """The default method, one seed after the other; unless `compiled`, a first run only compiles."""
    if not compiled:
        compare(problem.m1, problem.m2, target_se=target_se, seed=seed, route="path")
    found: Rows = []
    for run in range(n_runs):
        began = time.process_time()
        result = compare(problem.m1, problem.m2, target_se=target_se, seed=seed + run, route="path")
        about = {"method": AUTO, "truth": problem.truth, "cpu": time.process_time() - began, "run": run}
        answer = result.log_bayes_factor
        found.append({**about, "estimate": answer.value, "error": answer.error, "verdict": result.verdict})
    return found
