"""Files that are there with all of their bytes, or not at all, also after a kill or a power failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Another name to write to; when all is written, and on disk, it becomes `path`."""
    # not by the number of the process: two containers that share a folder may have the same one
    unfinished = path.with_name(f".{path.name}.{uuid4().hex[:12]}.unfinished")
    try:
        yield unfinished
        _sync(unfinished)
        unfinished.replace(path)
        with suppress(OSError):  # some file systems sync no folders, and the file is there
            _sync(path.parent)
    finally:
        with suppress(OSError):  # it may not be there, or the folder may not be written to
            unfinished.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
