"""A level against a line, of the same data, in NumPyro and in PyMC: exact answers and exact posterior draws."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpyro
from numpyro import distributions as dist
from scipy import stats

X = np.linspace(0.0, 1.0, 20)
Y = 0.3 + 1.5 * X + np.random.default_rng(21).normal(size=20)
DESIGNS = (np.ones((20, 1)), np.column_stack([np.ones(20), X]))
NAMES = (("mu",), ("mu", "b"))


def _level(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)


def _line(x, y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mu + b * x, 1.0), obs=y)


@cache
def in_numpyro():
    from crossfade.bridges.numpyro import from_numpyro

    return from_numpyro(_level, Y), from_numpyro(_line, X, Y)


@cache
def in_pymc():
    import pymc as pm

    from crossfade.bridges.pymc import from_pymc

    with pm.Model() as level:
        pm.Normal("y", pm.Normal("mu", 0, 1), 1, observed=Y)
    with pm.Model() as line:
        pm.Normal("y", pm.Normal("mu", 0, 1) + pm.Normal("b", 0, 1) * X, 1, observed=Y)
    return from_pymc(level), from_pymc(line)


PAIRS = {"numpyro": in_numpyro, "pymc": in_pymc}


def truth() -> float:
    first, second = (
        stats.multivariate_normal(np.zeros(20), np.eye(20) + design @ design.T).logpdf(Y) for design in DESIGNS
    )
    return float(second - first)


def posterior(k: int, random: np.random.Generator, y: np.ndarray = Y, shape=(4, 1000)) -> dict[str, np.ndarray]:
    """Independent draws [chain, draw] of the posterior of model k, by name."""
    design = DESIGNS[k]
    precision = np.eye(design.shape[1]) + design.T @ design
    mean = np.linalg.solve(precision, design.T @ y)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    draws = mean + random.normal(size=(*shape, len(mean))) @ root.T
    return {name: draws[..., i] for i, name in enumerate(NAMES[k])}
