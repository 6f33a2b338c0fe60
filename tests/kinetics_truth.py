"""Michaelis-Menten tempered posteriors by quadrature, in NumPy: an independent truth for up to three rates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp, ndtr

LOG_2PI = np.log(2 * np.pi)


class Orthant(NamedTuple):
    """Nodes of V | s2 ~ N(mu, s2 H^-1) on V >= 0: weights that add up to the mass of the orthant, and means of V."""

    weight: np.ndarray  # [s2, node]
    rates: np.ndarray  # [s, s2, node]


def orthant(precision, mu, s2, n_nodes=24):
    """All but the last coordinate by Gauss-Legendre along the Cholesky factor, the last in closed form."""
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    x, w = np.polynomial.legendre.leggauss(n_nodes)
    sd = np.sqrt(s2)[:, None]
    z = np.zeros((0, len(s2), 1))
    weight = np.ones((len(s2), 1))
    rates = np.zeros((0, len(s2), 1))
    for j in range(len(mu)):
        mean = mu[j] + sd * np.einsum("i,isn->sn", factor[j, :j], z)
        edge = -mean / (sd * factor[j, j])
        if j == len(mu) - 1:
            mass = ndtr(-edge)
            with np.errstate(divide="ignore", invalid="ignore"):
                own = mean + sd * factor[j, j] * np.where(mass > 0, stats.norm.pdf(edge) / mass, 0.0)
            return Orthant(weight * mass, np.concatenate([rates, own[None]]))
        low = np.maximum(edge, -8.5)
        high = np.maximum(edge, 0) + 8.5
        half = (high - low)[..., None] / 2
        nodes = low[..., None] + half * (1 + x)
        weight = (weight[..., None] * half * w * stats.norm.pdf(nodes)).reshape(len(s2), -1)
        own = mean[..., None] + sd[..., None] * factor[j, j] * nodes
        z = np.repeat(z, n_nodes, axis=2)
        rates = np.concatenate([np.repeat(rates, n_nodes, axis=2), own.reshape(1, len(s2), -1)])
        z = np.concatenate([z, nodes.reshape(1, len(s2), -1)])
    raise AssertionError


def tempered(y, columns, uses, tau, hyper, *, n=(1.0, 1.0), extra=0, log_s2=None, log_d2=None):
    """log Z and moments of q_tau at fixed constants; `columns` [s, n] of the union, `uses` [2, s], `n` = 0 for no data.

    `extra` multiplies the priors of s2 and d2 by Phi(1 / sqrt(d2 s2))^extra, which is what a sampler that ignores the
    normaliser of the truncated prior does.
    """
    a_s, b_s, a_d, b_d, _ = hyper
    s, n_data = columns.shape
    log_s2 = np.linspace(-6, 5, 45) if log_s2 is None else log_s2
    log_d2 = np.linspace(-5.5, 8, 46) if log_d2 is None else log_d2
    s2 = np.exp(log_s2)
    power = np.array([(1 - tau) * n[0], tau * n[1]])
    gram, moment = columns @ columns.T, columns @ y
    log_weights, means = [], []
    for x in log_d2:
        d2 = np.exp(x)
        precision = sum(p * np.outer(u, u) * gram for p, u in zip(power, uses, strict=True)) + np.eye(s) / d2
        pull = power @ uses * moment + 1 / d2
        mu = np.linalg.solve(precision, pull)
        rest = power.sum() * y @ y + s / d2 - pull @ mu
        nodes = orthant(precision, mu, s2)
        log_mass = stats.norm.logcdf(1 / np.sqrt(d2 * s2))
        log_density = (
            a_s * np.log(b_s) - gammaln(a_s) - a_s * log_s2 - b_s / s2  # times s2, of the step in log s2
            + a_d * np.log(b_d) - gammaln(a_d) - a_d * x - b_d / d2
            - power.sum() * n_data / 2 * (LOG_2PI + log_s2)
            - rest / (2 * s2) - np.linalg.slogdet(precision)[1] / 2 - s / 2 * x
            + (extra - s) * log_mass
        )  # fmt: skip
        total = nodes.weight.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_weights.append(log_density + np.log(total))
            means.append(np.nan_to_num((nodes.weight * nodes.rates).sum(axis=2) / total))
    log_weights = np.array(log_weights)
    log_z = logsumexp(log_weights) + np.log(log_s2[1] - log_s2[0]) + np.log(log_d2[1] - log_d2[0])
    weights = np.exp(log_weights - logsumexp(log_weights))
    moments = {
        "log variance": (weights * log_s2).sum(),
        "log ridge": (weights * log_d2[:, None]).sum(),
        **{f"rate {j}": (weights * np.array(means)[:, j]).sum() for j in range(s)},
    }
    return log_z, moments


def over_constant(y, own, x, sign, uses, tau, hyper, **kind):
    """The same for one regulator, its constant integrated over [0, 5] too."""
    nodes, w = np.polynomial.legendre.leggauss(16)
    constants = 2.5 * (1 + nodes)
    sd = np.sqrt(hyper[4])
    log_prior = stats.norm.logpdf(constants, 1, sd) - stats.norm.logcdf(1 / sd) + np.log(2.5 * w)
    terms = []
    for k in constants:
        response = x / (x + k) if sign > 0 else k / (x + k)
        terms.append(tempered(y, np.array([-own, response]), uses, tau, hyper, **kind))
    log_weights = np.array([log_z for log_z, _ in terms]) + log_prior
    weights = np.exp(log_weights - logsumexp(log_weights))
    moments = {name: sum(p * m[name] for p, (_, m) in zip(weights, terms, strict=True)) for name in terms[0][1]}
    return logsumexp(log_weights), moments | {"constant": weights @ constants}
