"""Standard errors: from replicate chains, from within chains, and of combinations of estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crossfade.analysis.estimators import estimator as estimator_of
from crossfade.types import CrossfadeError, Estimate, Float, Trace


class Replicates(NamedTuple):
    """An estimate from all chains, and from all but each group of them: errors and differences follow from these.

    Where the chains are in strata (halves that play different parts), a group leaves its own stratum only, and the
    variances of the strata add.
    """

    value: float
    left_out: Float[np.ndarray, " group"]
    n_strata: int = 1  # of equally many groups each, one after the other

    @property
    def variance(self) -> float:
        return float(variance_of(self.left_out.ravel(), self.n_strata))

    def minus(self, other: Replicates) -> Replicates:
        return Replicates(self.value - other.value, self.left_out - other.left_out, self.n_strata)

    def estimate(self, name: str = "") -> Estimate:
        return Estimate(
            float(self.value), float(np.sqrt(self.variance)), float(len(self.left_out) - self.n_strata), name
        )


def variance_of(left_out: np.ndarray, n_strata: int = 1) -> np.ndarray:
    """Of every number in left_out [group, ...]: over strata, sum (n - 1)/n sum_i (x_i - mean x)^2, n groups in each.

    The jackknife of Efron & Stein (1981).
    """
    strata = left_out.reshape(n_strata, -1, *left_out.shape[1:])
    return np.asarray((strata.shape[1] - 1) * strata.var(axis=1).sum(axis=0))


def replicates(trace: Trace, estimator: Callable[[Trace], float]) -> Replicates:
    """The estimator on all chains and with each chain deleted."""
    if trace.n_chains < 2:
        raise CrossfadeError("a jackknife over chains needs 2 chains or more: run more, or use within_chain")
    return Replicates(float(estimator(trace)), np.array([estimator(part) for part in trace.left_out()]))


def replicates_of(trace: Trace, name: str) -> Replicates:
    """The same for an estimator of the table, by its short cut where it has one."""
    own = estimator_of(name)
    prepared = own.prepare(trace)
    if own.left_out is None or trace.n_chains < 2:
        return replicates(prepared, own.function)
    return Replicates(*own.left_out(prepared))


def jackknife(trace: Trace, estimator: Callable[[Trace], float], name: str = "") -> Estimate:
    """Delete one chain at a time: the standard error over independent chains, dof = n - 1."""
    return replicates(trace, estimator).estimate(name)


def of_both_sides(forward: Replicates, reverse: Replicates, name: str = "") -> Estimate:
    """One estimate that was jackknifed over the chains of two independent runs."""
    sides = (forward, reverse)
    variances = [side.variance for side in sides]
    dof = satterthwaite(variances, [len(side.left_out) - 1 for side in sides])
    return Estimate(forward.value, float(np.sqrt(sum(variances))), dof, name)


def paper_variance(trace: Trace) -> np.ndarray:
    """The paper's variance of a single sweep, per chain: sum (r_{k+1} - r_k)(tau_{k+1} - tau_k) (eq. varEmp).

    A diagnostic, not an error bar: it takes the draws for independent. It is 26 times too small on Pima with
    Metropolis moves, rests on two draws on a linear ladder, and may be negative. Use `jackknife`.
    """
    if trace.equilibrium or trace.n_draws != 1:
        raise CrossfadeError("paper_variance is for sweeps of N x 1 draws: use jackknife or within_chain")
    return np.diff(trace.log_ratio[:, :, 0], axis=1) @ np.diff(trace.tau)


def combine(terms: Sequence[tuple[float, Estimate]], name: str = "") -> Estimate:
    """Weighted sum of independent estimates: sum s_i x_i, error^2 = sum s_i^2 error_i^2, dof by Satterthwaite."""
    variances = [(factor * estimate.error) ** 2 for factor, estimate in terms]
    return Estimate(
        float(sum(sign * estimate.value for sign, estimate in terms)),
        float(np.sqrt(sum(variances))),
        satterthwaite(variances, [estimate.dof for _, estimate in terms]),
        name,
    )


def satterthwaite(variances: Sequence[float] | np.ndarray, dofs: Sequence[float]) -> float:
    """Degrees of freedom of a sum of variance estimates: (sum v)^2 / sum(v^2 / dof) (Satterthwaite 1946)."""
    share = np.asarray(variances) / max(np.sum(variances), np.finfo(float).tiny)
    spread = float(np.sum(share**2 / np.asarray(dofs, dtype=float)))
    return 1 / spread if spread > 0 else float(np.sum(dofs))
