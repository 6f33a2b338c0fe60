"""Folders of runs that lie in an object store, or wherever else fsspec reaches: fetched to be looked at or joined."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from crossfade.runs.chunks import ENDING
from crossfade.types import CrossfadeError

ENDINGS = (ENDING, ".json")


def is_remote(where: str) -> bool:
    return "://" in where


@contextmanager
def fetched(where: str) -> Iterator[Path]:
    """A folder of this machine as it is; any other as a copy, which is gone afterwards."""
    if not is_remote(where):
        yield Path(where)
        return
    files, root = _files(where)
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path in _names(files, root, where):
            own = folder / PurePosixPath(path).relative_to(PurePosixPath(root))
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(files.cat_file(path))
        yield folder


def send(folder: Path, where: str) -> None:
    """The files of a folder that are not there yet; a store writes an object whole or not at all."""
    files, root = _files(where)
    there = {str(PurePosixPath(path).relative_to(PurePosixPath(root))) for path in _names(files, root, where)}
    for path in sorted(own for own in folder.rglob("*") if own.suffix in ENDINGS):
        if (name := path.relative_to(folder).as_posix()) not in there:
            files.pipe_file(f"{root}/{name}", path.read_bytes())


def _files(where: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise CrossfadeError(
            f"{where} needs fsspec: pip install 'crossfade[store]', and the library of that store (s3fs, gcsfs)"
        ) from None
    try:
        files, root = url_to_fs(where)
    except (ImportError, ValueError) as error:  # the library of that store is missing, or there is no such store
        raise CrossfadeError(f"{where} cannot be reached: {error}") from None
    return files, root.rstrip("/")


def _names(files: Any, root: str, where: str) -> list[str]:
    try:
        return [path for path in files.find(root) if PurePosixPath(path).suffix in ENDINGS]
    except Exception as error:  # of whatever the store's library raises
        raise CrossfadeError(f"{where} cannot be read ({type(error).__name__}: {error})") from None
