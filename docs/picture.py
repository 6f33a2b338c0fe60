"""Draws docs/picture.png: the fade between the two radiata models, there and back.

Run with: .venv/bin/python docs/picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import crossfade
from crossfade.analysis.diagnostics import partial_integrals
from crossfade.models import linear

THERE, BACK, INK = "#1f6f8b", "#e07a3f", "#2b2b2b"


def binned(tau: np.ndarray, values: np.ndarray, n_bins: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Means over equal steps of tau."""
    edges = np.linspace(0, 1, n_bins + 1)
    which = np.clip(np.digitize(tau, edges) - 1, 0, n_bins - 1)
    filled = [k for k in range(n_bins) if np.any(which == k)]
    centres = np.array([tau[which == k].mean() for k in filled])
    return centres, np.array([values[which == k].mean() for k in filled])


def main() -> None:
    m1, m2 = linear.radiata()
    exact = linear.log_evidence(m2) - linear.log_evidence(m1)
    result = crossfade.compare(m1, m2, method="NETI-DIFF", n_iter=16_000, n_chains=16)
    there, back = result.legs[0].forward, result.legs[0].reverse
    assert back is not None
    # The run back starts at M2 and sees minus the ratio: turned round, both are functions of the same tau.
    runs = (
        (there.tau, there.log_ratio, partial_integrals(there), THERE, "from M1 to M2"),
        (1 - back.tau, -back.log_ratio, partial_integrals(back), BACK, "and back"),
    )

    plt.rcParams.update({"font.size": 10.5, "axes.edgecolor": "#9a9a9a", "text.color": INK})
    figure, (slope, integral, answer) = plt.subplots(
        1, 3, figsize=(11, 4), dpi=160, layout="constrained", width_ratios=[1, 1, 0.55]
    )
    for k, (tau, ratio, area, colour, name) in enumerate(runs):
        centres, slopes = binned(tau, ratio.mean(axis=(0, 2)))
        face = colour if k == 0 else "none"
        slope.plot(centres, slopes, "o", ms=4 + 2.5 * k, color=colour, markerfacecolor=face, label=name)
        begun = area - area[:, -1:] if k else area  # the run back is measured from its end, M1
        integral.plot(tau[::8], begun[:, ::8].T, color=colour, linewidth=0.5 if k else 3, alpha=0.7)
        ends = (-1) ** k * area[:, -1]
        answer.plot(k + np.linspace(-0.16, 0.16, len(ends)), ends, "o", ms=4, color=colour, alpha=0.8)
        answer.plot([k - 0.25, k + 0.25], [ends.mean()] * 2, color=colour, linewidth=2)

    dashes = {"color": INK, "linewidth": 1, "linestyle": (0, (5, 4)), "zorder": 0}
    slope.axhline(0, color="#c8c8c8", linewidth=0.8, zorder=0)
    slope.legend(frameon=False, loc="lower right")
    titles = ("Slope of the log evidence", "Its integral, chain by chain", "The answers")
    for axis, title in zip((slope, integral, answer), titles, strict=True):
        axis.set_title(title, loc="left", fontsize=11.5, fontweight="bold")
        axis.spines[["top", "right"]].set_visible(False)
    for axis, label in ((slope, "mean log ratio, M2 over M1"), (integral, "log Bayes factor so far")):
        axis.set(xlim=(-0.02, 1.02), xlabel="how far M1 has faded into M2", ylabel=label)
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["M1", "¼", "½", "¾", "M2"])
    integral.axhline(exact, **dashes)
    integral.text(0, exact - 0.15, f"exact: {exact:.4f}", va="top")
    answer.axhline(exact, **dashes)
    answer.text(1.85, exact - 0.004, "exact", va="top", ha="right")
    answer.set(xlim=(-0.5, 1.85))
    answer.set_xticks([0, 1], ["there", "back"])
    headline = result.log_bayes_factor
    answer.set_xlabel(f"there: {headline.value:.3f} ± {headline.error:.3f}")
    figure.savefig(Path(__file__).with_name("picture.png"))


if __name__ == "__main__":
    main()
