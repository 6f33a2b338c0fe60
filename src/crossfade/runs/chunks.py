"""Chunks of a run on disk: each appears complete or not at all, and is named by its own checksum.

A chunk holds some segments by name. Which segments lie in which chunk has no meaning, so folders of one run made on
several machines are joined by copying chunks, and two processes in one folder do each other no harm.
"""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import numpy as np

from crossfade.files import appearing
from crossfade.sampling.clock import OutOfTime
from crossfade.sampling.kept import Arrays
from crossfade.types import CrossfadeError

ENDING = ".npz"
DAMAGED = ".damaged"
SECONDS = 2.0  # after which what was sampled is written
BYTES = 2**25  # beyond which it is written at once
REMEMBERED = 4  # chunks in memory: a run is replayed in the order in which it was made
END = "what is kept of it ends here"
Warn: TypeAlias = Callable[[str], None]


class Chunks:
    """A keeper of segments in a folder."""

    def __init__(self, folder: Path, warn: Warn, only_looking: bool = False):
        self.folder, self.warn, self.only_looking = folder, warn, only_looking
        self.where: dict[str, Path] = {}  # the chunk of every segment
        self.new: dict[str, Arrays] = {}  # not yet written
        self.n_made = 0
        self._since, self._open = time.monotonic(), dict[Path, Arrays]()
        for path in sorted(folder.glob(f"*{ENDING}")):
            self._list(path)

    def __enter__(self) -> Chunks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()

    def find(self, name: str) -> Arrays | None:
        if name in self.new:
            return self.new[name]
        while (path := self.where.get(name)) is not None:
            if (arrays := self._read(path)) is not None:
                prefix = f"{name}/"
                return {key.removeprefix(prefix): own for key, own in arrays.items() if key.startswith(prefix)}
        if self.only_looking:
            raise OutOfTime(END)
        return None

    def add(self, name: str, arrays: Arrays) -> None:
        self.new[name] = arrays
        self.n_made += 1
        size = sum(own.nbytes for kept in self.new.values() for own in kept.values())
        if time.monotonic() - self._since > SECONDS or size > BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is new: under another name first, then under that of its checksum."""
        self._since = time.monotonic()
        if not self.new:
            return
        buffer = io.BytesIO()
        flat = {f"{name}/{key}": own for name, arrays in self.new.items() for key, own in arrays.items()}
        np.savez(buffer, allow_pickle=False, **flat)
        data = buffer.getvalue()
        path = self.folder / f"{hashlib.sha256(data).hexdigest()}{ENDING}"
        write_whole(path, data)
        self.where |= dict.fromkeys(self.new, path)
        self.new = {}

    def _list(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as file:
                names = {name.rpartition("/")[0] for name in file.namelist()}
        except Exception as error:  # bytes that are not as they were written can mean anything
            self._set_aside(path, str(error))
            return
        self.where |= dict.fromkeys(names, path)

    def _read(self, path: Path) -> Arrays | None:
        """The arrays of a chunk; one that is not as it was written is set aside, and what it held is made again."""
        if path not in self._open:
            try:
                data = path.read_bytes()
            except OSError as error:
                self._set_aside(path, str(error))
                return None
            if hashlib.sha256(data).hexdigest() != path.stem:
                self._set_aside(path, "it is not what was written")
                return None
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                self._open[path] = {name: file[name] for name in file.files}
            while len(self._open) > REMEMBERED:
                del self._open[next(iter(self._open))]
        return self._open[path]

    def _set_aside(self, path: Path, why: str) -> None:
        self.where = {name: own for name, own in self.where.items() if own != path}
        if not self.only_looking:
            with suppress(OSError):  # another process was faster, or may write here and we may not
                path.rename(path.with_suffix(DAMAGED))
        self.warn(f"chunk {path.name[:12]} cannot be used ({why}): it is set aside, and what it held is sampled again")


def write_whole(path: Path, data: bytes) -> None:
    """A file that is there with all of its bytes, or not at all, also after a power failure."""
    try:
        with appearing(path) as unfinished:
            unfinished.write_bytes(data)
    except OSError as error:
        raise CrossfadeError(
            f"{path.parent} cannot be written to ({error.strerror}): what was written before is safe; make room, or "
            "make it writable, and resume"
        ) from None
