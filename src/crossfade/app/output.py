"""What a command prints of an answer, for people or for machines, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from crossfade.app.machine import comparison, print_json
from crossfade.app.page import Section, page
from crossfade.app.terminal import show
from crossfade.types import DO_NOT_USE, CrossfadeError, Result

# Spelt out in crossfade --help and in docs/command-line.md.
FINE, BUG, BAD_REQUEST, NO_ANSWER, STOPPED = 0, 1, 2, 3, 130
CODES = {
    FINE: "an answer",
    BUG: "an unexpected error",
    BAD_REQUEST: "a bad request",
    NO_ANSWER: "no answer to be used (do not use), or a bad finding of the doctor",
    STOPPED: "stopped by Ctrl-C",
}


class NotWritten(CrossfadeError):
    """Of files beside an answer that has been printed."""


def answer(result: Result, as_json: bool = False, **more: Any) -> None:
    """The page, or JSON with `more` fields; exit code 3 if there is no answer on it."""
    if as_json:
        print_json("comparison", **comparison(result), **more)
    else:
        show(*page(result))
    ended(result.verdict, {})


def first(*sections: Section) -> None:
    """Print a page before anything else that may fail; the files are written also where nobody reads it any more."""
    with suppress(OSError):
        show(*sections)
        sys.stdout.flush()


def written(path: Path | None, write: Callable[[Path], Any], lost: dict[str, str]) -> bool:
    """Whether there is the file now; why it cannot be written is added to `lost`, for after the answer."""
    if path is None:
        return False
    try:
        write(path)
    except OSError as error:
        lost[str(path)] = f"{path} cannot be written ({error.strerror or error}): make room, or give another name"
    except CrossfadeError as error:
        lost[str(path)] = str(error)
    return str(path) not in lost


def ended(verdict: str, lost: Mapping[str, str]) -> None:
    """The exit code, when all is printed."""
    if lost:
        raise NotWritten(f"{'; '.join(lost.values())}. The answer itself has been printed.")
    if verdict == DO_NOT_USE:
        raise typer.Exit(NO_ANSWER)
