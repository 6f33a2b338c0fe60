"""Our pooled HMC beside BlackJAX's window adaptation + NUTS, on the same densities: compilation, CPU, effective draws.

python benchmarks/samplers.py
"""

from __future__ import annotations

import time

import blackjax
import jax
import numpy as np

from crossfade.analysis.mixing import mixing
from crossfade.density.joint import as_joint
from crossfade.density.precision import float64
from crossfade.sampling.draws import warmed
from crossfade.sampling.starts import starts
from crossfade.worlds.glm import logistic, mixed

N_CHAINS, N_WARM, N_DRAWS = 32, 400, 400


def timed(function):
    """Seconds of the first call, and CPU seconds of the second."""
    began = time.perf_counter()
    function(1)
    first = time.perf_counter() - began
    began = time.process_time()
    u = np.asarray(function(2))
    return first, time.process_time() - began, mixing(u)


def ours(model):
    joint = as_joint(model)
    return lambda seed: warmed(joint, jax.random.key(seed), N_CHAINS).more(N_DRAWS).u


def nuts(model):
    joint = as_joint(model)
    density = joint.density

    @jax.jit
    def run(key, first):
        warm = blackjax.window_adaptation(
            blackjax.nuts, density, is_mass_matrix_diagonal=density.coordinates.size > 100
        )

        def chain(key, start):
            adapt, sample = jax.random.split(key)
            (state, parameters), _ = warm.run(adapt, start, N_WARM)
            kernel = blackjax.nuts(density, **parameters)

            def step(state, key):
                state, _ = kernel.step(key, state)
                return state, state.position

            return jax.lax.scan(step, state, jax.random.split(sample, N_DRAWS))[1]

        return jax.vmap(chain)(jax.random.split(key, N_CHAINS), first)

    def call(seed):
        first, _ = starts(joint, density, jax.random.key(seed), N_CHAINS, "M")
        return run(jax.random.key(seed), first)

    return call


if __name__ == "__main__":
    print(f"{N_CHAINS} chains x {N_DRAWS} draws; ESS of the worst coordinate, CPU seconds of the whole second run")
    with float64():
        for name, model in (("Pima M2", logistic.pima()[1]), ("mixed, 100 groups", mixed.pair(100)[1])):
            for label, make in (("pooled HMC", ours), ("window adaptation + NUTS", nuts)):
                first, cpu, mixed_ = timed(make(model))
                rate = mixed_.effective / cpu
                print(
                    f"{name:18s} {label:26s} first call {first:5.1f} s  CPU {cpu:6.2f} s  ESS {mixed_.effective:6.0f}  "
                    f"R-hat {mixed_.r_hat:.3f}  ESS per CPU s {rate:8.0f}",
                    flush=True,
                )
