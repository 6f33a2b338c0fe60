"""What every command does for its process: say how far it is, and keep compiled programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from crossfade.app.terminal import console


def progress() -> Callable[[str], None]:
    """What a run says while it works: beside the answer, not in it."""
    talk = console(stderr=True)
    return lambda text: talk.print(text, style="dim")


def keep_compiled() -> None:
    """Keep compiled programs between runs, and for processes started by this one: compiling outlasts most runs."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(home / "crossfade" / "jax")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
        jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
