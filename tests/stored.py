"""Real runs to draw and report: pine boards, `y ~ x` against `y ~ z`, by three methods, and a ranking by chains."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import crossfade
from crossfade.methods.sensitivity import Sensitivity
from crossfade.ranking.record import Ranking
from crossfade.types import Estimate, Result, Sharing

HERE = Path(__file__).parent / "app"
HOSTILE = "<script>alert(1)</script>\"'&amp;</style>]]>${x}"


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


def curve(name: str = "age") -> Sensitivity:
    """The answer by a prior's scale: it changes sides between two factors, and the last is not reliable."""
    factors = 2.0 ** np.arange(-2, 3)
    estimates = tuple(Estimate(1.5 - k, 0.1, 31.0, "mbar") for k in range(5))
    tails = np.array([[-np.inf] * 5, [0.1, 0.1, 0.1, 0.1, 0.9]])
    return Sensitivity(name, factors, tuple(f"Normal(0, {f:g})" for f in factors), estimates, tails)


def hostile() -> Result:
    """A run in which all that can have a name has one that would like to be a script."""
    draws = np.random.default_rng(0).normal(size=(4, 25))
    bad, mbar = HOSTILE, run("mbar")
    about = {"M1": bad, "M2": bad, "data": bad, "priors": {bad: bad}, "notes": [bad], "method": bad, "path": bad}
    return mbar._replace(
        verdict="weak", reasons=(bad,), sharing=Sharing((), (bad,), (bad,), (), (bad,)), draws=({bad: draws}, {}),
        about=about | {"kernels": [bad], "n_draws": {bad: 3}}, opinions={bad: Estimate(7.0, 0.1, 3.0)},
        legs=tuple(leg._replace(name=bad) for leg in mbar.legs),
    )  # fmt: skip
