"""Reference log Bayes factors of the hard pairs, M2 over M1, by quadrature of the densities in hard_densities.py.

python benchmarks/hard_references.py [NAME ...]     prints them and writes benchmarks/hard_references.csv

What can be integrated out by hand or on a grid of one dimension is. The rest is either a tensor of equidistant nodes,
its error the difference to every second node, or the mean weight of draws of a fitted Student-t from scrambled Sobol
points, its standard error from independent scramblings. Nothing of crossfade's numerics is used.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import hard_densities as own
import hard_pairs_latent as latent
import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri
from scipy.stats import qmc

TABLE = Path(__file__).with_suffix(".csv")
Density = Callable[[np.ndarray], np.ndarray]
DOF, N_SCRAMBLES, CHUNK = 5, 16, 256
ROUNDED = 5e-5  # four decimals are written


class Evidence(NamedTuple):
    log: float
    error: float
    said: str


def in_chunks(density: Density, points: np.ndarray) -> np.ndarray:
    return np.concatenate([density(points[i : i + CHUNK]) for i in range(0, len(points), CHUNK)])


# A tensor of nodes --------------------------------------------------------------------------------------------------


def grid(density: Density, box: list[tuple[float, float]], *n: int) -> Evidence:
    """The trapezoidal rule with n nodes (odd) per dimension; at the edges of the box the density must be gone."""
    axes = [np.linspace(*ends, nodes) for ends, nodes in zip(box, n, strict=True)]
    volume = np.prod([axis[1] - axis[0] for axis in axes])
    rest = np.stack(np.meshgrid(*axes[1:], indexing="ij"), axis=-1).reshape(-1, len(box) - 1) if axes[1:] else [[]]
    slabs = [in_chunks(density, np.column_stack([np.full(len(rest), x), rest])) for x in axes[0]]
    logs = np.array(slabs).reshape(n)
    every_second = logs[(slice(None, None, 2),) * len(box)]
    value = logsumexp(logs) + np.log(volume)
    coarse = logsumexp(every_second) + np.log(volume * 2 ** len(box))
    inside = logsumexp(logs[(slice(1, -1),) * len(box)]) + np.log(volume)
    return Evidence(float(value), float(abs(value - coarse)), f"edges hold {value - inside:.0e}")


# Weighted draws -----------------------------------------------------------------------------------------------------


def student_t(centre: np.ndarray, root: np.ndarray, n: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Draws [n, d] of a multivariate Student-t and their log densities."""
    d = len(centre)
    u = np.clip(qmc.Sobol(d + 1, rng=np.random.default_rng(seed)).random(n), 1e-12, 1 - 1e-12)
    z = ndtri(u[:, :d]) / np.sqrt(2 * gammaincinv(DOF / 2, u[:, d:]) / DOF)
    constant = gammaln((DOF + d) / 2) - gammaln(DOF / 2) - d / 2 * np.log(DOF * np.pi)
    log_g = constant - np.log(np.diag(root)).sum() - (DOF + d) / 2 * np.log1p(np.sum(z**2, axis=1) / DOF)
    return centre + z @ root.T, log_g


def mode(density: Density, start: np.ndarray) -> np.ndarray:
    def loss(x: np.ndarray) -> float:
        return -float(density(x[None])[0])

    rough = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 400 * len(start), "adaptive": True})
    return minimize(loss, rough.x, method="BFGS").x


def curvature(density: Density, at: np.ndarray, h: float = 1e-2) -> np.ndarray:
    """The covariance of the Gaussian that bends as the density does at its mode."""
    d = len(at)
    steps = h * np.eye(d)
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    corners = np.array([at + s * steps[i] + t * steps[j] for i in range(d) for j in range(d) for s, t in signs])
    values = in_chunks(density, corners).reshape(d, d, 4)
    hessian = -(values @ np.array([1, -1, -1, 1])) / (4 * h**2)
    size, axes = np.linalg.eigh((hessian + hessian.T) / 2)
    return (axes / np.maximum(size, 0.05)) @ axes.T


