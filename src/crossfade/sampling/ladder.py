"""Ladders: vectors of tau from 0 to 1, and the two ways of placing them by measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crossfade.types import Array, CrossfadeError

LadderFn = Callable[[int], np.ndarray]


def _at_least_2(n_rungs: int) -> None:
    if n_rungs < 2:
        raise CrossfadeError(f"a ladder needs at least 2 rungs, got {n_rungs}")


def linear(n_rungs: int) -> np.ndarray:
    """tau_k = (k - 1) / (K - 1)."""
    _at_least_2(n_rungs)
    return np.linspace(0.0, 1.0, n_rungs)


def power(n_rungs: int, alpha: float = 5.0) -> np.ndarray:
    """tau_k = ((k - 1) / (K - 1))^alpha (Friel & Pettitt 2008)."""
    return linear(n_rungs) ** alpha


def sigmoid(n_rungs: int, alpha: float = 5.0) -> np.ndarray:
    """tau_i = (i / N*)^alpha up to 1/2, mirrored, with both ends added; N* = floor(x*) + 1.

    The paper's N* = floor(x*) steps over 1/2 and back, and its ladder lacks 0 and 1; odd n has its middle at 1/2.
    """
    _at_least_2(n_rungs)
    n_half = (n_rungs - 2) // 2
    n_star = np.floor(n_half * 0.5 ** (-1 / alpha)) + 1
    half = (np.arange(1, n_half + 1) / n_star) ** alpha
    return np.concatenate([[0.0], half, [0.5] if n_rungs % 2 else [], 1 - half[::-1], [1.0]])


class Rung(NamedTuple):
    """Mean and variance of log_ratio at one tau; or at many of them, of many runs: arrays [..., rung]."""

    tau: Array
    mean: Array
    variance: Array

    def at(self, index: Array) -> Rung:
        """Of every run the rungs with these indices."""
        return Rung(*(np.take_along_axis(values, index, axis=-1) for values in self))

    def in_order(self) -> Rung:
        """By tau; rungs that are not placed yet (NaN) come last."""
        return self.at(np.argsort(self.tau, axis=-1, kind="stable"))


Uncertainty = Callable[[Rung, Rung], Array]


def rectangle(a: Rung, b: Rung) -> Array:
    """Half the width of the bound on the interval's integral: (t_b - t_a)(f_b - f_a) / 2."""
    return (b.tau - a.tau) * (b.mean - a.mean) / 2


def triangle(a: Rung, b: Rung) -> Array:
    """Area between the chord and the two tangents: D^2 (V_a - s)(s - V_b) / (2 (V_a - V_b))."""
    width = b.tau - a.tau
    slope = (b.mean - a.mean) / width
    curve = a.variance - b.variance
    area = width**2 * (a.variance - slope) * (slope - b.variance) / (2 * np.where(curve == 0, 1.0, curve))
    return np.where(curve == 0, 0.0, np.abs(area))


def tangents_meet(a: Rung, b: Rung) -> Array:
    """t = (f_b - f_a + t_a V_a - t_b V_b) / (V_a - V_b), or the midpoint if that is not strictly inside."""
    curve = a.variance - b.variance
    slope = (b.mean - a.mean) / (b.tau - a.tau)
    tau = a.tau + (b.tau - a.tau) * (slope - b.variance) / np.where(curve == 0, 1.0, curve)
    return np.where((curve != 0) & (a.tau < tau) & (tau < b.tau), tau, (a.tau + b.tau) / 2)


def next_by_tangents(rungs: Rung, uncertainty: Uncertainty = rectangle) -> Array:
    """Where every run's next rung goes: its most uncertain interval is split where the tangents meet.

    Rungs [..., rung] are in any order, and NaN where there are none yet: runs may have different numbers of them.
    """
    with np.errstate(invalid="ignore", divide="ignore"):  # a mean of -inf at tau = 0 is legitimate
        rungs = rungs.in_order()
        n_intervals = rungs.tau.shape[-1] - 1
        a, b = (Rung(*(values[..., i : i + n_intervals] for values in rungs)) for i in (0, 1))
        width = uncertainty(a, b)
        widest = np.argmax(np.where(np.isnan(width), -np.inf, width), axis=-1)[..., None]
        return tangents_meet(a.at(widest), b.at(widest))[..., 0][()]  # of a single run a number


def place_by_tangents(measure: Callable[[Array], Rung], n_rungs: int, uncertainty: Uncertainty = rectangle) -> Rung:
    """TI-optimal (Friel, Hurn & Wyse 2014): the ends, then K - 2 times the most uncertain interval is split.

    `measure` is given a tau for every run (or just one), and so are all the rungs in order that are returned.
    """
    _at_least_2(n_rungs)
    found = [measure(tau) for tau in (0.0, 1.0)]
    while len(found) < n_rungs:
        found.append(measure(next_by_tangents(_stacked(found), uncertainty)))
    return _stacked(found).in_order()


def _stacked(rungs: list[Rung]) -> Rung:
    return Rung(*(np.stack(np.broadcast_arrays(*values), axis=-1) for values in zip(*rungs, strict=True)))


def equal_length(tau: np.ndarray, variance: np.ndarray) -> LadderFn:
    """Rungs at equal steps of the measured length, the integral of sqrt(V); sqrt(V) is log-linear between rungs."""
    tau, speed = np.asarray(tau, float), np.sqrt(np.asarray(variance, float))
    keep = np.concatenate([[True], np.diff(tau) > 0])  # the top of a sigmoid ladder repeats 1.0
    tau, speed = tau[keep], speed[keep]
    if not (np.all(np.isfinite(speed)) and np.all(speed > 0)):
        raise CrossfadeError("equal_length needs a positive finite variance at every pilot rung: run a longer pilot")
    rate = np.diff(np.log(speed)) / np.diff(tau)
    # Integral of exp(log-linear) over [0, x] from a rung: s (e^{rx} - 1)/r, which tends to s x as r -> 0.
    flat = np.abs(rate * np.diff(tau)) < 1e-9
    rate = np.where(flat, 1.0, rate)
    length = np.where(flat, speed[:-1] * np.diff(tau), np.diff(speed) / rate)
    reached = np.concatenate([[0.0], np.cumsum(length)])

    def ladder(n_rungs: int) -> np.ndarray:
        _at_least_2(n_rungs)
        wanted = np.linspace(0.0, reached[-1], n_rungs)
        k = np.clip(np.searchsorted(reached, wanted, side="right") - 1, 0, len(length) - 1)
        rest = wanted - reached[k]
        inner = np.where(flat[k], rest / speed[k], np.log1p(rest * rate[k] / speed[k]) / rate[k])
        out = np.clip(tau[k] + inner, tau[k], tau[k + 1])
        out[0], out[-1] = 0.0, 1.0
        return out

    return ladder
