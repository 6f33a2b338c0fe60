"""Many models at once: seconds, errors, and answers beside references computed another way.

python benchmarks/ranking.py [pima diabetes progression wide search orders hierarchy]
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy.stats import multivariate_t

import crossfade
from crossfade.bridges.formula import as_model
from crossfade.data import load
from crossfade.ranking import rank
from crossfade.ranking.search import screened
from crossfade.ranking.terms import Subsets, all_subsets
from crossfade.worlds import linear

PAIRS_CHECKED = 6


def cpu(function):
    began = time.process_time()
    return function(), time.process_time() - began


def described(name, ranking, seconds):
    worst = ranking.table["error"].max()
    print(f"{name}: {len(ranking.names):,} models, {seconds:.1f} CPU s, worst error {worst:.4f}, {ranking.verdict}")
    for own, row in list(ranking.table.iterrows())[:3]:
        print(f"    {row.get('model', own)}: probability {row['probability']:.4f}")
    inclusion = ranking.inclusion
    print("    inclusion:", ", ".join(f"{term} {row['probability']:.4f}" for term, row in inclusion.iterrows()))


def beside_laplace(ranking, space: Subsets):
    """What plain Laplace says: its worst error of a relative log evidence, and of an inclusion probability."""
    terms = dict(zip(ranking.names, ranking.terms, strict=True))
    laplace = np.array([screened(space.model(terms[name])) for name in ranking.names])
    gap = (laplace - laplace[0]) - (ranking.log_evidence - ranking.log_evidence[0])
    p = np.exp(laplace - laplace.max())
    p /= p.sum()
    has = {term: np.array([term in own for own in ranking.terms]) for term in ranking.inclusion.index}
    off = {term: p[own].sum() - ranking.inclusion.loc[term, "probability"] for term, own in has.items()}
    worst = max(off, key=lambda term: abs(off[term]))
    print(
        f"    Laplace: a log evidence off by up to {np.abs(gap).max():.3f}, inclusion of {worst} by {off[worst]:+.4f}"
    )


def beside_chains(ranking, space: Subsets):
    """Pairs of the best model and others along the ranking, by chains on the path."""
    terms, best = dict(zip(ranking.names, ranking.terms, strict=True)), ranking.names[0]
    others = ranking.names[1 :: max(len(ranking.names) // PAIRS_CHECKED, 1)][:PAIRS_CHECKED]
    z = []
    for other in others:
        pair = [as_model(space.model(terms[name])) for name in (best, other)]
        right = crossfade.compare(*pair, route="path", target_se=0.01, seed=1, progress=False).log_bayes_factor
        own = ranking.log_bayes_factor(best, other)
        z.append((own.value - right.value) / np.hypot(own.error, right.error))
    print(f"    chains on the path, {len(z)} pairs: z {', '.join(f'{own:+.1f}' for own in z)}")


def subsets(name, table, formula, family, chains=True):
    space = all_subsets(table, formula, family=family)
    ranking, seconds = cpu(lambda: rank(space, progress=False))
    described(name, ranking, seconds)
    if family != "gaussian":
        beside_laplace(ranking, space)
        if chains:
            beside_chains(ranking, space)
        return
    every = max(len(ranking.names) // 200, 1)
    exact = np.array([by_student(space.model(own)) for own in ranking.terms[::every]])
    off = np.abs(exact - ranking.log_evidence[::every]).max()
    print(f"    {len(exact)} of them by the multivariate Student's t of the responses: largest difference {off:.1e}")


def by_student(model):
    """The log density of the responses, coefficients and variance integrated out."""
    shape, rate = model.noise
    spread = np.eye(len(model.y)) + (model.design / model.precision) @ model.design.T
    return multivariate_t(model.design @ model.mean, rate / shape * spread, 2 * shape).logpdf(model.y)


def pima():
    subsets("pima, logistic", load("pima"), "y ~ npreg + glu + bp + skin + bmi + ped + age", "logistic")


COVARIATES = "age + sex + bmi + bp + tc + ldl + hdl + tch + ltg + glu"


def diabetes():
    subsets("diabetes, gaussian", load("diabetes"), f"y ~ {COVARIATES}", "gaussian")


def progression():
    """Whether the disease went on faster than in half of the patients."""
    table = load("diabetes")
    table["fast"] = (table["y"] > table["y"].median()).astype(int)
    subsets("diabetes, logistic", table, f"fast ~ {COVARIATES}", "logistic")


def made_up(n_terms, n_rows=400):
    import pandas

    random = np.random.default_rng(7)
    x = random.normal(size=(n_rows, n_terms))
    beta = np.where(np.arange(n_terms) < 5, [*0.3 / np.arange(1, 6), *[0.0] * (n_terms - 5)], 0.0)
    table = pandas.DataFrame(x, columns=[f"x{k}" for k in range(1, n_terms + 1)])
    table["y"] = x @ beta + random.normal(size=n_rows)
    return table, f"y ~ {' + '.join(table.columns[:-1])}"


def wide():
    subsets("14 terms, gaussian", *made_up(14), "gaussian")


def search():
    ranking, seconds = cpu(lambda: rank(all_subsets(*made_up(30)), progress=False))
    described("30 terms by search, gaussian", ranking, seconds)
    print("   ", ranking.about["search"])


def orders(n_seeds=20):
    """Ten radiocarbon orders by chains: z over seeds; the worst error beside other designs for the same CPU time."""
    models = {f"order {k}": linear.radiocarbon(k) for k in range(1, 11)}
    exact = {name: linear.log_evidence(model) for name, model in models.items()}
    first = "order 5"
    for design in ("tree", "star"):
        z, seconds, errors = [], [], []
        for seed in range(n_seeds if design == "tree" else 5):
            said = {"reference": first} if design == "star" else {}
            ranking, took = cpu(
                lambda seed=seed, design=design, said=said: rank(
                    models, route="path", design=design, seed=seed, target_se=0.02, progress=False, **said
                )
            )
            own = [ranking.log_bayes_factor(first, name) for name in models if name != first]
            truth = [exact[name] - exact[first] for name in models if name != first]
            z += [(e.value - t) / e.error for e, t in zip(own, truth, strict=True)]
            seconds.append(took)
            errors.append(max(e.error for e in own))
        print(
            f"orders 1 to 10, {design}: {len(seconds)} seeds, mean squared z {np.mean(np.square(z)):.2f}, largest "
            f"{np.abs(z).max():.1f}, worst error {np.mean(errors):.4f} in {np.mean(seconds[1:]):.1f} CPU s "
            f"(first {seconds[0]:.1f}); error^2 x s {np.mean(np.square(errors)) * np.mean(seconds[1:]):.1e}",
            flush=True,
        )
    alone, took = cpu(
        lambda: [crossfade.evidence(model, seed=3, target_se=0.02, progress=False) for model in models.values()]
    )
    error = max(np.hypot(one.log_evidence.error, alone[4].log_evidence.error) for one in alone)
    print(f"ten evidences, one by one: worst error of a difference {error:.4f} in {took:.1f} CPU s", end="; ")
    print(f"error^2 x s {error**2 * took:.1e}")


def hierarchy_models():
    """Ten NumPyro models of 24 groups of 8: intercepts, slopes, heavy tails, unequal noise, centred or not."""
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(24), 8)
    x = random.normal(size=len(group))
    y = 1 + 0.4 * x + (0.7 * random.normal(size=24))[group] + random.normal(size=len(group))

    def model(x, group, y, effects, slope, tails, centred=True, unequal=False):
        mu = numpyro.sample("mu", dist.Normal(0, 3))
        noise = numpyro.sample("noise", dist.HalfNormal(2))
        if slope != "none":
            mu = mu + numpyro.sample("beta", dist.Normal(0, 1)) * x
        if effects:
            tau = numpyro.sample("tau", dist.HalfNormal(1))
            a = numpyro.sample("a", dist.Normal(0, tau if centred else 1).expand([24]))
            mu = mu + (a if centred else tau * a)[group]
        if slope == "random":
            spread = numpyro.sample("spread", dist.HalfNormal(1))
            mu = mu + numpyro.sample("b", dist.Normal(0, spread).expand([24]))[group] * x
        if unequal:
            noise = noise * jnp.exp(numpyro.sample("log_ratio", dist.Normal(0, 0.5)) * (x > 0))
        dof = numpyro.sample("dof", dist.Gamma(2, 0.1)) if tails else None
        numpyro.sample("y", dist.StudentT(dof, mu, noise) if tails else dist.Normal(mu, noise), obs=y)

    rows = {
        "flat": (False, "none", False),
        "slope": (False, "fixed", False),
        "groups": (True, "none", False),
        "groups, slope": (True, "fixed", False),
        "groups, slopes": (True, "random", False),
        "slope, tails": (False, "fixed", True),
        "groups, slope, tails": (True, "fixed", True),
        "groups, slopes, tails": (True, "random", True),
    }
    found = {name: (partial(model, effects=e, slope=s, tails=t), x, group, y) for name, (e, s, t) in rows.items()}
    base = {"effects": True, "slope": "fixed", "tails": False}
    found["groups, slope, not centred"] = (partial(model, **base, centred=False), x, group, y)
    found["groups, slope, unequal"] = (partial(model, **base, unequal=True), x, group, y)
    return found


def hierarchy(n_seeds=5):
    """Ten NumPyro models: closure residuals, and one model written in two ways, whose difference is 0."""
    twins, models = ("groups, slope", "groups, slope, not centred"), hierarchy_models()
    residuals, zero, tables = [], [], []
    for seed in range(n_seeds):
        ranking, took = cpu(lambda seed=seed: rank(models, seed=seed, progress=False))
        residuals += [own.residual.value / own.residual.error for own in ranking.closure]
        twin = ranking.log_bayes_factor(*twins)
        zero.append(twin.value / twin.error)
        tables.append(ranking.table["error"].max())
        print(
            f"    seed {seed}: {ranking.verdict}, {ranking.names[0]!r}, {len(ranking.closure)} closures, worst error "
            f"{tables[-1]:.3f}, {took:.0f} CPU s; the model written twice: {twin.value:+.3f} +- {twin.error:.3f}",
            flush=True,
        )
    print(
        f"ten NumPyro models: closure residuals have mean squared z {np.mean(np.square(residuals)):.2f} (largest "
        f"{np.abs(residuals).max():.1f}), the model written twice {np.mean(np.square(zero)):.2f}"
    )


PARTS = {own.__name__: own for own in (pima, diabetes, progression, wide, search, orders, hierarchy)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()
