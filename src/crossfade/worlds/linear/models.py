"""Linear regression y ~ N(D theta, s2 I): models, tempered Gibbs and exact draws between any two designs.

theta | s2 ~ N(mean, s2 / precision) (or without the s2), 1/s2 ~ Gamma(shape, rate) or s2 known. A pair is sampled
over the zero-padded union of the two designs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from scipy.special import logsumexp

from crossfade.data import load
from crossfade.density.model import Model, NoData, describe, normal_mean_and_precision, without_data
from crossfade.density.precision import in_float64
from crossfade.density.regression import Regression
from crossfade.sampling.kernel import Gibbs
from crossfade.types import Array, CrossfadeError, Theta
from crossfade.worlds.conjugate import Coefficients, End, Joint, Regressions, TwoBlocks, regression
from crossfade.worlds.design import LOG_2PI, checked, per_name, vector
from crossfade.worlds.linear.unscaled import UnscaledCoefficients, UnscaledVariance


class Noise(NamedTuple):
    """1 / variance ~ Gamma(shape, rate)."""

    shape: float
    rate: float


class ScaledNormal(eqx.Module):
    """coefficient | variance ~ N(mean, variance / precision)."""

    mean: np.ndarray
    precision: np.ndarray

    def __str__(self) -> str:
        return f"Normal({float(self.mean):g}, variance / {float(self.precision):g})"

    def __call__(self, theta: Theta) -> dist.Distribution:
        return dist.Normal(self.mean, jnp.sqrt(theta["variance"] / self.precision))


class GaussianLikelihood(eqx.Module):
    """log N(y; D theta, s2 I), with y and D compressed by QR so that its cost does not depend on n."""

    y: np.ndarray
    design: np.ndarray
    root: np.ndarray  # R of D = Q R
    target: np.ndarray  # Q'y
    rest: np.ndarray  # |y - Q Q'y|^2
    variance: np.ndarray | None  # if known
    names: tuple[str, ...] = eqx.field(static=True)

    def squares(self, theta: Theta) -> Array:
        """The residual sum of squares."""
        return self.rest + jnp.sum((self.target - self.root @ vector(theta, self.names)) ** 2)

    def __call__(self, theta: Theta) -> Array:
        variance = theta["variance"] if self.variance is None else self.variance
        return -len(self.y) / 2 * (LOG_2PI + jnp.log(variance)) - self.squares(theta) / (2 * variance)

    def as_regression(self, m: Model) -> Regression | None:
        """The model as numbers, where it is conjugate and its priors are those it was made with."""
        if self.variance is None:
            kind, noise = ScaledNormal, m.priors["variance"]
            if type(noise) is not dist.InverseGamma:
                return None
        else:
            kind = dist.Normal
        if any(type(m.priors[name]) is not kind for name in self.names):
            return None
        mean, precision = _priors(m, m, self.names)
        if self.variance is None:
            return Regression("gaussian", self.y, self.design, self.names, mean, precision, _gamma(m))
        known = float(self.variance)
        return Regression("gaussian", self.y, self.design, self.names, mean, precision * known, known)


def model(
    y: np.ndarray,
    design: np.ndarray,
    names: tuple[str, ...],
    *,
    prior_mean: Any = 0.0,
    prior_precision: Any = 1.0,
    noise: Noise | float = Noise(0.1, 0.1),  # noqa: B008 - immutable
    scaled: bool = True,
) -> Model:
    """A linear model; `noise` is the Gamma prior of the precision or the known variance itself."""
    y, design = checked(y, design, names)
    if "variance" in names:
        raise CrossfadeError("a coefficient may not be called 'variance', the name of the noise variance: rename it")
    if not np.all(np.isfinite(y)):
        raise CrossfadeError("y must be finite numbers: drop or impute the missing values first")
    mean, precision = per_name(prior_mean, names), per_name(prior_precision, names)
    if not (np.all(precision > 0) and np.all(np.isfinite(mean))):
        raise CrossfadeError("prior_precision must be positive (a prior must be proper) and prior_mean finite")
    known = None if isinstance(noise, Noise) else np.asarray(noise, float)
    if np.min(noise) <= 0:
        raise CrossfadeError(f"noise must be positive: a known variance or Noise(shape, rate), got {noise}")
    q, r = np.linalg.qr(design)
    target = q.T @ y
    likelihood = GaussianLikelihood(y, design, r, target, np.sum((y - q @ target) ** 2), known, tuple(names))
    priors: dict[str, Any] = {}
    if isinstance(noise, Noise):
        priors["variance"] = dist.InverseGamma(np.asarray(noise.shape), np.asarray(noise.rate))
    for name, m, lam in zip(names, mean, precision, strict=True):
        if scaled and known is None:
            priors[name] = ScaledNormal(np.asarray(m), np.asarray(lam))
        else:
            priors[name] = dist.Normal(np.asarray(m), np.sqrt((known if scaled else 1.0) / lam))
    return Model(priors, likelihood, gibbs, y)


class Pair(Regressions):
    """One regression whose variance is the parameter of that name, or known."""

    def variance_of(self, theta: Theta) -> Array:
        return theta["variance"] if self.known is None else self.known

    def named(self, variance: Array) -> Theta:
        return {"variance": variance}


def pair(m1: Model, m2: Model) -> Pair:
    """The closed-form path between two models of this file (one of them may have seen no data)."""
    names, known = _union(m1, m2), _known_variance(m1, m2)
    if known is None and not _scaled(m1, m2):
        raise CrossfadeError(
            "no closed form where the variance is unknown and the prior is not scaled by it: use scaled=True, or "
            "sample with gibbs()"
        )
    return regression(Pair, (_end(m1, m2, names, known), _end(m2, m1, names, known)), names, known)


def _union(m1: Model, m2: Model) -> tuple[str, ...]:
    """Names of all coefficients of both models."""
    return tuple(dict.fromkeys(name for m in (m1, m2) for name in m.names if name != "variance"))


def _scaled(m1: Model, m2: Model) -> bool:
    kinds = {isinstance(m.priors[name], ScaledNormal) for m in (m1, m2) for name in m.names if name != "variance"}
    if len(kinds) != 1:
        raise CrossfadeError("one prior is scaled by the noise variance and another is not: use one kind for both")
    return kinds.pop()


def _known_variance(m1: Model, m2: Model) -> np.ndarray | None:
    """The noise variance if both models know it; they must then know the same one."""
    found = [m.log_likelihood.variance for m in (m1, m2) if isinstance(m.log_likelihood, GaussianLikelihood)]
    if len({None if v is None else float(v) for v in found}) != 1:
        raise CrossfadeError("give both linear models the same known noise variance, or a Noise prior each")
    return found[0]


def _priors(m: Model, other: Model, names: tuple[str, ...]) -> np.ndarray:
    """Prior means and precisions [2, p] at m's end; unshared coefficients keep their owner's prior as link."""

    def of(prior: Any) -> tuple[float, float]:
        if isinstance(prior, ScaledNormal):
            return float(prior.mean), float(prior.precision)
        return normal_mean_and_precision(prior)

    return np.array([of(m.priors[name] if name in m.priors else other.priors[name]) for name in names]).T


def _rows(m: Model, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Compressed data rows of one model, zero-padded to the union of names: root, target, rest, n."""
    likelihood = m.log_likelihood
    if isinstance(likelihood, NoData):
        return np.zeros((0, len(names))), np.zeros(0), 0.0, 0
    root = np.zeros((len(likelihood.target), len(names)))
    root[:, [names.index(name) for name in likelihood.names]] = likelihood.root
    return root, likelihood.target, float(likelihood.rest), len(likelihood.y)


