"""Draws docs/pictures/method-*.png: from thermodynamic integration to fitted links, on 42 boards of radiata pine.

All of it comes out of small runs of the code that the pictures are about; the dashed lines are exact.

Run with: .venv/bin/python docs/method_pictures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from drawing import COLOURS, GREY, INK, PICTURES, figure_to

import crossfade
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.types import Trace
from crossfade.worlds import linear

N_ITER, N_CHAINS = 4000, 8
BINS = 200  # of a sweep of N x 1 draws


def two_integrals(pair: Any, path: Path) -> None:
    """TI: each evidence is an area under the mean log likelihood, from the prior (t = 0) to the posterior (t = 1)."""
    result = crossfade.compare(*pair, method="TI-standard", n_iter=N_ITER, n_chains=N_CHAINS)
    with figure_to(path, (7.6, 3.3)) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for k, (axis, leg) in enumerate(zip(axes, result.legs, strict=True)):
            tau, mean = leg.forward.tau, leg.forward.log_ratio.mean(axis=(0, 2))
            axis.plot(tau**0.2, mean, "o-", color=COLOURS[k], ms=3.5, linewidth=1.2)
            axis.fill_between(tau**0.2, mean, mean.min() - 40, color=COLOURS[k], alpha=0.15, linewidth=0)
            exact = linear.log_evidence(pair[k])
            axis.set_title(f"M{k + 1}: log evidence {exact:.1f}", loc="left", fontsize=11, fontweight="bold")
            ticks = [0, 1e-3, 1e-2, 0.1, 0.3, 1]
            axis.set_xticks([t**0.2 for t in ticks], [f"{t:g}" for t in ticks], fontsize=9)
            axis.set_xlabel("t (drawn as its fifth root)")
            axis.set_ylim(-460, -280)
        axes[0].set_ylabel("mean log likelihood")
    print(f"TI-standard: {result.raw_estimate.value:.3f} +- {result.raw_estimate.error:.3f}")


def one_integral(pair: Any, exact: float, path: Path) -> None:
    """NETI-DIFF: one area, under the mean difference of the two log likelihoods, from M1 to M2."""
    result = crossfade.compare(*pair, method="NETI-DIFF", n_iter=N_ITER, n_chains=N_CHAINS)
    leg = result.legs[0]
    assert leg.reverse is not None
    with figure_to(path, (7.6, 3.3)) as figure:
        integrand, partial = figure.subplots(1, 2)
        back = Trace(1 - leg.reverse.tau[::-1], -leg.reverse.log_ratio[:, ::-1], leg.reverse.acceptance, False)
        for trace, colour, name in ((leg.forward, COLOURS[0], "M1 to M2"), (back, COLOURS[1], "and back")):
            tau, ratio = trace.tau, trace.log_ratio[:, :, 0]
            grid = [part for part in np.array_split(np.arange(len(tau)), BINS) if len(part)]
            where = [tau[part].mean() for part in grid]
            mean = [ratio[:, part].mean() for part in grid]
            integrand.plot(where, mean, color=colour, linewidth=1.4, label=name)
            areas = np.cumsum(np.diff(tau) * (ratio[:, 1:] + ratio[:, :-1]) / 2, axis=1)
            partial.plot(tau[1:], areas.T, color=colour, linewidth=0.8, alpha=0.7)
        integrand.axhline(0, color=GREY, linewidth=0.8)
        integrand.set(xlabel="tau", ylabel="mean log likelihood ratio")
        integrand.set_title("The integrand", loc="left", fontsize=11, fontweight="bold")
        integrand.legend()
        partial.axhline(exact, color=INK, linewidth=1, linestyle=(0, (5, 4)))
        partial.set(xlabel="tau", ylabel="area so far")
        partial.set_title(f"{N_CHAINS} sweeps each way", loc="left", fontsize=11, fontweight="bold")
    print(f"NETI-DIFF: {result.raw_estimate.value:.3f} +- {result.raw_estimate.error:.3f}")


def prior_linked(pair: Any) -> list[dict[str, np.ndarray]]:
    """Draws of each posterior, completed by the prior of what the model lacks."""
    found = []
    for tau in (0.0, 1.0):
        keys = chain_keys(jax.random.key(int(tau)), 1500)
        _, state = anneal(direct(*pair), linear.exact(*pair), np.array([tau]), keys, schedule=Schedule(1, 0, 0))
        found.append({name: np.asarray(value) for name, value in state.theta.items()})
    return found


def links(pair: Any, path: Path) -> None:
    """Where the draws of the two ends lie in the plane of what is not shared, by kind of link."""
    edge = crossfade.fade(*(crossfade.sample(model, n_draws=100) for model in pair))
    labels = list(edge.union.labels)
    fitted = []
    for rung in (edge.rungs[0], edge.rungs[-1]):
        v = np.concatenate([half.reshape(-1, half.shape[2]) for half in rung.v])[::2]
        fitted.append({name: v[:, labels.index(name)] for name in ("x", "z")})
    with figure_to(path, (7.6, 3.9)) as figure:
        panels = (("Linked by the prior", prior_linked(pair)), ("Linked by fitted densities", fitted))
        for axis, (title, ends) in zip(figure.subplots(1, 2, sharex=True, sharey=True), panels, strict=True):
            for k, own in enumerate(ends):
                size = {"s": 5, "alpha": 0.35, "linewidths": 0}
                axis.scatter(own["x"], own["z"], color=COLOURS[k], label=f"draws of M{k + 1}", **size)
            axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
            axis.set(xlabel="slope in x (of M1 alone)", xlim=(-250, 650), ylim=(-250, 650))
            axis.legend(markerscale=3, loc="lower left")
        figure.axes[0].set_ylabel("slope in z (of M2 alone)")
    print(f"fitted links: {edge.summary().headline.value:.3f} +- {edge.summary().headline.error:.3f}")


def main() -> None:
    pair = linear.radiata()
    exact = linear.log_evidence(pair[1]) - linear.log_evidence(pair[0])
    two_integrals(pair, PICTURES / "method-two-integrals.png")
    one_integral(pair, exact, PICTURES / "method-one-integral.png")
    links(pair, PICTURES / "method-links.png")
    print(f"exact: {exact:.3f}")


if __name__ == "__main__":
    main()
