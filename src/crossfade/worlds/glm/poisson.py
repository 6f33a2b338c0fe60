"""Poisson regression of counts, log E[y] = x'theta, with independent normal priors."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from crossfade.density.model import Model
from crossfade.density.regression import MANY, Regression, near_counts
from crossfade.sampling.kernel import Cycle
from crossfade.types import Array, CrossfadeError, Float, Theta
from crossfade.worlds.design import vector
from crossfade.worlds.glm import laplace


class PoissonLikelihood(eqx.Module):
    """sum y_i x_i'theta - exp(x_i'theta) - log y_i!; the first term needs the data through X'y only."""

    rows: Float[np.ndarray, "n p"]
    totals: np.ndarray  # X'y [p]
    log_factorials: np.ndarray  # their sum
    # Of very many counts: y, and what `near_counts` has of them, since the terms above would cancel.
    many: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, y: np.ndarray, design: np.ndarray, names: tuple[str, ...]):
        if not np.all((y >= 0) & (y == np.floor(y)) & np.isfinite(y)):
            raise CrossfadeError(
                f"the responses of a Poisson model must be counts (0, 1, 2, ...), got {np.unique(y)[:5]}"
            )
        self.rows, self.names = design, names
        self.totals = design.T @ y
        self.log_factorials = np.asarray(gammaln(y + 1).sum())
        near, log_near = near_counts(y)
        self.many = (y, near, np.asarray(log_near)) if y.sum() > MANY else None

    def __call__(self, theta: Theta) -> Array:
        beta = vector(theta, self.names)
        if self.many is not None:
            y, near, log_near = self.many
            away = self.rows @ beta - np.log(near)
            return y @ away - near @ jnp.expm1(away) + log_near
        return self.totals @ beta - jnp.sum(jnp.exp(self.rows @ beta)) - self.log_factorials

    def as_regression(self, m: Model) -> Regression | None:
        return laplace.as_regression("poisson", self.rows, self.names, m)


def model(y: Any, design: Any, names: tuple[str, ...], *, prior_mean: Any = 0.0, prior_sd: Any = 2.5) -> Model:
    """A Poisson model of counts with theta_j ~ N(prior_mean, prior_sd^2)."""
    return laplace.linked(PoissonLikelihood, hmc, y, design, names, prior_mean, prior_sd)


def hmc(m1: Model, m2: Model) -> Cycle:
    """Whitened HMC after a leap towards the Laplace approximation.

    Under a log link the curvature grows with the rate: a chain that starts where the prior's rates are tenfold too
    high finds every Hamiltonian step unstable and would never move. The leap takes it home at once.
    """
    return Cycle((laplace.leap(m1, m2), laplace.hmc(m1, m2)))
