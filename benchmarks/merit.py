"""Figure of merit, mean square error x CPU seconds over seeds: the default, the path, and what others would do.

python benchmarks/merit.py [NAME ...] [--seeds 20]

- auto: `compare` as it is. - path: `compare(route="path")`.
- laplace: mode and curvature, then importance sampling from a Student's t, for each model on its own (`first_look`).
- bridge: Meng and Wong's iterated bridge between our own draws of each posterior and a Gaussian fitted to others.

Compilation is not counted, warming up is. Bridge sampling is given the draws of `sample`, whose CPU seconds count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from hard_bridge import bridge

import crossfade
from crossfade.density.joint import as_joint
from crossfade.sampling.evaluate import values
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic, mixed

TARGETS = {"radiata": 0.002, "pima": 0.002, "radiocarbon 4-6": 0.005, "radiocarbon 1-9": 0.005}
LARGEST = 50  # coordinates that a first look takes


def pairs() -> dict[str, tuple[Any, Any, float]]:
    """Two models and the truth, by name."""
    radiata = linear.radiata()
    found = {"radiata": (*radiata, _exact(*radiata)), "pima": (*logistic.pima(), -2.625013)}
    for a, b in ((4, 6), (1, 9)):
        both = linear.radiocarbon(a), linear.radiocarbon(b)
        found[f"radiocarbon {a}-{b}"] = (*both, _exact(*both))
    for n in (10, 100, 1000):
        found[f"mixed {n}"] = (*mixed.pair(n), mixed.REFERENCE[n][0])
    return found


def _exact(m1: Any, m2: Any) -> float:
    return linear.log_evidence(m2) - linear.log_evidence(m1)


def by_compare(route: str) -> Callable[[str, Any, Any, int], tuple[float, float]]:
    def one(name: str, m1: Any, m2: Any, seed: int) -> tuple[float, float]:
        target = TARGETS.get(name, 0.02)
        result = crossfade.compare(m1, m2, target_se=target, seed=seed, route=route, progress=False)
        return result.raw_estimate.value, result.raw_estimate.error

    return one


def by_laplace(name: str, m1: Any, m2: Any, seed: int) -> tuple[float, float]:
    looks = [crossfade.first_look(model, n_draws=4000, seed=2 * seed + k) for k, model in enumerate((m1, m2))]
    first, second = (look.importance for look in looks)
    return second.value - first.value, float(np.hypot(first.error, second.error))


def by_bridge(name: str, m1: Any, m2: Any, seed: int) -> tuple[float, float]:
    random, found = np.random.default_rng(seed), []
    for k, model in enumerate((m1, m2)):
        joint = as_joint(model)
        draws = crossfade.sample(joint, n_draws=100, seed=2 * seed + k)
        u = np.asarray(draws.u)
        halves = np.split(u, 2)
        flat = [half.reshape(-1, u.shape[2]) for half in halves]
        both = [bridge(flat[i], flat[1 - i], lambda p, d=joint.density: values(d, p), random) for i in (0, 1)]
        found.append(float(np.mean(both)))
    return found[1] - found[0], np.nan


METHODS = {"auto": by_compare("auto"), "path": by_compare("path"), "laplace": by_laplace, "bridge": by_bridge}


def main(names: list[str], n_seeds: int) -> None:
    print(f"mean square error x CPU seconds, {n_seeds} seeds")
    for name in names:
        m1, m2, truth = pairs()[name]
        print(f"{name}, truth {truth:.5f}")
        for method, one in METHODS.items():
            if method == "laplace" and as_joint(m2).coordinates.size > LARGEST:
                continue
            one(name, m1, m2, 999)  # compiles
            off, errors, began = [], [], time.process_time()
            for seed in range(n_seeds):
                value, error = one(name, m1, m2, seed)
                off.append(value - truth)
                errors.append(error)
            cpu = (time.process_time() - began) / n_seeds
            square = float(np.mean(np.square(off)))
            z = np.array(off) / np.array(errors) if np.all(np.array(errors) > 0) else None
            said = "exact" if square < 1e-16 else f"{square * cpu:.2g}"
            calibrated = "" if z is None or not np.isfinite(z).all() else f"  mean z^2 {np.mean(z**2):.2f}"
            print(
                f"  {method:8s} rms error {np.sqrt(square):.2g}  {cpu:6.2f} CPU s  merit {said}{calibrated}", flush=True
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(pairs()))
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    main(given.names, given.seeds)
