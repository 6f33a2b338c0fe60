"""Diagnostics: quiet on good runs, loud on bad ones."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import rng

from crossfade.analysis.diagnostics import acceptance_by_tau, partial_integrals, weakest_overlap
from crossfade.analysis.estimators import trapezoid
from crossfade.types import Trace

PATH = GaussianPath()


def test_partial_integrals_end_in_the_trapezoid() -> None:
    trace = PATH.equilibrium(rng(600), np.linspace(0, 1, 40), 6, 2000)
    partial = partial_integrals(trace)
    assert partial.shape == (6, 40)
    assert (partial[:, 0] == 0).all()
    assert partial[:, -1].mean() == pytest.approx(trapezoid(trace))
    error = partial.std(axis=0, ddof=1) / np.sqrt(6) + 0.01  # 0.01: discretisation
    assert (np.abs(partial.mean(axis=0) - PATH.log_z(trace.tau)) < 5 * error).all()


def test_acceptance_in_bins_of_equal_numbers_of_rungs() -> None:
    tau = np.linspace(0, 1, 100) ** 3
    trace = Trace(tau, np.zeros((2, 100, 1)), np.stack([tau, tau + 0.2]), False)
    centres, accepted = acceptance_by_tau(trace, n_bins=10)
    np.testing.assert_allclose(centres, tau.reshape(10, 10).mean(axis=1))
    np.testing.assert_allclose(accepted, centres + 0.1)
    assert len(acceptance_by_tau(trace)[0]) == 20
    few = Trace(tau[:3], np.zeros((2, 3, 1)), np.ones((2, 3)), True)
    np.testing.assert_array_equal(acceptance_by_tau(few)[0], tau[:3])


def test_the_weakest_overlap_finds_the_gap() -> None:
    tau = np.array([0.0, 0.02, 0.05, 0.8, 0.9, 1.0])
    worst, low, high = weakest_overlap(GaussianPath(m=6.0, s=0.5).equilibrium(rng(603), tau, 4, 500))
    assert (low, high) == (0.05, 0.8)
    assert worst < 0.03
    assert weakest_overlap(PATH.equilibrium(rng(604), np.linspace(0, 1, 8), 4, 500))[0] > 0.05
