"""Integrals of many functions of one variable over the real line, whatever their place, width and tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

N_NODES = 1024
REACH = 3.3  # of t: nodes out to 1e9 widths
N_DOUBLINGS = 4
CONVERGED = 1e-5
EDGE = 0.02  # x f(x) / integral at the last node: that of a Cauchy is 1e-9, that of a constant about a half

LogFunctions = Callable[[np.ndarray], np.ndarray]  # [node, k] -> [node, k]: column j holds arguments of function j


class Integrals(NamedTuple):
    """Logs of the integrals [k], and which of them converge."""

    log_value: np.ndarray
    converges: np.ndarray


def integrals(log_f: LogFunctions, centre: np.ndarray, scale: np.ndarray) -> Integrals:
    """The trapezoid rule in t, x = centre + scale sinh(pi/2 sinh t) (Takahasi & Mori 1974): heavy tails are no trouble.

    A first guess of centre and scale is moved to the top of each function, so that narrow ones are not missed.
    """
    t, h = np.linspace(-REACH, REACH, N_NODES, retstep=True)
    for _ in range(3):
        x = centre + scale * _sinh_sinh(t)[:, None]
        centre, scale = _top(x, _clean(log_f(x)))
    log_value, edge = _sum(log_f, t, h, centre, scale)
    for _ in range(N_DOUBLINGS):
        between = t + h / 2  # as many, so that every evaluation has one shape
        middle, _ = _sum(log_f, between, h, centre, scale)
        better = np.logaddexp(log_value, middle) - np.log(2)
        done = np.all(np.abs(better - log_value) < CONVERGED)
        log_value, t, h = better, np.sort(np.concatenate([t, between])), h / 2
        if done:
            break
    return Integrals(log_value, edge - log_value < np.log(EDGE))


def _sinh_sinh(t: np.ndarray) -> np.ndarray:
    return np.sinh(np.pi / 2 * np.sinh(t))


def _sum(
    log_f: LogFunctions, t: np.ndarray, h: float, centre: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log of the sum, and log of |x - centre| f(x) at the outermost nodes where f is not 0."""
    x = centre + scale * _sinh_sinh(t)[:, None]
    log_value = np.concatenate([_clean(log_f(part)) for part in np.array_split(x, -(-len(x) // N_NODES))])
    log_weight = np.log(np.pi / 2 * np.cosh(t) * np.cosh(np.pi / 2 * np.sinh(t)))[:, None] + np.log(scale) + np.log(h)
    there = np.isfinite(log_value)
    columns = np.arange(x.shape[1])
    ends = [np.argmax(there, axis=0), len(x) - 1 - np.argmax(there[::-1], axis=0)]
    with np.errstate(divide="ignore"):
        edge = np.max([log_value[i, columns] + np.log(np.abs(x[i, columns] - centre)) for i in ends], axis=0)
    return logsumexp(log_value + log_weight, axis=0), edge


def _clean(log_value: np.ndarray) -> np.ndarray:
    """Where the arguments run out of the numbers of a computer there is nothing to add."""
    return np.where(np.isfinite(log_value), log_value, -np.inf)


def _top(x: np.ndarray, log_value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each function is highest, and how wide it is there."""
    columns = np.arange(x.shape[1])
    top = np.argmax(log_value, axis=0)
    high = log_value >= log_value[top, columns] - 2
    width = np.where(high, x, -np.inf).max(axis=0) - np.where(high, x, np.inf).min(axis=0)
    inner = np.clip(top, 1, len(x) - 2)
    spacing = (x[inner + 1, columns] - x[inner - 1, columns]) / 2
    return x[top, columns], np.clip(np.maximum(width / 2, spacing), 1e-12, 1e12)
