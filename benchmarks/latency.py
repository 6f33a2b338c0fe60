"""How long until an answer: cold, from the disk cache, for another data set; and what a loop leaves behind.

python benchmarks/latency.py [--loop 200]

Every row is a process of its own. "cold" has an empty cache, "cached" that of the row before; wall seconds, imports
included. "next" is another data set of the same shapes in the same process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap

SET_UP = {
    "Pima, formula": """
        import crossfade
        table = crossfade.data.load("pima")
        def run(seed):
            t = table.sample(frac=1, random_state=seed, replace=True).reset_index(drop=True) if seed else table
            right = "npreg + glu + bmi + ped"
            return crossfade.compare(*crossfade.from_formulas(t, "y ~ " + right, "y ~ " + right + " + age",
                                     family="logistic"), progress=False)
    """,
    "Pima, NumPyro": """
        import numpy as np, numpyro, numpyro.distributions as dist, crossfade
        table = crossfade.data.load("pima")
        def model(x, y):
            b = numpyro.sample("b0", dist.Normal(0, 10.0))
            for j in range(x.shape[1]):
                b = b + numpyro.sample(f"b{j + 1}", dist.Normal(0, 10.0)) * x[:, j]
            numpyro.sample("y", dist.Bernoulli(logits=b), obs=y)
        def run(seed):
            t = table.sample(frac=1, random_state=seed, replace=True) if seed else table
            x = t[["npreg", "glu", "bmi", "ped", "age"]].to_numpy(float)
            x = (x - x.mean(0)) / x.std(0, ddof=1)
            y = t["y"].to_numpy(float)
            return crossfade.compare((model, x[:, :4], y), (model, x, y), progress=False)
    """,
    "Pima, PyMC": """
        import pymc as pm, crossfade
        table = crossfade.data.load("pima")
        def model(x, y):
            with pm.Model() as made:
                eta = pm.Normal("b0", 0, 10.0)
                for j in range(x.shape[1]):
                    eta = eta + pm.Normal(f"b{j + 1}", 0, 10.0) * x[:, j]
                pm.Bernoulli("y", logit_p=eta, observed=y)
            return made
        def run(seed):
            t = table.sample(frac=1, random_state=seed, replace=True) if seed else table
            x = t[["npreg", "glu", "bmi", "ped", "age"]].to_numpy(float)
            x = (x - x.mean(0)) / x.std(0, ddof=1)
            y = t["y"].to_numpy(int)
            return crossfade.compare(model(x[:, :4], y), model(x, y), progress=False)
    """,
    "mixed, 100 groups": """
        import crossfade
        from crossfade.worlds.glm import mixed
        def run(seed):
            return crossfade.compare(*mixed.pair(100, seed=1 + seed), progress=False)
    """,
}
REPORT = """
import json, resource, time
first = time.time() - float({began!r})
found = []
for seed in range(1, {n} + 1):
    start = time.perf_counter()
    run(seed)
    found.append(time.perf_counter() - start)
maps = open("/proc/self/maps").read().count("\\n") if __import__("os").path.exists("/proc/self/maps") else -1
rss = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
print(json.dumps(dict(first=first, next=found, maps=maps, rss=rss)))
"""


def measure(name: str, cache: str, n: int) -> dict:
    import time

    code = textwrap.dedent(SET_UP[name]) + "\nrun(0)\n" + REPORT.format(began=time.time(), n=n)
    env = {**os.environ, "CROSSFADE_CACHE": cache, "PYTHONHASHSEED": "0"}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(n_loop: int) -> None:
    print("                      cold s  cached s  next s   memory MB and maps: after 3 data sets, after the loop")
    for name in SET_UP:
        with tempfile.TemporaryDirectory() as cache:
            cold, cached = measure(name, cache, 3), measure(name, cache, n_loop)
        after = sorted(cached["next"])[len(cached["next"]) // 2]
        left = "   ".join(f"{found['rss']:6.0f}, {found['maps']:5d}" for found in (cold, cached))
        print(f"{name:20s} {cold['first']:7.1f} {cached['first']:9.1f} {after:7.2f}   {left}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loop", type=int, default=200)
    main(parser.parse_args().loop)
