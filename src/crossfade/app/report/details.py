"""What a reader may want to look up: priors one by one, checks, settings, data, versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from crossfade.app.page import Row, Section, bounded, worth_telling
from crossfade.app.store import fingerprint
from crossfade.app.words import with_error
from crossfade.types import Result, Trace

EXPECTED = {
    "hysteresis": ("the way there minus the way back", "0"),
    "slope": ("slope of the log ratio as a sign of the model that a draw is of", "1"),
    "halves": ("one half of the chains minus the other", "0"),
}
SETTINGS = {
    "method": "method", "route": "route", "design": "design", "path": "path", "kernels": "moves",
    "estimator": "estimator", "target_se": "asked standard error", "n_iter": "iterations of each chain",
    "n_chains": "chains", "n_draws": "draws", "round_trips": "round trips", "brought": "draws brought along for",
    "seed": "seed", "log_prior_odds": "log prior odds", "search": "search", "seconds": "seconds",
}  # fmt: skip
DATA = {"data": "data", "scale": "scale", "responses": "responses"}
USED = ("crossfade", "numpy", "scipy", "jax", "blackjax", "numpyro", "matplotlib")


def priors(result: Result) -> Section:
    """Of every parameter, in each model that has it."""
    said, twice = result.about.get("priors", {}), result.about.get("tempered_priors", {})
    sharing, rows = result.sharing, []
    renamed = [pair.split(" = ") for pair in sharing.shared if " = " in pair]
    lacks_1 = {*sharing.only_2, *(second for _, second in renamed)} - {*sharing.only_1}
    lacks_2 = {*sharing.only_1, *(first for first, _ in renamed)} - {*sharing.only_2}
    for name, words in said.items():
        first, second = twice.get(name, (words, words))
        rows.append(Row((name, "-" if name in lacks_1 else first, "-" if name in lacks_2 else second)))
    return Section("Priors", ("parameter", "in M1", "in M2"), rows=tuple(rows)) if rows else Section()


def diagnostics(result: Result) -> tuple[Section, ...]:
    """Checks with what is expected of them, differences from the answer, and the chains."""
    left_out = ("hysteresis",) if bounded(result) else ()  # as on the page, it would look like an alarm and be none
    rows = [
        Row((words, with_error(result.checks[name]), expected))
        for name, (words, expected) in EXPECTED.items()
        if name in result.checks and np.isfinite(result.checks[name].error) and name not in left_out
    ]
    gaps = [
        Row((name.replace("_", " "), with_error(result.differences[name])))
        for name in worth_telling(result)
        if name in result.differences
    ]
    chains = [
        Row((leg.name, f"{leg.forward.n_chains}", f"{leg.forward.log_ratio.size:,}", _accepted(leg.forward)))
        for leg in result.legs
    ]
    note = "In a sound run one check in twenty is two of its errors away from what is expected."
    return (
        Section("Checks", ("", "value", "expected"), (1, 2), tuple(rows), note=note) if rows else Section(),
        Section("Other estimators minus the answer", ("", "difference"), (1,), tuple(gaps)) if gaps else Section(),
        Section("Chains", ("", "chains", "log ratios", "accepted"), (1, 2, 3), tuple(chains)) if chains else Section(),
        Section("Result", rows=(Row(("SHA-256 of its file", fingerprint(result))),)),
    )


def _accepted(trace: Trace) -> str:
    """The share of moves; posterior draws that are read again hold ones, which say nothing."""
    share = float(np.nanmean(trace.acceptance))
    return f"{share:.3f}" if share < 1 else ""


def of_settings(about: dict[str, Any]) -> tuple[Section, ...]:
    """What was asked for, and of which data."""
    return tuple(
        Section(
            title, rows=tuple(Row((label, _said(about[key]))) for key, label in labels.items() if _told(about, key))
        )
        for title, labels in (("Settings", SETTINGS), ("Data", DATA))
        if any(_told(about, key) for key in labels)
    )


def _told(about: dict[str, Any], key: str) -> bool:
    return about.get(key) not in (None, "", [], {})


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_said(own)}" for name, own in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def versions() -> Section:
    """Of what wrote the page."""
    rows = [Row(("Python", platform.python_version()))]
    for name in USED:
        try:
            rows.append(Row((name, version(name))))
        except PackageNotFoundError:  # an extra that is not installed, or crossfade run from its source
            continue
    return Section("Versions of what wrote this page", rows=tuple(rows))
