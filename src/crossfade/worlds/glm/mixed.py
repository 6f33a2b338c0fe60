"""Logistic regression with one normal effect per group: the pair whose dimension grows with the data.

P(y_i = 1) = 1 / (1 + exp(-eta_i)), eta_i = b0 + x_i'b + exp(ls) z_g(i), z_g ~ N(0, 1); M2 has one slope more than M1.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from crossfade.density.model import Model
from crossfade.types import Array, CrossfadeError, Int, Theta
from crossfade.worlds.design import vector
from crossfade.worlds.glm.logistic import flips, sum_softplus

SIZE = 10  # data per group of `simulate`

# Log Bayes factors of `pair` by number of groups, and their errors, computed by benchmarks/mixed_reference.py: the
# effects by quadrature, the rest by quadrature and, in agreement within 0.0002 to 0.0007, by importance sampling.
REFERENCE: dict[int, tuple[float, float]] = {
    10: (-1.69065, 1e-5),
    100: (-3.15001, 1e-5),
    1000: (-3.39426, 1e-5),
    10_000: (-5.08088, 1e-5),
}


class MixedLikelihood(eqx.Module):
    """-sum log(1 + exp(-s_i eta_i)), -s = 1 - 2y folded into the columns, the data sorted by group."""

    flipped: np.ndarray  # -s_i (1, x_i) [n, k]
    signs: np.ndarray  # -s_i [n]
    group: Int[np.ndarray, " n"]  # 0 ... G - 1
    names: tuple[str, ...] = eqx.field(static=True)  # of the coefficients
    size: int | None = eqx.field(static=True)  # of every group, if they have one size

    def __call__(self, theta: Theta) -> Array:
        effects = jnp.exp(theta["ls"]) * theta["z"]
        # The gradient of a broadcast is a sum, that of a gather a scatter: the whole is then up to 1.5 times slower.
        spread = effects[self.group] if self.size is None else jnp.repeat(effects[:, None], self.size, axis=1).ravel()
        return -sum_softplus(self.flipped @ vector(theta, self.names) + self.signs * spread)


def model(y: Any, x: Any, group: Any, *, intercept_sd: float = 5.0, slope_sd: float = 2.0) -> Model:
    """b0 ~ N(0, intercept_sd^2), b1, b2, ... ~ N(0, slope_sd^2) for the columns of x, ls ~ N(-0.5, 1), z ~ N(0, 1).

    `group` holds a label per datum; z follows the labels in their sorted order.
    """
    y, x, group = np.asarray(y, float), np.asarray(x, float), np.asarray(group)
    if x.ndim != 2 or not (len(x) == len(y) == len(group)):
        raise CrossfadeError(f"y, x and group have shapes {y.shape}, {x.shape}, {group.shape}: give n, (n, k) and n")
    if not np.all(np.isfinite(x)):
        raise CrossfadeError("x must be finite numbers: drop or impute the missing values first")
    if not (0 < intercept_sd < np.inf and 0 < slope_sd < np.inf):
        raise CrossfadeError("intercept_sd and slope_sd must be positive and finite: a prior must be proper")
    labels, index, sizes = np.unique(group, return_inverse=True, return_counts=True)
    order = np.argsort(index, kind="stable")
    signs = flips(y)[order]
    names = tuple(f"b{j}" for j in range(x.shape[1] + 1))
    likelihood = MixedLikelihood(
        signs[:, None] * np.column_stack([np.ones(len(x)), x[order]]),
        signs,
        index[order],
        names,
        int(sizes[0]) if np.all(sizes == sizes[0]) else None,
    )
    sds = dict.fromkeys(names, slope_sd) | {"b0": intercept_sd}
    priors: dict[str, Any] = {name: dist.Normal(np.asarray(0.0), np.asarray(sds[name])) for name in names}
    priors["ls"] = dist.Normal(np.asarray(-0.5), np.asarray(1.0))
    priors["z"] = dist.Normal(np.zeros(len(labels)), np.ones(len(labels)))
    return Model(priors, likelihood, data=y)


def simulate(n_groups: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, x [n, 2] and group of n_groups groups of ten; the effect of the second column fades as groups are added."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), SIZE)
    x = random.normal(size=(len(group), 2))
    effects = 0.8 * random.normal(size=n_groups)
    eta = -0.3 + 0.7 * x[:, 0] + 0.15 * x[:, 1] / np.sqrt(n_groups / 10) + effects[group]
    y = random.uniform(size=len(group)) < 1 / (1 + np.exp(-eta))
    return y.astype(float), x, group


def pair(n_groups: int, seed: int = 1) -> tuple[Model, Model]:
    """M1 with the first column and M2 with both; `REFERENCE` has the log Bayes factors for seed 1."""
    y, x, group = simulate(n_groups, seed)
    return model(y, x[:, :1], group), model(y, x, group)
