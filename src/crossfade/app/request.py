"""All that can be wrong about a request, found before anything is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossfade.app.options import METHODS
from crossfade.app.store import check_folder
from crossfade.types import CrossfadeError

STORED = (".nc",)  # how the name of a run ends
OF_DEFAULT = ("target_se", "budget", "dir", "workers", "scheduler", "scheduler_file", "sensitivity")
OF_TABLE = ("n_iter",)


def check_file(option: str, path: Path | None, *endings: str) -> None:
    """A name to write to: in a folder that is there, with an ending that says what is written."""
    if path is None:
        return
    check_folder(path)
    if path.suffix.lower() not in endings:
        raise CrossfadeError(f"{option} {path}: give a name that ends in {' or '.join(endings)}")


def check_not_data(given: Mapping[str, Any]) -> None:
    """That nothing is written over the data."""
    data = given["what"][0]
    for option in ("out", "plot", "report"):
        path = given.get(option)
        if path is not None and path.exists() and os.path.isfile(data) and path.samefile(data):
            raise CrossfadeError(f"--{option} {path} is the data, which would be lost: give another name")


def check_picture(path: Path | None) -> None:
    if path is not None:
        from crossfade.app.plots.style import check_picture as check

        check(path)


def check_numbers(given: Mapping[str, Any]) -> None:
    """Seed, chains, errors, budgets and workers, and how the answer is to be found."""
    from crossfade.methods.budget import asked, check_common
    from crossfade.methods.regressions import ROUTES

    check_common(given["seed"], given.get("log_prior_odds", 0.0), given.get("n_chains"))
    asked(given.get("target_se"), given.get("budget"))
    if (workers := given.get("workers")) is not None and workers < 1:
        raise CrossfadeError(f"--workers {workers}: give a number of at least 1")
    if (route := given.get("route", ROUTES[0])) not in ROUTES:
        raise CrossfadeError(f"unknown route {route!r}: choose one of {', '.join(ROUTES)}")


def check_method(given: Mapping[str, Any]) -> None:
    """That there is the method, and that every option is one of it."""
    known = ("auto", *METHODS.split(", "))
    if (method := given["method"]) not in known:
        raise CrossfadeError(f"unknown method {method!r}: choose one of {', '.join(known)}")
    said = {**given, "dir": given["directory"]}
    for name in OF_TABLE if method == "auto" else OF_DEFAULT:
        if said[name] is not None:
            other = "other methods: name one with --method" if method == "auto" else "the default: leave --method out"
            raise CrossfadeError(f"--{name.replace('_', '-')} is for {other}, or leave it out")


def check_names(m1: Any, m2: Any, share: Any, sensitivity: str | None) -> str | None:
    """That the parameters which options name are there; the full name of the one whose prior is to be changed."""
    names = _parameters(m1), _parameters(m2)
    if isinstance(share, Mapping):
        for both in share.items():
            for k, name in enumerate(both):
                if name not in names[k]:
                    raise CrossfadeError(
                        f"--share {'='.join(dict.fromkeys(both))}: M{k + 1} has no parameter {name!r}; it has "
                        f"{', '.join(names[k])}"
                    )
    if sensitivity is None:
        return None
    from crossfade.bridges.formula import coefficients_of
    from crossfade.methods.sensitivity import check_sensitivity

    all_names = dict.fromkeys((*names[0], *names[1]))
    found = coefficients_of(sensitivity, all_names)
    if len(found) != 1:
        what = f"{len(found)} parameters have" if found else "no model has"
        there = ", ".join(found or all_names)
        raise CrossfadeError(
            f"--sensitivity {sensitivity}: {what} {'this name' if found else 'such a parameter'}; choose one of {there}"
        )
    check_sensitivity(m1, m2, found[0])
    return found[0]


def _parameters(model: Any) -> tuple[str, ...]:
    noise = getattr(model, "noise", None)  # of a regression
    return ("variance", *model.names) if isinstance(noise, tuple) else tuple(model.names)
