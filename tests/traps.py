"""Pairs on which Bayes factors go wrong in silence, with their true answers.

Likelihoods are modules, not plain functions, so that many seeds of one trap share a compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp as jax_logsumexp
from likelihoods import Likelihood
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

from crossfade.data import load
from crossfade.density.model import Model
from crossfade.worlds import mixture


class Trap(NamedTuple):
    m1: Model
    m2: Model
    truth: float
    draws: Callable[[int], Any] | None = None  # seed -> the user's own draws


def _model(priors: dict[str, Any], function: Callable[[Any, Any], Any], data: np.ndarray) -> Model:
    return Model(priors, Likelihood(function, np.asarray(data, float)), data=np.asarray(data, float))


def _log_integral(log_f: np.ndarray, *steps: float) -> float:
    return float(logsumexp(log_f) + np.log(steps).sum())


def _folded(p, y):
    return dist.Normal(jnp.abs(p["mu"]), 1.0).log_prob(y).sum()


def separated() -> Trap:
    """Two far modes, +8 and -8, that the two priors weigh differently."""
    y = np.array([7.5, 8.2, 8.4])
    grid = np.linspace(-60, 60, 240_001)
    log_l = stats.norm.logpdf(y[:, None], np.abs(grid), 1).sum(axis=0)
    z = [_log_integral(log_l + stats.norm.logpdf(grid, mean, 5), grid[1] - grid[0]) for mean in (0, 4)]
    m1 = _model({"mu": dist.Normal(0.0, 5.0)}, _folded, y)
    m2 = _model({"mu": dist.Normal(4.0, 5.0)}, _folded, y)
    return Trap(m1, m2, z[1] - z[0])


def _spike(p, y):
    parts = jnp.stack([dist.Normal(0.0, 1.0).log_prob(p["x"]), dist.Normal(6.0, 0.05).log_prob(p["x"]) + y[0]])
    return jax_logsumexp(parts)


def spike() -> Trap:
    """A narrow mode beside a broad one, with most of the mass: few starts find it."""
    y = np.array([np.log(4.0)])
    grid = np.linspace(-40, 40, 800_001)
    log_l = np.logaddexp(stats.norm.logpdf(grid), stats.norm.logpdf(grid, 6, 0.05) + y[0])
    z = [_log_integral(log_l + stats.norm.logpdf(grid, 0, sd), grid[1] - grid[0]) for sd in (5, 2)]
    m1 = _model({"x": dist.Normal(0.0, 5.0)}, _spike, y)
    m2 = _model({"x": dist.Normal(0.0, 2.0)}, _spike, y)
    return Trap(m1, m2, z[1] - z[0])


SCHOOLS = np.array([[28.0, 8, -3, 7, -1, 1, 18, 12], [15.0, 10, 16, 11, 9, 11, 10, 18]])


class Effects(eqx.Module):
    """theta_j ~ N(mu, tau^2), written with its own scale: a funnel where tau is small."""

    def __call__(self, theta):
        return dist.Normal(theta["mu"] * jnp.ones(8), theta["tau"]).to_event(1)


def funnel() -> Trap:
    """Eight schools, centred, against complete pooling."""
    m1 = _model({"mu": dist.Normal(0.0, 10.0)}, lambda p, d: dist.Normal(p["mu"], d[1]).log_prob(d[0]).sum(), SCHOOLS)
    m2 = _model(
        {"mu": dist.Normal(0.0, 10.0), "tau": dist.HalfCauchy(5.0), "theta": Effects()},
        lambda p, d: dist.Normal(p["theta"], d[1]).log_prob(d[0]).sum(),
        SCHOOLS,
    )
    mu = np.linspace(-70, 70, 1401)[:, None]
    log_tau = np.linspace(-12, 12, 2401)[None, :]
    prior = stats.norm.logpdf(mu, 0, 10)
    y, sd = SCHOOLS
    pooled = prior[:, 0] + sum(stats.norm.logpdf(v, mu[:, 0], s) for v, s in zip(y, sd, strict=True))
    full = prior + stats.halfcauchy.logpdf(np.exp(log_tau), scale=5) + log_tau
    full = full + sum(stats.norm.logpdf(v, mu, np.sqrt(s**2 + np.exp(2 * log_tau))) for v, s in zip(y, sd, strict=True))
    return Trap(m1, m2, _log_integral(full, 0.1, 0.01) - _log_integral(pooled, 0.1))


def heavy_tails() -> Trap:
    """M2's own parameter has a Cauchy prior and hardly any data: no Student-t link has its tails."""
    y = np.array([0.4, -1.1, 0.9, 0.3])
    x = np.array([0.05, -0.02, 0.01, 0.03])
    data = np.stack([y, x])
    m1 = _model({"mu": dist.Normal(0.0, 1.0)}, lambda p, d: dist.Normal(p["mu"], 1.0).log_prob(d[0]).sum(), data)
    m2 = _model(
        {"mu": dist.Normal(0.0, 1.0), "b": dist.Cauchy(0.0, 1.0)},
        lambda p, d: dist.Normal(p["mu"] + p["b"] * d[1], 1.0).log_prob(d[0]).sum(),
        data,
    )
    b = np.sinh(np.linspace(-9, 9, 40_001))
    step = np.gradient(b)
    cover = np.eye(4) + 1
    log_l = stats.multivariate_normal(np.zeros(4), cover).logpdf(y - b[:, None] * x)
    z2 = float(logsumexp(log_l + stats.cauchy.logpdf(b) + np.log(step)))
    return Trap(m1, m2, z2 - float(stats.multivariate_normal(np.zeros(4), cover).logpdf(y)))


