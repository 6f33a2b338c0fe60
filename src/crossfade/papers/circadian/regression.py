"""From counts to regression data: the mask of knocked-out genes and the gradients (tinygp, extra `circadian`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from crossfade.density.precision import float64
from crossfade.types import CrossfadeError

NOISE = 0.1  # variance of the noise in counts^2, fixed: the published gradients nearly interpolate
HOURS = 2.0 * np.arange(13)
LENGTH = 2.0  # hours, where the search starts


def masked(counts: np.ndarray, knocked_out: list[int], random: np.random.Generator) -> np.ndarray:
    """The counts [time, gene] with N(0, 1) in the columns of knocked-out genes: a constant column tells nothing."""
    counts = np.array(counts, float)
    for column in knocked_out:
        if counts[:, column].any():
            raise CrossfadeError(f"gene {column} was knocked out and has counts {counts[:, column]}")
        counts[:, column] = random.normal(size=len(counts))
    return counts


@cache
def _compiled() -> tuple[Any, Any]:
    """The log posterior of (log length, log amplitude) with its gradient, and the derivative of the mean."""
    try:
        import tinygp
    except ImportError:
        raise CrossfadeError("the gradients need tinygp: install crossfade with the extra 'circadian'") from None
    import jax
    import jax.numpy as jnp

    def process(log: Any) -> Any:
        kernel = jnp.exp(log[1]) * tinygp.kernels.ExpSquared(scale=jnp.exp(log[0]))
        return tinygp.GaussianProcess(kernel, jnp.asarray(HOURS), diag=jnp.asarray(NOISE))

    def loss(log: Any, x: Any) -> Any:
        # Student-t(4) on the length, and the length itself for the change to its logarithm; flat in log amplitude.
        prior = jax.scipy.stats.t.logpdf(jnp.exp(log[0]), 4) + log[0]
        return -(process(log).log_probability(x) + prior)

    def slope(log: Any, x: Any) -> Any:
        fitted = process(log)

        def mean(hour: Any) -> Any:
            return fitted.condition(x, hour[None]).gp.loc[0]

        return jax.vmap(jax.grad(mean))(jnp.asarray(HOURS))

    return jax.jit(jax.value_and_grad(loss)), jax.jit(slope)


def fit(x: np.ndarray) -> np.ndarray:
    """Log length and log amplitude at the mode for 13 centred counts."""
    from scipy.optimize import minimize

    with float64():
        loss, _ = _compiled()

        def both(log: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = loss(log, x)
            return float(value), np.asarray(gradient)

        # Bounds for segments below the noise, whose amplitude has its mode at 0.
        start = np.log([LENGTH, x.var(ddof=1)])
        bounds = [(np.log(0.1), np.log(100.0)), (np.log(1e-6), np.log(1e8))]
        options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 500}
        return minimize(both, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


def gradient(counts: np.ndarray) -> np.ndarray:
    """Counts per hour: the derivative of the mean of a Gaussian process on 13 counts; 0 for a constant segment."""
    x = np.asarray(counts, float) - np.mean(counts)
    if not x.any():
        return np.zeros(len(x))
    log = fit(x)
    with float64():
        return np.asarray(_compiled()[1](log, x))


def coarse_gradient(counts: np.ndarray) -> np.ndarray:
    """Central differences within one condition, one-sided at its two ends, in counts per hour."""
    return np.gradient(np.asarray(counts, float), HOURS)
