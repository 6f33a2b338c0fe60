"""Gaussian graphical models through their belief networks: x_m | its parents ~ N(sum beta_jm x_j, v_m), node by node.

The prior is what Wishart(df, I) on the precision matrix W of all M nodes says about (beta, v) of a complete network,
with its Jacobian: v_m ~ IG((df - M + m) / 2, 1/2), beta_jm | v_m ~ N(0, v_m), all independent over the nodes. A model
without an edge leaves that beta out, so priors of shared parameters are equal and each node is a conjugate regression.
(The Wishart density taken on the network's zero pattern without a Jacobian is another prior, improper in log v.)
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln as jax_gammaln
from numpyro import distributions as dist
from numpyro.distributions import Distribution, constraints
from scipy.special import gammaln

from crossfade.density.model import Model, NoData
from crossfade.paths.path import named_sharing
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Diagonal, Gibbs, UniformMetropolis
from crossfade.types import Array, CrossfadeError, Float, Theta
from crossfade.worlds.conjugate import End, Joint, Regressions, TwoBlocks, regression, together
from crossfade.worlds.design import LOG_2PI, vector

GENES = ("LHY", "PRR9", "PRR7", "NI", "GI", "Y", "TOC1")
# The circadian network of Arabidopsis, each edge along the order of GENES; the mutant lacks PRR9-PRR7 and PRR7-NI.
WILDTYPE: dict[str, tuple[str, ...]] = {
    "PRR9": ("LHY",),
    "PRR7": ("LHY", "PRR9"),
    "NI": ("LHY", "PRR7"),
    "GI": ("LHY",),
    "Y": ("LHY",),
    "TOC1": ("LHY", "PRR9", "GI", "Y"),
}
MUTANT: dict[str, tuple[str, ...]] = {**WILDTYPE, "PRR7": ("LHY",), "NI": ("LHY",)}

Edge = tuple[str, str]  # parent, child


def beta(edge: Edge) -> str:
    """The name of an edge's coefficient."""
    return f"beta_{edge[0]}_{edge[1]}"


class LogInverseGamma(Distribution):
    """log v where 1/v ~ Gamma(a, rate): density rate^a / Gamma(a) exp(-a x - rate e^-x)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.real
    pytree_data_fields = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, *, validate_args: bool | None = None):
        self.concentration, self.rate = concentration, rate
        super().__init__(jnp.shape(concentration), validate_args=validate_args)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        shapes = jnp.broadcast_to(self.concentration, sample_shape + self.batch_shape)
        return jnp.log(self.rate) - jnp.log(standard_gamma(key, shapes))

    def log_prob(self, value: Array) -> Array:
        constant = self.concentration * jnp.log(self.rate) - jax_gammaln(self.concentration)
        return constant - self.concentration * value - self.rate * jnp.exp(-value)


class EdgeNormal(eqx.Module):
    """beta_jm | v_m ~ N(0, v_m)."""

    node: int = eqx.field(static=True)  # m, from 0

    def __str__(self) -> str:
        return f"Normal(0, exp(log_variance[{self.node}] / 2))"

    def __call__(self, theta: Theta) -> dist.Distribution:
        return dist.Normal(0.0, jnp.exp(theta["log_variance"][self.node] / 2))


class NetworkLikelihood(eqx.Module):
    """sum_m log N(x_m; sum_j beta_jm x_j, v_m I), with x compressed by QR so that its cost does not depend on n."""

    x: np.ndarray
    root: np.ndarray  # R of x = Q R, so |x a| = |R a|
    sources: np.ndarray  # columns of R, one per edge: its parent's
    child: Float[np.ndarray, "edge node"]  # 1 where the edge ends
    order: tuple[str, ...] = eqx.field(static=True)
    edges: tuple[Edge, ...] = eqx.field(static=True)

    def squares(self, theta: Theta) -> Array:
        """Residual sums of squares of all nodes."""
        coefficients = vector(theta, tuple(beta(edge) for edge in self.edges))
        return jnp.sum((self.root - (self.sources * coefficients) @ self.child) ** 2, axis=0)

    def __call__(self, theta: Theta) -> Array:
        log_variance = theta["log_variance"]
        return -jnp.sum(len(self.x) * (LOG_2PI + log_variance) + self.squares(theta) * jnp.exp(-log_variance)) / 2


def model(x: Any, parents: dict[str, tuple[str, ...]], order: tuple[str, ...] = GENES, *, df: float = 10.0) -> Model:
    """The network in which `parents` names each node's parents; columns of x [n, M] are the nodes in `order`."""
    x, order = np.asarray(x, float), tuple(order)
    if x.ndim != 2 or x.shape[1] != len(order):
        raise CrossfadeError(f"x has shape {x.shape}: give one column for each of {order}")
    if not np.all(np.isfinite(x)):
        raise CrossfadeError("x must be finite numbers: drop or impute the missing values first")
    if not df > len(order) - 1:
        raise CrossfadeError(
            f"df = {df}: a Wishart prior of {len(order)} nodes is proper for df > {len(order) - 1} only"
        )
    if unknown := sorted({name for child in parents for name in (child, *parents[child])} - set(order)):
        raise CrossfadeError(f"parents names {unknown}, which are no nodes: choose from {order}")
    edges = tuple((parent, child) for child in order for parent in parents.get(child, ()))
    for parent, child in edges:
        if order.index(parent) >= order.index(child):
            raise CrossfadeError(f"{parent} is a parent of {child} but comes after it: order= takes parents first")
    _, root = np.linalg.qr(x)
    shapes = (df - len(order) + np.arange(1, len(order) + 1)) / 2
    priors: dict[str, Any] = {"log_variance": LogInverseGamma(shapes, np.full(len(order), 0.5))}
    children = [order.index(child) for _, child in edges]
    priors |= {beta(edge): EdgeNormal(m) for edge, m in zip(edges, children, strict=True)}
    sources = root[:, [order.index(parent) for parent, _ in edges]]
    return Model(priors, NetworkLikelihood(x, root, sources, np.eye(len(order))[children], order, edges), gibbs, x)


