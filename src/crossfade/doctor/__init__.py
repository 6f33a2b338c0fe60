"""The doctor: what can be wrong with a model before its Bayes factor is believed, looked for and named."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.api import AnyModel
from crossfade.density.joint import Joint, as_joint
from crossfade.density.precision import in_float64
from crossfade.density.sharing import data_difference, responses
from crossfade.doctor.finding import BOTH, Checkup, Finding, guarded, reason
from crossfade.doctor.mass import prior_mass
from crossfade.doctor.numbers import finite, gradients, points
from crossfade.doctor.runs import cross_check, placebo, placebo_test
from crossfade.methods.fitted import MANY
from crossfade.methods.progress import Say, chosen
from crossfade.methods.run import PILOT
from crossfade.sampling.draws import Draws, warmed
from crossfade.sampling.starts import N_CANDIDATES, drawn
from crossfade.sampling.user_draws import brought

__all__ = ["Checkup", "Finding", "check", "placebo"]

NOT_YET = "not checked: fix the findings above first"
TOGETHER = 30  # coordinates of both models up to which their evidences are computed as well


class Examined(NamedTuple):
    """A model whose functions are compiled once for all checks, and the draws that were brought along, or None."""

    which: str
    joint: Joint
    draws: Any
    seed: int

    @property
    def size(self) -> int:
        return self.joint.coordinates.size

    def key(self, purpose: int) -> Any:
        return jax.random.fold_in(jax.random.key(self.seed), 2 * purpose + int(self.which[1]))

    def brought(self, n_chains: int) -> Draws:
        return brought(self.joint, self.draws, n_chains, self.which)


@in_float64
def check(
    m1: AnyModel,
    m2: AnyModel | None = None,
    *,
    draws: tuple[Any, Any] = (None, None),
    seed: int = 0,
    progress: bool | Say = True,
) -> Checkup:
    """Look one model or two over: data, numbers, gradients, priors, a placebo, and the same answer in two ways.

    Nothing is raised: what goes wrong is a finding of the `Checkup` that comes back, whose `ok` is whether all is well.
    Checks that take a sampler wait until the quick ones are fine.
    """
    say = chosen(progress)
    findings: list[Finding] = []
    models: list[Examined] = []
    for which, model, own in zip(("M1", "M2"), (m1, m2), draws, strict=True):
        if model is not None:
            try:
                models.append(Examined(which, _with_coordinates(model, which), own, seed))
            except Exception as error:
                findings.append(Finding("model", which, False, f"cannot read it: {reason(error)}"))
    n_chains = 16 if any(model.size > MANY for model in models) else 32
    if len(models) == 2:
        findings += guarded("same data", BOTH, lambda: same_data(models[0].joint, models[1].joint))
    for examined in models:
        findings += _alone(examined, n_chains, say)
    if m2 is not None:
        findings += _together(models, all(found.ok for found in findings), n_chains, say)
    say("")
    return Checkup(tuple(findings))


def _with_coordinates(model: AnyModel, which: str) -> Joint:
    joint = as_joint(model, which)
    _ = joint.coordinates  # what has none cannot be looked at
    return joint


def same_data(j1: Joint, j2: Joint) -> list[Finding]:
    """The check that every comparison makes, and a fingerprint of the responses: other data have no Bayes factor."""
    why = None
    if unknown := [which for which, joint in (("M1", j1), ("M2", j2)) if joint.data is None]:
        said = f"not checked: {' and '.join(unknown)} came without responses; give them as data="
    elif not (why := data_difference(j1, j2)):
        values = responses(j1)
        digest = sha256(values.tobytes()).hexdigest()[:8]
        said = f"both models have the same {len(values)} responses (sha256 {digest})"
    return [Finding("same data", BOTH, not why, why or said)]


def _alone(model: Examined, n_chains: int, say: Say) -> list[Finding]:
    """The checks of one model, each only if those before were fine; but the prior is always looked at."""
    which = model.which
    if model.size == 0:
        return [Finding("model", which, True, "it has no parameters: there is nothing to check but its data")]
    where = "prior" if model.joint.exact_start else "starts"
    steps: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("prior", lambda: prior_mass(model.joint, which, model.seed)),
        (f"finite ({where})", lambda: _numbers(model, drawn(model.joint, model.key(0), N_CANDIDATES), where)),
        ("finite (posterior)", lambda: _at_posterior(model, n_chains)),
        ("placebo", lambda: _with_placebo(model, n_chains, say)),
    ]
    found: list[Finding] = []
    for i, (name, look) in enumerate(steps):
        if i > 1 and not all(finding.ok for finding in found):
            return [*found, *(Finding(name, which, True, NOT_YET) for name, _ in steps[i:])]
        say(f"{which}: {name}")
        found += guarded(name, which, look)
    return found


def _at_posterior(model: Examined, n_chains: int) -> list[Finding]:
    """Draws of a short run, or those that were brought along."""
    if model.draws is None:
        own = warmed(model.joint, model.key(1), n_chains, model.which).more(PILOT)
    else:
        own = model.brought(n_chains)
    u = own.u.reshape(-1, model.size)
    return _numbers(model, u[np.linspace(0, len(u) - 1, N_CANDIDATES).astype(int)], "posterior")


def _numbers(model: Examined, u: np.ndarray, where: str) -> list[Finding]:
    at = points(model.joint.density, u, where)
    found = finite(model.joint, at, model.which)
    return found + gradients(at, model.which) if found[0].ok else found


def _with_placebo(model: Examined, n_chains: int, say: Say) -> list[Finding]:
    twins: tuple[Any, Any] = (None, None)
    if model.draws is not None:  # those of the placebo are easily added
        own = model.brought(n_chains)
        extra = np.random.default_rng(model.seed).standard_normal(own.u.shape[:2])
        twins = (own.theta(), {**own.theta(), placebo(model.joint).names[-1]: extra})
    return placebo_test(model.joint, model.which, draws=twins, seed=model.seed, n_chains=n_chains, progress=say)


def _together(models: list[Examined], fine: bool, n_chains: int, say: Say) -> list[Finding]:
    if not fine or len(models) < 2:
        return [Finding("two ways", BOTH, True, NOT_YET)]
    (_, j1, own_1, seed), (_, j2, own_2, _) = models
    if (size := j1.coordinates.size + j2.coordinates.size) > TOGETHER:
        said = f"not checked: the models have {size} coordinates, and this check is for up to {TOGETHER}"
        return [Finding("two ways", BOTH, True, said)]
    say("the difference of two evidences, and the Bayes factor")
    settings: dict[str, Any] = {"n_chains": n_chains, "progress": say}
    return guarded("two ways", BOTH, lambda: cross_check(j1, j2, (own_1, own_2), seed, **settings))
