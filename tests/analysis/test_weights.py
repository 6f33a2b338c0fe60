"""Importance weights whose tails are known."""

from __future__ import annotations

import numpy as np
import pytest
from assertions import assert_estimate, rng

from crossfade.analysis.weights import PARETO_K, pareto_k, weight_share
from crossfade.types import Estimate


@pytest.mark.parametrize("shape", [0.2, 0.4])
def test_pareto_k_is_the_shape_of_the_tail(shape: float) -> None:
    """exp(shape E), E exponential, has a Pareto tail of that shape."""
    found = [pareto_k(shape * rng(800 + i).exponential(size=4000)) for i in range(30)]
    estimate = Estimate(float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(30)), 29)
    assert_estimate(estimate, shape, max_error=0.03)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(estimate, shape + 0.15, max_error=0.03)


def test_weights_without_a_variance_are_above_the_bound() -> None:
    assert max(pareto_k(0.4 * rng(840 + i).exponential(size=4000)) for i in range(30)) < PARETO_K
    assert min(pareto_k(1.1 * rng(840 + i).exponential(size=4000)) for i in range(30)) > PARETO_K


def test_weights_without_a_tail() -> None:
    random = rng(830)
    assert pareto_k(-random.exponential(size=4000)) < 0  # bounded weights: the sign of the convention
    assert pareto_k(np.zeros(1000)) == -np.inf
    assert pareto_k(np.append(random.normal(size=50), -np.inf)) == -np.inf  # too few to tell
    impossible = np.concatenate([0.3 * random.exponential(size=4000), np.full(500, -np.inf)])
    assert 0 < pareto_k(impossible) < PARETO_K
    lonely = np.full(1000, -800.0)
    lonely[:3] = 0.0
    assert pareto_k(lonely + 1e-3 * random.normal(size=1000)) == np.inf


def test_the_share_of_weights_that_count() -> None:
    assert weight_share(np.full(10, 700.0)) == pytest.approx(1.0)
    assert weight_share(np.log([1.0, 2.0, 3.0])) == pytest.approx(36 / (3 * 14))
    assert weight_share(np.array([0.0, -1e4, -1e4, -1e4])) == pytest.approx(0.25)
