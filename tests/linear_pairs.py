"""Small pairs of linear models with exact answers, and keys, shared by the tests."""

from __future__ import annotations

import os

import jax
import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from crossfade.density.model import Model
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.types import State
from crossfade.worlds import linear
from crossfade.worlds.linear.models import ScaledNormal

TAUS = (0.0, 0.3, 1.0)


def key(offset: int) -> jax.Array:
    """A fixed key per offset; CROSSFADE_TEST_SEED moves them all."""
    return jax.random.fold_in(jax.random.key(int(os.environ.get("CROSSFADE_TEST_SEED", "0"))), offset)


def nested(**kind) -> tuple[Model, Model]:
    """y = 1 + 0.5 a + noise; M1 has a, M2 has a and b (n = 30)."""
    random = np.random.default_rng(7)
    a, b = random.normal(size=(2, 30))
    y = 1 + 0.5 * a + 0.3 * b + random.normal(size=30)
    one = np.ones(30)
    return (
        linear.model(y, np.column_stack([one, a]), ("one", "a"), **kind),
        linear.model(y, np.column_stack([one, a, b]), ("one", "a", "b"), **kind),
    )


def crossed(**kind) -> tuple[Model, Model]:
    """Not nested, and the shared slope has another prior in M2, so it is tempered."""
    random = np.random.default_rng(8)
    a, b, c = random.normal(size=(3, 25))
    y = a + 0.4 * b + random.normal(size=25)
    return (
        linear.model(y, np.column_stack([a, b]), ("a", "b"), prior_precision=(1.0, 0.5), **kind),
        linear.model(y, np.column_stack([a, c]), ("a", "c"), prior_mean=(0.5, 0.0), prior_precision=2.0, **kind),
    )


KINDS = {
    "scaled": {"noise": linear.Noise(2.0, 1.5), "scaled": True},
    "unscaled": {"noise": linear.Noise(2.0, 1.5), "scaled": False},
    "known": {"noise": 0.8, "scaled": False},
}


def log_bayes_factor(pair: tuple[Model, Model]) -> float:
    return linear.log_evidence(pair[1]) - linear.log_evidence(pair[0])


def priors(m: Model) -> tuple[np.ndarray, np.ndarray]:
    """Prior means and precisions of the coefficients (relative to the variance where the prior is scaled by it)."""
    own = [m.priors[name] for name in m.log_likelihood.names]
    means = [prior.mean if isinstance(prior, ScaledNormal) else prior.loc for prior in own]
    precisions = [prior.precision if isinstance(prior, ScaledNormal) else prior.scale**-2.0 for prior in own]
    return np.array(means, float), np.array(precisions, float)


def log_evidence_of_data(m: Model) -> float:
    """log p(y | M) in the space of the data: y is multivariate t (or normal) of covariance I + D Q^-1 D'.

    Where the prior is not scaled by an unknown variance, that is integrated over log s2 on a grid.
    """
    y, design = m.log_likelihood.y, m.log_likelihood.design
    mean, precision = priors(m)
    spread, away, n = (design / precision) @ design.T, y - design @ mean, len(y)

    def log_det_and_square(variance: float) -> tuple[float, float]:
        # A Cholesky factor by hand: SciPy's densities drop small eigenvalues, which is wrong for large raw scales.
        factor = np.linalg.cholesky(variance * np.eye(n) + spread)
        return np.log(np.diag(factor)).sum(), np.sum(solve_triangular(factor, away, lower=True) ** 2)

    def given(variance: float) -> float:
        log_det, square = log_det_and_square(variance)
        return float(-n / 2 * np.log(2 * np.pi) - log_det - square / 2)

    if "variance" not in m.names:
        return given(float(m.log_likelihood.variance))
    prior = m.priors["variance"]
    if isinstance(m.priors[m.log_likelihood.names[0]], ScaledNormal):
        a, b = float(prior.concentration), float(prior.rate)
        log_det, square = log_det_and_square(1.0)
        constant = gammaln(a + n / 2) - gammaln(a) + a * np.log(b) - n / 2 * np.log(2 * np.pi)
        return float(constant - log_det - (a + n / 2) * np.log(b + square / 2))
    log_s2, step = np.linspace(np.log(np.var(y)) - 12, np.log(np.var(y)) + 12, 241, retstep=True)
    return float(logsumexp([given(np.exp(x)) + float(prior.log_prob(np.exp(x))) + x for x in log_s2]) + np.log(step))


def exact_draws(pair: tuple[Model, Model], tau: float, n: int, offset: int) -> State:
    """n independent draws of q_tau, from the closed form."""
    keys = chain_keys(key(offset), n)
    _, state = anneal(direct(*pair), linear.exact(*pair), np.array([tau]), keys, schedule=Schedule(1, 0, 0))
    return state
