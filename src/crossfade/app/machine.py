"""What commands print for machines: one JSON object of the schema in docs/json.md; no NaN and no infinity in it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade import __version__
from crossfade.app.effects import effects
from crossfade.app.page import priors_line
from crossfade.app.words import SCALE, favoured, strength
from crossfade.types import DO_NOT_USE, Estimate, Result

if TYPE_CHECKING:
    from crossfade.doctor import Checkup
    from crossfade.methods.sensitivity import Sensitivity
    from crossfade.ranking.record import Ranking

SCHEMA = 1  # one more whenever a field changes its meaning or goes; fields may be added without
NO_ANSWER = f"the verdict is {DO_NOT_USE!r}"
NOT_FINITE = {True: "not a number", False: "infinite"}


def print_json(kind: str, **fields: Any) -> None:
    """One line on the standard output. Numbers that are none are null, and `nulls` says what they were."""
    nulls: dict[str, str] = {name: reason for name, reason in fields.pop("nulls", {}).items()}
    whole = {"schema": SCHEMA, "kind": kind, "crossfade": __version__, **_plain(fields, "", nulls), "nulls": nulls}
    sys.stdout.write(json.dumps(whole, allow_nan=False) + "\n")


def _plain(value: Any, path: str, nulls: dict[str, str]) -> Any:
    """With what JSON has, and nulls for numbers that it has not."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(own, f"{path}.{name}" if path else str(name), nulls) for name, own in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(own, f"{path}[{i}]", nulls) for i, own in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        nulls[path] = NOT_FINITE[math.isnan(value)]
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def comparison(result: Result) -> dict[str, Any]:
    """The fields of an answer."""
    about, sharing = result.about, result.sharing
    usable = result.verdict != DO_NOT_USE
    answer, opinions, checks = result.log_bayes_factor, result.opinions, result.checks
    fields = {
        "models": {which: about.get(which, which) for which in ("M1", "M2")},
        "data": about.get("data"),
        "scale": about.get("scale"),
        "priors": priors_line(about),
        "notes": list(about.get("notes", ())),
        "parameters": {
            "shared": sharing.shared,
            "only_in_M1": sharing.only_1,
            "only_in_M2": sharing.only_2,
            "priors_differ": sharing.tempered,
        },
        "verdict": result.verdict,
        "reasons": list(result.reasons),
        "log_bayes_factor": _estimate(answer) if usable else None,
        "estimator": answer.name,
        "favoured": favoured(answer.value) if usable else None,
        "strength": {"words": strength(answer), "scale": SCALE} if usable else None,
        "log_prior_odds": float(about.get("log_prior_odds", 0.0)),
        "log_posterior_odds": result.log_posterior_odds if usable else None,
        "probability_of_M2": result.probability if usable else None,
        "sentence": result.sentence,
        "effects": [own._asdict() for own in effects(result)],
        "other_priors": [
            dict(zip(("parameters", "factor", "log_bayes_factor", "error"), own, strict=True))
            for own in about.get("widths", ())
            if usable
        ],
        "opinions": {name: _estimate(own) for name, own in opinions.items()} if usable else {},
        "checks": {name: _estimate(own) for name, own in checks.items()} if usable else {},
        "method": about.get("method"),
        "seed": about.get("seed"),
        "seconds": about.get("seconds"),
    }
    unknown = ("log_bayes_factor", "favoured", "strength", "log_posterior_odds", "probability_of_M2")
    return fields | {"nulls": {} if usable else dict.fromkeys(unknown, NO_ANSWER)}


def _estimate(own: Estimate) -> dict[str, float]:
    low, high = own.interval() if own.error else (own.value, own.value)
    return {"value": own.value, "error": own.error, "low": low, "high": high}


def ranking(found: Ranking) -> dict[str, Any]:
    """The fields of a ranking: those of its file, and without an answer none of its numbers."""
    from crossfade.app.rankings import as_json

    fields = as_json(found)
    if found.verdict != DO_NOT_USE:
        return fields
    numbers = ("log_evidence", "left_out", "probabilities", "moments", "closure")
    return fields | dict.fromkeys(numbers) | {"nulls": dict.fromkeys(numbers, NO_ANSWER)}


def checkup(found: Checkup) -> dict[str, Any]:
    """The fields of a doctor's visit."""
    findings = [{"mark": own.mark, **own._asdict()} for own in found.findings]
    return {"ok": found.ok, "summary": found.summary, "findings": findings}


def curve(found: Sensitivity) -> dict[str, Any]:
    """The fields of a prior's sensitivity."""
    columns = ("factor", "prior", "log_bayes_factor", "error", "pareto_k", "reliable")
    return {"parameter": found.name, "rows": [dict(zip(columns, row, strict=True)) for row in found.table()]}
