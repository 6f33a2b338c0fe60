"""The same data in both models: all other data have no Bayes factor."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

import numpy as np

from crossfade.density.joint import Joint
from crossfade.doctor.finding import BOTH, Finding

NAME = "same data"


def same_data(j1: Joint, j2: Joint) -> list[Finding]:
    """Compares the responses as sets: their order says nothing."""
    unknown = [which for which, joint in (("M1", j1), ("M2", j2)) if joint.data is None]
    if unknown:
        said = f"could not be checked: the responses of {' and '.join(unknown)} are not known (give data=)"
        return [Finding(NAME, BOTH, True, said)]
    first, second = (_sorted(joint) for joint in (j1, j2))
    for which, values in (("M1", first), ("M2", second)):
        if missing := int(np.isnan(values).sum()):
            said = f"{missing} of the {len(values)} responses of {which} are NaN: drop or impute them first"
            return [Finding(NAME, BOTH, False, said)]
    if np.array_equal(first, second):
        return [Finding(NAME, BOTH, True, f"the same {len(first)} responses in both (sha256 {digest(first)})")]
    return [Finding(NAME, BOTH, False, _difference(first, second))]


def digest(values: np.ndarray) -> str:
    """The first eight digits of the sha256 of sorted responses."""
    return sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:8]


def _sorted(joint: Joint) -> np.ndarray:
    return np.sort(np.asarray(joint.data, float).ravel()) + 0.0  # minus zero is zero


def _difference(first: np.ndarray, second: np.ndarray) -> str:
    advice = "build both models from the same rows, on the same scale"
    only_1, only_2 = Counter(first.tolist()), Counter(second.tolist())
    only_1, only_2 = only_1 - only_2, only_2 - only_1
    if len(first) != len(second):
        which, more = ("M1", only_1) if len(first) > len(second) else ("M2", only_2)
        said = f"M1 has {len(first)} responses, M2 has {len(second)}; {min(more)!r} is in {which} only"
        return f"{said}: {advice}"
    count = only_1.total()
    values = "1 value differs" if count == 1 else f"{count} values differ"
    said = f"the same number of responses ({len(first)}), but {values}, e.g. {min(only_1)!r} against {min(only_2)!r}"
    if np.allclose(first, second, rtol=1e-6, atol=0):
        return f"{said}: was one of them rounded to single precision? Give both in float64"
    return f"{said}: {advice}"
