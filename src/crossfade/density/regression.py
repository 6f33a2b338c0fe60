"""A regression as numbers: response, columns, priors. NumPy only, so that an answer need not wait for a compiler.

gaussian: y ~ N(D theta, v), theta ~ N(mean, v / precision), 1/v ~ Gamma(shape, rate), or v known
logistic: P(y = 1) = 1 / (1 + exp(-D theta)), theta ~ N(mean, 1 / precision)
poisson:  y ~ Poisson(exp(D theta)), theta ~ N(mean, 1 / precision)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaln

from crossfade.types import CrossfadeError, Float, Posterior

LOG_2PI = float(np.log(2 * np.pi))
BLOCK = 2**21  # numbers in memory at a time
FACTORS = 512  # in (1, 2]: their product fits a float64, so one logarithm serves so many rows
VARIANCE = "variance"
LARGEST = 40.0  # log rate beyond which NumPy draws no counts
# Counts in all, beyond which y eta and exp(eta) are too large for their difference to be left with enough digits. What
# does without that difference takes longer, and changes nothing for fewer.
MANY = 1e9


class Regression(NamedTuple):
    """One model of the table above; equal names are the same coefficient in another regression."""

    family: str
    y: Float[np.ndarray, " row"]
    design: Float[np.ndarray, "row coefficient"]
    names: tuple[str, ...]
    mean: Float[np.ndarray, " coefficient"]
    precision: Float[np.ndarray, " coefficient"]
    noise: tuple[float, float] | float | None = None  # gaussian: shape and rate, or the known variance
    notes: tuple[str, ...] = ()  # what was done to the table that it is of, said with the result
    title: str = ""  # its formula

    @property
    def data(self) -> np.ndarray:
        """What two models must have in common."""
        return self.y

    @property
    def conjugate(self) -> bool:
        return self.family == "gaussian"

    @property
    def priors(self) -> dict[str, str]:
        """In words, by parameter."""
        said = {}
        if isinstance(self.noise, tuple):
            said[VARIANCE] = "InverseGamma({:g}, {:g})".format(*self.noise)
        known = self.noise if isinstance(self.noise, float) else 1.0
        for name, mean, precision in zip(self.names, self.mean, self.precision, strict=True):
            scale = f"variance / {precision:g}" if VARIANCE in said else f"{np.sqrt(known / precision):g}"
            said[name] = f"Normal({mean:g}, {scale})"
        return said

    def taken(self, where: Sequence[int]) -> Regression:
        """With some of the coefficients, in this order."""
        where = list(where)
        names = tuple(self.names[i] for i in where)
        return self._replace(
            design=self.design[:, where], names=names, mean=self.mean[where], precision=self.precision[where]
        )

    def log_evidence(self) -> float:
        """log p(y) of a gaussian regression, in closed form."""
        _, root, least = self._least_squares()
        n, log_det = len(self.y), np.log(self.precision).sum() / 2 - np.log(np.abs(np.diag(root))).sum()
        if not isinstance(self.noise, tuple):
            assert self.noise is not None
            return float(-n / 2 * (LOG_2PI + np.log(self.noise)) + log_det - least / (2 * self.noise))
        shape, rate = self.noise
        normaliser = shape * np.log(rate) - gammaln(shape)
        after, late = shape + n / 2, rate + least / 2
        return float(-n / 2 * LOG_2PI + log_det + normaliser + gammaln(after) - after * np.log(late))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means and variances of the coefficients of a gaussian regression."""
        return self.expected(np.eye(len(self.names)))

    def expected(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means and variances of the expected responses of a gaussian regression in rows of columns."""
        best, root, least = self._least_squares()
        variance = self.noise
        if isinstance(self.noise, tuple):
            shape, rate = self.noise
            variance = (rate + least / 2) / (shape + len(self.y) / 2 - 1)
        return rows @ best, variance * ((rows @ np.linalg.inv(root)) ** 2).sum(axis=1)

    def posterior(self, n_chains: int, n_draws: int, random: np.random.Generator) -> Posterior:
        """Independent draws of the posterior of a gaussian regression."""
        best, root, least = self._least_squares()
        found: Posterior = {}
        if isinstance(self.noise, tuple):
            shape, rate = self.noise
            gamma = random.gamma(shape + len(self.y) / 2, size=(n_chains, n_draws))
            variance = found[VARIANCE] = (rate + least / 2) / gamma
        else:
            variance = np.full((n_chains, n_draws), self.noise)
        normal = random.standard_normal((n_chains, n_draws, len(best)))
        theta = best + np.sqrt(variance)[..., None] * np.linalg.solve(root, normal[..., None])[..., 0]
        return found | dict(zip(self.names, np.moveaxis(theta, -1, 0), strict=True))

    def simulate(self, random: np.random.Generator) -> np.ndarray:
        """Responses that the model makes up: parameters from the prior, responses given them."""
        variance: Any = 1.0
        if self.conjugate:
            variance = self.noise[1] / random.gamma(self.noise[0]) if isinstance(self.noise, tuple) else self.noise
        eta = self.design @ (self.mean + np.sqrt(variance / self.precision) * random.standard_normal(len(self.mean)))
        if self.family == "logistic":
            return (random.uniform(size=len(eta)) < expit(eta)).astype(float)
        if self.family == "poisson":
            if eta.max() > LARGEST:  # counts of a smaller rate would not be what the model makes up
                raise CrossfadeError(
                    f"the prior makes up Poisson rates beyond e^{LARGEST:g} (this time e^{eta.max():.0f}), of which no "
                    "counts can be drawn: standardise the covariates, or give their priors a smaller sd"
                )
            return random.poisson(np.exp(eta)).astype(float)
        return eta + np.sqrt(variance) * random.standard_normal(len(eta))

    def _least_squares(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Minimiser of S = |y - D theta|^2 + sum precision (theta - mean)^2, R with R'R = S''/2, and the minimum."""
        weight = np.sqrt(self.precision)
        q, root = np.linalg.qr(np.vstack([self.design, np.diag(weight)]))
        target = np.concatenate([self.y, weight * self.mean])
        best = np.linalg.solve(root, q.T @ target)
        residual = np.concatenate([self.y - self.design @ best, weight * (self.mean - best)])
        return best, root, float(residual @ residual)

    def log_joint(self, theta: np.ndarray) -> np.ndarray:
        """log p(y, theta) of a logistic or Poisson regression at points [point, coefficient]."""
        step = max(BLOCK // max(len(self.y), 1), 1)
        found = [self._log_likelihood(theta[i : i + step]) for i in range(0, len(theta), step)]
        away = theta - self.mean
        log_prior = -0.5 * (away**2 @ self.precision) + 0.5 * np.log(self.precision / (2 * np.pi)).sum()
        return np.concatenate([*found, np.zeros(0)]) + log_prior

    def _log_likelihood(self, theta: np.ndarray) -> np.ndarray:
        eta = theta @ self.design.T
        if self.family == "poisson" and self.y.sum() > MANY:
            near, log_near = near_counts(self.y)
            away = np.subtract(eta, np.log(near), out=eta)
            with np.errstate(over="ignore"):
                return away @ self.y - np.expm1(away) @ near + log_near
        explained = theta @ (self.design.T @ self.y)
        if self.family == "poisson":
            with np.errstate(over="ignore"):  # an infinite rate is impossible, and its log likelihood -inf
                return explained - np.exp(eta, out=eta).sum(axis=1) - gammaln(self.y + 1).sum()
        # log(1 + e^x) = (x + |x|) / 2 + log(1 + e^-|x|)
        linear = theta @ self.design.sum(axis=0)
        size = np.abs(eta, out=eta)
        halves = (linear + size.sum(axis=1)) / 2
        factors = np.exp(np.negative(size, out=size), out=size)
        factors += 1
        starts = np.arange(0, len(self.y), FACTORS)
        return explained - halves - np.log(np.multiply.reduceat(factors, starts, axis=1)).sum(axis=1)

    def mode_and_curvature(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the log joint of a logistic or Poisson regression is largest, and minus its second derivatives there.

        It is concave, so damped Newton steps arrive from anywhere; they begin at the prior's mean or at 0.
        """
        try:
            mode, curvature = self._newton()
            np.linalg.cholesky(curvature[::-1, ::-1])  # in this order proposals need it
        except np.linalg.LinAlgError:
            which = ", ".join(map(repr, self._collinear()))
            raise CrossfadeError(
                f"the columns {which} are so nearly collinear that rounding hides what tells them apart: standardise "
                'them (scaling="standardise"), write poly(x, 3) for powers of x, or leave one of them out'
            ) from None
        return mode, curvature

    def _collinear(self) -> list[str]:
        """The columns in the combination of least size, each column having size 1."""
        root = np.linalg.qr(self.design / np.linalg.norm(self.design, axis=0), mode="r")
        weight = np.abs(np.linalg.svd(root)[2][-1])
        return [name for name, own in zip(self.names, weight, strict=True) if own > 0.1 * weight.max()]

    def _newton(self) -> tuple[np.ndarray, np.ndarray]:
        theta = max((self.mean, np.zeros_like(self.mean)), key=lambda at: self.log_joint(at[None])[0])
        for _ in range(200):
            fitted, weight = self._fitted(theta)
            gradient = self.design.T @ (self.y - fitted) - self.precision * (theta - self.mean)
            curvature = (self.design * weight[:, None]).T @ self.design + np.diag(self.precision)
            step = np.linalg.solve(curvature, gradient)
            before = self.log_joint(theta[None])[0]
            while not self.log_joint((theta + step)[None])[0] >= before and np.abs(step).max() > 1e-10:
                step = step / 2
            theta = theta + step
            if gradient @ step < 1e-14:
                break
        return theta, curvature

    def _fitted(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of every response."""
        mean = self.response(self.design @ theta)
        return mean, mean if self.family == "poisson" else mean * (1 - mean)

    def response(self, eta: np.ndarray) -> np.ndarray:
        """The expected response where the linear predictor is eta."""
        if self.family == "poisson":
            return np.exp(eta)
        return np.asarray(expit(eta)) if self.family == "logistic" else eta


def near_counts(y: np.ndarray) -> tuple[np.ndarray, float]:
    """Rates m = max(y, 1), and the log probability of all counts at them: large parts cancel once and for all.

    log P(y | e^eta) = log P(y | m) + y d - m (e^d - 1) with d = eta - log m, and by Stirling's series
    log P(y | y) = -log(2 pi y) / 2 - 1 / (12 y) + 1 / (360 y^3) - ...
    """
    near = np.maximum(y, 1.0)
    exact = y * np.log(near) - near - gammaln(y + 1)
    series = -0.5 * np.log(2 * np.pi * near) - 1 / (12 * near) + 1 / (360 * near**3)
    return near, float(np.where(y < 1e3, exact, series).sum())


def regression_of(model: Any) -> Regression | None:
    """The regression that a model is, if its likelihood says that it is one."""
    if isinstance(model, Regression):
        return model
    read = getattr(getattr(model, "log_likelihood", None), "as_regression", None)
    found = None if read is None else read(model)
    return None if found is None else found._replace(notes=model.notes, title=model.title)


def titles_of(m1: Any, m2: Any) -> dict[str, str]:
    """What the user calls M1 and M2, where that tells them apart."""
    if not (m1.title and m2.title) or m1.title == m2.title:
        return {}
    return {"M1": m1.title, "M2": m2.title}