def _end(m: Model, other: Model, names: tuple[str, ...], known: np.ndarray | None) -> End:
    root, target, rest, n = _rows(m, names)
    mean, precision = _priors(m, other, names)
    if known is not None:
        precision = precision * float(known)  # relative to the variance, as in the scaled case
    shape, rate = (0.0, 0.0) if known is not None else _gamma(m)
    rows = np.diag(np.sqrt(precision))
    full = np.vstack([root, rows])
    return End(full, np.concatenate([target, rows @ mean]), rest, n, float(np.log(precision).sum()), shape, rate)


def _gamma(m: Model) -> tuple[float, float]:
    prior = m.priors["variance"]
    if type(prior) is not dist.InverseGamma:
        raise CrossfadeError(f"the prior of 'variance' is {describe(prior)}; this sampler is for InverseGamma only")
    return float(prior.base_dist.concentration), float(prior.base_dist.rate)  # NumPyro keeps a transformed Gamma


def gibbs(m1: Model, m2: Model) -> Gibbs:
    """The paper's sampler between two linear models: coefficients given the variance, variance given them."""
    names, known = _union(m1, m2), _known_variance(m1, m2)
    if known is not None:
        return Gibbs((Coefficients(pair(m1, m2)),))
    if _scaled(m1, m2):
        return TwoBlocks(pair(m1, m2))
    roots, targets, _, n = zip(*(_rows(m, names) for m in (m1, m2)), strict=True)
    shape, rate = np.array([_gamma(m) for m in (m1, m2)]).T
    mean, precision = np.stack([_priors(m1, m2, names), _priors(m2, m1, names)], axis=1)
    coefficients = UnscaledCoefficients(
        gram=np.stack([root.T @ root for root in roots]),
        moment=np.stack([root.T @ target for root, target in zip(roots, targets, strict=True)]),
        precision=precision,
        weighted_mean=mean * precision,
        names=names,
    )
    squares = [getattr(m.log_likelihood, "squares", NoData()) for m in (m1, m2)]
    return Gibbs((coefficients, UnscaledVariance((squares[0], squares[1]), shape + np.array(n) / 2, rate)))


