"""Integrals of many functions of one variable over the real line, whatever their place, width and tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import tanhsinh

N_NODES = 1024  # for finding where each function is high
REACH = 3.3  # of t: nodes out to 1e9 widths
BLOCK = 256  # arguments of each function that are evaluated at once: one compiled shape
N_LEVELS = 8  # each has twice the nodes of the last; a jump in a density then costs less than 0.005
N_VALUES = 5e6  # of all functions at the last level, for memory: SciPy needs about 100 bytes for each
TOLERANCE = 1e-6
NOTHING = -1e100  # the log of what adds nothing: SciPy 1.17 gives NaN for functions that are -inf on a whole side
EDGE = 0.02  # x f(x) / integral at the last node: that of a Cauchy is 1e-9, that of a constant about a half
SLOWEST = -1.02  # power of x of a tail that has an integral
NEARER = 8.0  # times nearer to the centre: where the tail is compared with the last node

LogFunctions = Callable[[np.ndarray], np.ndarray]  # [node, k] -> [node, k]: column j holds arguments of function j


def integrals(log_f: LogFunctions, centre: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logs of the integrals [k], how far they may be off, and which of them converge.

    SciPy's tanh-sinh rule on both sides of the top of each function, in units of its width.
    SciPy looks around 0, in units of 1: a first guess of centre and scale is moved to the top before. log_f is -inf
    where f is 0, and NaN beyond the numbers of a computer: a tail that is cut off there is told from one that ends.
    """
    n = len(centre)
    t = np.sinh(np.pi / 2 * np.sinh(np.linspace(-REACH, REACH, N_NODES)))[:, None]
    for _ in range(3):
        x = centre + scale * t
        found = _blocks(log_f, x)
        centre, scale = _top(x, _clean(found))

    def both_sides(z: np.ndarray) -> np.ndarray:  # [side, k] or [side, k, node]
        rows = np.moveaxis(z.reshape(2, n, -1), 1, 2).reshape(-1, n)
        there = _clean(_blocks(log_f, centre + scale * rows))
        return np.moveaxis(there.reshape(2, -1, n), 1, 2).reshape(z.shape)

    low, high = np.repeat([[-np.inf], [0.0]], n, axis=1), np.repeat([[0.0], [np.inf]], n, axis=1)
    levels = {"minlevel": 3, "maxlevel": int(np.clip(np.log2(N_VALUES / 16 / n), 4, N_LEVELS))}
    with np.errstate(all="ignore"):
        sides = tanhsinh(both_sides, low, high, log=True, rtol=np.log(TOLERANCE), preserve_shape=True, **levels)
        total = np.logaddexp(*sides.integral)
        error = np.exp(np.logaddexp(*sides.error) - total)
        log_value = total + np.log(scale)
        return log_value, error, ~_diverges(log_f, x, found, centre, log_value)


def _blocks(log_f: LogFunctions, x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, [(0, -len(x) % BLOCK), (0, 0)], mode="edge")
    return np.concatenate([log_f(part) for part in np.split(padded, len(padded) // BLOCK)])[: len(x)]


def _clean(log_value: np.ndarray) -> np.ndarray:
    """Where the arguments run out of the numbers of a computer there is nothing to add."""
    return np.where(np.isfinite(log_value), log_value, NOTHING)


def _top(x: np.ndarray, log_value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each function is highest, and how wide it is there."""
    columns = np.arange(x.shape[1])
    top = np.argmax(log_value, axis=0)
    high = log_value >= log_value[top, columns] - 2
    width = np.where(high, x, -np.inf).max(axis=0) - np.where(high, x, np.inf).min(axis=0)
    inner = np.clip(top, 1, len(x) - 2)
    spacing = (x[inner + 1, columns] - x[inner - 1, columns]) / 2
    return x[top, columns], np.clip(np.maximum(width / 2, spacing), 1e-12, 1e12)


def _diverges(
    log_f: LogFunctions, x: np.ndarray, log_value: np.ndarray, centre: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """Whether a tail, at the last argument where log f is a number, is still heavy or falls too slowly."""
    number = ~(np.isnan(log_value) | np.isposinf(log_value))
    ends = np.stack([np.argmax(number, axis=0), len(x) - 1 - np.argmax(number[::-1], axis=0)])
    columns = np.arange(x.shape[1])
    away, last = x[ends, columns] - centre, log_value[ends, columns]
    fall = last - _blocks(log_f, centre + away / NEARER)
    heavy = last + np.log(np.abs(away)) - total > np.log(EDGE)
    return np.any(heavy | (fall > SLOWEST * np.log(NEARER)), axis=0)
