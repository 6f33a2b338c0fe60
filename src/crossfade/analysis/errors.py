"""Standard errors: from replicate chains, from within chains, and of combinations of estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crossfade.analysis.estimators import estimator as estimator_of
from crossfade.types import CrossfadeError, Estimate, Trace


class Replicates(NamedTuple):
    """An estimate from all chains, and from all but each group of them: errors and differences follow from these.

    Where the chains are in strata (halves that play different parts), a group leaves its own stratum only, and the
    variances of the strata add.
    """

    value: float
    left_out: np.ndarray  # [group]
    n_strata: int = 1  # of equally many groups each, one after the other

    @property
    def variance(self) -> float:
        """Sum over strata of (n - 1)/n sum_i (x_i - mean x)^2 (Efron & Stein 1981), n groups in each."""
        strata = self.left_out.reshape(self.n_strata, -1)
        return float((strata.shape[1] - 1) * strata.var(axis=1).sum())

    def minus(self, other: Replicates) -> Replicates:
        return Replicates(self.value - other.value, self.left_out - other.left_out, self.n_strata)

    def estimate(self, name: str = "") -> Estimate:
        dof = len(self.left_out) - self.n_strata
        return Estimate(float(self.value), float(np.sqrt(self.variance)), dof, name)


def replicates(trace: Trace, estimator: Callable[[Trace], float]) -> Replicates:
    """The estimator on all chains and with each chain deleted."""
    n = trace.n_chains
    if n < 2:
        raise CrossfadeError("a jackknife over chains needs 2 chains or more: run more, or use within_chain")
    left_out = np.array([estimator(trace.take(chains=np.arange(n) != i)) for i in range(n)])
    return Replicates(float(estimator(trace)), left_out)


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


def jackknife_pair(
    forward: Trace, reverse: Trace, estimator: Callable[[Trace, Trace], float], name: str = ""
) -> Estimate:
    """Delete one chain of either side: the variances add, dof by Welch and Satterthwaite."""
    return of_both_sides(
        replicates(forward, lambda part: estimator(part, reverse)),
        replicates(reverse, lambda part: estimator(forward, part)),
        name,
    )


def of_both_sides(forward: Replicates, reverse: Replicates, name: str = "") -> Estimate:
    """One estimate that was jackknifed over the chains of two independent runs."""
    sides = (forward, reverse)
    variances = [side.variance for side in sides]
    dof = _satterthwaite(variances, [len(side.left_out) - 1 for side in sides])
    return Estimate(forward.value, float(np.sqrt(sum(variances))), dof, name)


def within_chain(trace: Trace, estimator: Callable[[Trace], float], name: str = "", n_blocks: int = 20) -> Estimate:
    """Delete one block of draws of one chain, at all rungs: an error even from one chain (Kunsch 1989).

    A block must hold 10 autocorrelation times of log_ratio at the slowest rung, or neighbouring blocks are
    not independent and the error is too small. So there are about n_blocks in all, fewer where they must be
    longer; fewer than 4 are refused.
    """
    value = float(estimator(trace))
    n_chains, n_draws = trace.n_chains, trace.n_draws
    slowest = n_chains * n_draws / effective_draws(trace).min()
    shortest = int(np.ceil(10 * max(1.0, slowest)))
    longest = n_draws // int(np.ceil(4 / n_chains))
    if shortest > longest:
        raise CrossfadeError(
            f"the autocorrelation time of log_ratio is {slowest:.3g} draws, so a block needs {shortest} and "
            f"4 blocks have {longest}: draw more, or run replicate chains and use jackknife"
        )
    length = max(shortest, n_draws // int(np.ceil(n_blocks / n_chains)))
    per_chain = n_draws // length

    def cut(draws: np.ndarray) -> np.ndarray:
        """From [chain, rung, draw, ...] to [chain x block, rung, length, ...]."""
        kept = draws[:, :, n_draws - per_chain * length :]  # what is left over is the oldest
        split = kept.reshape(n_chains, -1, per_chain, length, *draws.shape[3:])
        return np.moveaxis(split, 2, 1).reshape(n_chains * per_chain, -1, length, *draws.shape[3:])

    blocks = trace._replace(
        log_ratio=cut(trace.log_ratio),
        acceptance=np.repeat(trace.acceptance, per_chain, axis=0),
        extra={key: cut(draws) for key, draws in trace.extra.items()},
    )
    return jackknife(blocks, estimator, name)._replace(value=value)


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
        _satterthwaite(variances, [estimate.dof for _, estimate in terms]),
        name,
    )


def relaxation(runs: Sequence[tuple[float, Estimate]], name: str = "relaxation") -> Estimate:
    """(length, estimate) pairs, value = a + b / length, read at a (Husmeier & Schlitter 1992).

    Least squares with weights 1 / error^2; the error is that of the normal equations.
    """
    length, value, error = np.array([(n, x.value, x.error) for n, x in runs], dtype=float).reshape(-1, 3).T
    if len(set(length)) < 2:
        raise CrossfadeError("relaxation extrapolates over sweep lengths: give 2 lengths or more")
    if not (np.isfinite([length, value, error]).all() and (length > 0).all() and (error > 0).all()):
        raise CrossfadeError("relaxation needs positive lengths and finite estimates with positive errors")
    design = np.stack([1 / error, 1 / (length * error)], axis=1)
    weight = np.linalg.pinv(design)[0]  # of value / error in a
    variances = weight**2
    dof = _satterthwaite(variances, [estimate.dof for _, estimate in runs])
    return Estimate(float(weight @ (value / error)), float(np.sqrt(variances.sum())), dof, name)


def effective_draws(trace: Trace) -> np.ndarray:
    """Effective number of draws of log_ratio per rung: n / autocorrelation time (Vehtari et al. 2021).

    For the mean of r; for its ranks at a rung where r is infinite for some draws.
    """
    if not trace.equilibrium or trace.n_draws < 4:
        raise CrossfadeError("effective_draws needs equilibrium draws, 4 or more per chain and rung")
    from arviz_stats.base import array_stats  # slow to import

    draws = np.moveaxis(trace.log_ratio, 1, 0)  # [rung, chain, draw]
    finite = np.isfinite(draws).all(axis=(1, 2))
    effective = np.empty(len(draws))
    for rungs, method in ((finite, "mean"), (~finite, "bulk")):
        if rungs.any():
            effective[rungs] = array_stats.ess(draws[rungs], method=method)
    return effective


def _satterthwaite(variances: Sequence[float] | np.ndarray, dofs: Sequence[float]) -> float:
    """Degrees of freedom of a sum of variance estimates: (sum v)^2 / sum(v^2 / dof) (Satterthwaite 1946)."""
    share = np.asarray(variances) / max(np.sum(variances), np.finfo(float).tiny)
    spread = float(np.sum(share**2 / np.asarray(dofs, dtype=float)))
    return 1 / spread if spread > 0 else float(np.sum(dofs))
