"""What one model has and the other has not: how large it is, and what other priors of it would have said."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crossfade.app.words import number, with_error
from crossfade.types import DO_NOT_USE, Estimate, Result

SHOWN = 3  # parameters on the page
CENTRAL = (2.5, 97.5)
# Of one more in a coefficient of a formula, by family.
CHANGES = {"gaussian": "{response}", "logistic": "log odds", "poisson": "log rate"}


class Effect(NamedTuple):
    """Posterior mean and central 95 % interval of a parameter, or of one entry of it."""

    model: str
    name: str
    mean: float
    low: float
    high: float


def effects(result: Result) -> list[Effect]:
    """Of all parameters that differ, where there are draws of them and the answer may be used."""
    if result.verdict == DO_NOT_USE or result.about.get("evidence"):
        return []
    found = []
    for model, names, draws in zip(("M1", "M2"), result.sharing[1:3], result.draws, strict=True):
        for name in names:
            if name in draws:
                # That a standardised column of labels is one sd larger means nothing: from one level to the other does.
                level = result.about.get("levels", {}).get(name, 1.0)
                found += _of(model, name, np.asarray(draws[name], float) / level)
    return found


def _of(model: str, name: str, draws: np.ndarray) -> list[Effect]:
    flat = draws.reshape(draws.shape[0] * draws.shape[1], *draws.shape[2:])
    low, high = np.percentile(flat, CENTRAL, axis=0)
    mean = flat.mean(axis=0)
    found = []
    for where in np.ndindex(mean.shape):
        entry = f"{name}[{', '.join(map(str, where))}]" if where else name
        found.append(Effect(model, entry, float(mean[where]), float(low[where]), float(high[where])))
    return found


def units(about: dict[str, Any], name: str) -> str:
    """What a coefficient of a formula is the change of, and by what: where formulas were compared."""
    if "scaling" not in about:
        return ""
    standard = about["scaling"] == "standardise"
    change = CHANGES[about["family"]].format(response="sd of the response" if standard else "units of the response")
    if name in about.get("levels", {}):
        return f"{change}, this level against the first"
    return f"{change} per {'sd' if standard else 'unit'} of the covariate"


def effect_lines(result: Result) -> list[str]:
    """The first few for the page, and in which units they are."""
    found = effects(result)
    shown, said = found[:SHOWN], []
    kinds = [units(result.about, own.name) for own in shown]
    for i, (own, unit) in enumerate(zip(shown, kinds, strict=True)):
        mean, low, high = (number(value, (own.high - own.low) / 4) for value in own[2:])
        said.append(f"{own.name} in {own.model}: {mean}, 95 % interval {low} to {high}")
        if unit and kinds[i + 1 : i + 2] != [unit]:  # said once, after the last of its kind
            said[-1] += f" ({unit})"
    return said + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def width_lines(result: Result) -> list[str]:
    """The answer under priors half and twice as wide, for each that was looked at."""
    answers: dict[tuple[str, ...], list[str]] = {}
    turned: set[tuple[str, ...]] = set()
    favours_2 = result.log_bayes_factor.value > 0
    for names, factor, value, error in result.about.get("widths", ()):
        wide = {0.5: "half", 2.0: "twice"}[factor]
        said = "not known from these draws" if value is None else _coarse(Estimate(value, error, 1.0))
        answers.setdefault(tuple(names), []).append(f"{wide} as wide: {said}")
        if value is not None and (value > 0) != favours_2:
            turned.add(tuple(names))
    lines = []
    for names, both in answers.items():
        shown = ", ".join(names[:SHOWN]) + (" and others" if len(names) > SHOWN else "")
        sides = "; the answer changes sides, so it depends on the prior" if names in turned else ""
        lines.append(f"log Bayes factor with the prior{'s' * (len(names) > 1)} of {shown} {', '.join(both)}{sides}")
    return lines


def _coarse(estimate: Estimate) -> str:
    """Two digits behind the point, or as many as the error allows."""
    return with_error(estimate) if estimate.error >= 0.05 else f"{estimate.value:.2f}"
