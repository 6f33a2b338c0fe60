"""What two models have in common: their parameters, and their data.

The Bayes factor does not depend on what is shared, only its variance does: so what cannot be shared is not, unless it
was asked for by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import numpy as np

from crossfade.density.coordinates import Coordinates
from crossfade.density.digest import in_order
from crossfade.density.joint import Joint
from crossfade.density.model import elementwise
from crossfade.types import CrossfadeError, Sharing

# share={"a": "b"} for whole parameters, or {"beta": ("beta", [0, 1], [0, 2])} for some elements of both.
Share = Mapping[str, Any] | Sequence[str] | None


class HasData(Protocol):
    """A model that may know its responses."""

    @property
    def data(self) -> Any: ...


class Match(NamedTuple):
    """Parameters of M1 and the parameters of M2 that they are: whole ones by name, or some elements of two vectors."""

    whole: dict[str, str]  # name in M1 -> name in M2
    parts: dict[str, tuple[str, Any, Any]]  # name in M1 -> name in M2, elements in M1, elements in M2
    apart: tuple[str, ...] = ()  # why parameters of one name are not shared

    def names(self) -> tuple[str, ...]:
        whole = (a if a == b else f"{a} = {b}" for a, b in self.whole.items())
        return (*whole, *(f"{name} (in part)" for name in self.parts))


def match(j1: Joint, j2: Joint, share: Share = None) -> Match:
    """By name where shapes and supports agree, or as `share` says."""
    if share is None:
        common = [name for name in j1.names if name in j2.places]
        reasons = {name: mismatch(j1, j2, name, name) for name in common}
        whole = {name: name for name in common if not reasons[name]}
        apart = tuple(f"{name!r} is in both models, but {why}" for name, why in reasons.items() if why)
        return Match(whole, {}, apart)
    found = Match({}, {})
    for name_1, other in _pairs(share).items():
        if not isinstance(other, str | tuple | list) or not other:
            raise CrossfadeError(
                f"share= pairs {name_1!r} with {other!r}: give a name of M2, or (name, elements, elements)"
            )
        name_2, *elements = (other,) if isinstance(other, str) else tuple(other)
        for name, joint, which in ((name_1, j1, "M1"), (name_2, j2, "M2")):
            if name not in joint.places:
                raise CrossfadeError(f"share= names {name!r}, which {which} does not have: it has {list(joint.names)}")
        if elements:
            if len(elements) != 2:
                raise CrossfadeError(f"share={{{name_1!r}: ...}}: give (name in M2, elements in M1, elements in M2)")
            found.parts[name_1] = (name_2, *elements)
        elif why := mismatch(j1, j2, name_1, name_2):
            raise CrossfadeError(
                f"share= asks for {name_1!r} of M1 and {name_2!r} of M2, but {why}. Leave it out of share=[...]"
                + _some_elements(j1, j2, name_1, name_2)
            )
        else:
            found.whole[name_1] = name_2
    return found


def _pairs(share: Mapping[str, Any] | Sequence[str]) -> Mapping[str, Any]:
    if isinstance(share, str):
        return {share: share}
    if isinstance(share, Sequence) and all(isinstance(name, str) for name in share):
        return {name: name for name in share}
    if not isinstance(share, Mapping):
        raise CrossfadeError(f"share = {share!r}: give a list of names, or a dict of names in M1 to names in M2")
    return share


def still_shared(j1: Joint, j2: Joint, share: Share) -> tuple[Share, list[str]]:
    """What was asked for and could be shared, without what one model has put in order since; and that in words."""
    if share is None:
        return None, []
    kept, gone = {}, []
    for name_1, other in _pairs(share).items():
        name_2 = other if isinstance(other, str) else other[0]
        if mismatch(j1, j2, name_1, name_2) and (name_1 in j1.numbered or name_2 in j2.numbered):
            gone.append(f"{name_1!r} is not shared as asked, since components can be numbered in several ways")
        else:
            kept[name_1] = other
    return (kept, gone) if gone else (share, [])


def mismatch(j1: Joint, j2: Joint, name_1: str, name_2: str) -> str:
    """Why two parameters cannot be one, or nothing."""
    (shape_1, support_1), (shape_2, support_2) = j1.places[name_1], j2.places[name_2]
    if shape_1 != shape_2:
        return f"it has shape {shape_1} in M1 and {shape_2} in M2"
    if not eqx.tree_equal(elementwise(support_1), elementwise(support_2)):
        return f"its support is {_word(support_1)} in M1 and {_word(support_2)} in M2"
    return ""


def _some_elements(j1: Joint, j2: Joint, name_1: str, name_2: str) -> str:
    (shape_1, support_1), (shape_2, support_2) = j1.places[name_1], j2.places[name_2]
    if shape_1 and shape_2 and eqx.tree_equal(elementwise(support_1), elementwise(support_2)):
        return f', or share some elements: share={{"{name_1}": ("{name_2}", [0, 1], [0, 2])}}'
    return ""


def _word(support: Any) -> str:
    """A support in words: real, positive, interval(0, 2), with all digits, since one may be all that differs."""
    if hasattr(support, "base_constraint"):
        return f"{_word(support.base_constraint)} (vectors)"
    name = type(support).__name__.strip("_").lower()
    bounds = [getattr(support, bound) for bound in ("lower_bound", "upper_bound") if hasattr(support, bound)]
    if name == "positive" or not bounds:
        return name
    return (
        f"{name}({', '.join(np.array2string(np.asarray(bound), threshold=6, floatmode='unique') for bound in bounds)})"
    )


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
    """The coordinates of two models, matched."""
    c1, c2, matched = j1.coordinates, j2.coordinates, match(j1, j2, share)
    pairs = [pair for a, b in matched.whole.items() for pair in zip(c1.stretch(a), c2.stretch(b), strict=True)]
    for a, (b, of_a, of_b) in matched.parts.items():
        pairs += _elements(a, b, c1, c2, of_a, of_b)
    of_1, of_2 = np.array(pairs, int).reshape(-1, 2).T
    if len(set(of_1)) < len(of_1) or len(set(of_2)) < len(of_2):
        raise CrossfadeError("share= names a coordinate twice: each may be shared with one other at most")
    n_shared = len(of_1)
    rest_1, rest_2 = np.setdiff1d(np.arange(c1.size), of_1), np.setdiff1d(np.arange(c2.size), of_2)
    index_1, index_2 = np.empty(c1.size, int), np.empty(c2.size, int)
    index_1[of_1] = index_2[of_2] = np.arange(n_shared)
    index_1[rest_1] = n_shared + np.arange(len(rest_1))
    index_2[rest_2] = c1.size + np.arange(len(rest_2))
    labels_1, labels_2 = c1.labels(), c2.labels()
    labels = [labels_1[i] for i in of_1] + [labels_1[i] for i in rest_1] + [labels_2[i] for i in rest_2]
    sharing = Sharing(
        matched.names(), _named(c1, rest_1), _named(c2, rest_2), tempered(j1, j2, matched.whole), matched.apart
    )
    return Union((index_1, index_2), n_shared, c1.size + len(rest_2), tuple(labels), sharing)


def tempered(j1: Joint, j2: Joint, whole: dict[str, str]) -> tuple[str, ...]:
    """Shared parameters whose priors are known to differ."""

    def differ(a: str, b: str) -> bool:
        if j1.model is not None and j2.model is not None:
            return not eqx.tree_equal(j1.model.priors[a], j2.model.priors[b])
        return j1.priors.get(a) != j2.priors.get(b) and a in j1.priors and b in j2.priors

    return tuple(a for a, b in whole.items() if differ(a, b))


def _elements(a: str, b: str, c1: Coordinates, c2: Coordinates, of_a: Any, of_b: Any) -> list[tuple[int, int]]:
    """Elements of two vectors, by positions or by masks of equal counts."""
    if c1.transforms[a].domain.event_dim or c2.transforms[b].domain.event_dim:
        raise CrossfadeError(f"{a!r} has a support that ties its elements together: share all of it or nothing")
    own = []
    for c, name, which in ((c1, a, of_a), (c2, b, of_b)):
        places = c.stretch(name).reshape(c.shapes[name])
        try:
            own.append(places[np.asarray(which)].ravel())
        except IndexError as error:
            raise CrossfadeError(
                f"share= picks elements {which} of {name!r}, of shape {places.shape}: {error}"
            ) from None
    if len(own[0]) != len(own[1]):
        raise CrossfadeError(f"share= pairs {len(own[0])} elements of {a!r} with {len(own[1])} of {b!r}")
    return list(zip(own[0].tolist(), own[1].tolist(), strict=True))


def _named(c: Coordinates, which: np.ndarray) -> tuple[str, ...]:
    """Parameters by name where all of their coordinates are among these, single elements where only some are."""
    labels, found = c.labels(), []
    for name in c.shapes:
        own = c.stretch(name)
        inside = np.isin(own, which)
        found += [name] if inside.all() and len(own) else [labels[i] for i in own[inside]]
    return tuple(found)


def check_data(j1: HasData, j2: HasData) -> None:
    """The same responses in both models, whatever their order: other data have no Bayes factor."""
    if why := data_difference(j1, j2):
        raise CrossfadeError(why)


def data_difference(j1: HasData, j2: HasData) -> str:
    """How the responses of two models differ and what to do, or nothing; nothing too where they are not known."""
    if j1.data is None or j2.data is None:
        return ""
    try:
        first, second = (responses(joint) for joint in (j1, j2))
    except (TypeError, ValueError):
        return "data= must be the responses as numbers, so that both models can be held to them"
    for which, values in (("M1", first), ("M2", second)):
        if missing := int(np.isnan(values).sum()):
            return (
                f"{missing} of the {len(values)} responses of {which} are NaN: drop or model what is missing, in both "
                "models alike"
            )
    if np.array_equal(first, second):
        return ""
    said = f"the two models are of different data: {_values_apart(first, second)}. A Bayes factor compares models of "
    said += "one data set"
    if len(first) == len(second) and np.allclose(first, second, rtol=1e-6, atol=0):
        return f"{said}; was one rounded to single precision? Give both in float64"
    return f"{said}, so build both from the same rows, on the same scale"


def other_order(j1: HasData, j2: HasData) -> tuple[str, ...]:
    """A note where two models have the same responses in another order, which is right only if all goes with them."""
    if j1.data is None or j2.data is None:
        return ()
    first, second = (np.ravel(np.asarray(joint.data, float)) for joint in (j1, j2))
    if len(first) != len(second) or np.array_equal(first, second):
        return ()
    return (
        "M2 has the responses of M1 in another order: see that everything that belongs to a row, such as covariates, "
        "has moved with it",
    )


def responses(joint: HasData) -> np.ndarray:
    """Sorted, to be held beside those of another model."""
    return in_order(joint.data)


def _values_apart(first: np.ndarray, second: np.ndarray) -> str:
    only_1, only_2 = Counter(first.tolist()), Counter(second.tolist())
    only_1, only_2 = only_1 - only_2, only_2 - only_1
    if len(first) != len(second):
        which, more = ("M1", only_1) if len(first) > len(second) else ("M2", only_2)
        return f"M1 has {len(first)} responses and M2 has {len(second)}, and {min(more)!r} is in {which} only"
    count = only_1.total()
    values = "1 value differs" if count == 1 else f"{count} values differ"
    return f"of {len(first)} responses {values}, for example {min(only_1)!r} in M1 and {min(only_2)!r} in M2"
