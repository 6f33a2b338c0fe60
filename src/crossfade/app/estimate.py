"""`crossfade estimate`: a stored run, shown again or read with another estimator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from crossfade.app.options import ESTIMATORS, Json
from crossfade.app.output import answer
from crossfade.types import CrossfadeError


def estimate(
    run: Annotated[Path, typer.Argument(help="A run stored with --out.", metavar="RUN")],
    with_: Annotated[str | None, typer.Option("--with", help=f"One of {ESTIMATORS}.", metavar="ESTIMATOR")] = None,
    as_json: Json = False,
) -> None:
    """Read a stored run again, with its own estimator or another one."""
    from crossfade.app import store

    result = store.load(run)
    if result.about.get("unfinished") or (with_ is None and math.isnan(result.raw_estimate.value)):
        raise CrossfadeError(f"{run}: {' '.join(result.reasons)}")
    if with_ is not None:
        from crossfade.app.again import read_with

        if with_ != result.raw_estimate.name:  # what other priors would have said was of that one
            result.about.pop("widths", None)
        result = read_with(result, with_)
    answer(result, as_json=as_json)
