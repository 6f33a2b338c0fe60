"""What bounds a step of NETI-DIFF on Pima: its likelihood alone (the whole step: `crossfade paper runtime`).

python benchmarks/pima_likelihood.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.precision import float64
from crossfade.worlds.glm import logistic


def seconds(run: Callable[[], object]) -> float:
    """Best of three."""
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


@eqx.filter_jit
def evaluations(sum_softplus: Callable, design: np.ndarray, coefficients: jax.Array) -> jax.Array:
    """Both Pima likelihoods at one coefficient vector after the other, nothing else."""

    def step(total: jax.Array, theta: jax.Array) -> tuple[jax.Array, None]:
        both = sum_softplus(design[:, :5] @ theta[:5]) + sum_softplus(design @ theta)
        return total + both, None

    return jax.lax.scan(step, jnp.zeros(()), coefficients)[0]


def main() -> None:
    """The likelihood alone, with a log1p per datum and with one log per thousand data."""
    _, m2 = logistic.pima()
    design = m2.log_likelihood.flipped
    theta = 0.1 * jax.random.normal(jax.random.key(1), (20_000, 6))

    def per_datum(eta: jax.Array) -> jax.Array:
        return jnp.sum(jax.nn.softplus(eta))

    def exponentials(eta: jax.Array) -> jax.Array:
        return jnp.sum(jnp.exp(-jnp.abs(eta)))

    print("Pima, one chain, likelihoods alone (532 x 2 data), seconds per 100,000 evaluations")
    for name, function in (
        ("softplus of every datum", per_datum),
        ("log of the product (used)", logistic.sum_softplus),
        ("the exponentials alone", exponentials),
    ):
        jax.block_until_ready(evaluations(function, design, theta))
        wall = seconds(lambda f=function: jax.block_until_ready(evaluations(f, design, theta)))
        print(f"  {name:28s} {wall * 5:6.2f}")


if __name__ == "__main__":
    with float64():
        main()
