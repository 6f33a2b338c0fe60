"""Logistic regression P(y = 1) = 1 / (1 + exp(-x'theta)) with independent normal priors."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from crossfade.data import load
from crossfade.sampling.kernel import HMC, Diagonal, Metropolis, Whitening
from crossfade.sampling.model import Model, NoData, normal_mean_and_precision
from crossfade.sampling.path import matched
from crossfade.sampling.pencil import pencil
from crossfade.types import Array, CrossfadeError, Theta

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


class LogisticLikelihood(eqx.Module):
    """sum log P(y_i | x_i'theta) = -sum log(1 + exp(-s_i x_i'theta)), s = 2y - 1 folded into the design."""

    flipped: np.ndarray  # -s_i x_i [n, p]
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Array:
        return -sum_softplus(self.flipped @ jnp.stack([theta[name] for name in self.names]))


def model(
    y: np.ndarray,
    design: np.ndarray,
    names: tuple[str, ...],
    *,
    prior_mean: Any = 0.0,
    prior_sd: Any = 10.0,
) -> Model:
    """A logistic model of 0/1 responses with theta_j ~ N(prior_mean, prior_sd^2)."""
    y, design = np.asarray(y, float), np.asarray(design, float)
    if design.shape != (len(y), len(names)):
        raise CrossfadeError(f"design has shape {design.shape}, but there are {len(y)} responses and names {names}")
    if not np.all(np.isfinite(design)):
        raise CrossfadeError("design must be finite numbers: drop or impute the missing values first")
    if not np.all((y == 0) | (y == 1)):
        raise CrossfadeError(f"the responses of a logistic model must be 0 or 1, got {np.unique(y)[:5]}")
    mean = np.broadcast_to(np.asarray(prior_mean, float), len(names))
    sd = np.broadcast_to(np.asarray(prior_sd, float), len(names))
    if not (np.all(sd > 0) and np.all(np.isfinite(sd)) and np.all(np.isfinite(mean))):
        raise CrossfadeError("prior_sd must be positive and finite (a prior must be proper) and prior_mean finite")
    priors = {name: dist.Normal(np.asarray(m), np.asarray(s)) for name, m, s in zip(names, mean, sd, strict=True)}
    return Model(priors, LogisticLikelihood((1 - 2 * y)[:, None] * design, tuple(names)), hmc, y)


def hmc(m1: Model, m2: Model) -> HMC:
    """HMC whitened at every tau by the curvatures of both ends; a quarter turn makes draws nearly independent."""
    names = tuple(dict.fromkeys(m1.names + m2.names))
    roots = (_curvature_root(m1, m2, names), _curvature_root(m2, m1, names))
    n_leapfrog = 2
    return HMC(Whitening(pencil(*roots), names), np.pi / 2 / n_leapfrog, n_leapfrog)


def paper_metropolis(m1: Model, m2: Model) -> Metropolis:
    """The paper's random walk: variance 0.01, min(0.01 / tau, 100) for what is tempered (written for Pima).

    Parameters of M2 alone are tempered by tau, those of M1 alone by 1 - tau; from a model without data everything is.
    """
    sharing = matched(m1, m2)
    up, down = sharing.only_2, sharing.only_1
    if isinstance(m1.log_likelihood, NoData):
        up = sharing.only_2 + sharing.shared
    if isinstance(m2.log_likelihood, NoData):
        down = sharing.only_1 + sharing.shared
    sd = {name: np.asarray(0.1) for name in m1.names + m2.names}
    return Metropolis(Diagonal(sd, up, down, cap=np.asarray(10.0)))


def mode_and_curvature(m: Model) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mode by damped Newton steps, and the curvature of the log likelihood there (without the prior's)."""
    mean, prior = np.array([normal_mean_and_precision(m.priors[name]) for name in m.names]).T
    design = np.zeros((0, len(m.names))) if isinstance(m.log_likelihood, NoData) else m.log_likelihood.flipped

    def objective(theta: np.ndarray) -> float:
        return float(np.logaddexp(0, design @ theta).sum() + (prior * (theta - mean) ** 2).sum() / 2)

    theta = mean.copy()
    for _ in range(100):
        p = 0.5 * (1 + np.tanh(design @ theta / 2))
        curvature = (design.T * (p * (1 - p))) @ design
        gradient = design.T @ p + prior * (theta - mean)
        step = np.linalg.solve(curvature + np.diag(prior), gradient)
        size = 1.0
        while objective(theta - size * step) > objective(theta) and size > 1e-10:
            size /= 2
        theta = theta - size * step
        if gradient @ step < 1e-16:
            break
    return theta, curvature


def _curvature_root(m: Model, other: Model, names: tuple[str, ...]) -> np.ndarray:
    """A root of (curvature of the log likelihood at the mode + prior precision), zero-padded to the union."""
    _, curvature = mode_and_curvature(m)
    precision = np.zeros((len(names), len(names)))
    where = [names.index(name) for name in m.names]
    precision[np.ix_(where, where)] = curvature
    priors = [m.priors[name] if name in m.priors else other.priors[name] for name in names]
    precision += np.diag([normal_mean_and_precision(prior)[1] for prior in priors])
    return np.linalg.cholesky(precision).T


def pima() -> tuple[Model, Model]:
    """Diabetes of 532 women by npreg, glu, bmi, ped (M1) and age as well (M2); log Bayes factor -2.625013."""
    table = load("pima")

    def of(*columns: str) -> Model:
        x = table[list(columns)].to_numpy(float)
        x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
        design = np.column_stack([np.ones(len(x)), x])
        return model(table["y"].to_numpy(float), design, ("intercept", *columns))

    return of("npreg", "glu", "bmi", "ped"), of("npreg", "glu", "bmi", "ped", "age")
