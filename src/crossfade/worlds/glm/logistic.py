"""Logistic regression P(y = 1) = 1 / (1 + exp(-x'theta)) with independent normal priors."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.data import load
from crossfade.density.model import Model, NoData
from crossfade.density.regression import Regression
from crossfade.paths.path import named_sharing
from crossfade.sampling.kernel import Diagonal, Metropolis
from crossfade.types import Array, CrossfadeError, Float, Theta
from crossfade.worlds.design import vector
from crossfade.worlds.glm.laplace import as_regression, hmc, linked

# Factors in (1, 2]: the product of a thousand of them fits a float64, so one log serves a thousand data.
FACTORS = 1000


@jax.custom_jvp
def sum_softplus(eta: Array) -> Array:
    """sum log(1 + e^eta) = sum max(eta, 0) + log prod (1 + e^-|eta|): one exp per datum, one log per thousand."""
    factors = 1 + jnp.exp(-jnp.abs(eta))
    whole = len(eta) // FACTORS * FACTORS
    products = jnp.prod(factors[:whole].reshape(-1, FACTORS), axis=1)
    return jnp.sum(jnp.maximum(eta, 0)) + jnp.sum(jnp.log(products)) + jnp.log(jnp.prod(factors[whole:]))


@sum_softplus.defjvp
def _sum_softplus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (eta,), (tangent,) = primals, tangents
    return sum_softplus(eta), jnp.sum(jax.nn.sigmoid(eta) * tangent)


def flips(y: np.ndarray) -> np.ndarray:
    """-s = 1 - 2 y, of responses that are 0 or 1: log P(y | eta) = -log(1 + exp(-s eta))."""
    if not np.all((y == 0) | (y == 1)):
        raise CrossfadeError(f"the responses of a logistic model must be 0 or 1, got {np.unique(y)[:5]}")
    return 1 - 2 * y


class LogisticLikelihood(eqx.Module):
    """sum log P(y_i | x_i'theta) = -sum log(1 + exp(-s_i x_i'theta)), -s folded into the rows."""

    rows: Float[np.ndarray, "n p"]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, y: np.ndarray, design: np.ndarray, names: tuple[str, ...]):
        self.rows, self.names = flips(y)[:, None] * design, names

    def __call__(self, theta: Theta) -> Array:
        return -sum_softplus(self.rows @ vector(theta, self.names))

    def as_regression(self, m: Model) -> Regression | None:
        return None if m.data is None else as_regression("logistic", flips(m.data)[:, None] * self.rows, self.names, m)


def model(y: Any, design: Any, names: tuple[str, ...], *, prior_mean: Any = 0.0, prior_sd: Any = 10.0) -> Model:
    """A logistic model of 0/1 responses with theta_j ~ N(prior_mean, prior_sd^2)."""
    return linked(LogisticLikelihood, hmc, y, design, names, prior_mean, prior_sd)


def paper_metropolis(m1: Model, m2: Model) -> Metropolis:
    """The paper's random walk: variance 0.01, min(0.01 / tau, 100) for what is tempered (written for Pima).

    Parameters of M2 alone are tempered by tau, those of M1 alone by 1 - tau; from a model without data everything is.
    """
    sharing = named_sharing(m1, m2)
    up = sharing.only_2 + (sharing.shared if isinstance(m1.log_likelihood, NoData) else ())
    down = sharing.only_1 + (sharing.shared if isinstance(m2.log_likelihood, NoData) else ())
    sd = {name: np.asarray(0.1) for name in m1.names + m2.names}
    return Metropolis(Diagonal(sd, up, down, cap=np.asarray(10.0)))


def pima() -> tuple[Model, Model]:
    """Diabetes of 532 women by npreg, glu, bmi, ped (M1) and age as well (M2); log Bayes factor -2.625013."""
    table = load("pima")

    def of(*columns: str) -> Model:
        x = table[list(columns)].to_numpy(float)
        x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
        return model(table["y"].to_numpy(float), np.column_stack([np.ones(len(x)), x]), ("intercept", *columns))

    return of("npreg", "glu", "bmi", "ped"), of("npreg", "glu", "bmi", "ped", "age")
