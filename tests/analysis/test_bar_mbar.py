"""BAR and MBAR against pymbar, and with ratios that are infinite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath
from assertions import assert_estimate, rng
from scipy.stats import norm, truncnorm

from crossfade.analysis.bennett import bar_difference
from crossfade.analysis.errors import jackknife
from crossfade.analysis.estimators import ESTIMATORS, bar, legal, mbar
from crossfade.types import CrossfadeError, Trace

# In a process of its own: pymbar prints a banner and flips JAX's global precision when imported.
ORACLE = """
import logging, sys
sys.modules["jax"] = None
logging.disable(logging.CRITICAL)
import numpy as np
import pymbar
del sys.modules["jax"]  # SciPy looks for it there
source, target = sys.argv[1:]
data, answer = np.load(source), {}
for case in sorted({key.split("_")[0] for key in data.files}):
    tau, ratio = data[case + "_tau"], data[case + "_ratio"]
    n = ratio.shape[1]
    solved = pymbar.MBAR(
        -np.outer(tau, ratio.ravel()),
        np.full(len(tau), n),
        relative_tolerance=1e-13,
        solver_protocol="robust",
    )
    answer[case + "_mbar"] = -solved.f_k
    answer[case + "_overlap"] = solved.compute_overlap()["matrix"]
    answer[case + "_bar"] = [
        -pymbar.bar(-d * a, d * b, compute_uncertainty=False, relative_tolerance=1e-14)["Delta_f"]
        for d, a, b in zip(np.diff(tau), ratio[:-1], ratio[1:])
    ]
