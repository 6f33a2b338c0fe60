"""What a command prints of an answer, and its exit code."""

from __future__ import annotations

import typer

from crossfade.app.page import page
from crossfade.app.terminal import console, show
from crossfade.types import DO_NOT_USE, Result


def answer(result: Result, after: str = "") -> None:
    """The page; exit code 3 if there is no answer on it."""
    show(*page(result))
    if after:
        console().print(after)
    if result.verdict == DO_NOT_USE:
        raise typer.Exit(3)
