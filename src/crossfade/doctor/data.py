"""The same data in both models: other data have no Bayes factor."""

from __future__ import annotations

from hashlib import sha256

from crossfade.density.joint import Joint
from crossfade.density.sharing import data_difference, responses
from crossfade.doctor.finding import BOTH, Finding

NAME = "same data"


def same_data(j1: Joint, j2: Joint) -> list[Finding]:
    """The check that every comparison makes, and a fingerprint of the responses."""
    if unknown := [which for which, joint in (("M1", j1), ("M2", j2)) if joint.data is None]:
        said = f"not checked: {' and '.join(unknown)} came without responses; give them as data="
        return [Finding(NAME, BOTH, True, said)]
    if why := data_difference(j1, j2):
        return [Finding(NAME, BOTH, False, why)]
    values = responses(j1)
    digest = sha256(values.tobytes()).hexdigest()[:8]
    return [Finding(NAME, BOTH, True, f"both models have the same {len(values)} responses (sha256 {digest})")]
