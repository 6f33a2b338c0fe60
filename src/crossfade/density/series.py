"""States drawn one given the last, as a first-order series: by it samplers choose coordinates for them."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from crossfade.types import Array


class Series(NamedTuple):
    """x_t = shift + pull x_{t-1} + scale noise_t, for all steps alike; it need not be the prior to the digit."""

    start: Array  # the mean of x_0
    start_scale: Array | None  # its standard deviation; None: that of the steps, and x_0 is one of them
    shift: Array
    pull: Array
    scale: Array

    def in_waves(self, waves: np.ndarray, first: Array) -> tuple[Array, Array]:
        """The mean and the standard deviation of each wave; those of x_0 and then, given `first`, of the others."""
        n, apart = len(waves), int(self.start_scale is not None)
        pull = jnp.clip(self.pull, -1.0, 1.0)  # a path that explodes is of no use as a centre
        power = jnp.cumprod(jnp.concatenate([jnp.ones(1), jnp.full(n - 1, pull)]))
        sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(power[:-1])])
        path = power * (first if apart else self.start)[..., None] + self.shift * sums
        scale = self.scale[..., None] / jnp.sqrt(1 - 2 * pull * np.cos(_angles(n - apart)) + pull**2)
        if self.start_scale is not None:
            path, scale = path.at[..., 0].set(self.start), jnp.concatenate([self.start_scale[None], scale])
        return path @ waves, scale


def waves(n_steps: int, start_apart: bool) -> np.ndarray:
    """[step, wave], orthonormal: those of a random walk's covariance min(s, t), after a start that is none of them."""
    n = n_steps - start_apart
    found = np.eye(n_steps)
    sines = np.sin(np.arange(1, n + 1)[:, None] * _angles(n))
    found[n_steps - n :, n_steps - n :] = 2 / np.sqrt(2 * n + 1) * sines
    return found


def _angles(n: int) -> np.ndarray:
    return (2 * np.arange(1, n + 1) - 1) * np.pi / (2 * n + 1)
