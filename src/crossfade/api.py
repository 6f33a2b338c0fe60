"""The questions: compare, evidence. The only place with defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossfade.density.joint import Joint, nothing
from crossfade.density.model import Model
from crossfade.density.precision import in_float64
from crossfade.methods.fitted import AUTO, AnyModel, Say, asked, compare_short
from crossfade.methods.table import KernelFn, Method, by_table, row_of
from crossfade.paths.link import Share
from crossfade.types import CrossfadeError, Result


@in_float64
def compare(
    m1: Model | Joint,
    m2: Model | Joint,
    *,
    method: str | Method = AUTO,
    target_se: float | None = None,
    budget: float | str | None = None,
    share: Share = None,
    draws: tuple[Any, Any] | None = None,
    n_iter: int | None = None,
    kernel: KernelFn | None = None,
    n_chains: int | None = None,
    seed: int = 0,
    log_prior_odds: float = 0.0,
    say: Say = lambda message: None,
) -> Result:
    """The log Bayes factor of M2 over M1 with its standard error over independent chains.

    The default method, "auto", fits linking densities to posterior draws and goes on until the standard error is
    `target_se` (0.05) or the `budget` is spent (seconds, "5 min" or "100000 draws"; ten minutes). `share` says which
    parameters the models share, by default those of equal name; `draws` brings posterior draws of both models along.

    The methods of the table take `n_iter` kept iterations (16,000) of each chain on each leg and a `kernel`.
    """
    _check_common(seed, log_prior_odds, n_chains)
    if method != AUTO:
        row_of(method)
    if method == AUTO:
        _refuse(method, n_iter=n_iter, kernel=kernel)
        wanted = asked(0.05 if target_se is None else target_se, budget)
        own = (None, None) if draws is None else draws
        if not (isinstance(own, tuple | list) and len(own) == 2):
            raise CrossfadeError("draws= takes two things, the draws of M1 and of M2; give None for one to be sampled")
        return compare_short(
            m1, m2, wanted, seed, log_prior_odds, n_chains=n_chains, share=share, draws=(own[0], own[1]), say=say
        )
    _refuse(method, target_se=target_se, budget=budget, share=share, draws=draws)
    for model, which in ((m1, "M1"), (m2, "M2")):
        if not isinstance(model, Model):
            raise CrossfadeError(f"{which} has no prior per parameter, which {method} needs: use the default method")
    assert isinstance(m1, Model) and isinstance(m2, Model)
    return by_table(m1, m2, method, n_iter or 16_000, seed, n_chains or 16, kernel, log_prior_odds)


@in_float64
def evidence(
    model: AnyModel,
    *,
    target_se: float = 0.05,
    budget: float | str | None = None,
    draws: Any = None,
    n_chains: int | None = None,
    seed: int = 0,
    say: Say = lambda message: None,
) -> Result:
    """log p(data): `log_bayes_factor` of the result, over the model of nothing whose evidence is 1.

    The reference is a normalised Student's t fitted to posterior draws, so the path is short; a difference of two
    evidences still has the noise of both, which `compare` of the two models has not.
    """
    return compare_short(
        nothing(), model, asked(target_se, budget), seed, 0.0, n_chains=n_chains, draws=(None, draws), say=say
    )


def _refuse(method: str | Method, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            other = "the methods of the table: name one by method=" if method == AUTO else 'method="auto", the default'
            raise CrossfadeError(f"{name}= is for {other}")


def _check_common(seed: int, log_prior_odds: float, n_chains: int | None) -> None:
    for name, value in (("seed", seed), ("n_chains", n_chains)):
        if value is not None and not isinstance(value, int | np.integer):
            raise CrossfadeError(f"{name} = {value!r}: give a whole number")
    if not isinstance(log_prior_odds, int | float | np.number):
        raise CrossfadeError(f"log_prior_odds = {log_prior_odds!r}: give a finite number, log p(M2) / p(M1)")
    if seed is None or not 0 <= seed < 2**32:
        raise CrossfadeError(f"seed = {seed}: give a whole number from 0 to {2**32 - 1}")
    if not np.isfinite(log_prior_odds):
        raise CrossfadeError(f"log_prior_odds = {log_prior_odds}: give a finite number, log p(M2) / p(M1)")
    if n_chains is not None and n_chains < 2:
        raise CrossfadeError(f"n_chains = {n_chains}: the error bar needs at least 2 independent chains")
