"""Our chains beside NumPyro's NUTS and nutpie on the same models: effective draws per CPU second, compilation apart.

python benchmarks/samplers.py [name ...]     (nutpie only if it is installed: on PyMC's own program, or on ours)
"""

from __future__ import annotations

import sys
import time
from functools import partial
from importlib.util import find_spec

import jax
import numpy as np
import numpyro
from hard_pairs import IN_NUMPYRO
from hard_pairs_latent import slopes_pymc

import crossfade
from crossfade.analysis.mixing import Mixing, mixing
from crossfade.density.joint import as_joint
from crossfade.density.precision import float64
from crossfade.sampling.draws import warmed

N_OURS, N_DRAWS = 32, 400
N_NUTS, N_WARM, N_NUTS_DRAWS = 4, 500, 1000


def timed(function) -> tuple[float, float, Mixing]:
    """Seconds of the first call, CPU seconds of the second, and how its draws [chain, draw, size] mix."""
    began = time.perf_counter()
    function(1)
    first, began = time.perf_counter() - began, time.process_time()
    u = np.asarray(function(2))
    return first, time.process_time() - began, mixing(u)


def ours(joint):
    return lambda seed: warmed(joint, jax.random.key(seed), N_OURS).more(N_DRAWS).u


def nuts(joint, model, *args):
    # data as constants: some models index by them, which a traced argument does not allow
    kernel = numpyro.infer.NUTS(partial(model, *args), dense_mass=joint.coordinates.size <= 100, target_accept_prob=0.9)
    chains = numpyro.infer.MCMC(
        kernel, num_warmup=N_WARM, num_samples=N_NUTS_DRAWS, num_chains=N_NUTS, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip

    def call(seed):
        chains.run(jax.random.key(seed))
        return joint.coordinates.unconstrained(chains.get_samples(group_by_chain=True))

    return call


def nutpie_draws(joint, model):
    import nutpie

    compiled = nutpie.compile_pymc_model(model)

    def call(seed):
        made = nutpie.sample(compiled, draws=N_NUTS_DRAWS, tune=N_WARM, chains=N_NUTS, seed=seed, progress_bar=False)
        return joint.coordinates.unconstrained({name: made.posterior[name].values for name in joint.names})

    return call


class Diverged(ValueError):
    is_recoverable = True  # nutpie then counts a divergence


def nutpie_on_ours(joint):
    """nutpie on the compiled log density that our chains use: about 50 us of Python per gradient are its own."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    value_and_grad = jax.jit(jax.value_and_grad(joint.density))
    size = joint.coordinates.size

    def make_logp():
        def logp(u):
            with float64():
                value, slope = value_and_grad(u)
            value, slope = float(value), np.asarray(slope, float)
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                raise Diverged
            return value, slope

        return logp

    starts = np.asarray(warmed(joint, jax.random.key(0), 8).chains.w)
    compiled = from_pyfunc(
        size, make_logp, lambda *_: lambda u: {"u": u}, [np.dtype("float64")], [(size,)], ["u"],
        make_initial_point_fn=lambda seed: starts[(seed or 0) % len(starts)],
    )  # fmt: skip

    def call(seed):
        made = nutpie.sample(
            compiled, draws=N_NUTS_DRAWS, tune=N_WARM, chains=N_NUTS, cores=1, seed=seed, progress_bar=False
        )
        return made.posterior["u"].values

    return call


def rows(name):
    """The samplers of one model, M2 of the pair."""
    if name == "slopes_pymc":
        model = slopes_pymc()[1]
        joint = as_joint(crossfade.from_pymc(model))
        yield "crossfade", ours(joint), joint
        if find_spec("nutpie"):
            yield "nutpie", nutpie_draws(joint, model), joint
        return
    model, *args = IN_NUMPYRO[name]()[1]
    said = {"factors": "likelihood"} if name == "survival" else {}
    joint = as_joint(crossfade.from_numpyro(model, *args, **said))
    yield "crossfade", ours(joint), joint
    yield "NumPyro NUTS", nuts(joint, model, *args), joint
    if find_spec("nutpie"):
        yield "nutpie", nutpie_on_ours(joint), joint


if __name__ == "__main__":
    print(f"{'model':22s} {'size':>4s} {'sampler':14s} first call  CPU s   R-hat  effective  per CPU s")
    with float64():
        for name in sys.argv[1:] or [*IN_NUMPYRO, "slopes_pymc"]:
            for label, function, joint in rows(name):
                first, cpu, mixed = timed(function)
                print(
                    f"{name:22s} {joint.coordinates.size:4d} {label:14s} {first:8.1f} s {cpu:7.2f} {mixed.r_hat:7.3f} "
                    f"{mixed.effective:9.0f} {mixed.effective / cpu:9.0f}",
                    flush=True,
                )
