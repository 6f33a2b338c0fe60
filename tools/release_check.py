"""`make release-check`: do the wheel and the sdist work where nothing of this folder is?

Builds both, looks for the data files in them, and installs each into a clean environment twice: with the versions of
constraints.txt, and with the lowest that pyproject.toml claims. There the command line is asked what has an exact
answer. Nothing but the standard library is needed; packages come from wherever pip is told to look.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
HIGHEST, LOWEST = "highest", "lowest"
MODELS = """
import numpy as np, numpyro, numpyro.distributions as dist
y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
def m1():
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)
def m2():
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 3)), 1), obs=y)
"""
WRITE_TABLES = """
from crossfade import data
boards, pima = data.load("radiata"), data.load("pima")
boards.rename(columns={"x": "raw density"}).to_csv("boards.csv", sep=";", decimal=",", index=False)
pima.assign(y=pima["y"].map({1: "yes", 0: "no"})).to_csv("pima.csv", index=False)
"""


class Failed(Exception):
    """What does not work, in a sentence."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build, install and try the package in clean environments.")
    parser.add_argument("--versions", choices=(HIGHEST, LOWEST), help="only these (default: both)")
    parser.add_argument("--kind", choices=("wheel", "sdist"), help="only this (default: both)")
    parser.add_argument("--python", default=sys.executable, help="the Python that the environments are of")
    asked = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="crossfade-release-") as folder:
        where = Path(folder)
        built = build(asked.python, where)
        for kind in [asked.kind] if asked.kind else built:
            for versions in [asked.versions] if asked.versions else (HIGHEST, LOWEST):
                began, said = time.perf_counter(), "fine"
                try:
                    try_out(asked.python, built[kind], versions, where / f"{kind}-{versions}")
                except Failed as error:
                    failed, said = True, f"FAILED: {error}"
                print(f"{kind}, {versions} versions: {said} ({time.perf_counter() - began:.0f} s)", flush=True)
    sys.exit(failed)


def build(python: str, where: Path) -> dict[str, Path]:
    """The wheel and the sdist, with the data files in both."""
    env = environment(python, where / "build")
    called([env / "pip", "install", "--quiet", "build"], "installing build")
    called([env / "python", "-m", "build", "--outdir", where / "dist", ROOT], "building")
    (wheel,), (sdist,) = where.glob("dist/*.whl"), where.glob("dist/*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = archive.getnames()
    data = [path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/crossfade/data/*.csv")]
    for kind, names in ((wheel, in_wheel), (sdist, in_sdist)):
        for path in data:
            if not any(name.endswith(path) for name in names):
                sys.exit(f"{kind.name} lacks {path}")
    print(f"{wheel.name} and {sdist.name}: {len(data)} data files in each", flush=True)
    return {"wheel": wheel, "sdist": sdist}


def try_out(python: str, artifact: Path, versions: str, where: Path) -> None:
    """Install it into an environment of its own, and ask it what has an exact answer."""
    env = environment(python, where / "env")
    constraints = ROOT / "constraints.txt"
    if versions == LOWEST:
        constraints = where / "lowest.txt"
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in lowest()))
    called([env / "pip", "install", "--quiet", "-c", constraints, artifact], "installing")
    for found in smoke(env, where):
        print(f"  {found}", flush=True)


def lowest() -> Iterator[tuple[str, str]]:
    """Every dependency with the version that pyproject.toml claims is enough."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for dependency in project["dependencies"]:
        found = re.fullmatch(r"([\w.-]+)>=([\d.]+)", dependency)
        if found is None:
            sys.exit(f"{dependency!r} in pyproject.toml has no lower bound")
        yield found[1], found[2]


def smoke(env: Path, where: Path) -> Iterator[str]:
    """What was tried, one by one."""

    def asked(*words: str) -> dict:
        shown = called([env / "crossfade", *words, "--json"], f"crossfade {words[0]}", where)
        return json.loads(shown.splitlines()[-1])

    def close(found: dict, exact: float, what: str) -> str:
        value, error = found["log_bayes_factor"]["value"], found["log_bayes_factor"]["error"]
        if found["verdict"] != "trustworthy" or abs(value - exact) > max(5 * error, 1e-9):
            raise Failed(f"{what}: {value} ± {error} ({found['verdict']}), and {exact} is right")
        return f"{what}: {value:.4f} ± {error:.4f}"

    yield called([env / "python", "-m", "crossfade", "--version"], "python -m crossfade", where).strip()
    began = time.perf_counter()
    called([env / "crossfade", "--help"], "crossfade --help", where)
    yield f"crossfade --help: {time.perf_counter() - began:.2f} s"
    called([env / "python", "-c", WRITE_TABLES], "reading the data sets", where)
    first = asked("compare", "boards.csv", "y ~ raw density", "y ~ z", "--out", "run.nc")
    ranked = asked("rank", "boards.csv", "y ~ raw density", "y ~ z")
    by_rank = dict(zip(ranked["models"], ranked["log_evidence"], strict=True))
    yield close(first, by_rank["y ~ z"] - by_rank["y ~ raw density"], "two formulas, and their ranking")
    yield close(asked("estimate", "run.nc"), first["log_bayes_factor"]["value"], "the same, stored and read again")
    shown = asked("compare", "pima.csv", "y ~ glu", "y ~ glu + bmi", "--family", "logistic", "--target-se", "0.005")
    if shown["verdict"] != "trustworthy" or "response y: yes = 1, no = 0" not in shown["notes"]:
        raise Failed(f"a logistic regression: {shown}")
    yield f"a logistic regression: {shown['log_bayes_factor']['value']:.4f}"
    (where / "models.py").write_text(MODELS)
    found = asked("compare", "models.py:m1", "models.py:m2", "--target-se", "0.02")
    exact = called([env / "python", "-c", EXACT], "the exact answer", where)
    yield close(found, float(exact), "two NumPyro models")
    found = asked("demo")
    yield close(found, found["exact"], "crossfade demo")


# Of the two models above: y is normal with covariance I + s^2.
EXACT = """
import numpy as np
y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
def log_evidence(s):
    v = np.eye(len(y)) + s**2
    return -0.5 * (y @ np.linalg.solve(v, y) + np.linalg.slogdet(2 * np.pi * v)[1])
print(log_evidence(3.0) - log_evidence(1.0))
"""


def environment(python: str, where: Path) -> Path:
    """A new virtual environment; the folder of its commands."""
    called([python, "-m", "venv", where], "making an environment")
    return where / ("Scripts" if os.name == "nt" else "bin")


def called(command: list[object], what: str, folder: Path | None = None) -> str:
    """What a command prints; nothing of this folder or of the user's settings is seen by it."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "JAX_COMPILATION_CACHE_DIR")
    env = {name: value for name, value in os.environ.items() if name not in ours} | {"CROSSFADE_CACHE": "0"}
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=folder or ROOT)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).strip().splitlines() if not line.startswith("WARNING")]
        last = "\n".join(said[-20:])
        raise Failed(f"{what} (exit code {done.returncode}):\n{last}")
    return done.stdout


if __name__ == "__main__":
    main()
