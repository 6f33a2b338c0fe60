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

from crossfade.api import compare
from crossfade.density.model import Model, without_data
from crossfade.papers.jobs import Rows
from crossfade.papers.runs import WARM_UP, integrations, sweeps
from crossfade.paths.path import Path, direct
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import power, sigmoid

LADDERS = {"sigmoid": sigmoid, "power": power}
NETI_DIFF, AUTO = "NETI-DIFF", "auto"


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
        about = {"method": method, "ladder": "power" if method == "TI-standard" else "tangents", "start": "no data"}
        cost = {"truth": problem.truth, "cpu": one.cpu + two.cpu, "evaluations": 5 * n_iter // 2}
        found += rows(two.values - one.values, **about, rungs=k, n_iter=n_iter, **cost)
    return found


def default_method(problem: Problem, n_runs: int, seed: int, target_se: float, compiled: bool = False) -> Rows:
    """The default method, one seed after the other; unless `compiled`, a first run only compiles."""
    if not compiled:
        compare(problem.m1, problem.m2, target_se=target_se, seed=seed)
    found: Rows = []
    for run in range(n_runs):
        began = time.process_time()
        result = compare(problem.m1, problem.m2, target_se=target_se, seed=seed + run)
        about = {"method": AUTO, "truth": problem.truth, "cpu": time.process_time() - began, "run": run}
        answer = result.log_bayes_factor
        found.append({**about, "estimate": answer.value, "error": answer.error, "verdict": result.verdict})
    return found
