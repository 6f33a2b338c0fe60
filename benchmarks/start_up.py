"""How long a user waits: seconds of `--help`, of the imports, and of a first and a second answer.

python benchmarks/start_up.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time


def seconds(*command: str, **environment: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - began


def main() -> None:
    cli = (sys.executable, "-m", "crossfade.app.cli")
    empty = min(seconds(sys.executable, "-c", "pass") for _ in range(3))
    rows = {
        "python itself": empty,
        "crossfade --help": min(seconds(*cli, "--help") for _ in range(3)),
        "import jax": min(seconds(sys.executable, "-c", "import jax") for _ in range(3)),
        "import crossfade.api": min(seconds(sys.executable, "-c", "import crossfade.api") for _ in range(3)),
    }
    with tempfile.TemporaryDirectory() as cache:
        kept = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        rows["crossfade demo, first time"] = seconds(*cli, "demo", PYTHONHASHSEED="0", **kept)
        rows["crossfade demo, again"] = seconds(*cli, "demo", PYTHONHASHSEED="0", **kept)
    for name, value in rows.items():
        print(f"{name:28s} {value:7.2f} s")


if __name__ == "__main__":
    main()
