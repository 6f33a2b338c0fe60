"""Real runs to draw and report: pine boards, `y ~ x` against `y ~ z`, by three methods, and a ranking by chains."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import crossfade
from crossfade.ranking.record import Ranking
from crossfade.types import Result

HERE = Path(__file__).parent / "app"


@cache
def run(name: str) -> Result:
    """auto (n_chains=8, target_se=0.05, route="path"), mbar (n_iter=400) or neti_diff (n_iter=200)."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.nc"
        path.write_bytes(gzip.decompress((HERE / f"run_{name}.nc.gz").read_bytes()))
        return crossfade.load(path)


@cache
def ranking() -> Ranking:
    """Six logistic formulas on the first 150 women of pima, by chains."""
    return crossfade.load_ranking(HERE / "run_ranking.json")