def exact(m1: Model, m2: Model) -> Gibbs:
    """Independent draws at every tau, where the tempered posterior has a closed form."""
    return Gibbs((Joint(pair(m1, m2)),))


@in_float64
def log_evidence(m: Model) -> float:
    """log p(y | M), exact: the normal-inverse-gamma integral in the space of the coefficients."""
    if "variance" in m.names and not _scaled(m, m):
        return _over_variance(m)
    return float(pair(without_data(m), m).log_normaliser(jnp.ones(())))


def _over_variance(m: Model) -> float:
    """Integrates evidence given s2 over log s2 on a grid: the integrand decays at both ends, so the sum is exact."""
    y, design, names = m.log_likelihood.y, m.log_likelihood.design, m.log_likelihood.names
    mean, precision = _priors(m, m, names)
    prior = {"prior_mean": mean, "prior_precision": precision, "scaled": False}
    centred, step = np.linspace(-12, 12, 241, retstep=True)
    log_s2 = np.log(np.var(y)) + centred
    log_terms = [
        log_evidence(model(y, design, names, noise=float(s2), **prior)) + float(m.priors["variance"].log_prob(s2))
        for s2 in np.exp(log_s2)
    ]
    return float(logsumexp(log_terms + log_s2) + np.log(step))


def radiata() -> tuple[Model, Model]:
    """Compression strength of 42 pines by density (M1) or resin-adjusted density (M2); log Bayes factor 8.857108."""
    table = load("radiata")

    def of(column: str) -> Model:
        x = table[column].to_numpy(float)
        return model(
            table["y"].to_numpy(float),
            np.column_stack([np.ones(len(x)), x - x.mean()]),
            ("intercept", column),
            prior_mean=(3000.0, 185.0),
            prior_precision=(0.06, 6.0),
            noise=Noise(3.0, 2 * 300.0**2),
        )

    return of("x"), of("z")


def radiocarbon(order: int) -> Model:
    """Calendar age as a polynomial of radiocarbon age (both z-scored), coefficients N(0, s2), Gamma(0.1, 0.1)."""
    table = load("radiocarbon")
    x, y = ((v - v.mean()) / v.std(ddof=1) for v in (table[c].to_numpy(float) for c in ("rc_age", "cal_age")))
    names = tuple(f"x^{k}" for k in range(order + 1))
    return model(y, np.vander(x, order + 1, increasing=True), names, noise=Noise(0.1, 0.1))
