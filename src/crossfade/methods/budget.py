"""What the user wants: a standard error, and how much may be spent on it."""

from __future__ import annotations

import re
from numbers import Real
from typing import NamedTuple

import numpy as np

from crossfade.types import CrossfadeError

TEN_MINUTES = 600.0
TARGET_SE = 0.05
GROWTH = 4.0  # at most so many times more draws before the error is looked at again


class Asked(NamedTuple):
    """A standard error of the log Bayes factor, and the most that may be spent."""

    target_se: float = TARGET_SE
    seconds: float | None = None
    max_draws: int | None = None  # per posterior or rung, all chains together


def asked(target_se: float | None, budget: float | str | None) -> Asked:
    """From what was typed: seconds, or a text such as "5 min" or "20000 draws"."""
    target_se = TARGET_SE if target_se is None else target_se
    if not (_is_number(target_se) and np.isfinite(target_se) and target_se > 0):
        raise CrossfadeError(f"target_se = {target_se}: ask for a positive standard error of the log Bayes factor")
    if budget is None:
        return Asked(float(target_se), TEN_MINUTES, None)
    if isinstance(budget, str):
        parts = re.fullmatch(r"\s*([\d.,_]+)\s*(s|sec|seconds?|min|minutes?|h|hours?|draws?)\s*", budget)
        if parts is None:
            raise CrossfadeError(f'budget = {budget!r}: write it like "90 s", "5 min", "2 h" or "20000 draws"')
        amount = _amount(parts[1], budget)
        if parts[2].startswith("d"):
            if amount < 1:
                raise CrossfadeError(f"budget = {budget!r}: give a positive number of draws")
            return Asked(float(target_se), None, int(amount))
        budget = amount * {"s": 1, "m": 60, "h": 3600}[parts[2][0]]
    if not (_is_number(budget) and np.isfinite(budget) and budget > 0):
        raise CrossfadeError(f"budget = {budget}: give a positive number of seconds")
    return Asked(float(target_se), float(budget), None)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool)


def _amount(text: str, budget: str) -> float:
    """Commas between groups of three digits are left out, one before other digits is a decimal comma: 1,5 is 1.5."""
    grouped = re.fullmatch(r"\d{1,3}([,_]\d{3})+(\.\d+)?", text)
    plain = re.sub("[,_]", "", text) if grouped else text.replace("_", "")
    try:
        return float(plain.replace(",", ".") if plain.count(",") == 1 and "." not in plain else plain)
    except ValueError:
        raise CrossfadeError(f"budget = {budget!r}: {text!r} is no number") from None


def check_common(seed: int, log_prior_odds: float, n_chains: int | None) -> None:
    """What every question is asked with, whatever answers it."""
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
