"""Which estimators may read which traces, and what a refusal says."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.gaussian_path import GaussianPath, sweep_of_works
from assertions import rng

from crossfade.analysis.estimators import ESTIMATORS, crooks, jarzynski, legal, stepping_stone, trapezoid, work
from crossfade.types import CrossfadeError, Trace

PATH, TAU = GaussianPath(), np.array([0.0, 0.25, 0.5, 1.0])
EQUILIBRIUM = ("trapezoid", "corrected_trapezoid", "stepping_stone", "bar", "mbar")
SWEEP = ("trapezoid", "jarzynski")


def draws() -> Trace:
    return PATH.equilibrium(rng(400), TAU, 2, 10)


def sweeps() -> Trace:
    return PATH.sweep(rng(401), TAU, 5, 0.5)


def spoilt(trace: Trace, rung: int, value: float) -> Trace:
    ratio = trace.log_ratio.copy()
    ratio[0, rung, 0] = value
    return trace._replace(log_ratio=ratio)


def test_legal_names() -> None:
    assert legal(draws()) == EQUILIBRIUM
    assert legal(sweeps()) == SWEEP
    assert legal(draws().take(chains=slice(0, 1), draws=slice(0, 1))) == ("trapezoid",)
    assert legal(spoilt(draws(), 0, -np.inf)) == ("stepping_stone", "bar", "mbar")
    assert legal(spoilt(draws(), 3, np.inf)) == ("bar", "mbar")
    assert legal(spoilt(sweeps(), 0, -np.inf)) == ("jarzynski",)
    assert legal(spoilt(draws(), 0, np.nan)) == ()
    assert legal(draws()._replace(tau=TAU / 2)) == ()


def read(name: str, trace: Trace) -> float:
    """As a run reads it; what reads both ways is given the same trace twice, as only its refusals are looked at."""
    own = ESTIMATORS[name]
    return own.function(trace, trace) if own.one_way else own.function(own.prepare(trace))


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "crooks"])
def test_legal_estimators_run_and_illegal_ones_name_the_legal(name: str) -> None:
    for trace, names in ((draws(), EQUILIBRIUM), (sweeps(), SWEEP)):
        if name in names:
            assert np.isfinite(read(name, trace))
        elif name == "controlled" and trace.equilibrium:
            with pytest.raises(CrossfadeError, match="need 6 draws in half of the chains"):  # as it is, it would do
                read(name, trace.take(draws=slice(0, 2)))
        else:
            names_them = f"{name}: needs .*legal on this trace: {', '.join(names)}"
            with pytest.raises(CrossfadeError, match=names_them):
                read(name, trace)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_ladders_that_are_not_whole_are_refused(name: str) -> None:
    trace = sweeps() if name in ("jarzynski", "crooks") else draws()
    stopped = trace._replace(tau=TAU[:3], log_ratio=trace.log_ratio[:, :3])
    with pytest.raises(CrossfadeError, match=r"from tau = 0 to 0\.5, not 0 to 1: finish the interrupted run"):
        read(name, stopped)
    with pytest.raises(CrossfadeError, match=r"from tau = 0\.25 to 1"):
        read(name, trace._replace(tau=TAU[1:], log_ratio=trace.log_ratio[:, 1:]))
    for bad in (TAU[[0, 2, 1, 3]], np.array([0, np.nan, 0.5, 1])):
        with pytest.raises(CrossfadeError, match="tau is NaN or decreases"):
            read(name, trace._replace(tau=bad))
    with pytest.raises(CrossfadeError, match=r"log_ratio is NaN at tau = 0\.5"):
        read(name, spoilt(trace, 2, np.nan))


@pytest.mark.parametrize("name", ["trapezoid", "corrected_trapezoid"])
def test_trapezoids_refuse_infinite_ratios(name: str) -> None:
    with pytest.raises(CrossfadeError, match=r"not finite at tau = 1.*use 'bar' or 'mbar'.*legal.*: bar, mbar"):
        ESTIMATORS[name].function(spoilt(draws(), 3, np.inf))


def test_one_draw_per_rung_is_too_few() -> None:
    with pytest.raises(CrossfadeError, match="at least 2 draws per rung"):
        ESTIMATORS["corrected_trapezoid"].function(draws().take(chains=slice(0, 1), draws=slice(0, 1)))


@pytest.mark.parametrize(("rung", "value"), [(1, -np.inf), (3, -np.inf), (0, np.inf), (2, np.inf)])
def test_a_draw_that_its_own_density_forbids_is_refused(rung: int, value: float) -> None:
    for name in EQUILIBRIUM:
        with pytest.raises(CrossfadeError, match=f"at tau = {TAU[rung]:g} has density zero there"):
            ESTIMATORS[name].function(spoilt(draws(), rung, value))


def test_one_sided_estimators_see_zero_weights_but_not_lost_mass() -> None:
    some = spoilt(draws(), 0, -np.inf)
    weights = np.exp(0.25 * some.log_ratio[:, 0])
    rest = np.exp(np.diff(TAU)[1:, None] * np.moveaxis(some.log_ratio, 1, 0)[1:3].reshape(2, -1)).mean(axis=1)
    assert stepping_stone(some) == pytest.approx(np.log(weights.mean()) + np.log(rest).sum())
    with pytest.raises(CrossfadeError, match="impossible at tau = 0, unseen from there: use 'bar'"):
        stepping_stone(spoilt(draws(), 3, np.inf))
    with pytest.raises(CrossfadeError, match=r"impossible at tau = 0.*'crooks'"):
        jarzynski(spoilt(sweeps(), 3, np.inf))
    works = np.array([0.3, -np.inf, 1.0])
    assert jarzynski(sweep_of_works(works)) == pytest.approx(np.log(np.exp(works).mean()))
    with pytest.raises(CrossfadeError, match="every sweep has weight zero"):
        jarzynski(sweep_of_works(np.full(3, -np.inf)))
    none = draws()._replace(log_ratio=np.where(TAU[:, None] == 0, -np.inf, draws().log_ratio))
    with pytest.raises(CrossfadeError, match="no draw at tau = 0 is possible at the next rung"):
        stepping_stone(none)


def test_crooks_and_work() -> None:
    forward, reverse = sweeps(), PATH.reverse_sweep(rng(402), TAU, 3, 0.5)
    assert np.isfinite(crooks(forward, reverse))
    assert np.isfinite(crooks(spoilt(forward, 3, np.inf), reverse))  # the last draw is no part of the work
    with pytest.raises(CrossfadeError, match="mirrored ladder"):
        crooks(forward, reverse._replace(tau=forward.tau))
    with pytest.raises(CrossfadeError, match="mirrored ladder"):
        crooks(forward, PATH.reverse_sweep(rng(403), np.linspace(0, 1, 9), 3, 0.5))
    with pytest.raises(CrossfadeError, match=r"work: needs sweeps of N x 1 .*legal on this trace: trapezoid, c"):
        work(draws())
    with pytest.raises(CrossfadeError, match=r"a work is NaN or \+inf"):
        crooks(spoilt(forward, 0, np.inf), reverse)
    flat = sweeps()._replace(tau=np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite(work(spoilt(flat, 0, -np.inf))).all()  # a step of 0 costs nothing


def test_a_sweep_of_one_chain_has_a_trapezoid() -> None:
    assert np.isfinite(trapezoid(sweeps().take(chains=slice(0, 1))))
