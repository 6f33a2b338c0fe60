"""Seconds per 100,000 NETI-DIFF iterations beside the paper's table: one chain, and per chain when vectorised.

    python benchmarks/paper_runtime.py

Compilation is not counted (it is printed apart). CPU seconds stand beside wall seconds because XLA may use more
than one core. Likelihood work per iteration is also timed alone, to show what bounds a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.models import linear, logistic
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import sigmoid
from crossfade.sampling.model import Model
from crossfade.sampling.path import direct
from crossfade.sampling.precision import float64

PAPER = {"Radiata": 81.6, "Pima": 9.3, "Radiocarbon 4-6": 19.5}  # seconds, single chain, Matlab on an i7-6700HQ


def problems() -> dict[str, tuple[tuple[Model, Model], Callable[..., Kernel]]]:
    return {
        "Radiata": (linear.radiata(), linear.gibbs),
        "Pima": (logistic.pima(), logistic.paper_metropolis),
        "Radiocarbon 4-6": ((linear.radiocarbon(4), linear.radiocarbon(6)), linear.gibbs),
    }


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Best of three, wall and CPU seconds."""
    best = (np.inf, np.inf)
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    return best


def seconds(pair: tuple[Model, Model], kernel: Callable[..., Kernel], n_chains: int) -> tuple[float, float, float]:
    """First call, and wall and CPU seconds of 100,000 iterations of one of n_chains chains."""
    n_iter = 100_000 if n_chains == 1 else 20_000
    path, mover, tau = direct(*pair), kernel(*pair), sigmoid(n_iter)
    keys = chain_keys(jax.random.key(0), n_chains)
    schedule = Schedule(n_warm_up=0)
    began = time.perf_counter()
    anneal(path, mover, tau, keys, schedule=schedule)
    first = time.perf_counter() - began
    wall, cpu = timed(lambda: anneal(path, mover, tau, keys, schedule=schedule))
    unit = 100_000 / n_iter / n_chains
    return first, wall * unit, cpu * unit


@eqx.filter_jit
def evaluations(sum_softplus: Callable, design: np.ndarray, coefficients: jax.Array) -> jax.Array:
    """Both Pima likelihoods at one coefficient vector after the other, nothing else."""

    def step(total: jax.Array, theta: jax.Array) -> tuple[jax.Array, None]:
        both = sum_softplus(design[:, :5] @ theta[:5]) + sum_softplus(design @ theta)
        return total + both, None

    return jax.lax.scan(step, jnp.zeros(()), coefficients)[0]


def what_bounds_pima() -> None:
    """The likelihood alone, with a log1p per datum and with one log per thousand data."""
    _, m2 = logistic.pima()
    design = m2.log_likelihood.flipped
    theta = 0.1 * jax.random.normal(jax.random.key(1), (20_000, 6))

    def per_datum(eta: jax.Array) -> jax.Array:
        return jnp.sum(jax.nn.softplus(eta))

    def exponentials(eta: jax.Array) -> jax.Array:
        return jnp.sum(jnp.exp(-jnp.abs(eta)))

    print("\nPima, one chain, likelihoods alone (532 x 2 data), seconds per 100,000 evaluations")
    for name, function in (
        ("softplus of every datum", per_datum),
        ("log of the product (used)", logistic.sum_softplus),
        ("the exponentials alone", exponentials),
    ):
        jax.block_until_ready(evaluations(function, design, theta))
        wall, _ = timed(lambda f=function: jax.block_until_ready(evaluations(f, design, theta)))
        print(f"  {name:28s} {wall * 5:6.2f}")


def main() -> None:
    print("seconds per 100,000 iterations        paper    one chain  paper/ours   per chain of 64 (CPU)   compile")
    with float64():
        for name, (pair, kernel) in problems().items():
            first, one, _ = seconds(pair, kernel, 1)
            _, many, cpu = seconds(pair, kernel, 64)
            paper = PAPER[name]
            print(
                f"{name:34s} {paper:8.1f} {one:11.3f} {paper / one:11.0f} {many:13.3f} ({cpu:.3f}) {first - one:13.1f}"
            )
        what_bounds_pima()


if __name__ == "__main__":
    main()
