"""Where chains begin: draws of the prior, some of them where the data are most likely."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.coordinates import Coordinates, Density
from crossfade.density.joint import Joint
from crossfade.density.precision import in_float64
from crossfade.sampling.anneal import chain_keys
from crossfade.sampling.evaluate import seconds_per_gradient, values_and_slopes
from crossfade.types import Array, CrossfadeError, Theta

# For programs that run once: they compile in a third of the time.
in_a_hurry: Any = partial(eqx.filter_jit, compiler_options={"xla_backend_optimization_level": 0})
FIRST_STEP = 0.1  # leapfrog step size at first, in units of the spread
LONGEST_LEAP = 0.25  # of the spread: how far the slope at a start may push a chain in its first leapfrog step
N_CANDIDATES = 1024  # draws of the prior that are looked at for places to start: their spread sets the first units


def starts(joint: Joint, density: Density, key: Array, n_chains: int, which: str) -> tuple[np.ndarray, np.ndarray]:
    """Dispersed starts, so that chains that end in different places are noticed; and the spread of each coordinate."""
    u, log_density, slope = candidates(joint, density, key)
    log_likelihood = _log_likelihoods(joint, u) if joint.separable and joint.exact_start else None
    usable = np.isfinite(log_density) & np.isfinite(slope).all(axis=1) & np.isfinite(u).all(axis=1)
    if usable.sum() < max(2, n_chains // 8):
        if (never := ~np.isfinite(u).any(axis=0)).any():
            name = density.coordinates.labels()[int(np.argmax(never))]
            raise CrossfadeError(
                f"no draw of the prior of {name} in {which} is a finite number, so its prior is no proper distribution "
                "(is its scale infinite or NaN?). A Bayes factor needs proper priors: give it one with a finite scale"
            )
        worst = int(np.argmin(usable))
        raise CrossfadeError(
            f"only {usable.sum()} of {N_CANDIDATES} draws of the prior of {which} have a finite log joint and "
            f"gradient; at {density.coordinates.describe(u[worst])} the log joint is {log_density[worst]}. Check the "
            "likelihood at draws of the prior, or narrow the prior to where it is not zero"
        )
    # Half of the chains anywhere, half where the data are most likely: a narrow peak far away then gets a chain. (Not
    # where the density is highest: that is in the neck of a funnel.)
    anywhere = np.resize(u[usable], (n_chains - n_chains // 2, u.shape[1]))
    height = log_density if log_likelihood is None else log_likelihood
    high = u[usable][np.argsort(-height[usable])]
    both = np.empty((n_chains, u.shape[1]))
    both[::2], both[1::2] = anywhere, np.resize(high, (n_chains // 2, u.shape[1]))
    return both, spread(u[usable])


def first_steps(density: Density, u: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Step sizes of the first trajectories from u [chain, size]: shorter where the density is steep.

    A draw of the prior may be thousands of standard deviations up a slope. A chain that is thrown from there to the
    far end of the prior loses more than its first steps: the solver of a differential equation may take hours there.
    """
    steep = np.linalg.norm(values_and_slopes(density, u)[1] * scale, axis=1)
    return np.minimum(FIRST_STEP, np.sqrt(2 * LONGEST_LEAP / np.maximum(steep, 1e-300)))


def spread(u: np.ndarray) -> np.ndarray:
    """Half the distance between the quantiles of one standard deviation [size], of draws [n, size] with long tails."""
    return np.clip((np.quantile(u, 0.84, axis=0) - np.quantile(u, 0.16, axis=0)) / 2, 1e-6, 1e6)


@in_float64
def candidates(joint: Joint, density: Density, key: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws of the start, with the log density and its gradient there."""
    u = drawn(joint, key, N_CANDIDATES)
    return u, *values_and_slopes(density, u)


def gradient_seconds(joint: Joint) -> float:
    """Of one chain, at draws of the start."""
    return seconds_per_gradient(joint.density, drawn(joint, jax.random.key(0), N_CANDIDATES)[:8])


def isolated(places: np.ndarray, u: np.ndarray, sd: np.ndarray, far: float) -> np.ndarray | None:
    """The first of these places [place, size] that is `far` sd, in some coordinate, from every draw u [n, size]."""
    return next((place for place in places if np.abs((u - place) / sd).max(axis=1).min() > far), None)


def drawn(joint: Joint, key: Array, n: int) -> np.ndarray:
    """n draws of the start [n, size]."""
    return np.asarray(_drawn(joint.coordinates, joint.start, chain_keys(key, n)))


@in_a_hurry
def _drawn(coordinates: Coordinates, start: Any, keys: Array) -> Array:
    return jax.lax.map(lambda key: coordinates.inverse(_float(start(key))), keys, batch_size=16)


def _float(theta: Theta) -> Theta:
    return {name: jnp.asarray(value, float) for name, value in theta.items()}


def _log_likelihoods(joint: Joint, u: np.ndarray) -> np.ndarray:
    """At draws of the prior these are the weights of draws of the posterior."""
    assert joint.log_likelihood is not None
    return np.asarray(_at_theta(joint.log_likelihood, joint.coordinates, u))


@in_a_hurry
def _at_theta(function: Any, coordinates: Coordinates, u: Array) -> Array:
    return jax.lax.map(lambda u: function(coordinates.theta(u)), u, batch_size=16)
