"""`crossfade report`: a stored run, ranking or table as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crossfade.app.machine import print_json
from crossfade.app.options import Json
from crossfade.app.output import NO_ANSWER
from crossfade.types import DO_NOT_USE, CrossfadeError


def report(
    run: Annotated[
        Path, typer.Argument(help="What --out stored: a run (.nc), a ranking (.json) or a table.", metavar="RUN")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write the page here. (default: the run's name with .html)", metavar="FILE.html")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page of a stored run: answer, verdict, priors, pictures, methods, sources."""
    if out is None and (out := run.with_suffix(".html")).exists():
        raise CrossfadeError(f"{out} is there already: name the page with --out (a name of yours is written over)")
    found = _loaded(run)
    found.report(out)
    verdict = getattr(found, "verdict", None)
    if as_json:
        print_json("report", file=str(out), verdict=verdict)
    else:
        print(f"The report is in {out}.")
    if verdict == DO_NOT_USE:
        raise typer.Exit(NO_ANSWER)


def _loaded(run: Path) -> Any:
    if not run.is_file():
        raise CrossfadeError(f"there is no file {run}: give a run, a ranking or a table that was stored with --out")
    if run.suffix.lower() == ".json":
        from crossfade.app.rankings import load_ranking

        return load_ranking(run)
    from crossfade.many import ENDINGS

    if run.suffix.lower() in ENDINGS:
        from crossfade.app.stored_table import load_many

        return load_many(run)
    from crossfade.app.store import load

    return load(run)
