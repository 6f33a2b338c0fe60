"""The clock without noise: the same rates as a differential equation, for peaks and periods that are published."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.integrate import solve_ivp

from crossfade.papers.circadian.design import Condition, day
from crossfade.papers.circadian.reactions import CHANGES, PUBLISHED_START, SPECIES, SWITCHES, Rates, rates


def drift(x: np.ndarray, brightness: float, all_rates: Rates) -> np.ndarray:
    """dx/dt: what every reaction changes, times its rate."""
    return CHANGES @ all_rates(x, brightness)


def solve(
    times: np.ndarray,
    condition: Condition,
    values: Mapping[str, float],
    *,
    start: Mapping[str, float] = PUBLISHED_START,
    tolerance: float = 1e-8,
) -> dict[str, np.ndarray]:
    """Concentrations at the times, by species."""
    times = np.asarray(times, float)
    all_rates = rates(SWITCHES | {f"tx_{gene}": 0.0 for gene in condition.knocked_out} | dict(values))
    state = np.array([start[species] for species in SPECIES], float)
    parts, last = [], float(times[-1])
    # The light jumps where the entrainment ends, and a solver of high order must not step over that.
    middle = min(condition.until, last)
    for begin, end, now in ((0.0, middle, Condition()), (middle, last, condition)):
        if begin == end:
            continue
        inside = times[(times >= begin) & ((times < end) | (end == last))]
        solution = solve_ivp(
            lambda t, x, now=now: drift(x, day(t, now.dusk), all_rates),
            (begin, end),
            state,
            method="LSODA",
            t_eval=np.union1d(inside, end),
            rtol=tolerance,
            atol=tolerance / 100,
            max_step=0.5,  # of the order of the twilight, which would else be missed
        )
        parts.append(solution.y[:, : len(inside)])
        state = solution.y[:, -1]
    return dict(zip(SPECIES, np.concatenate(parts, axis=1), strict=True))


def peaks(x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The times of the maxima inside the series, by a parabola through three points."""
    inner = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:])) + 1
    left, right = x[inner] - x[inner - 1], x[inner] - x[inner + 1]
    return times[inner] + (left - right) / (left + right) / 2 * (times[1] - times[0])
