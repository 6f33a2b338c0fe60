"""What a run says while it works: one line that is overwritten, or, without a terminal, a line now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

EVERY = 10.0  # seconds between two lines where there is no terminal

Say = Callable[[str], None]  # "" ends what was said


def quiet(message: str) -> None:
    """Say nothing."""


def live() -> Say:
    """On the standard error, beside the answer and not in it."""
    last = time.perf_counter()

    def overwrite(message: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{message[:width]}")
        sys.stderr.flush()

    def now_and_then(message: str) -> None:
        nonlocal last
        if message and time.perf_counter() - last > EVERY:
            last = time.perf_counter()
            print(message, file=sys.stderr, flush=True)

    return overwrite if sys.stderr.isatty() else now_and_then


def chosen(progress: bool | Say) -> Say:
    """From what the user asked for."""
    if callable(progress):
        return progress
    return live() if progress else quiet


def duration(seconds: float) -> str:
    """In words: 40 s, 3 min, 1.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