def weighted(density: Density, start: list[float], log_2_n: int = 12, n_scrambles: int = N_SCRAMBLES) -> Evidence:
    """The mean weight under a Student-t that four rounds have moved to the mean and covariance of the posterior."""
    centre = mode(density, np.array(start))
    cov = curvature(density, centre) * 1.5
    n = 2**log_2_n
    for pilot in range(4):
        draws, log_g = student_t(centre, np.linalg.cholesky(cov), n, [1, pilot])
        log_w = in_chunks(density, draws) - log_g
        log_w = np.minimum(log_w, np.sort(log_w)[-max(len(centre), n // 200)])  # no draw decides alone
        share = np.exp(log_w - logsumexp(log_w))
        centre, cov = share @ draws, np.cov(draws.T, aweights=share).reshape(len(centre), -1) * 1.1
    logs = []
    for scramble in range(n_scrambles):
        draws, log_g = student_t(centre, np.linalg.cholesky(cov), n, [2, scramble])
        logs.append(in_chunks(density, draws) - log_g)
    log_w = np.array(logs)
    runs = logsumexp(log_w, axis=1) - np.log(n)
    value = logsumexp(log_w) - np.log(log_w.size)
    error = np.std(np.exp(runs - value), ddof=1) / np.sqrt(n_scrambles)
    effective = np.exp(2 * logsumexp(log_w) - logsumexp(2 * log_w)) / log_w.size
    largest = np.exp(log_w.max() - logsumexp(log_w))
    return Evidence(float(value), float(error), f"{effective:.0%} effective, largest weight {largest:.0e}")


# The pairs ----------------------------------------------------------------------------------------------------------

WALK_BOX = [(-14.0, 3.0), (-4.0, 3.0)]
PREDATOR = [*np.log([0.6, 0.028, 0.8, 0.024, 33, 6, 0.25])]


def walk_pair() -> tuple[Evidence, Evidence]:
    y = latent.random_walk_data()
    first, second = (grid(partial(own.walk, y=y, drift=drift), WALK_BOX, 401, 401) for drift in (False, True))
    return first, second


def constant_pair() -> tuple[Evidence, Evidence]:
    y = latent.still_data()
    first = grid(partial(own.constant, y=y), WALK_BOX[1:], 801)
    return first, grid(partial(own.walk, y=y, drift=False), WALK_BOX, 401, 401)


def process_pair() -> tuple[Evidence, Evidence]:
    box = [(-7.0, 2.5), (-5.0, 5.0), (-7.0, 2.0)]
    first, second = (grid(partial(own.process, matern=matern), box, 97, 97, 97) for matern in (False, True))
    return first, second


def volatility_pair() -> tuple[Evidence, Evidence]:
    said = {"log_2_n": 11, "n_scrambles": 12}
    return (
        weighted(own.volatility, [-1.0, 3.5, -1.2], **said),
        weighted(own.volatility, [-1.0, 3.5, -1.2, 2.0], **said),
    )


def change_pair() -> tuple[Evidence, Evidence]:
    return Evidence(0.0, 0.0, "by hand"), Evidence(own.change_point(), 0.0, "by hand")


def means_pair() -> tuple[Evidence, Evidence]:
    box = [(-3.0, 3.5), (-3.0, 3.5)]
    first, second = (grid(partial(own.means, together=together), box, 401, 401) for together in (True, False))
    return first, second


def few_pair() -> tuple[Evidence, Evidence]:
    box = [(-1.5, 1.5), (-16.0, 2.5)]
    return grid(own.few_groups, box[:1], 801), grid(own.few_groups, box, 401, 801)


def galaxies_pair() -> tuple[Evidence, Evidence]:
    """Not computed here: long importance sampling of both evidences, with what it may be off by."""
    return Evidence(-226.1332, 0.002, "kept"), Evidence(-225.6415, 0.002, "kept")


def mixture_pair() -> tuple[Evidence, Evidence]:
    box = [(-3.0, 3.0), (-3.0, 3.0), (-1.2, 2.0), (-11.0, 11.0)]
    return grid(own.one_gaussian, [(-6.0, 6.0), (-2.0, 3.0)], 401, 401), grid(own.two_gaussians, box, 97, 97, 49, 81)


def horseshoe_pair() -> tuple[Evidence, Evidence]:
    return grid(own.horseshoe, [(-4.0, 3.0)], 801), weighted(own.horseshoe, [0.0, -1.0] + [0.0] * 10, log_2_n=15)


def groups_pair() -> tuple[Evidence, Evidence]:
    start = [2.0, 0.0, -0.2]
    return weighted(partial(own.groups, heavy=False), start), weighted(partial(own.groups, heavy=True), start)


Pair = Callable[[], tuple[Evidence, Evidence]]


def both(density: Density, *starts: list[float], **said: int) -> Pair:
    """One density that reads from the number of parameters which model is meant."""
    return lambda: (weighted(density, starts[0], **said), weighted(density, starts[1], **said))


WEIGHTED = "importance sampling from scrambled Sobol points"
PAIRS: dict[str, tuple[tuple[str, ...], Pair, str]] = {
    "predator": (
        ("predator",),
        both(own.predator, PREDATOR, [*PREDATOR, np.log(250)], log_2_n=13),
        f"Runge-Kutta; {WEIGHTED} in 7 and 8 dimensions",
    ),
    "epidemic": (
        ("epidemic",),
        both(own.epidemic, [0.55, -0.75], [0.55, -0.75, 2.0]),
        f"Runge-Kutta; {WEIGHTED} in 2 and 3 dimensions",
    ),
    "volatility": (
        ("volatility", "volatility_scan", "volatility_noncentred", "volatility_pymc"),
        volatility_pair,
        f"states by a filter on a grid; {WEIGHTED} in 3 and 4 dimensions",
    ),
    "random_walk": (
        ("random_walk", "random_walk_pymc"),
        walk_pair,
        "level, drift and walk by hand; 2-d trapezoidal rule",
    ),
    "random_walk_constant": (
        ("random_walk_constant",),
        constant_pair,
        "level and walk by hand; 1-d and 2-d trapezoidal rule",
    ),
    "horseshoe": (
        ("horseshoe",),
        horseshoe_pair,
        f"coefficients by hand; 1-d trapezoidal rule, {WEIGHTED} in 12 dimensions",
    ),
    "gaussian_process": (("gaussian_process",), process_pair, "3-d trapezoidal rule"),
    "change_point": (("change_point",), change_pair, "exact: rates by hand, sum over the years of the switch"),
    "scalar_vector": (("scalar_vector",), means_pair, "means by hand; 2-d trapezoidal rule"),
    "ordered": (
        ("ordered",),
        both(own.ordered, [-1.0, 0.2, 0.3], [-1.0, 0.2, 0.3, 0.5]),
        f"{WEIGHTED} in 3 and 4 dimensions",
    ),
    "counts": (
        ("counts_centred", "counts_noncentred"),
        both(own.counts, [0.8, -0.7], [0.8, -0.7, 0.4]),
        f"groups by 1-d trapezoidal rules; {WEIGHTED} in 2 and 3 dimensions",
    ),
    "groups": (
        ("groups_centred", "groups_noncentred"),
        groups_pair,
        f"patients by hand (M1) and by 1-d trapezoidal rules (M2); {WEIGHTED} in 3 dimensions",
    ),
    "few_groups": (("few_groups",), few_pair, "level and groups by hand; 1-d and 2-d trapezoidal rule"),
    "slopes": (
        ("slopes_numpyro", "slopes_pymc"),
        both(own.slopes, [3.2, 1.8, 3.2], [3.2, 1.8, 3.2, 0.3]),
        f"lines and their mean by hand; {WEIGHTED} in 3 and 4 dimensions",
    ),
    "galaxies": (("galaxies",), galaxies_pair, "kept: long importance sampling of both evidences"),
    "mixture": (("mixture",), mixture_pair, "2-d and 4-d trapezoidal rule, both orders of the means"),
    "survival": (("survival",), both(own.survival, [2.0, 0.3], [2.0, 0.3, 0.3]), f"{WEIGHTED} in 2 and 3 dimensions"),
}


def main(asked: list[str]) -> None:
    rows = {}
    if TABLE.exists():
        with TABLE.open() as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
    for key in asked or PAIRS:
        names, pair, method = PAIRS[key]
        began = time.time()
        first, second = pair()
        value, error = second.log - first.log, float(np.hypot(first.error, second.error))
        error = max(error, ROUNDED)
        print(f"{key:22s} {value:9.4f} +- {error:.1e}  M1 {first.log:.4f} ({first.said})", end="  ")
        print(f"M2 {second.log:.4f} ({second.said})  {time.time() - began:.0f} s", flush=True)
        for name in names:
            rows[name] = {"name": name, "reference": f"{value:.4f}", "error": f"{error:.1e}", "method": method}
        order = [name for names, _, _ in PAIRS.values() for name in names]
        with TABLE.open("w", newline="") as file:
            table = csv.DictWriter(file, ["name", "reference", "error", "method"], lineterminator="\n")
            table.writeheader()
            table.writerows(rows[name] for name in order if name in rows)


if __name__ == "__main__":
    main(sys.argv[1:])
