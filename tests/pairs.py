"""Small pairs of every kind with answers in closed form or by quadrature, for the default method."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, gammaln, logsumexp

from crossfade.density.model import Model

Pair = tuple[Model, Model, float]


def _log_integral(log_f, low: float, high: float) -> float:
    """log of the integral of exp(log_f), scaled by its maximum on a grid."""
    top = max(log_f(x) for x in np.linspace(low, high, 2001))
    return float(np.log(quad(lambda x: np.exp(log_f(x) - top), low, high, limit=500, epsabs=0, epsrel=1e-10)[0]) + top)


def noise() -> Pair:
    """Not nested: the same location and scale, Gaussian against Student-t noise."""
    y = np.random.default_rng(3).standard_t(3, size=40) + 0.5

    def priors():
        return {"mu": dist.Normal(0.0, 2.0), "sigma": dist.HalfNormal(3.0)}

    m1 = Model(priors(), lambda p: dist.Normal(p["mu"], p["sigma"]).log_prob(y).sum(), data=y)
    m2 = Model(priors(), lambda p: dist.StudentT(4.0, p["mu"], p["sigma"]).log_prob(y).sum(), data=y)
    mu, log_sigma = np.meshgrid(np.linspace(-2, 3, 801), np.linspace(-2.5, 2.5, 801), indexing="ij")
    sigma = np.exp(log_sigma)
    log_prior = stats.norm.logpdf(mu, 0, 2) + stats.halfnorm.logpdf(sigma, scale=3) + log_sigma
    cell = np.log(5 / 800) * 2
    of = [sum(family.logpdf(v, *shape, mu, sigma) for v in y) for family, shape in ((stats.norm, ()), (stats.t, (4,)))]
    return m1, m2, float(np.subtract(*[logsumexp(log_prior + o) + cell for o in of[::-1]]))


def priors() -> Pair:
    """One parameter with two priors."""
    y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])

    def likelihood(p):
        return dist.Normal(p["mu"], 1.0).log_prob(y).sum()

    def evidence(mean: float, sd: float) -> float:
        return float(stats.multivariate_normal(np.full(5, mean), np.eye(5) + sd**2).logpdf(y))

    m1 = Model({"mu": dist.Normal(0.0, 1.0)}, likelihood, data=y)
    m2 = Model({"mu": dist.Normal(1.0, 3.0)}, likelihood, data=y)
    return m1, m2, evidence(1.0, 3.0) - evidence(0.0, 1.0)


def nothing_shared() -> Pair:
    """A location in one model, a scale in the other."""
    y = np.random.default_rng(4).normal(0.6, 1.3, size=25)
    m1 = Model({"mu": dist.Normal(0.0, 1.0)}, lambda p: dist.Normal(p["mu"], 1.0).log_prob(y).sum(), data=y)
    m2 = Model({"sd": dist.HalfNormal(2.0)}, lambda p: dist.Normal(0.0, p["sd"]).log_prob(y).sum(), data=y)
    first = float(stats.multivariate_normal(np.zeros(25), np.eye(25) + 1).logpdf(y))
    second = _log_integral(
        lambda s: stats.halfnorm.logpdf(np.exp(s), scale=2) + s + stats.norm.logpdf(y, 0, np.exp(s)).sum(), -3, 3
    )
    return m1, m2, second - first


def one_parameter() -> Pair:
    """Counts: Poisson with a gamma prior against geometric with a uniform one."""
    y = np.array([2, 0, 3, 1, 1, 4, 0, 2, 1, 0])
    n, total = len(y), y.sum()
    m1 = Model({"rate": dist.Gamma(2.0, 1.0)}, lambda p: dist.Poisson(p["rate"]).log_prob(y).sum(), data=y)
    m2 = Model({"p": dist.Beta(1.0, 1.0)}, lambda p: jnp.log(p["p"]) * n + total * jnp.log1p(-p["p"]), data=y)
    first = gammaln(2 + total) - (2 + total) * np.log(1 + n) - gammaln(y + 1).sum()
    return m1, m2, float(betaln(1 + n, 1 + total) - first)


def simplex() -> Pair:
    """Shares of four kinds: two Dirichlet priors."""
    counts = np.array([7, 2, 11, 4])

    def of(alpha: float) -> Model:
        return Model(
            {"share": dist.Dirichlet(np.full(4, alpha))}, lambda p: (counts * jnp.log(p["share"])).sum(), data=counts
        )

    def evidence(alpha: float) -> float:
        return float(gammaln(4 * alpha) - gammaln(4 * alpha + 24) + (gammaln(alpha + counts) - gammaln(alpha)).sum())

    return of(1.0), of(4.0), evidence(4.0) - evidence(1.0)


def positive() -> Pair:
    """Waiting times: exponential against gamma with shape 2; the rate is shared."""
    y = np.random.default_rng(5).gamma(2.0, 0.7, size=15)

    def of(shape: float) -> Model:
        return Model({"rate": dist.Gamma(1.5, 1.0)}, lambda p: dist.Gamma(shape, p["rate"]).log_prob(y).sum(), data=y)

    def evidence(shape: float) -> float:
        a = 1.5 + 15 * shape
        constant = (shape - 1) * np.log(y).sum() - 15 * gammaln(shape) - gammaln(1.5)
        return float(constant + gammaln(a) - a * np.log(1 + y.sum()))

    return of(1.0), of(2.0), evidence(2.0) - evidence(1.0)


def ordered() -> Pair:
    """Three ordered locations against the same with a wider prior; quadrature in the prior's own coordinates."""
    y = np.array([-0.7, 0.2, 1.9])

    def of(sd: float) -> Model:
        base = dist.Normal(np.zeros(3), np.full(3, sd)).to_event(1)
        prior = dist.TransformedDistribution(base, dist.transforms.OrderedTransform())
        return Model({"mu": prior}, lambda p: dist.Normal(p["mu"], 0.5).log_prob(y).sum(), data=y)

    def evidence(sd: float) -> float:
        grid = sd * np.linspace(-8, 8, 161)
        log_weight = stats.norm.logpdf(grid, 0, sd) + np.log(grid[1] - grid[0])
        first = grid[:, None, None]
        second = first + np.exp(grid)[None, :, None]
        third = second + np.exp(grid)[None, None, :]
        total = sum(stats.norm.logpdf(v, location, 0.5) for v, location in zip(y, (first, second, third), strict=True))
        weights = log_weight[:, None, None] + log_weight[None, :, None] + log_weight[None, None, :]
        return float(logsumexp(total + weights))

    return of(1.0), of(2.0), evidence(2.0) - evidence(1.0)


def correlation() -> Pair:
    """A correlation matrix of two: flat prior against one that favours independence."""
    y = np.random.default_rng(6).multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=12)

    def of(concentration: float) -> Model:
        return Model(
            {"corr": dist.LKJ(2, concentration)},
            lambda p: dist.MultivariateNormal(jnp.zeros(2), covariance_matrix=p["corr"]).log_prob(y).sum(),
            data=y,
        )

    def evidence(c: float) -> float:
        def log_f(r: float) -> float:
            prior = (c - 1) * np.log1p(-r * r) - (2 * c - 1) * np.log(2) - betaln(c, c)
            return prior + stats.multivariate_normal([0, 0], [[1, r], [r, 1]]).logpdf(y).sum()

        return _log_integral(log_f, -1 + 1e-9, 1 - 1e-9)

    return of(1.0), of(6.0), evidence(6.0) - evidence(1.0)


PAIRS = {
    make.__name__: make
    for make in (noise, priors, nothing_shared, one_parameter, simplex, positive, ordered, correlation)
}
