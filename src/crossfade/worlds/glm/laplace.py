"""What regressions with a link function share: the model, its mode, and kernels whitened by curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from crossfade.density.model import Model, NoData, normal_mean_and_precision
from crossfade.density.regression import Regression, regression_of
from crossfade.paths.path import Path
from crossfade.sampling.kernel import HMC, Kernel, Whitening, broken
from crossfade.sampling.pencil import Pencil, pencil
from crossfade.types import Array, CrossfadeError, State, Theta
from crossfade.worlds.design import checked, per_name, vector


def linked(
    likelihood: Callable[[np.ndarray, np.ndarray, tuple[str, ...]], Callable[[Theta], Array]],
    kernel: Callable[[Model, Model], Kernel],
    y: Any,
    design: Any,
    names: tuple[str, ...],
    prior_mean: Any,
    prior_sd: Any,
) -> Model:
    """The model with theta_j ~ N(prior_mean, prior_sd^2); each a number for all, or one per name."""
    y, design = checked(y, design, names)
    mean, sd = per_name(prior_mean, names), per_name(prior_sd, names)
    if not (np.all(sd > 0) and np.all(np.isfinite(sd)) and np.all(np.isfinite(mean))):
        raise CrossfadeError("prior_sd must be positive and finite (a prior must be proper) and prior_mean finite")
    priors = {name: dist.Normal(np.asarray(m), np.asarray(s)) for name, m, s in zip(names, mean, sd, strict=True)}
    return Model(priors, likelihood(y, design, tuple(names)), kernel, y)


def as_regression(family: str, design: np.ndarray, names: tuple[str, ...], m: Model) -> Regression | None:
    """The model as numbers, where its priors are of the kind it was made with; names are those of the columns."""
    if set(m.names) != set(names):
        return None
    priors = [m.priors[name] for name in names]
    if m.data is None or any(type(prior) is not dist.Normal for prior in priors):
        return None
    mean, precision = np.array([normal_mean_and_precision(prior) for prior in priors]).T
    return Regression(family, m.data, design, names, mean, precision)


def mode_and_curvature(m: Model) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mode, and the curvature of the log likelihood there (without the prior's)."""
    mean, prior = np.array([normal_mean_and_precision(m.priors[name]) for name in m.names]).T
    if isinstance(m.log_likelihood, NoData):
        return mean, np.zeros((len(mean), len(mean)))
    own = regression_of(m)
    if own is None:
        raise CrossfadeError("this world's sampler is for its own models, with their data: pass kernel=")
    mode, curvature = own.mode_and_curvature()
    order = [own.names.index(name) for name in m.names]  # of the priors, which need not be that of the columns
    return mode[order], curvature[np.ix_(order, order)] - np.diag(prior)


def hmc(m1: Model, m2: Model) -> HMC:
    """HMC whitened at every tau by the curvatures of both ends; a quarter turn makes draws nearly independent."""
    names, _, precision = _laplace(m1, m2)
    n_leapfrog = 2
    return HMC(Whitening(precision, names), np.pi / 2 / n_leapfrog, n_leapfrog)


LEAP_DOF = 5


class Leap(Kernel):
    """Independence Metropolis: Student-t proposals shaped by the ends' Laplace approximations, tempered by tau.

    In the basis V that makes both precisions diagonal these are N(centre(tau), 1/weights(tau)). The tails must be a
    t's: a likelihood may fall off more slowly than its own curvature says, and a normal proposal would stay there.
    """

    pencil: Pencil
    inverse: np.ndarray  # V^-1
    centres: tuple[np.ndarray, np.ndarray]  # V^-1 mode_k
    names: tuple[str, ...] = eqx.field(static=True)

    def noise(self, key: Array, theta: Theta, tau: Array) -> tuple[Array, Array]:
        normal, uniform = jax.random.split(key)
        z = jax.random.normal(normal, (len(self.names) + LEAP_DOF,))
        t = z[LEAP_DOF:] / jnp.sqrt(jnp.mean(z[:LEAP_DOF] ** 2))
        return t, -jax.random.exponential(uniform)

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        t, log_u = noise
        weights = self.pencil.weights(tau)
        first, second = self.centres
        centre = ((1 - tau) * first + tau * self.pencil.values * second) / weights
        old = jnp.sqrt(weights) * (self.inverse @ vector(state.theta, self.names) - centre)
        new = self.pencil.vectors @ (centre + t / jnp.sqrt(weights))
        theta = {**state.theta, **{name: new[i] for i, name in enumerate(self.names)}}
        energy = path.energy(theta)
        log_g_old, log_g_new = (-(LEAP_DOF + len(t)) / 2 * jnp.log1p(jnp.sum(u**2) / LEAP_DOF) for u in (old, t))
        gain = energy.at(tau) - state.energy.at(tau) + log_g_old - log_g_new
        # As in every kernel, a proposal without a density is taken, so that the run stops and shows it.
        accept = (log_u < gain) | broken(energy)
        return jax.tree.map(lambda a, b: jnp.where(accept, a, b), State(theta, energy), state), accept.astype(float)


def leap(m1: Model, m2: Model) -> Leap:
    """The independence kernel of a pair; it brings a chain home from anywhere, HMC then explores."""
    names, modes, precision = _laplace(m1, m2)
    inverse = np.linalg.inv(precision.vectors)
    return Leap(precision, inverse, (inverse @ modes[0], inverse @ modes[1]), names)


def _laplace(m1: Model, m2: Model) -> tuple[tuple[str, ...], list[np.ndarray], Pencil]:
    """Names of the union, and both ends' modes and precisions (curvature of the log likelihood + prior's) over it.

    A parameter that only the other model has stays at its prior, which is its link.
    """
    names = tuple(dict.fromkeys(m1.names + m2.names))
    modes, roots = [], []
    for m, other in ((m1, m2), (m2, m1)):
        priors = {**other.priors, **m.priors}
        mode, prior = np.array([normal_mean_and_precision(priors[name]) for name in names]).T
        precision, where = np.diag(prior), [names.index(name) for name in m.names]
        mode[where], curvature = mode_and_curvature(m)
        precision[np.ix_(where, where)] += curvature
        modes.append(mode)
        roots.append(np.linalg.cholesky(precision).T)
    return names, modes, pencil(*roots)
