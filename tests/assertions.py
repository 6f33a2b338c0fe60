"""What every statistical test asserts, and where its random numbers come from."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from crossfade.analysis.errors import of_both_sides, replicates
from crossfade.types import Estimate, Trace


def assert_estimate(estimate: Estimate, truth: float, n_sigma: float = 4.0, *, max_error: float) -> None:
    """The estimate is within n_sigma errors of the truth, and its error is below the ceiling."""
    value, error = float(estimate.value), float(estimate.error)
    assert np.isfinite(value), f"{estimate}: the value is not finite"
    assert np.isfinite(error) and error >= 0, f"{estimate}: the error is not finite, or negative"
    assert error <= max_error, f"{estimate}: the error is above its ceiling {max_error:g}"
    distance = abs(value - truth)
    # 1e-12 lets an estimator without variance differ from the truth by rounding
    assert distance <= n_sigma * error + 1e-12, (
        f"{estimate}: {distance:.3g} from the truth {truth:.6g}, {distance / max(error, 1e-300):.1f} sigma"
    )


def jackknife_pair(forward: Trace, reverse: Trace, estimator: Callable[[Trace, Trace], float]) -> Estimate:
    """Delete one chain of either side: the variances add."""
    return of_both_sides(
        replicates(forward, lambda part: estimator(part, reverse)),
        replicates(reverse, lambda part: estimator(forward, part)),
    )


def rng(offset: int) -> np.random.Generator:
    """A fixed stream per offset; CROSSFADE_TEST_SEED re-runs the suite on other streams."""
    return np.random.default_rng([int(os.environ.get("CROSSFADE_TEST_SEED", "0")), offset])
