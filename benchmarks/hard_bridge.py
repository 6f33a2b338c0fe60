"""The hard pairs' log Bayes factors once more, by bridge sampling NumPyro's own draws of NumPyro's own densities.

python benchmarks/hard_bridge.py [NAME ...]     prints them beside hard_references.csv

Each evidence is Meng and Wong's iterated bridge (1996) between NUTS draws, unconstrained, and a Gaussian fitted to the
other half of the chains, both ways round; the error is over independent runs. It sees only what NUTS sees, so pairs
with funnels are drawn non-centred, and jumps and mirrored peaks are left to the references.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hard_pairs
import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.handlers import reparam
from numpyro.infer import MCMC, NUTS, init_to_median
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import initialize_model
from scipy.linalg import solve_triangular
from scipy.special import log_expit, logsumexp

N_RUNS, N_CHAINS, N_DRAWS = 4, 4, 1000
FUNNELS = {"horseshoe": {"beta": LocScaleReparam(0)}}
NAMES = [
    "survival",
    "ordered",
    "scalar_vector",
    "gaussian_process",
    "slopes_numpyro",
    "counts_noncentred",
    "groups_noncentred",
    "predator",
    "horseshoe",
    "random_walk",
    "volatility_noncentred",
]
Logs = Callable[[np.ndarray], np.ndarray]


def sample(model: Callable[..., Any], args: tuple[Any, ...]) -> tuple[np.ndarray, Logs]:
    """Draws [chain, draw, d], and the log joint of many points, both without constraints."""
    info = initialize_model(jax.random.key(0), model, model_args=args, init_strategy=init_to_median)
    start, unflatten = ravel_pytree(info.param_info.z)

    def energy(x: jax.Array) -> jax.Array:
        return info.potential_fn(unflatten(x))

    n = N_RUNS * N_CHAINS
    said = {"num_warmup": 1000, "num_samples": N_DRAWS, "num_chains": n, "chain_method": "vectorized"}
    chains = MCMC(NUTS(potential_fn=energy, target_accept_prob=0.95), progress_bar=False, **said)
    chains.run(jax.random.key(1), init_params=start + 0.1 * jax.random.normal(jax.random.key(2), (n, len(start))))
    many = jax.jit(lambda points: jax.lax.map(lambda x: -energy(x), points))
    return np.asarray(chains.get_samples(group_by_chain=True)), lambda points: np.asarray(many(points))


def bridge(own: np.ndarray, fit: np.ndarray, log_joint: Logs, random: np.random.Generator) -> float:
    """The log evidence from draws [n, d] of the posterior and a Gaussian fitted to other draws of it."""
    n, d = own.shape
    centre, root = fit.mean(axis=0), np.linalg.cholesky(np.cov(fit.T).reshape(d, d))
    drawn = centre + random.normal(size=(n, d)) @ root.T

    def log_ratio(points: np.ndarray) -> np.ndarray:
        z = solve_triangular(root, (points - centre).T, lower=True)
        gaussian = -np.sum(z**2, axis=0) / 2 - np.log(np.diag(root)).sum() - d / 2 * np.log(2 * np.pi)
        logs = log_joint(points) - gaussian
        return np.where(np.isfinite(logs), logs, -np.inf)

    of_own, of_drawn = log_ratio(own), log_ratio(drawn)
    value = float(np.median(of_own))
    for _ in range(1000):
        up = logsumexp(log_expit(of_drawn - value)) - np.log(n)
        down = logsumexp(log_expit(value - of_own)) - np.log(n) - value
        value, before = up - down, value
        if abs(value - before) < 1e-8:
            break
    return value


def evidences(model: Callable[..., Any], args: tuple[Any, ...]) -> np.ndarray:
    """One log evidence of each run."""
    draws, log_joint = sample(model, args)
    random, d, found = np.random.default_rng(3), draws.shape[-1], []
    for run in np.split(draws, N_RUNS):
        one, two = (half.reshape(-1, d) for half in np.split(run, 2))
        found.append((bridge(one, two, log_joint, random) + bridge(two, one, log_joint, random)) / 2)
    return np.array(found)


def main(asked: list[str]) -> None:
    with Path(__file__).with_name("hard_references.csv").open() as file:
        references = {row["name"]: (float(row["reference"]), float(row["error"])) for row in csv.DictReader(file)}
    for name in asked or NAMES:
        began = time.time()
        calls = hard_pairs.IN_NUMPYRO[name]()
        first, second = (evidences(reparam(model, config=FUNNELS.get(name, {})), args) for model, *args in calls)
        runs = second - first
        value, error = runs.mean(), runs.std(ddof=1) / np.sqrt(N_RUNS)
        reference, its_error = references[name]
        print(f"{name:22s} {value:9.4f} +- {error:.4f}  reference {reference:9.4f} +- {its_error:.4f}", end="  ")
        print(f"M1 {first.mean():.3f} M2 {second.mean():.3f}  {time.time() - began:.0f} s", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    with jax.enable_x64(True):
        main(sys.argv[1:])