def _groups(p, d):
    """Group means and within-group sums of squares of 6 groups of 5; the group effects are integrated out."""
    within = dist.Gamma(12.0, 1 / (2 * p["sigma"] ** 2)).log_prob(d[1].sum())
    between = p["sigma"] ** 2 / 5 + (p["sd"] ** 2 if "sd" in p else 0.0)
    return within + dist.Normal(p["mu"], jnp.sqrt(between)).log_prob(d[0]).sum()


def boundary() -> Trap:
    """A variance component that is probably 0: the posterior piles up at its boundary."""
    random = np.random.default_rng(12)
    y = random.normal(size=(6, 5))
    data = np.stack([y.mean(axis=1), ((y - y.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)])
    base = {"mu": dist.Normal(0.0, 2.0), "sigma": dist.HalfNormal(2.0)}
    m1 = _model(dict(base), _groups, data)
    m2 = _model({**base, "sd": dist.HalfNormal(2.0)}, _groups, data)
    mu = np.linspace(-4, 4, 161)[:, None, None]
    sigma = np.linspace(0.4, 2.5, 211)[None, :, None]
    sd = np.linspace(1e-6, 6, 1201)[None, None, :]
    prior = stats.norm.logpdf(mu, 0, 2) + stats.halfnorm.logpdf(sigma, scale=2)
    within = stats.gamma.logpdf(data[1].sum(), 12.0, scale=2 * sigma**2)

    def between(extra):
        return sum(stats.norm.logpdf(v, mu, np.sqrt(sigma**2 / 5 + extra)) for v in data[0])

    z1 = _log_integral(prior + within + between(0.0), 0.05, 0.01)
    f2 = prior + within + between(sd**2) + stats.halfnorm.logpdf(sd, scale=2)
    f2[:, :, [0, -1]] -= np.log(2)  # the trapezoid at the boundary
    return Trap(m1, m2, _log_integral(f2, 0.05, 0.01, 0.005) - z1)


def _sum(p, y):
    return dist.Normal(p["a"] + p.get("b", 0.0), 1.0).log_prob(y).sum()


def not_identified() -> Trap:
    """Only a + b is known: a long ridge."""
    y = np.random.default_rng(13).normal(1.0, 1.0, size=20)
    m1 = _model({"a": dist.Normal(0.0, 5.0)}, _sum, y)
    m2 = _model({"a": dist.Normal(0.0, 5.0), "b": dist.Normal(0.0, 5.0)}, _sum, y)

    def evidence(variance: float) -> float:
        return float(stats.multivariate_normal(np.zeros(20), np.eye(20) + variance).logpdf(y))

    return Trap(m1, m2, evidence(50.0) - evidence(25.0))


def few_draws() -> Trap:
    """The user brings 2 chains of 60 correlated draws."""
    trap = not_identified()
    y = np.asarray(trap.m1.data)
    precision = 20 + 1 / 25

    def draws(seed: int) -> Any:
        random = np.random.default_rng(seed)

        def series(n: int) -> np.ndarray:  # AR(1), autocorrelation 0.9
            x = np.zeros((2, 60, n))
            x[:, 0] = random.standard_normal((2, n))
            for t in range(1, 60):
                x[:, t] = 0.9 * x[:, t - 1] + np.sqrt(0.19) * random.standard_normal((2, n))
            return x

        own = series(3)
        first = {"a": y.sum() / precision + own[:, :, 0] / np.sqrt(precision)}
        total = y.sum() / (20 + 1 / 50) + own[:, :, 1] / np.sqrt(20 + 1 / 50)
        half = own[:, :, 2] * np.sqrt(12.5)
        return first, {"a": total / 2 + half, "b": total / 2 - half}

    return trap._replace(draws=draws)


def banana() -> Trap:
    """A posterior along a parabola, with two arms."""
    y = np.array([4.0])
    m1 = _model({"x": dist.Normal(0.0, 3.0), "z": dist.Normal(0.0, 1.0)}, _bent, y)
    m2 = _model({"x": dist.Normal(1.0, 3.0), "z": dist.Normal(0.0, 2.0)}, _bent, y)
    x, z = np.linspace(-20, 20, 8001)[:, None], np.linspace(-12, 12, 1201)[None, :]
    log_l = stats.norm.logpdf(y[0], x**2 + z, 0.3)
    of = [
        _log_integral(log_l + stats.norm.logpdf(x, m, 3) + stats.norm.logpdf(z, 0, s), 0.005, 0.02)
        for m, s in ((0, 1), (1, 2))
    ]
    return Trap(m1, m2, of[1] - of[0])


def _bent(p, y):
    return dist.Normal(p["x"] ** 2 + p["z"], 0.3).log_prob(y).sum()


def galaxy(n_components: int) -> Model:
    """Velocities of 82 galaxies as a mixture of normals; every labelling of the components is a mode."""
    return mixture.summed(load("galaxy")["velocity"].to_numpy(float), n_components)


TRAPS = {
    make.__name__: make
    for make in (
        separated,
        spike,
        funnel,
        heavy_tails,
        boundary,
        not_identified,
        few_draws,
        banana,
    )
}
