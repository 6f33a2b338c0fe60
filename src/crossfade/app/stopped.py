"""Runs that were stopped, or that ended without an answer."""

from __future__ import annotations

import math
from typing import Any

from crossfade.types import DO_NOT_USE, Estimate, Leg, Result, Sharing


def unanswered(legs: tuple[Leg, ...], about: dict[str, Any], reason: str) -> Result:
    """Traces, and no answer."""
    none = Estimate(math.nan, math.nan, math.nan, "none")
    return Result(none, DO_NOT_USE, (reason,), {}, {}, {}, legs, Sharing((), (), ()), about)


def kept(stop: KeyboardInterrupt) -> str:
    trace = getattr(stop, "trace", None)
    if trace is None or len(trace.tau) == 0:
        return str(stop) or "Nothing was finished, nothing was stored."
    return (
        f"{trace.n_chains} chains had finished {len(trace.tau):,} rungs of a path, up to tau = "
        f"{trace.tau[-1]:.3g}. Give --out to keep such a run, or try a smaller --n-iter."
    )
