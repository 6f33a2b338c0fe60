"""Importance weights: how many of them count, and how heavy their tail is."""

from __future__ import annotations

import numpy as np

PARETO_K = 0.7
FEW_WEIGHTS = 20  # effective weights below which there is no tail to fit


def weight_share(log_weight: np.ndarray) -> float:
    """(sum w)^2 / (n sum w^2): 1 if all weights are equal, 1/n if one has it all."""
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight.size * (weight**2).sum()))


def pareto_k(log_weight: np.ndarray) -> float:
    """Shape of the generalised Pareto tail of the weights: above 0.7 their mean cannot be trusted."""
    flat = log_weight[np.isfinite(log_weight)]
    if len(flat) < 100 or np.ptp(flat) < 1e-9:
        return -np.inf
    if weight_share(flat) * len(flat) < FEW_WEIGHTS:
        return np.inf
    from arviz_stats.base import array_stats  # slow to import

    try:
        return float(array_stats.psislw(-flat)[1])  # it takes the log density that weights are divided by
    except ValueError:  # a tail of equal values
        return np.inf
