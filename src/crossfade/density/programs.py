"""Compiled programs that nobody needs any more are let go before the kernel's limit of memory maps (65,530) is near.

Every compiled program holds some maps for as long as JAX remembers it; a loop over hundreds of models would otherwise
end in "Cannot allocate memory".
"""

from __future__ import annotations

import gc
from pathlib import Path

MAPS = Path("/proc/self/maps")  # on Linux; elsewhere there is no such limit
MANY = 25_000


def let_go() -> None:
    """Forget all compiled programs if there are too many; those that are needed again are compiled again."""
    if not MAPS.exists() or MAPS.read_bytes().count(b"\n") < MANY:
        return
    import equinox as eqx
    import jax

    eqx.clear_caches()
    jax.clear_caches()
    gc.collect()
