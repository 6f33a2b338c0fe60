"""Compiled programs: kept on disk for the next process, and let go before they are too many for this one.

Every program holds some memory maps for as long as JAX remembers it; the kernel allows 65,530 of them, and a loop over
hundreds of models would otherwise end in "Cannot allocate memory".
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

MAPS = Path("/proc/self/maps")  # on Linux; elsewhere there is no such limit
MANY = 25_000
WORTH_KEEPING = 0.01  # seconds of compilation
LARGEST = 2**30  # bytes on disk, of which the oldest go first
SWITCH = "CROSSFADE_CACHE"  # 0 turns the cache off; a path puts it elsewhere

_asked = 0  # how many callers are inside `kept_on_disk`
_before: dict[str, object] = {}
_pruned: set[Path] = set()  # once for every process
_lock = Lock()


def let_go() -> None:
    """Forget all compiled programs if there are too many; those that are needed again are compiled again."""
    if not MAPS.exists() or MAPS.read_bytes().count(b"\n") < MANY:
        return
    import equinox as eqx
    import jax

    eqx.clear_caches()
    jax.clear_caches()
    gc.collect()


def folder() -> Path | None:
    """Where programs are kept: the user's cache folder, unless the switch says otherwise."""
    said = os.environ.get(SWITCH, "")
    if said == "0":
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(said) if said else home / "crossfade" / "jax"


@contextmanager
def kept_on_disk() -> Iterator[None]:
    """Programs compiled inside this context are found again by later processes.

    JAX has one such cache for a whole process: it is ours in here, and left as it was. A cache that the user has set up
    is left alone.
    """
    global _asked
    with _lock:
        if _asked == 0:
            _open()
        _asked += 1
    try:
        yield
    finally:
        with _lock:
            _asked -= 1
            if _asked == 0:
                _close()


def _open() -> None:
    import jax

    where = folder()
    if where is None or getattr(jax.config, "jax_compilation_cache_dir", None) or not _can_be_written(where):
        return
    if where not in _pruned:
        _pruned.add(where)
        _prune(where)
    ours = {
        "jax_compilation_cache_dir": str(where),
        "jax_persistent_cache_min_compile_time_secs": WORTH_KEEPING,
        "jax_persistent_cache_min_entry_size_bytes": 0,
        "jax_persistent_cache_enable_xla_caches": "none",
    }
    _before.update({name: getattr(jax.config, name) for name in ours})
    _set(ours)


def _close() -> None:
    _set(dict(_before))
    _before.clear()


def _set(values: dict[str, object]) -> None:
    if not values:
        return
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    for name, value in values.items():
        jax.config.update(name, value)
    reset_cache()  # it is set up once, at the first program that is compiled


def _prune(where: Path) -> None:
    """Take the oldest programs away if all are too large."""
    found = []
    for path in where.iterdir():
        try:
            found.append((path.stat().st_mtime, path.stat().st_size, path))
        except OSError:  # another process has taken it away
            continue
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= LARGEST:
            break
        path.unlink(missing_ok=True)
        total -= size


def _can_be_written(where: Path) -> bool:
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(where, os.W_OK)
