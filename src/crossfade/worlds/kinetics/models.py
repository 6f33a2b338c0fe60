"""Gene regulation with Michaelis-Menten kinetics: y ~ N(D(K) V, s2 I).

The columns of D are minus the gene's own concentration (degradation) and, for each regulator of concentration x,
x / (x + k) if it activates and k / (x + k) if it inhibits. V | s2, d2 ~ N(1, d2 s2) on V >= 0 (the ridge d2 scales the
prior of the rates), K ~ N(1, v) on K >= 0, s2 and d2 inverse gamma. Both truncated priors are normalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln as jax_gammaln
from numpyro import distributions as dist
from scipy.special import gammaln
from scipy.stats import norm

from crossfade.density.model import Model, NoData
from crossfade.paths.path import Path, direct
from crossfade.types import Array, CrossfadeError, Float, Theta
from crossfade.worlds.design import LOG_2PI
from crossfade.worlds.kinetics.sweep import PrintedSweep, RescalingSweep, Sweep
from crossfade.worlds.kinetics.union import LARGEST, Union, response


class Hyper(NamedTuple):
    """s2 ~ IG(noise_shape, noise_rate), d2 ~ IG(ridge_shape, ridge_rate), K ~ N(1, constant_variance) on K >= 0."""

    noise_shape: float = 0.005
    noise_rate: float = 0.005
    ridge_shape: float = 2.0
    ridge_rate: float = 0.2
    constant_variance: float = 0.5


class ScalePrior(dist.InverseGamma):
    """IG(shape, rate) between 1e-280 and 1e280, and 0 beyond: IG(0.005, 0.005) has 4 % of its mass above.

    The density is not scaled up for the cut: an evidence, to which s2 > 1e280 adds nothing, is that of the whole prior.
    """

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.minimum(super().sample(key, sample_shape), 1e300)  # not inf; as impossible as all beyond the cut

    def log_prob(self, value: Array, intermediates: Any = None) -> Array:
        a, b = self.concentration, self.rate
        safe = jnp.clip(value, 1 / LARGEST, LARGEST)
        log_density = a * jnp.log(b) - jax_gammaln(a) - (a + 1) * jnp.log(safe) - b / safe
        return jnp.where(value == safe, log_density, -jnp.inf)


class PositiveNormal(eqx.Module):
    """N(1, variance) on >= 0: of a rate the variance is d2 s2, of a constant it is given."""

    variance: np.ndarray | None = None

    def __str__(self) -> str:
        return f"Normal(1, {'ridge * variance' if self.variance is None else f'{float(self.variance):g}'}) on >= 0"

    def __call__(self, theta: Theta) -> dist.Distribution:
        if self.variance is not None:
            return dist.TruncatedNormal(1.0, jnp.sqrt(self.variance), low=0.0)
        # The ends of the clip are reached only where the prior of s2 or d2 is 0.
        sd = jnp.clip(jnp.sqrt(theta["ridge"]) * jnp.sqrt(theta["variance"]), 1e-145, 1e150)
        return dist.TruncatedNormal(1.0, sd, low=0.0)


class Kinetics(eqx.Module):
    """log N(y; D(K) V, s2 I)."""

    y: np.ndarray
    own: np.ndarray
    x: Float[np.ndarray, "regulator n"]
    hyper: np.ndarray  # as in Hyper
    regulators: tuple[str, ...] = eqx.field(static=True)
    signs: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, theta: Theta) -> Array:
        fitted = -theta["degradation"] * self.own
        for x, name, sign in zip(self.x, self.regulators, self.signs, strict=True):
            fitted = fitted + theta[f"rate_{name}"] * response(x, theta[f"constant_{name}"], sign < 0)
        squares = jnp.sum((self.y - fitted) ** 2)
        variance = jnp.clip(theta["variance"], 1 / LARGEST, LARGEST)  # beyond, its prior is 0
        log_density = -len(self.y) / 2 * (LOG_2PI + jnp.log(variance)) - squares / (2 * variance)
        return jnp.where(squares < jnp.inf, log_density, -jnp.inf)


def model(
    y: np.ndarray,
    own: np.ndarray,
    regulators: Mapping[str, np.ndarray],
    signs: Mapping[str, int],
    *,
    hyper: Hyper = Hyper(),  # noqa: B008 - immutable
) -> Model:
    """The response y of a gene of concentration `own` to the regulators in `signs` (+1 activates, -1 inhibits)."""
    if missing := sorted(set(signs) - set(regulators)):
        raise CrossfadeError(f"no column for the regulators {missing}: `regulators` has {sorted(regulators)}")
    if wrong := {name: sign for name, sign in signs.items() if sign not in (1, -1)}:
        raise CrossfadeError(f"signs must be +1 (activates) or -1 (inhibits), got {wrong}")
    columns = {"y": y, "own": own, **{name: regulators[name] for name in signs}}
    table = {name: np.asarray(column, float) for name, column in columns.items()}
    for name, column in table.items():
        if column.ndim != 1 or column.shape != table["y"].shape or len(column) == 0:
            raise CrossfadeError(
                f"{name!r} has shape {column.shape} and y {table['y'].shape}: give a vector with a number per datum"
            )
        if not np.all(np.isfinite(column)):
            raise CrossfadeError(f"{name!r} must be finite numbers: drop the rows with missing values first")
        if name != "y" and column.min() < 0:
            raise CrossfadeError(f"{name!r} is a concentration and has values below 0: shift its minimum to 0")
    if min(hyper) <= 0 or not np.all(np.isfinite(hyper)):
        raise CrossfadeError(f"all of {hyper} must be positive and finite: a prior must be proper")
    likelihood = Kinetics(
        table["y"],
        table["own"],
        np.array([table[name] for name in signs]).reshape(len(signs), len(table["y"])),
        np.asarray(hyper, float),
        tuple(signs),
        tuple(int(sign) for sign in signs.values()),
    )
    priors: dict[str, Any] = {
        "variance": ScalePrior(np.asarray(hyper.noise_shape), np.asarray(hyper.noise_rate)),
        "ridge": ScalePrior(np.asarray(hyper.ridge_shape), np.asarray(hyper.ridge_rate)),
        "degradation": PositiveNormal(),
    }
    priors |= {f"rate_{name}": PositiveNormal() for name in signs}
    priors |= {f"constant_{name}": PositiveNormal(np.asarray(hyper.constant_variance)) for name in signs}
    return Model(priors, likelihood, gibbs, table["y"])


def gibbs(m1: Model, m2: Model, *, as_printed: bool = False) -> Sweep:
    """The tempered sampler between two models of one response; one of them may have seen no data.

    `as_printed` leaves the covariance of the rates without s2, multiplies by d2 and s2 where the other updates divide,
    and ignores the normaliser of the truncated prior: what it samples is not the tempered posterior.
    """
    both = union(m1, m2)
    if as_printed:
        return PrintedSweep(both)
    return Sweep(both) if both.n.min() > 0 else RescalingSweep(both)


def union(m1: Model, m2: Model) -> Union:
    """The columns of both designs, checked to be of one response."""
    ends = [m.log_likelihood for m in (m1, m2)]
    if wrong := [end for end in ends if not isinstance(end, Kinetics | NoData)]:
        raise CrossfadeError(f"{type(wrong[0]).__name__} is not of this file: use the sampler of its own world")
    seen = [end for end in ends if isinstance(end, Kinetics)]
    if not seen:
        raise CrossfadeError("neither model has seen data: give at least one that has")
    columns: dict[str, tuple[np.ndarray, int]] = {}
    for end in seen:
        if not (np.array_equal(end.y, seen[0].y) and np.array_equal(end.own, seen[0].own)):
            raise CrossfadeError("the two models are of different responses: build both from the same rows of one gene")
        if not np.array_equal(end.hyper, seen[0].hyper):
            raise CrossfadeError("the two models have different Hyper: use one, or compare with the default method")
        for x, name, sign in zip(end.x, end.regulators, end.signs, strict=True):
            known_x, known_sign = columns.setdefault(name, (x, sign))
            if sign != known_sign:
                raise CrossfadeError(
                    f"{name!r} activates in one model and inhibits in the other, so its rate is another parameter: "
                    "give the regulator another name in one of them"
                )
            if not np.array_equal(x, known_x):
                raise CrossfadeError(f"{name!r} has other values in M1 than in M2: build both from the same table")
    if {name for name in m1.names + m2.names if name.startswith("rate_")} - {f"rate_{name}" for name in columns}:
        raise CrossfadeError("the model without data has regulators that the other has not: pass without_data(m), m")
    uses = [(0, *(j + 1 for j, name in enumerate(columns) if f"rate_{name}" in m.names)) for m in (m1, m2)]
    y, own = seen[0].y, seen[0].own
    a_s, b_s, a_d, b_d, v = seen[0].hyper
    s = len(columns) + 1
    log_constant = sum(a * np.log(b) - gammaln(a) for a, b in ((a_s, b_s), (a_d, b_d))) - s / 2 * LOG_2PI
    log_constant -= (s - 1) * (np.log(2 * np.pi * v) / 2 + norm.logcdf(v**-0.5))
    return Union(
        y,
        -own,
        np.array([x for x, _ in columns.values()]).reshape(len(columns), len(y)),
        np.array([sign < 0 for _, sign in columns.values()], bool),
        np.array([-own @ y, own @ own, y @ y]),
        np.array([float(len(end.y)) if isinstance(end, Kinetics) else 0.0 for end in ends]),
        seen[0].hyper,
        np.asarray(log_constant),
        (uses[0], uses[1]),
        tuple(columns),
    )


class Ones(eqx.Module):
    """The paper's start: V = K = 1, s2 = d2 = 1."""

    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, key: Array) -> Theta:
        return {name: jnp.ones(()) for name in self.names}


def path(m1: Model, m2: Model) -> Path:
    """The direct path, with the paper's start in place of a draw of the priors (whose s2 spans e^-200 to e^200)."""
    start = Ones(tuple(dict.fromkeys(m1.names + m2.names)))
    return Path(direct(m1, m2).energy, start, start)