forward, reverse = data["easy_ratio"][0], -data["easy_ratio"][1][:77]
unequal = pymbar.bar(-forward, -reverse, compute_uncertainty=False, relative_tolerance=1e-14)
answer["unequal"] = -unequal["Delta_f"]
np.savez(target, **answer)
"""

CASES = {
    "easy": GaussianPath().equilibrium(rng(200), np.linspace(0, 1, 7), 4, 300),
    "long": GaussianPath(m=6.0, s=0.2).equilibrium(rng(201), np.linspace(0, 1, 25) ** 2, 3, 200),
    "weak": GaussianPath(m=5.0, s=1.1).equilibrium(rng(202), np.linspace(0, 1, 4), 2, 500),
}


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    folder: Path = tmp_path_factory.mktemp("pymbar")
    arrays = {}
    for name, trace in CASES.items():
        arrays[f"{name}_tau"] = trace.tau
        arrays[f"{name}_ratio"] = np.moveaxis(trace.log_ratio, 1, 0).reshape(len(trace.tau), -1)
    np.savez(folder / "in.npz", **arrays)
    command = [sys.executable, "-c", ORACLE, str(folder / "in.npz"), str(folder / "out.npz")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return dict(np.load(folder / "out.npz"))


@pytest.mark.parametrize("case", CASES)
def test_bar_and_mbar_are_those_of_pymbar(case: str, oracle: dict[str, np.ndarray]) -> None:
    assert bar(CASES[case]) == pytest.approx(oracle[f"{case}_bar"].sum(), abs=1e-8)
    assert mbar(CASES[case]) == pytest.approx(oracle[f"{case}_mbar"][-1], abs=1e-8)


def test_bar_with_unequal_counts_is_that_of_pymbar(oracle: dict[str, np.ndarray]) -> None:
    tau, ratio = CASES["easy"].tau, np.moveaxis(CASES["easy"].log_ratio, 1, 0).reshape(7, -1)
    assert len(tau) == 7
    assert bar_difference(ratio[0], -ratio[1][:77]) == pytest.approx(float(oracle["unequal"]), abs=1e-8)


def test_two_rungs_make_mbar_bar() -> None:
    ends = GaussianPath(s=0.8, m=0.5).equilibrium(rng(203), np.array([0.0, 1.0]), 4, 500)
    assert mbar(ends) == pytest.approx(bar(ends), abs=1e-10)


def _uniforms(seed: int, n_chains: int, n_draws: int, tau: np.ndarray, log_c: float) -> Trace:
    """q_0 = 1 on (0, 1), q_1 = c on (0.5, 2): they overlap on (0.5, 1), where every rung between lives."""
    x = rng(seed).uniform(size=(n_chains, len(tau), n_draws))
    x = np.where((tau > 0)[:, None], 0.5 + x / 2, x)
    x[:, tau == 1] = 0.5 + 1.5 * (x[:, tau == 1] - 0.5) * 2
    ratio = np.where(x < 0.5, -np.inf, np.where(x > 1, np.inf, log_c))
    return Trace(tau, ratio, np.ones(x.shape[:2]), True)


@pytest.mark.parametrize("tau", [np.array([0.0, 1.0]), np.array([0, 0.2, 0.7, 1.0])])
@pytest.mark.parametrize("name", ["bar", "mbar"])
def test_infinite_ratios_have_a_closed_form(name: str, tau: np.ndarray) -> None:
    """All finite ratios are log c, so log Z_1/Z_0 = log c + log P_0(overlap) - log P_1(overlap)."""
    log_c = 1.3
    trace = _uniforms(204, 32, 200, tau, log_c)
    inside = np.isfinite(trace.log_ratio).mean(axis=(0, 2))
    assert ESTIMATORS[name].function(trace) == pytest.approx(log_c + np.log(inside[0] / inside[-1]), abs=1e-10)
    truth = log_c + np.log(1.5)
    assert_estimate(jackknife(trace, ESTIMATORS[name].function), truth, max_error=0.03)
    blind = trace._replace(log_ratio=np.full(trace.log_ratio.shape, log_c))  # twin: infinite draws read as finite
    with pytest.raises(AssertionError):
        assert_estimate(jackknife(blind, ESTIMATORS[name].function), truth, max_error=0.03)


def _truncated(seed: int, tau: np.ndarray, n_chains: int, n_draws: int) -> Trace:
    """q_0 = N(0, 1) below 1, q_1 = N(0.5, 1) above -1, both without their normalising constants."""
    x = np.empty((n_chains, len(tau), n_draws))
    for k, t in enumerate(tau):
        low, high = (-np.inf if t == 0 else -1.0), (np.inf if t == 1 else 1.0)
        mean, shape = t / 2, (n_chains, n_draws)
        x[:, k] = truncnorm.rvs(low - mean, high - mean, mean, 1, shape, random_state=rng(seed + k))
    ratio = x**2 / 2 - (x - 0.5) ** 2 / 2
    ratio = np.where(x < -1, -np.inf, np.where(x > 1, np.inf, ratio))
    return Trace(tau, ratio, np.ones(x.shape[:2]), True)


@pytest.mark.parametrize("name", ["bar", "mbar"])
def test_supports_that_overlap_in_part(name: str) -> None:
    truth = float(norm.logcdf(1.5) - norm.logcdf(1))
    trace = _truncated(210, np.array([0, 0.4, 1.0]), 32, 400)
    assert legal(trace) == ("bar", "mbar")
    assert_estimate(jackknife(trace, ESTIMATORS[name].function), truth, max_error=0.01)
    finite = trace._replace(log_ratio=np.nan_to_num(trace.log_ratio, posinf=0.5, neginf=-0.5))
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(jackknife(finite, ESTIMATORS[name].function), truth, max_error=0.01)


def test_ends_without_overlap_are_refused_unless_a_rung_joins_them() -> None:
    apart = Trace(
        np.array([0.0, 1.0]),
        np.stack([np.full((2, 5), -np.inf), np.full((2, 5), np.inf)], axis=1),
        np.ones((2, 2)),
        True,
    )
    for name in ("bar", "mbar"):
        with pytest.raises(CrossfadeError, match=r"between tau = 0 and 1: .*add rungs"):
            ESTIMATORS[name].function(apart)


def test_mbar_is_robust_where_ratios_are_huge_or_overlap_is_nil() -> None:
    generator = rng(205)
    tau = np.linspace(0, 1, 20) ** 5
    steep = -7e5 * generator.gamma(2, 1, size=(24, 20, 100)) / (1 + 7e5 * tau[:, None])
    trace = Trace(tau, steep, np.ones((24, 20)), True)  # Gamma(2, rate 1 + c tau): log Z = -2 log(1 + c tau)
    for name in ("bar", "mbar"):
        assert_estimate(jackknife(trace, ESTIMATORS[name].function), -2 * np.log1p(7e5), max_error=0.2)
    nil = GaussianPath(m=200.0, s=1.0).equilibrium(generator, np.linspace(0, 1, 3), 2, 100)
    assert mbar(nil) == pytest.approx(bar(nil))
