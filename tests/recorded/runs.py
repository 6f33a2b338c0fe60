"""Small runs of every way to an answer, through public names: their numbers are recorded to the last bit.

`python -m recorded.runs [NAME]` (in tests/) records anew, after a change of method that docs/decisions.md tells of.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from pathlib import Path

import jax.numpy as jnp
import jaxlib
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy

import crossfade

FILE = Path(__file__).with_name("answers.json")
Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
TABLE = (
    "TI-standard", "TI-optimal", "CTI", "NETI", "NETI-DIFF", "NETI-DIFF-length", "CTI-DIFF", "AIS", "Crooks",
    "stepping-stone", "BAR", "MBAR",
)  # fmt: skip
SMALL = {"n_iter": 2000, "n_chains": 4, "seed": 3}


def radiata():
    return crossfade.from_formulas(crossfade.data.load("radiata"), "y ~ x", "y ~ z")


def by_table(method):
    return crossfade.compare(*radiata(), method=method, **SMALL)


def by_formula():
    return crossfade.compare(*radiata(), target_se=0.01, seed=1, route="path")


def normal(y, sd):
    mu = numpyro.sample("mu", dist.Normal(0, sd))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def student(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sd = numpyro.sample("sd", dist.HalfNormal(1))
    numpyro.sample("y", dist.StudentT(4, mu, sd), obs=y)


def numpyro_pair():
    return crossfade.from_numpyro(normal, Y, 1.0), crossfade.from_numpyro(student, Y)


def by_numpyro():
    return crossfade.compare(*numpyro_pair(), target_se=0.02, seed=1)


def by_pymc():
    import pymc as pm

    with pm.Model() as first:
        pm.Normal("y", pm.Normal("mu", 0, 1), 1, observed=Y)
    with pm.Model() as second:
        pm.StudentT("y", nu=4, mu=pm.Normal("mu", 0, 1), sigma=pm.HalfNormal("sd", 1), observed=Y)
    return crossfade.compare(crossfade.from_pymc(first), crossfade.from_pymc(second), target_se=0.02, seed=1)


def log_joint(theta, prior_sd):
    return (
        dist.Normal(0.0, prior_sd).log_prob(theta["mu"])
        + dist.HalfNormal(1.0).log_prob(theta["sd"])
        + dist.Normal(theta["mu"], theta["sd"]).log_prob(Y).sum()
    )


def by_log_joint():
    pair = [
        crossfade.from_log_joint(
            lambda theta, sd=sd: log_joint(theta, sd), {"mu": 0.5, "sd": 0.7}, support={"sd": "positive"}, data=Y
        )
        for sd in (1.0, 3.0)
    ]
    return crossfade.compare(*pair, target_se=0.02, seed=1)


def by_numpy_log_joint():
    def function(sd):
        def log_density(theta):
            mu = theta["mu"]
            return -np.log(2 * np.pi) * 3 - np.log(sd) - mu**2 / (2 * sd**2) - ((Y - mu) ** 2).sum() / 2

        def gradient(theta):
            return {"mu": -theta["mu"] / sd**2 + (Y - theta["mu"]).sum()}

        return crossfade.from_numpy_log_joint(log_density, {"mu": 0.5}, gradient=gradient, data=Y)

    return crossfade.compare(function(1.0), function(3.0), n_chains=4, target_se=0.2, budget="400 draws", seed=1)


def folded(theta):
    return dist.Normal(jnp.abs(theta["mu"]), 1.0).log_prob(jnp.array([7.5, 8.2, 8.4])).sum()


def fallback():
    pair = [crossfade.Model({"mu": dist.Normal(mean, 5.0)}, folded) for mean in (0.0, 4.0)]
    return crossfade.compare(*pair, target_se=0.2, seed=1, budget="10000 draws")


def rungs():
    """Two posteriors that hardly overlap, with rungs between: what is shared has another place in each."""
    wide = np.linspace(-1, 1, 40)

    def model(power):
        def log_likelihood(theta):
            return dist.Normal(theta["a"] * wide**power, 0.2).log_prob(3 * wide**3).sum()

        return crossfade.Model({"a": dist.Normal(0.0, 2.0), f"b{power}": dist.Cauchy(0.0, 1.0)}, log_likelihood)

    return crossfade.compare(model(1), model(3), target_se=0.05, seed=1)


def evidence():
    return crossfade.evidence(radiata()[0], target_se=0.02, seed=1)


def own_draws():
    random = np.random.default_rng(5)
    draws = tuple({"mu": Y.sum() / p + random.normal(size=(4, 1000)) / np.sqrt(p)} for p in (5 + 1.0, 5 + 1 / 9))
    pair = [crossfade.from_numpyro(normal, Y, sd) for sd in (1.0, 3.0)]
    return crossfade.compare(*pair, draws=draws, target_se=0.02, seed=1)


def sensitivity():
    pair = numpyro_pair()
    result = crossfade.compare(*pair, target_se=0.05, seed=2)
    return crossfade.prior_sensitivity(*pair, result, "mu", factors=[0.5, 2.0])


RUNS = {
    **{method: (lambda method=method: by_table(method)) for method in TABLE},
    "default, formulas": by_formula,
    "default, NumPyro": by_numpyro,
    "default, PyMC": by_pymc,
    "default, log joint": by_log_joint,
    "default, NumPy log joint": by_numpy_log_joint,
    "default, rungs between": rungs,
    "fallback": fallback,
    "evidence": evidence,
    "own draws": own_draws,
    "sensitivity": sensitivity,
}


def numbers(found) -> dict[str, str]:
    """The answer to the last bit; the draws and the traces as digests."""
    if hasattr(found, "estimates"):
        return {f"x {factor:g}": e.value.hex() for factor, e in zip(found.factors, found.estimates, strict=True)}
    answer = found.log_bayes_factor
    traces = hashlib.sha256()
    for leg in found.legs:
        for trace in (leg.forward, leg.reverse):
            if trace is not None:
                traces.update(np.ascontiguousarray(trace.log_ratio, float).tobytes())
    return {"value": float(answer.value).hex(), "error": float(answer.error).hex(), "traces": traces.hexdigest()[:16]}


def machine() -> str:
    """Where the last bits are the same: one kind of processor, and the libraries that round."""
    flags = next(
        (line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if line.startswith("flags")),
        "",
    )
    parts = [platform.machine(), flags, jaxlib.__version__, np.__version__, scipy.__version__, numpyro.__version__]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def main(names: list[str]) -> None:
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() and names else {"answers": {}}
    for name in names or RUNS:
        kept["answers"][name] = numbers(RUNS[name]())
        print(name, kept["answers"][name], flush=True)
    kept["machine"] = machine()
    FILE.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
