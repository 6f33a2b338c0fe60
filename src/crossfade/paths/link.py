"""The union of two models' coordinates, and the short path over it.

Shared coordinates are read by each end through an affine map of its own; the coordinates that an end does not have
get a fitted linking density. Both are normalised, so log Z_1 - log Z_0 is the log Bayes factor whatever was fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from crossfade.density.joint import Flat, Joint, flat
from crossfade.types import Array, CrossfadeError, Energy, Sharing

# share={"a": "b"} for whole parameters, or {"beta": ("beta", [0, 1], [0, 2])} for some elements of both.
Share = Mapping[str, Any] | Sequence[str] | None


class Union(NamedTuple):
    """Where each model's coordinates stand in the union: shared first, then those of M1 alone, then of M2 alone."""

    where: tuple[np.ndarray, np.ndarray]  # each model's coordinates in the union
    n_shared: int
    size: int
    labels: tuple[str, ...]
    sharing: Sharing

    @property
    def only(self) -> tuple[slice, slice]:
        """The coordinates that only M1 has, and those that only M2 has."""
        n_1 = len(self.where[0])
        return slice(self.n_shared, n_1), slice(n_1, self.size)


def union(j1: Joint, j2: Joint, share: Share = None) -> Union:
    """Match the coordinates of two models by name, or as `share` says."""
    f1, f2 = flat(j1), flat(j2)
    pairs, names = _pairs(j1, j2, f1, f2, share)
    of_1, of_2 = np.array(pairs, int).reshape(-1, 2).T
    if len(set(of_1)) < len(of_1) or len(set(of_2)) < len(of_2):
        raise CrossfadeError("share= names a coordinate twice: each may be shared with one other at most")
    n_shared = len(of_1)
    rest_1, rest_2 = np.setdiff1d(np.arange(f1.size), of_1), np.setdiff1d(np.arange(f2.size), of_2)
    index_1, index_2 = np.empty(f1.size, int), np.empty(f2.size, int)
    index_1[of_1] = index_2[of_2] = np.arange(n_shared)
    index_1[rest_1] = n_shared + np.arange(len(rest_1))
    index_2[rest_2] = f1.size + np.arange(len(rest_2))
    labels_1, labels_2 = f1.labels(), f2.labels()
    labels = [labels_1[i] for i in of_1] + [labels_1[i] for i in rest_1] + [labels_2[i] for i in rest_2]
    sharing = Sharing(
        shared=names,
        only_1=_named(f1, rest_1),
        only_2=_named(f2, rest_2),
        tempered=(),
    )
    return Union((index_1, index_2), n_shared, f1.size + len(rest_2), tuple(labels), sharing)


def _named(density: Flat, coordinates: np.ndarray) -> tuple[str, ...]:
    """Parameters by name where all of their coordinates are among these, single elements where only some are."""
    labels, found = density.labels(), []
    for name, shape in density.shapes.items():
        own = density.offset(name) + np.arange(int(np.prod(shape)))
        inside = np.isin(own, coordinates)
        found += [name] if inside.all() and len(own) else [labels[i] for i in own[inside]]
    return tuple(found)


