"""Coordinates in which priors with a location and a scale are standard: a cure for funnels, where HMC diverges.

A parameter whose prior has a location and a scale that depend on other parameters is sampled as w, with
theta = loc + scale^away (w - (1 - away) loc): away = 0 is the parameter itself, away = 1 has a standard prior, and what
the data say decides between them (Papaspiliopoulos, Roberts & Skold 2007). A random walk is a sum of waves, each with a
scale of its own: the data know the long ones and not the short ones. Draws are kept in the model's coordinates.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from crossfade.density.coordinates import Coordinates
from crossfade.density.joint import Joint
from crossfade.density.model import given
from crossfade.density.precision import in_float64
from crossfade.density.series import Series, waves
from crossfade.sampling.starts import spread
from crossfade.types import Array, Float, Theta

LOCATION_SCALE = (dist.Normal, dist.StudentT, dist.Cauchy, dist.Laplace, dist.Logistic, dist.Gumbel)
SERIES = (Series, dist.GaussianRandomWalk)
FAMILIES = (*LOCATION_SCALE, dist.MultivariateNormal, *SERIES)
LONGEST_SERIES = 1000  # steps: its waves are a matrix
FEW = 8  # values with one scale or one matrix, which chains may begin with as they are
N_LOOKED_AT = 256  # draws from which `away` is measured
FUNNEL = 0.3  # spread of the log of a scale, above which what it scales lies in a funnel
WIDTHS = 0.01  # quantile of a prior's widths from which on they count as the narrowest, and as the widest
MOST_OTHERS = 8  # draws for each parameter that is held fixed, at least


class Frame(eqx.Module):
    """u(w, away), parameters in order; `priors` are those with a location and a scale that depend on others."""

    coordinates: Coordinates
    priors: dict[str, Any]
    matrices: frozenset[str] = eqx.field(static=True)  # those whose scale is a triangular matrix
    waves: dict[str, Float[np.ndarray, "step wave"]]  # of series: theta = waves xi, with xi ~ Normal(loc, scale)

    def u_and_jacobian(self, w: Array, away: Array) -> tuple[Array, Array]:
        """u, and log|du/dw|."""
        theta: Theta = {}
        parts, log_jacobian = [], jnp.zeros(())
        for name, shape in self.coordinates.shapes.items():
            where = self.coordinates.stretch(name)
            own = w[where].reshape(shape)
            if name in self.priors:
                loc, root, share = self._root(name, theta, own, away)
                if name in self.waves:  # where the others are depends on the first, once it is known
                    first = (loc + root * (own - (1 - share) * loc))[..., :1]
                    loc, root, share = self._root(name, theta, first, away)
                off = own - (1 - share) * loc
                if name in self.matrices:
                    own, width = loc + (root @ off[..., None])[..., 0], jnp.diagonal(root, axis1=-2, axis2=-1)
                else:
                    own, width = loc + root * off, root
                if name in self.waves:
                    own = own @ self.waves[name].T
                log_jacobian += jnp.sum(jnp.broadcast_to(jnp.log(width), shape))
            theta[name] = self.coordinates.transforms[name](own)
            parts.append(jnp.ravel(own))
        return jnp.concatenate(parts), log_jacobian

    def w(self, u: Array, away: Array) -> Array:
        """Back from the model's coordinates."""
        theta, parts = self.coordinates.theta(u), []
        for name, shape in self.coordinates.shapes.items():
            own = u[self.coordinates.stretch(name)].reshape(shape)
            if name in self.priors:
                loc, root, share = self._root(name, theta, own, away)
                own = self._in_waves(name, own)
                if name in self.matrices:
                    root = jnp.broadcast_to(root, (*shape, shape[-1]))
                    off = jax.scipy.linalg.solve_triangular(root, (own - loc)[..., None], lower=True)[..., 0]
                else:
                    off = (own - loc) / root
                own = off + (1 - share) * loc
            parts.append(jnp.ravel(own))
        return jnp.concatenate(parts)

    def _in_waves(self, name: str, values: Array) -> Array:
        return values @ self.waves[name] if name in self.waves else values

    def _location_and_scale(self, name: str, theta: Theta, values: Array) -> tuple[Array, Array]:
        """Given `values`: the first of a series is one of its coordinates."""
        own = _bare(given(self.priors[name], theta))
        if name in self.waves:
            return as_series(own).in_waves(self.waves[name], values[..., 0])
        return location_and_scale(own)

    def _root(self, name: str, theta: Theta, values: Array, away: Array) -> tuple[Array, Array, Array]:
        """The location, d theta / dw, and how far it is standardised."""
        loc, scale = self._location_and_scale(name, theta, values)
        share = away[self.coordinates.stretch(name)].reshape(self.coordinates.shapes[name])
        if name not in self.matrices:
            return loc, scale**share, share
        one = share.ravel()[0]  # for all of them
        return loc, one * scale + (1 - one) * jnp.eye(scale.shape[-1]), share

    def _residual(self, name: str, theta: Theta) -> tuple[Array, Array]:
        """theta - loc and the standard deviation of its prior; with a matrix, in the axes of which it is standard."""
        loc, scale = self._location_and_scale(name, theta, theta[name])
        off = self._in_waves(name, theta[name]) - loc
        if name in self.matrices:
            scale = jnp.broadcast_to(scale, (*off.shape, off.shape[-1]))
            off = jax.scipy.linalg.solve_triangular(scale, off[..., None], lower=True)[..., 0]
            return off, jnp.ones(off.shape)
        return off, jnp.broadcast_to(scale, off.shape)

    def at_first(self) -> np.ndarray:
        """How far to standardise each coordinate before there are draws: what has many values with one scale, wholly.

        Values that shrink together with their scale draw chains in: the density there has no bound.
        """
        away = np.zeros(self.coordinates.size)
        for name in (*self.waves, *self.matrices):
            if self.coordinates.shapes[name][-1] > FEW:
                away[self.coordinates.stretch(name)] = 1.0
        return away

    @in_float64
    def measured(self, u: np.ndarray) -> np.ndarray:
        """How far to standardise each coordinate, from draws u [n, size]: its variance over that of its prior.

        Where there is no funnel, given the parameters that its prior does not depend on: a drift may leave the slope of
        a walk open, but the data know the sum of the two, and to standardise the walk would bend that sum.
        """
        away = np.zeros(u.shape[1])
        u = u[:: max(len(u) // N_LOOKED_AT, 1)]
        rest = self._unframed(len(u))
        # the first draws once more for each of these, with its value from elsewhere: does a prior notice?
        other = np.array([np.where(np.arange(u.shape[1]) == c, u[len(u) // 2 :][:2], u[:2]) for c in rest])
        theta = jax.vmap(self.coordinates.theta)(np.concatenate([u, other.reshape(-1, u.shape[1])]))
        for name in self.priors:
            off, width = jax.tree.map(np.asarray, jax.vmap(partial(self._residual, name))(theta))
            probes = [own[len(u) :].reshape(len(rest), 2, -1) != own[:2].reshape(2, -1) for own in (off, width)]
            fixed = rest[~(probes[0] | probes[1]).any(axis=(1, 2))]
            off, width = off[: len(u)], width[: len(u)]
            # quantiles, since a few chains may be on their way still
            whole, middle = spread(off), np.median(width, axis=0)
            left = _unexplained(off.reshape(len(u), -1), u[:, fixed]).reshape(whole.shape)
            no_funnel = spread(np.log(np.maximum(width, 1e-300))) < FUNNEL
            share = (np.where(no_funnel & (left < whole / 2), left, whole) / middle) ** 2
            share = np.clip(np.nan_to_num(share), 0.0, 1.0)
            if name in self.matrices:
                share = np.full(share.shape, share.mean() > 0.5)
            away[self.coordinates.stretch(name)] = over_widths(share, width).ravel()
        return away

    def _unframed(self, n: int) -> np.ndarray:
        """The coordinates of other parameters; none where they are too many for n draws to tell what they explain."""
        framed = [np.arange(self.coordinates.size)[self.coordinates.stretch(name)] for name in self.priors]
        rest = np.setdiff1d(np.arange(self.coordinates.size), np.concatenate(framed))
        return rest if len(rest) <= n // MOST_OTHERS else rest[:0]

    @in_float64
    def seen(self, u: np.ndarray, away: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points u [n, size] of the model's coordinates in those of `away`, and log|du/dw| there."""
        w, log_jacobian = _seen(self, u, away)
        return np.asarray(w), np.asarray(log_jacobian)

    @in_float64
    def volume(self, w: np.ndarray, away: np.ndarray) -> np.ndarray:
        """log|du/dw| at points w [..., size]."""
        return np.asarray(_volume(self, w.reshape(-1, w.shape[-1]), away)).reshape(w.shape[:-1])

    def only(self, names: Collection[str]) -> Frame | None:
        """Without other parameters: these stay as they are."""
        priors = {name: prior for name, prior in self.priors.items() if name in names}
        if not priors:
            return None
        waves = {name: own for name, own in self.waves.items() if name in names}
        return Frame(self.coordinates, priors, self.matrices & set(names), waves)

    @in_float64
    def moved(self, w: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Points w [n, size] in the coordinates of another `away`."""
        return np.asarray(jax.vmap(lambda w: self.w(self.u_and_jacobian(w, before)[0], after))(w))


@eqx.filter_jit
def _volume(frame: Frame, w: Array, away: Array) -> Array:
    return jax.lax.map(lambda w: frame.u_and_jacobian(w, away)[1], w, batch_size=256)


@eqx.filter_jit
def _seen(frame: Frame, u: Array, away: Array) -> tuple[Array, Array]:
    def one(u: Array) -> tuple[Array, Array]:
        w = frame.w(u, away)
        return w, frame.u_and_jacobian(w, away)[1]

    return jax.lax.map(one, u, batch_size=256)


def _unexplained(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """The spread [p] of what a regression on `by` [n, q] leaves of values [n, p]."""
    values, by = (np.clip(own, *np.quantile(own, [0.05, 0.95], axis=0)) for own in (values, by))
    centred = by - by.mean(axis=0)
    return spread(values - centred @ np.linalg.lstsq(centred, values, rcond=1e-10)[0])


def over_widths(share: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The mean of a share over the log of the prior's widths [n, ...], where `share` is that at their median.

    A value known to s beside a prior of width w has the share 1 / (1 + w^2 / s^2) of it. In coordinates standardised by
    the power a its spread is w^-a / sqrt(w^-2 + s^-2), which with this mean as a is as large in the narrowest part of a
    funnel as in the widest: the steps that suit the one suit the other.
    """
    low, middle, high = np.log(np.maximum(np.quantile(width, [WIDTHS, 0.5, 1 - WIDTHS], axis=0), 1e-300))
    share = np.clip(share, 1e-9, 1 - 1e-9)
    known = middle + np.log(share / (1 - share)) / 2  # log s
    rise = np.logaddexp(0.0, 2 * (high - known)) - np.logaddexp(0.0, 2 * (low - known))
    between = high - low
    return np.where(between > 0.01, 1 - rise / 2 / np.maximum(between, 0.01), share)


def location_and_scale(distribution: Any) -> tuple[Array, Array]:
    """Of a location-scale family; the scale of a multivariate one is a matrix."""
    if isinstance(distribution, dist.MultivariateNormal):
        return distribution.loc, distribution.scale_tril
    return distribution.loc, distribution.scale


def as_series(own: Series | dist.GaussianRandomWalk) -> Series:
    if isinstance(own, Series):
        return own
    return Series(jnp.zeros(()), None, jnp.zeros(()), jnp.ones(()), own.scale)


def _bare(distribution: Any) -> Any:
    while isinstance(distribution, dist.Independent | dist.ExpandedDistribution):
        distribution = distribution.base_dist
    return distribution


def frame_of(joint: Joint) -> Frame | None:
    """Of a model with such priors; None if there are none, or the priors are not known one by one."""
    if not joint.conditional:
        return None
    kinds: dict[str, Any] = {}

    def look(key: Array) -> Array:
        theta = joint.start(key)
        kinds.update({name: _bare(given(prior, theta)) for name, prior in joint.conditional.items()})
        return jnp.zeros(())

    jax.eval_shape(look, jax.random.key(0))
    lengths = {name: joint.coordinates.shapes[name][-1] for name, own in kinds.items() if isinstance(own, SERIES)}
    long = {name for name, length in lengths.items() if length > LONGEST_SERIES}
    priors = {name: joint.conditional[name] for name, own in kinds.items() if isinstance(own, FAMILIES)}
    priors = {name: prior for name, prior in priors.items() if name not in long}
    if not priors:
        return None
    return Frame(
        joint.coordinates,
        priors,
        frozenset(name for name in priors if isinstance(kinds[name], dist.MultivariateNormal)),
        {
            name: waves(length, as_series(kinds[name]).start_scale is not None)
            for name, length in lengths.items()
            if name in priors
        },
    )
