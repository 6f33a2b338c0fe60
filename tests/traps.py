"""Pairs on which Bayes factors go wrong in silence, with their true answers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from numpyro import distributions as dist

from crossfade.data import load
from crossfade.sampling.model import Model


def galaxy(n_components: int) -> Model:
    """Velocities of 82 galaxies as a mixture of normals; every labelling of the components is a mode."""
    y = load("galaxy")["velocity"].to_numpy(float)
    ones = np.ones(n_components)

    def log_likelihood(p):
        log_sd = -0.5 * jnp.log(p["precision"])
        z = (y[:, None] - p["mean"]) * jnp.exp(-log_sd)
        log_density = -0.5 * z**2 - log_sd - 0.5 * np.log(2 * np.pi)
        return logsumexp(jnp.log(p["weight"]) + log_density, axis=1).sum()

    priors = {
        "weight": dist.Dirichlet(ones),
        "mean": dist.Normal(0 * ones, np.sqrt(1000.0) * ones),
        "precision": dist.Gamma(ones, ones),
    }
    return Model(priors, log_likelihood, data=y)
