"""What a command prints of an answer, for people or for machines, and its exit code."""

from __future__ import annotations

from typing import Any

import typer

from crossfade.app.machine import comparison, print_json
from crossfade.app.page import page
from crossfade.app.terminal import console, show
from crossfade.types import DO_NOT_USE, Result

# Spelt out in crossfade --help and in docs/command-line.md.
FINE, BUG, BAD_REQUEST, NO_ANSWER, STOPPED = 0, 1, 2, 3, 130
CODES = {
    FINE: "an answer",
    BUG: "an unexpected error",
    BAD_REQUEST: "a bad request",
    NO_ANSWER: "no answer to be used (do not use), or a bad finding of the doctor",
    STOPPED: "stopped by Ctrl-C",
}


def answer(result: Result, after: str = "", as_json: bool = False, **more: Any) -> None:
    """The page, or JSON with `more` fields; exit code 3 if there is no answer on it."""
    if as_json:
        print_json("comparison", **comparison(result), **more)
    else:
        show(*page(result))
        if after:
            console().print(after)
    if result.verdict == DO_NOT_USE:
        raise typer.Exit(NO_ANSWER)