class Network(Regressions):
    """A regression per node; the parameter is the vector of the logs of their variances."""

    power: ClassVar[int] = 0

    def variance_of(self, theta: Theta) -> Array:
        return jnp.exp(theta["log_variance"])

    def named(self, variance: Array) -> Theta:
        return {"log_variance": jnp.log(variance)}


def network(m1: Model, m2: Model) -> Network:
    """The closed-form path between two networks (one of them may have seen no data)."""
    if tempered := named_sharing(m1, m2).tempered:
        raise CrossfadeError(f"{tempered} have other priors in M2 than in M1: give both networks the same df")
    seen = [m.log_likelihood for m in (m1, m2) if not isinstance(m.log_likelihood, NoData)]
    if len({likelihood.order for likelihood in seen}) != 1:
        raise CrossfadeError("the two networks are not of the same nodes in the same order: give both one order=")
    edges = {name: prior.node for m in (m1, m2) for name, prior in m.priors.items() if name != "log_variance"}
    into = [tuple(name for name, node in edges.items() if node == m) for m in range(len(seen[0].order))]
    return together(
        [regression(Network, (_end(m1, m, betas), _end(m2, m, betas)), betas) for m, betas in enumerate(into)]
    )


def _end(m: Model, node: int, betas: tuple[str, ...]) -> End:
    """One node's compressed data above its prior rows, with columns of zeros for the edges that this model lacks."""
    likelihood, prior = m.log_likelihood, m.priors["log_variance"]
    rows, target, n = np.zeros((0, len(betas))), np.zeros(0), 0
    if not isinstance(likelihood, NoData):
        columns = {beta(edge): likelihood.sources[:, i] for i, edge in enumerate(likelihood.edges)}
        target, n = likelihood.root[:, node], len(likelihood.x)
        rows = np.array([columns.get(name, 0 * target) for name in betas]).reshape(-1, len(target)).T
    root = np.vstack([rows, np.eye(len(betas))])
    gamma = float(prior.concentration[node]), float(prior.rate[node])
    return End(root, np.concatenate([target, np.zeros(len(betas))]), 0.0, n, 0.0, *gamma)


def gibbs(m1: Model, m2: Model) -> Gibbs:
    """Coefficients given the variances, variances given them, all nodes at once."""
    return TwoBlocks(network(m1, m2))


def exact(m1: Model, m2: Model) -> Gibbs:
    """Independent draws at every tau, from the closed form."""
    return Gibbs((Joint(network(m1, m2)),))


def metropolis(m1: Model, m2: Model) -> UniformMetropolis:
    """The paper's random walk: all betas and log variances at once, uniform steps on [-0.1, 0.1]."""
    return UniformMetropolis(Diagonal({name: np.asarray(0.1) for name in m1.names + m2.names}))


def log_evidence(m: Model) -> float:
    """log p(x | M), exact: the sum over nodes of normal-inverse-gamma integrals.

    -n/2 log 2 pi - log|H| / 2 + a log b + log Gamma(a + n/2) / Gamma(a) - (a + n/2) log(b + q/2), with D the parents'
    columns, H = I + D'D and q = x'x - x'D H^-1 D'x.
    """
    likelihood, prior = m.log_likelihood, m.priors["log_variance"]
    n, total = len(likelihood.x), 0.0
    for node, x, a, b in zip(likelihood.order, likelihood.root.T, prior.concentration, prior.rate, strict=True):
        d = likelihood.sources[:, [child == node for _, child in likelihood.edges]]
        h = np.eye(d.shape[1]) + d.T @ d
        q = x @ x - x @ d @ np.linalg.solve(h, d.T @ x)
        total += -n / 2 * LOG_2PI - np.linalg.slogdet(h)[1] / 2 + a * np.log(b)
        total += gammaln(a + n / 2) - gammaln(a) - (a + n / 2) * np.log(b + q / 2)
    return float(total)


def log_bayes_factor(m1: Model, m2: Model) -> float:
    """log p(x | M2) - log p(x | M1), exact."""
    return log_evidence(m2) - log_evidence(m1)


def simulate(b: float, n: int = 100, seed: int = 0) -> np.ndarray:
    """x [n, 7] from the wildtype: betas 1, but b for the two edges that the mutant lacks; all variances 1."""
    x = np.random.default_rng(seed).normal(size=(n, len(GENES)))
    for child, names in WILDTYPE.items():
        for parent in names:
            weight = 1.0 if parent in MUTANT[child] else b
            x[:, GENES.index(child)] += weight * x[:, GENES.index(parent)]
    return x


def pair(b: float, n: int = 100, seed: int = 0) -> tuple[Model, Model]:
    """Mutant (M1) and wildtype (M2) of simulated data: log Bayes factors are wildtype over mutant, as the paper's."""
    x = simulate(b, n, seed)
    return model(x, MUTANT), model(x, WILDTYPE)