def _pairs(j1: Joint, j2: Joint, f1: Flat, f2: Flat, share: Share) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    if share is None:
        share = {name: name for name in j1.names if name in j2.places}
    elif isinstance(share, str):
        share = {share: share}
    elif isinstance(share, Sequence) and all(isinstance(name, str) for name in share):
        share = {name: name for name in share}
    elif not isinstance(share, Mapping):
        raise CrossfadeError(f"share = {share!r}: give a list of names, or a dict of names in M1 to names in M2")
    pairs: list[tuple[int, int]] = []
    names: list[str] = []
    for name_1, other in share.items():
        if not isinstance(other, str | tuple | list) or not other:
            raise CrossfadeError(
                f"share= pairs {name_1!r} with {other!r}: give a name of M2, or (name, elements, elements)"
            )
        name_2, *elements = (other,) if isinstance(other, str) else tuple(other)
        for name, joint, which in ((name_1, j1, "M1"), (name_2, j2, "M2")):
            if name not in joint.places:
                raise CrossfadeError(f"share= names {name!r}, which {which} does not have: it has {list(joint.names)}")
        (shape_1, support_1), (shape_2, support_2) = j1.places[name_1], j2.places[name_2]
        if elements:
            pairs += _some(name_1, name_2, f1, f2, elements)
            names.append(f"{name_1} (in part)")
            continue
        if shape_1 != shape_2 or not eqx.tree_equal(support_1, support_2):
            elements_too = ""
            if shape_1 and shape_2 and eqx.tree_equal(support_1, support_2):
                elements_too = f', or share some elements: share={{"{name_1}": ("{name_2}", [0, 1], [0, 2])}}'
            raise CrossfadeError(
                f"parameter {name_1!r} of M1 is of shape {shape_1} with support {_word(support_1)}, but {name_2!r} of "
                f"M2 of shape {shape_2} with support {_word(support_2)}: they cannot be shared. Rename one if they are "
                f"different parameters, or leave it out of share=[...]{elements_too}"
            )
        first_1, first_2 = f1.offset(name_1), f2.offset(name_2)
        pairs += [(first_1 + i, first_2 + i) for i in range(int(np.prod(f1.shapes[name_1])))]
        names.append(name_1 if name_1 == name_2 else f"{name_1} = {name_2}")
    return pairs, tuple(names)


def _some(name_1: str, name_2: str, f1: Flat, f2: Flat, elements: list[Any]) -> list[tuple[int, int]]:
    """Elements of two vectors, by positions or by masks of equal counts."""
    if len(elements) != 2:
        raise CrossfadeError(f"share={{{name_1!r}: ...}}: give (name in M2, elements in M1, elements in M2)")
    if f1.transforms[name_1].domain.event_dim or f2.transforms[name_2].domain.event_dim:
        raise CrossfadeError(f"{name_1!r} has a support that ties its elements together: share all of it or nothing")
    own = []
    for f, name, which in ((f1, name_1, elements[0]), (f2, name_2, elements[1])):
        places = f.offset(name) + np.arange(int(np.prod(f.shapes[name]))).reshape(f.shapes[name])
        try:
            own.append(places[np.asarray(which)].ravel())
        except IndexError as error:
            raise CrossfadeError(
                f"share= picks elements {which} of {name!r}, of shape {places.shape}: {error}"
            ) from None
    if len(own[0]) != len(own[1]):
        raise CrossfadeError(f"share= pairs {len(own[0])} elements of {name_1!r} with {len(own[1])} of {name_2!r}")
    return list(zip(own[0].tolist(), own[1].tolist(), strict=True))


def _word(support: Any) -> str:
    return type(support).__name__.strip("_") if "(" not in str(support) else str(support)


class Link(NamedTuple):
    """A normalised density of some coordinates given the shared ones: Student's t, linear in them."""

    intercept: Array  # [p]
    slopes: Array  # [p, shared]
    root: Array  # of the scale matrix: [p, p] lower triangular, or [p] if it is diagonal
    dof: Array  # large: a Gaussian to the last digit that matters

    def log_density(self, own: Array, shared: Array) -> Array:
        p = self.intercept.shape[0]
        if p == 0:
            return jnp.zeros(())
        residual = own - self.intercept - self.slopes @ shared
        diagonal = self.root if self.root.ndim == 1 else jnp.diagonal(self.root)
        if self.root.ndim == 1:
            residual = residual / self.root
        else:
            residual = jax.scipy.linalg.solve_triangular(self.root, residual, lower=True)
        constant = gammaln((self.dof + p) / 2) - gammaln(self.dof / 2) - p / 2 * jnp.log(self.dof * jnp.pi)
        log_root = jnp.sum(jnp.log(diagonal))
        return constant - log_root - (self.dof + p) / 2 * jnp.log1p(residual @ residual / self.dof)

    def draw(self, random: np.random.Generator, shared: np.ndarray) -> np.ndarray:
        """One draw [.., p] for each row of shared [.., s], in NumPy: nothing to compile."""
        shape = (*shared.shape[:-1], len(self.intercept))
        z = random.standard_normal(shape)
        width = np.sqrt(random.chisquare(float(self.dof), size=shape[:-1]) / float(self.dof))
        move = z * self.root if self.root.ndim == 1 else z @ np.asarray(self.root).T
        return self.intercept + shared @ np.asarray(self.slopes).T + move / width[..., None]


