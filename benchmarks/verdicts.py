"""How often is a right answer called trustworthy, and are the z-scores of answer and checks of variance 1?

python benchmarks/verdicts.py [NAME ...] [--seeds 20] [--z]      (--z: z-scores over the seeds, at smaller errors)

A right answer is within 3 errors of the truth, with an error of at most what was asked for.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

import crossfade
from crossfade.papers import clock
from crossfade.worlds import kinetics, linear
from crossfade.worlds.glm import logistic, mixed

SCHOOLS = np.array([[28.0, 8, -3, 7, -1, 1, 18, 12], [15.0, 10, 16, 11, 9, 11, 10, 18]])


def pooled(y, sd):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    numpyro.sample("y", dist.Normal(mu, sd), obs=y)


def schools(y, sd):
    mu, tau = numpyro.sample("mu", dist.Normal(0, 10)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(y)):
        z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mu + tau * z, sd), obs=y)


def eight_schools():
    y, sd = SCHOOLS
    mu, log_tau = np.linspace(-70, 70, 1401)[:, None], np.linspace(-12, 12, 2401)[None, :]
    prior = stats.norm.logpdf(mu, 0, 10)
    one = prior[:, 0] + sum(stats.norm.logpdf(v, mu[:, 0], s) for v, s in zip(y, sd, strict=True))
    two = prior + stats.halfcauchy.logpdf(np.exp(log_tau), scale=5) + log_tau
    two = two + sum(stats.norm.logpdf(v, mu, np.sqrt(s**2 + np.exp(2 * log_tau))) for v, s in zip(y, sd, strict=True))
    truth = logsumexp(two) + np.log(0.01) - logsumexp(one)
    return (crossfade.from_numpyro(pooled, y, sd), crossfade.from_numpyro(schools, y, sd)), float(truth), 0.0


def counts(x, group, y):
    eta = numpyro.sample("b0", dist.Normal(0, 2))
    for j in range(x.shape[1]):
        eta = eta + numpyro.sample(f"b{j + 1}", dist.Normal(0, 1)) * x[:, j]
    log_sd = numpyro.sample("log_sd", dist.Normal(-0.5, 1))
    with numpyro.plate("group", 60):
        z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Poisson(jnp.exp(eta + jnp.exp(log_sd) * z[group])), obs=y)


def poisson():
    """Counts of 60 groups of five, with an effect per group; M2 has one covariate more."""
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(60), 5)
    x = random.normal(size=(300, 2))
    y = random.poisson(np.exp(0.5 + 0.4 * x[:, 0] + 0.05 * x[:, 1] + 0.6 * random.normal(size=60)[group]))
    nodes, weights = hermegauss(60)

    def log_joint(theta: np.ndarray, k: int) -> float:
        eta = theta[0] + x[:, :k] @ theta[1 : k + 1]
        log_rate = eta[:, None] + np.exp(theta[-1]) * nodes
        terms = (y[:, None] * log_rate - np.exp(log_rate) - gammaln(y + 1)[:, None]).reshape(60, 5, -1).sum(axis=1)
        likelihood = logsumexp(terms + np.log(weights / weights.sum()), axis=1).sum()
        prior = stats.norm.logpdf(theta[0], 0, 2) + stats.norm.logpdf(theta[1 : k + 1]).sum()
        return float(likelihood + prior + stats.norm.logpdf(theta[-1], -0.5, 1))

    def log_evidence(k: int) -> tuple[float, float]:
        found = minimize(lambda t: -log_joint(t, k), np.zeros(k + 2), method="BFGS")
        centre, scale = found.x, 2 * found.hess_inv
        for n in (2000, 2000, 8000):  # of which the first two only find the place and the spread
            t = stats.multivariate_t(centre, scale, df=8, seed=k)
            draws = t.rvs(n)
            weight = np.array([log_joint(own, k) for own in draws]) - t.logpdf(draws)
            share = np.exp(weight - logsumexp(weight))
            centre, scale = share @ draws, np.cov(draws.T, aweights=share)
        value = logsumexp(weight) - np.log(len(weight))
        return float(value), float(np.exp(weight - value).std() / np.sqrt(len(weight)))

    (one, error_1), (two, error_2) = log_evidence(1), log_evidence(2)
    pair = tuple(crossfade.from_numpyro(counts, x[:, :k], group, y) for k in (1, 2))
    return pair, two - one, float(np.hypot(error_1, error_2))


def biopathway(network: str, instance: int, gene: str):
    """No closed form: the published answers of the default method, which long runs of NETI-DIFF agree with."""
    table = Path(__file__).parents[1] / "docs" / "paper" / "biopathway-responses.csv"
    rows = list(csv.DictReader(table.open()))
    (row,) = (r for r in rows if (r["network"], r["instance"], r["gene"]) == (network, str(instance), gene))
    own = clock.response(network, instance, gene)
    sets = (clock.WILDTYPE[gene], clock.MUTANT[gene])
    pair = tuple(kinetics.model(own.y, own.own, own.regulators, signs) for signs in sets)
    return pair, float(row["estimate"]), float(row["error"])


def radiata():
    pair = linear.radiata()
    return pair, linear.log_evidence(pair[1]) - linear.log_evidence(pair[0]), 0.0


PAIRS = {
    "radiata": (radiata, 0.01, 0.002),
    "pima": (lambda: (logistic.pima(), -2.625013, 0.0), 0.01, 0.002),
    "mixed-10": (lambda: (mixed.pair(10), *mixed.REFERENCE[10]), 0.02, 0.01),
    "mixed-100": (lambda: (mixed.pair(100), *mixed.REFERENCE[100]), 0.02, 0.01),
    "schools": (eight_schools, 0.02, 0.01),
    "poisson": (poisson, 0.02, 0.01),
}
GENES = [gene for gene in clock.GENES if clock.WILDTYPE[gene] != clock.MUTANT[gene]]
PAIRS |= {
    f"{network}-{instance}-{gene}": (lambda n=network, i=instance, g=gene: biopathway(n, i, g), 0.05, 0.05)
    for network in clock.NETWORKS
    for instance in clock.INSTANCES
    for gene in GENES
}


def main(names: list[str], n_seeds: int, fine: bool) -> None:
    total: Counter = Counter()
    for name in names:
        make, *targets = PAIRS[name]
        pair, truth, truth_error = make()
        words: Counter = Counter()
        z: dict[str, list[float]] = {"answer": [], "hysteresis": [], "slope": []}
        seconds, reasons = [], []
        for seed in range(n_seeds):
            began = time.process_time()
            result = crossfade.compare(*pair, target_se=targets[fine], seed=seed, route="path")
            seconds.append(time.process_time() - began)
            found = result.raw_estimate
            off = (found.value - truth) / np.hypot(found.error, truth_error)
            right = abs(off) < 3 and found.error <= targets[fine]
            words[f"{'right' if right else 'off'}, {result.verdict}"] += 1
            z["answer"].append(off)
            for check, expected in (("hysteresis", 0.0), ("slope", 1.0)):
                if check in result.checks:
                    own = result.checks[check]
                    z[check].append((own.value - expected) / max(own.error, 1e-300))
            reasons += [f"    seed {seed}: {reason}" for reason in result.reasons]
        total += words
        scores = ", ".join(f"{key} {np.mean(np.square(own)):.2f}" for key, own in z.items() if own)
        print(f"{name:22s} {dict(words)}  z^2: {scores}  {np.median(seconds):.1f} CPU s", flush=True)
        print("\n".join(reasons), end="\n" if reasons else "", flush=True)
    right = sum(n for word, n in total.items() if word.startswith("right"))
    print(f"{total['right, trustworthy']} of {right} right answers are called trustworthy: {dict(total)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(PAIRS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--z", action="store_true")
    arguments = parser.parse_args()
    main(arguments.names, arguments.seeds, arguments.z)
