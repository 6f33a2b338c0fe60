"""Pairs of models that bite: answers beside references, verdicts, seconds and memory, each pair in its own process.

The first seed of a pair compiles; memory is the most that its process has held so far.

python benchmarks/hard.py [--seeds 10] [--budget 600] [name ...]
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

REFERENCES = Path(__file__).with_name("hard_references.csv")


def one(name: str, seed: int, budget: float) -> dict:
    """One comparison, in this process."""
    from hard_pairs import PAIRS

    import crossfade

    began, before = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    try:
        result = crossfade.compare(*PAIRS[name](), seed=seed, budget=budget, progress=False)
        found = {
            "value": result.raw_estimate.value,
            "error": result.raw_estimate.error,
            "verdict": result.verdict,
            "said": list(result.reasons),
            "path": result.about["path"],
        }
    except crossfade.CrossfadeError as error:
        found = {"value": float("nan"), "error": float("nan"), "verdict": "no answer", "said": [str(error)], "path": ""}
    cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {**found, "seconds": time.perf_counter() - began, "cpu": cpu, "gigabytes": gigabytes}


def references() -> dict[str, tuple[float, float]]:
    if not REFERENCES.exists():
        return {}
    with REFERENCES.open() as file:
        return {row["name"]: (float(row["reference"]), float(row["error"])) for row in csv.DictReader(file)}


def show(name: str, seed: int, row: dict, known: dict[str, tuple[float, float]]) -> None:
    z = float("nan")
    if name in known:
        truth, doubt = known[name]
        z = (row["value"] - truth) / (row["error"] ** 2 + doubt**2) ** 0.5
    print(
        f"{name:22s} {seed:4d} {row['value']:9.4f}({row['error']:.4f}) {z:6.2f}  {row['verdict']:14s} "
        f"{row['seconds']:6.1f} {row['cpu']:6.1f} {row['gigabytes']:5.2f}  {' '.join(row['said'])[:200]}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--budget", type=float, default=600.0)
    parser.add_argument("--one", action="store_true")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    if given.one:
        for seed in seeds:
            print(json.dumps(one(given.names[0], seed, given.budget)), flush=True)
        sys.exit()
    from hard_pairs import PAIRS

    known = references()
    print(f"{'pair':22s} seed {'answer':>16s} {'z':>6s}  {'verdict':14s} {'s':>6s} {'CPU s':>6s} {'GB':>5s}")
    for name in given.names or PAIRS:
        command = [sys.executable, __file__, name, "--one", "--budget", str(given.budget)]
        command += ["--first", str(given.first), "--seeds", str(given.seeds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for seed, line in zip(seeds, process.stdout, strict=False):
                show(name, seed, json.loads(line), known)
            if process.wait():
                print(f"{name:22s} FAILED: {process.stderr.read().strip().splitlines()[-1]}", flush=True)
