"""The assertion itself: what it must let pass and what it must not."""

from __future__ import annotations

import numpy as np
import pytest
from assertions import assert_estimate, rng

from crossfade.types import Estimate


def test_it_accepts_an_estimate_within_its_errors() -> None:
    assert_estimate(Estimate(1.3, 0.1, 9), 1.0, max_error=0.2)
    assert_estimate(Estimate(1.0 + 1e-13, 0.0, 9), 1.0, max_error=0.2)


@pytest.mark.parametrize(
    "estimate",
    [
        Estimate(1.5, 0.1, 9),  # five sigma away
        Estimate(1.0, 0.3, 9),  # an error above the ceiling
        Estimate(np.nan, 0.1, 9),
        Estimate(1.0, np.nan, 9),
        Estimate(1.0, np.inf, 9),
        Estimate(1.0, -0.1, 9),
        Estimate(1.0 + 1e-9, 0.0, 9),
    ],
)
def test_it_rejects(estimate: Estimate) -> None:
    with pytest.raises(AssertionError):
        assert_estimate(estimate, 1.0, max_error=0.2)


def test_streams_are_fixed_and_the_environment_moves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rng(1).normal()
    assert first == rng(1).normal() != rng(2).normal()
    monkeypatch.setenv("CROSSFADE_TEST_SEED", "12345")
    assert rng(1).normal() != first
