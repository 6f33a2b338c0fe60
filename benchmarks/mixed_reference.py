"""Reference log Bayes factors of the logistic mixed pairs, by quadrature and by importance sampling.

Nothing of the package but the data is used. The group effects are integrated out one group at a time by
Gauss-Hermite quadrature; the evidence of what is left (b0, b1, b2, ls) is computed twice. The mean weight of draws
from a Student-t, taken from scrambled Sobol points, has a standard error from independent scramblings; a tensor of
Gauss-Hermite nodes has a difference between two numbers of nodes.

python benchmarks/mixed_reference.py [GROUPS ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri
from scipy.stats import qmc

from crossfade.density.precision import float64
from crossfade.worlds.glm import mixed

DOF = 8
N_SCRAMBLES = 16
N_TENSOR = {10: (33, 41), 100: (15, 19), 1000: (7, 9), 10_000: (5, 7)}  # nodes per parameter
LOG_2_POINTS = {10: 15, 100: 14, 1000: 12, 10_000: 10}  # points of one scrambling
OLD = {10: (-1.6927, 0.0027), 100: (-3.1507, 0.0032), 1000: (-3.3983, 0.0050)}  # an earlier computation's
N_NODES = 64


def log_joint(data: tuple[jax.Array, jax.Array], theta: jax.Array, n_nodes: int) -> jax.Array:
    """log p(y, b, ls), the effects integrated out; exp(-s eta) and exp(s sigma z) are multiplied, not added."""
    y, columns = data  # [10, G] and [10, G, k]
    b, ls = theta[:-1], theta[-1]
    nodes, weights = hermegauss(n_nodes)
    up = jnp.exp(jnp.exp(ls) * nodes)
    odds = jnp.exp((1 - 2 * y) * (columns @ b))  # of being wrong, were the effect 0
    product = jnp.ones((y.shape[1], n_nodes))
    for success, odd in zip(y, odds, strict=True):
        product *= 1 + odd[:, None] * jnp.where(success[:, None] > 0, 1 / up, up)
    log_likelihood = jnp.sum(jnp.log((weights / np.sqrt(2 * np.pi)) @ (1 / product).T))
    sd = jnp.array([5.0] + [2.0] * (len(b) - 1) + [1.0])
    mean = jnp.array([0.0] * len(b) + [-0.5])
    return log_likelihood + jnp.sum(-(((theta - mean) / sd) ** 2) / 2 - jnp.log(sd) - np.log(2 * np.pi) / 2)


class Evidence(NamedTuple):
    """The log evidence by importance sampling and by two tensors of nodes."""

    sampled: float
    error: float
    tensor: tuple[float, float]
    said: str


def log_evidence(n_groups: int, n_slopes: int) -> Evidence:
    y, x, _ = mixed.simulate(n_groups)
    columns = np.column_stack([np.ones(len(y)), x[:, :n_slopes]])
    in_groups = (y.reshape(n_groups, -1).T, columns.reshape(n_groups, -1, n_slopes + 1).transpose(1, 0, 2))
    data = tuple(map(jnp.asarray, in_groups))
    many = jax.jit(partial(jax.lax.map, partial(log_joint, data, n_nodes=N_NODES)))
    n = 2 ** LOG_2_POINTS.get(n_groups, 10)

    def weigh(centre: np.ndarray, root: np.ndarray, scramble: int) -> tuple[np.ndarray, np.ndarray]:
        draws, log_g = student_t(centre, root, n, [n_groups, n_slopes, scramble])
        return draws, np.asarray(many(jnp.asarray(draws))) - log_g

    # A first scrambling only moves the t from the mode to the mean, and gives it the posterior's covariance.
    pilot, log_w = weigh(*mode_and_root(data, n_slopes + 2), N_SCRAMBLES)
    shares = np.exp(log_w - logsumexp(log_w))
    centre, root = shares @ pilot, np.linalg.cholesky(np.cov(pilot.T, aweights=shares))
    runs = [weigh(centre, root, scramble) for scramble in range(N_SCRAMBLES)]
    log_w = np.array([own for _, own in runs])
    means = logsumexp(log_w, axis=1) - np.log(n)
    log_z = float(logsumexp(means) - np.log(N_SCRAMBLES))
    error = np.exp(means - log_z).std(ddof=1) / np.sqrt(N_SCRAMBLES)
    shares = np.exp(log_w - logsumexp(log_w)).ravel()
    draws = runs[0][0][:256]
    finer = jax.jit(partial(jax.lax.map, partial(log_joint, data, n_nodes=3 * N_NODES // 2)))(jnp.asarray(draws))
    moved = np.average(np.asarray(finer - many(jnp.asarray(draws))), weights=shares[: len(draws)])
    said = (
        f"{shares.size} draws, effective {1 / (shares**2).sum() / shares.size:.2f}, largest weight {shares.max():.0e}; "
        f"1.5 times the nodes for effects: {moved:+.0e}"
    )
    coarse, fine = (tensor(many, centre, root, k) for k in N_TENSOR.get(n_groups, (7, 9)))
    return Evidence(log_z, float(error), (coarse, fine), said)


def tensor(many: Callable[[jax.Array], jax.Array], centre: np.ndarray, root: np.ndarray, n_nodes: int) -> float:
    """The log of the integral by n_nodes Gauss-Hermite nodes per parameter, those of next to no weight left out."""
    nodes, weights = hermegauss(n_nodes)
    axes = [np.stack(np.meshgrid(*[values] * len(centre), indexing="ij"), -1) for values in (nodes, np.log(weights))]
    z, log_w = axes[0].reshape(-1, len(centre)), axes[1].sum(axis=-1).ravel()
    kept = log_w > log_w.max() - 45
    z, log_w = z[kept], log_w[kept] + (z[kept] ** 2).sum(axis=1) / 2
    values = np.asarray(many(jnp.asarray(centre + z @ root.T)))
    return float(logsumexp(log_w + values) + np.log(np.diag(root)).sum())


def mode_and_root(data: tuple[jax.Array, ...], size: int) -> tuple[np.ndarray, np.ndarray]:
    """The mode, and a root of the inverse of the curvature there (differences of the gradient)."""
    both = jax.jit(jax.value_and_grad(lambda theta: -log_joint(data, theta, N_NODES)))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = both(jnp.asarray(theta))
        return float(value), np.asarray(gradient)

    start = np.array([-0.3, 0.7, 0.0, -0.2])[[0, 1, *([2] if size == 4 else []), 3]]
    mode = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6}).x
    step: Callable[[int], np.ndarray] = lambda j: 1e-4 * np.eye(size)[j]  # noqa: E731
    rows = [(objective(mode + step(j))[1] - objective(mode - step(j))[1]) / 2e-4 for j in range(size)]
    hessian = (np.array(rows) + np.array(rows).T) / 2
    return mode, np.linalg.cholesky(np.linalg.inv(hessian))


def student_t(mode: np.ndarray, root: np.ndarray, n: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """n points of a multivariate t, and their log densities."""
    size = len(mode)
    uniform = qmc.Sobol(size + 1, rng=np.random.default_rng(seed)).random(n)
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    z = ndtri(uniform[:, :size]) / np.sqrt(gammaincinv(DOF / 2, uniform[:, size:]) * 2 / DOF)
    constant = gammaln((DOF + size) / 2) - gammaln(DOF / 2) - size / 2 * np.log(DOF * np.pi)
    log_det = np.log(np.diag(root)).sum()
    return mode + z @ root.T, constant - log_det - (DOF + size) / 2 * np.log1p((z**2).sum(axis=1) / DOF)


def main(sizes: list[int]) -> None:
    for n_groups in sizes:
        began = time.perf_counter()
        one, two = (log_evidence(n_groups, n_slopes) for n_slopes in (1, 2))
        value, error = two.sampled - one.sampled, float(np.hypot(one.error, two.error))
        coarse, fine = (b - a for a, b in zip(one.tensor, two.tensor, strict=True))
        print(f"G = {n_groups}: log Bayes factor, in {time.perf_counter() - began:.0f} s")
        print(f"    tensor {fine:.6f}, with fewer nodes {coarse:.6f}")
        print(f"    sampled {value:.5f} +- {error:.5f}, {(value - fine) / error:+.1f} sigma from the tensor's")
        if n_groups in OLD:
            old, old_error = OLD[n_groups]
            away = (value - old) / np.hypot(error, old_error)
            print(f"    before {old} +- {old_error}, {away:+.1f} sigma from the sampled")
        for name, own in (("M1", one), ("M2", two)):
            print(f"    {name} tensor {own.tensor[1]:.6f}, sampled {own.sampled:.5f} +- {own.error:.5f}; {own.said}")
        sys.stdout.flush()


if __name__ == "__main__":
    with float64():
        main([int(text) for text in sys.argv[1:]] or list(LOG_2_POINTS))
