"""A first look at an evidence: the mode, its curvature, and importance sampling from them; no chains."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from crossfade.analysis.weights import PARETO_K, pareto_k
from crossfade.density.coordinates import Density
from crossfade.density.joint import Joint, as_joint
from crossfade.density.model import Model
from crossfade.density.precision import in_float64
from crossfade.methods.coupled import root_of_inverse
from crossfade.paths.link import link, noise
from crossfade.sampling.evaluate import values
from crossfade.sampling.starts import starts
from crossfade.types import Array, CrossfadeError, Estimate


class FirstLook(NamedTuple):
    """Laplace's approximation, and importance sampling from it, without any chain."""

    laplace: float
    importance: Estimate
    pareto_k: float

    @property
    def reliable(self) -> bool:
        return self.pareto_k < PARETO_K


@eqx.filter_jit
def _value_and_slope(density: Density, u: Array) -> tuple[Array, Array]:
    return jax.value_and_grad(density)(u)


@eqx.filter_jit
def _hessian(density: Density, u: Array) -> Array:
    return jax.hessian(density)(u)


@in_float64
def first_look(model: Model | Joint, *, n_draws: int = 4000, seed: int = 0) -> FirstLook:
    """The log evidence of a small smooth model from its mode and curvature, in a second.

    Laplace: log p(mode) + d/2 log 2 pi - 1/2 log|H|. Then draws from a Student's t (8 degrees of freedom) with that
    mode and curvature, weighted by p / t. It sees one mode: a second opinion, not a verdict. What comes back has both
    numbers, and `reliable`: whether the weights have a tail light enough.
    """
    joint = as_joint(model)
    density = joint.density
    d = density.coordinates.size
    if not 0 < d <= 50:
        raise CrossfadeError(f"a first look is for 1 to 50 coordinates, this model has {d}: use evidence()")

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _value_and_slope(density, jnp.asarray(u))
        return -float(value), -np.asarray(slope)

    begin, _ = starts(joint, density, jax.random.key(seed), 8, "the model")
    found = [minimize(objective, u, jac=True, method="L-BFGS-B", options={"maxiter": 1000}) for u in begin]
    best = min(found, key=lambda result: result.fun)
    curvature = -np.asarray(_hessian(density, jnp.asarray(best.x)))
    try:
        root = root_of_inverse(curvature)
    except np.linalg.LinAlgError:
        raise CrossfadeError(
            "the log joint has no peak with a curvature (a boundary, a ridge, or no maximum): use evidence()"
        ) from None
    laplace = -best.fun + d / 2 * np.log(2 * np.pi) + np.log(np.diag(root)).sum()
    proposal = link(best.x, np.zeros((d, 0)), root, 8.0)
    nothing = np.zeros((1, n_draws, 0))
    u = proposal.draw(noise((seed,), 1, n_draws, d), nothing)[0]
    log_weight = values(density, u) - proposal.log_density(u, nothing[0])
    value = float(logsumexp(log_weight) - np.log(n_draws))
    error = float(np.exp(log_weight - value).std(ddof=1) / np.sqrt(n_draws))
    return FirstLook(float(laplace), Estimate(value, error, n_draws - 1, "importance"), pareto_k(log_weight))
