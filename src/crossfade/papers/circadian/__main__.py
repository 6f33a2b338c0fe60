"""python -m crossfade.papers.circadian [file]: make the shipped data set again, in its place or elsewhere."""

import sys
from importlib.resources import files
from pathlib import Path

from crossfade.papers.circadian.generate import generate

target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(str(files("crossfade.data"))) / "circadian.csv"
generate(target)
print(f"wrote {target}")