class Warp(NamedTuple):
    """How an end reads the shared coordinates: s = shift + scale v (a vector: elementwise, a matrix: product)."""

    shift: Array
    scale: Array

    def __call__(self, v: Array) -> Array:
        return self.shift + (self.scale * v if self.scale.ndim == 1 else self.scale @ v)

    def inverse(self, s: np.ndarray) -> np.ndarray:
        """v of shared coordinates [n, size], in NumPy."""
        centred = s - self.shift
        return centred / self.scale if self.scale.ndim == 1 else np.linalg.solve(self.scale, centred.T).T

    @property
    def log_volume(self) -> Array:
        return jnp.sum(jnp.log(self.scale if self.scale.ndim == 1 else jnp.diagonal(self.scale)))


class Fit(NamedTuple):
    """What was fitted to draws: a warp per end, the link of M1's own coordinates, the link of M2's own."""

    warps: tuple[Warp, Warp]
    links: tuple[Link, Link]


class ShortPath(eqx.Module):
    """Energies of both ends at a point of the union, given a fit."""

    ends: tuple[Flat, Flat]
    where: tuple[Any, Any]
    n_shared: int = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, j1: Joint, j2: Joint, joined: Union):
        self.ends = (flat(j1), flat(j2))
        self.where = joined.where
        self.n_shared, self.size = joined.n_shared, joined.size

    @property
    def only(self) -> tuple[slice, slice]:
        n_1 = len(self.where[0])
        return slice(self.n_shared, n_1), slice(n_1, self.size)

    def energy(self, v: Array, fit: Fit) -> Energy:
        shared = v[: self.n_shared]
        values = []
        for k in (0, 1):
            whole = v.at[: self.n_shared].set(fit.warps[k](shared))
            own = self.ends[k](whole[self.where[k]]) + fit.warps[k].log_volume
            other = fit.links[1 - k].log_density(v[self.only[1 - k]], shared)
            values.append(own + other)
        return Energy(*values)

    def complete(self, k: int, u: np.ndarray, fit: Fit, random: np.random.Generator) -> np.ndarray:
        """Draws u [n, size of k] of model k's posterior as draws of end k: the other's own come from its link."""
        v = np.zeros((len(u), self.size))
        v[:, self.where[k]] = u
        v[:, : self.n_shared] = fit.warps[k].inverse(v[:, : self.n_shared])
        v[:, self.only[1 - k]] = fit.links[1 - k].draw(random, v[:, : self.n_shared])
        return v


class AtTau(eqx.Module):
    """The density of a rung: the target that the chains between the ends move in."""

    path: ShortPath
    fit: Fit
    tau: Array

    def __call__(self, v: Array) -> Array:
        return self.path.energy(v, self.fit).at(self.tau)


@eqx.filter_jit
def energies(path: ShortPath, v: Array, fit: Fit) -> Energy:
    """Both ends at [chain, draw, union], one draw of all chains at a time: what the sampler's memory could hold."""
    batch = jax.vmap(lambda v: path.energy(v, fit))
    values = jax.lax.map(batch, jnp.moveaxis(v, 1, 0))
    return Energy(*(jnp.moveaxis(value, 0, 1) for value in values))
