"""The doctor: what can be wrong with a model before its Bayes factor is believed, looked for and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from crossfade.density.joint import Flat, Joint, as_joint, constrained_draws, flat
from crossfade.density.precision import in_float64
from crossfade.doctor.data import same_data
from crossfade.doctor.finding import BOTH, Checkup, Finding, guarded, reason
from crossfade.doctor.mass import prior_mass
from crossfade.doctor.numbers import BLOCK, finite, gradients, points, starts
from crossfade.doctor.runs import cross_check, placebo, placebo_test
from crossfade.methods.fitted import MANY, AnyModel, Say
from crossfade.paths.path import fresh
from crossfade.sampling.draws import more, run_source
from crossfade.sampling.user_draws import own_source

__all__ = ["Checkup", "Finding", "check", "placebo"]

NOT_YET = "not looked at: mend the above first"
N_SEGMENTS = 4  # of draws of the posterior
TOGETHER = 30  # coordinates of both models up to which their evidences are computed as well


class _Patient(NamedTuple):
    """A model, and the same as a joint whose functions are compiled once for all checks."""

    which: str
    model: AnyModel
    joint: Joint
    density: Flat
    draws: Any  # that were brought along, or None


class _Care(NamedTuple):
    """How the runs are made."""

    seed: int
    n_chains: int
    say: Say


@in_float64
def check(
    m1: AnyModel,
    m2: AnyModel | None = None,
    *,
    draws: tuple[Any, Any] = (None, None),
    seed: int = 0,
    say: Say = lambda message: None,
) -> Checkup:
    """Look one model or two over: data, numbers, gradients, priors, a placebo, and the same answer in two ways.

    Nothing is raised: what goes wrong is a finding. Checks that take a sampler wait until the quick ones are fine.
    """
    findings: list[Finding] = []
    patients: list[_Patient] = []
    for which, model, own in zip(("M1", "M2"), (m1, m2), draws, strict=True):
        if model is not None:
            try:
                patients.append(_admitted(which, model, own))
            except Exception as error:
                findings.append(Finding("model", which, False, f"cannot be read: {reason(error)}"))
    care = _Care(seed, 16 if any(patient.density.size > MANY for patient in patients) else 32, say)
    if len(patients) == 2:
        findings += guarded("same data", BOTH, lambda: same_data(patients[0].joint, patients[1].joint))
    for patient in patients:
        findings += _examine(patient, care)
    if m2 is not None:
        findings += _together(patients, all(found.ok for found in findings), care)
    return Checkup(tuple(findings))


def _admitted(which: str, model: AnyModel, draws: Any) -> _Patient:
    """Plain functions are compiled anew by whoever uses them: here, once for all."""
    joint = as_joint(model, which)
    parts = {part: getattr(joint, part) for part in ("whole", "log_prior", "log_likelihood")}
    joint = joint._replace(**{part: fresh(function) for part, function in parts.items() if function is not None})
    return _Patient(which, model, joint, flat(joint), draws)


def _examine(patient: _Patient, care: _Care) -> list[Finding]:
    """The checks of one model, each only if those before were fine; but the prior is always looked at."""
    which = patient.which
    if patient.density.size == 0:
        return [Finding("model", which, True, "it has no parameters, so there is nothing to look at but its data")]
    where = "prior" if patient.joint.exact_start else "starts"
    steps: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("prior", lambda: prior_mass(patient.model, patient.joint, which, care.seed)),
        (f"finite ({where})", lambda: _at_starts(patient, where, care)),
        ("finite (posterior)", lambda: _at_posterior(patient, care)),
        ("placebo", lambda: _with_placebo(patient, care)),
    ]
    found: list[Finding] = []
    for i, (name, look) in enumerate(steps):
        if i > 1 and not all(finding.ok for finding in found):
            return [*found, *(Finding(name, which, True, NOT_YET) for name, _ in steps[i:])]
        care.say(f"{which}: {name}")
        found += guarded(name, which, look)
    return found


def _at_starts(patient: _Patient, where: str, care: _Care) -> list[Finding]:
    key = jax.random.fold_in(jax.random.key(care.seed), int(patient.which[1]))
    return _numbers(patient, starts(patient.density, patient.joint, key), where)


def _at_posterior(patient: _Patient, care: _Care) -> list[Finding]:
    """BLOCK draws, of a short run or of those that were brought along."""
    if patient.draws is not None:
        source = own_source(patient.joint, patient.draws, care.n_chains, patient.which)
    else:
        key = jax.random.fold_in(jax.random.key(care.seed), 2 + int(patient.which[1]))
        source = more(run_source(patient.joint, key, care.n_chains, patient.which), N_SEGMENTS)
    u = source.draws.u.reshape(-1, patient.density.size)
    return _numbers(patient, u[np.linspace(0, len(u) - 1, BLOCK).astype(int)], "posterior")


def _numbers(patient: _Patient, u: np.ndarray, where: str) -> list[Finding]:
    at = points(patient.density, u, where)
    found = finite(patient.density, patient.joint, at, patient.which)
    return found + gradients(patient.density, at, patient.which) if found[0].ok else found


def _with_placebo(patient: _Patient, care: _Care) -> list[Finding]:
    settings: dict[str, Any] = {"seed": care.seed, "n_chains": care.n_chains}
    if patient.draws is not None:  # those of the placebo are easily added
        u = own_source(patient.joint, patient.draws, care.n_chains, patient.which).draws.u
        own = constrained_draws(patient.joint, u)
        extra = placebo(patient.joint).names[-1]
        settings["draws"] = (own, {**own, extra: np.random.default_rng(care.seed).standard_normal(u.shape[:2])})
    return placebo_test(patient.joint, patient.which, **settings)


def _together(patients: list[_Patient], fine: bool, care: _Care) -> list[Finding]:
    name = "two ways"
    if not fine or len(patients) < 2:
        return [Finding(name, BOTH, True, NOT_YET)]
    first, second = patients
    if (size := first.density.size + second.density.size) > TOGETHER:
        said = f"not looked at: the models have {size} coordinates, and this is for up to {TOGETHER}"
        return [Finding(name, BOTH, True, said)]
    care.say("the difference of two evidences, and the Bayes factor")
    own = (first.draws, second.draws)
    settings = {"seed": care.seed, "n_chains": care.n_chains}
    return guarded(name, BOTH, lambda: cross_check(first.joint, second.joint, own, **settings))
