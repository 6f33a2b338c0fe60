"""Draws docs/picture.png: why the short path is short, and what that does to the answers.

Run with: .venv/bin/python docs/picture.py
"""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import crossfade
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.worlds import linear

FIRST, SECOND, INK = "#1f6f8b", "#e07a3f", "#2b2b2b"
SEEDS = range(1, 21)


def prior_link(pair) -> list[np.ndarray]:
    """Log ratios at both ends of the direct path whose link is the prior, from exact draws."""
    ends = []
    for tau in (0.0, 1.0):
        keys = chain_keys(jax.random.key(int(tau)), 4000)
        trace, _ = anneal(direct(*pair), linear.exact(*pair), np.array([tau]), keys, schedule=Schedule(1, 0, 0))
        ends.append(trace.log_ratio.ravel())
    return ends


def ratios(axis, ends: list[np.ndarray], bins: np.ndarray, exact: float, title: str) -> None:
    for values, colour, name in zip(ends, (FIRST, SECOND), ("draws of M1", "draws of M2"), strict=True):
        axis.hist(values, bins=bins, color=colour, alpha=0.65, density=True, label=name)
    axis.axvline(exact, color=INK, linewidth=1, linestyle=(0, (5, 4)))
    axis.set_title(title, loc="left", fontsize=11.5, fontweight="bold")
    axis.set(xlabel="log density of M2 over that of M1", yticks=[])
    axis.legend(frameon=False)


def main() -> None:
    pair = linear.radiata()
    exact = linear.log_evidence(pair[1]) - linear.log_evidence(pair[0])
    short = crossfade.compare(*pair, target_se=0.001, route="path")
    fitted = [
        np.concatenate([leg.forward.log_ratio[:, leg.forward.tau == t].ravel() for leg in short.legs]) for t in (0, 1)
    ]
    settings = {
        "NETI-DIFF\n16 x 16,000": {"method": "NETI-DIFF", "n_iter": 16_000},
        "default\ntarget 0.001": {"target_se": 0.001, "route": "path"},
    }
    plt.rcParams.update({"font.size": 10.5, "axes.edgecolor": "#9a9a9a", "text.color": INK})
    figure, (far, near, answers) = plt.subplots(1, 3, figsize=(11, 3.8), dpi=160, layout="constrained")
    ratios(far, prior_link(pair), np.linspace(-300, 300, 81), exact, "Linked by the prior")
    ratios(near, fitted, np.linspace(exact - 1, exact + 1, 61), exact, "Linked by fitted densities")
    for k, (name, own) in enumerate(settings.items()):
        values = [crossfade.compare(*pair, **own, seed=seed).log_bayes_factor.value for seed in SEEDS]
        answers.plot(k + np.linspace(-0.2, 0.2, len(values)), values, "o", ms=4.5, color=(SECOND, FIRST)[k])
        answers.text(k, exact + 0.046, name, ha="center", va="top")
    answers.axhline(exact, color=INK, linewidth=1, linestyle=(0, (5, 4)), zorder=0)
    answers.set_title("Answers of 20 seeds, 1 s each", loc="left", fontsize=11.5, fontweight="bold")
    answers.set(xlim=(-0.6, 1.6), xticks=[], ylim=(exact - 0.05, exact + 0.05), ylabel="log Bayes factor")
    for axis in (far, near, answers):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("picture.png"))


if __name__ == "__main__":
    main()
