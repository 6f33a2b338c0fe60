"""What a finished run of the default method says, and whether to trust it."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossfade.analysis.judge import (
    Chains,
    judge,
    of_chains,
    of_checks,
    of_error,
    of_overlap,
    of_ratios,
    of_undefined,
)
from crossfade.analysis.mixing import NOTHING_AGAINST, mixing
from crossfade.methods.edge import Edge
from crossfade.methods.pilot import undefined_among
from crossfade.methods.run import Run
from crossfade.sampling.draws import Draws
from crossfade.types import Result


def chains_of(run: Run) -> list[Chains]:
    """How the chains of both ends and of the rungs between did."""
    assert run.edge is not None
    found = []
    for k, draws in enumerate(run.edge.draws):
        if draws.u.shape[2]:
            found.append(chains_of_model(f"M{k + 1}", draws))
    for rung in run.edge.rungs[1:-1]:
        found.append(
            Chains(f"the rung at tau = {rung.tau:.3g}", NOTHING_AGAINST, run.edge.union.labels, rung.divergent)
        )
    return found


def chains_of_model(name: str, draws: Draws) -> Chains:
    return Chains(
        name,
        mixing(draws.as_made),
        tuple(draws.coordinates.labels()),
        float(draws.divergent.mean()),
        draws.brought is not None,
        draws.coordinates.lost(draws.u),
        draws.elsewhere,
        _smooth(draws),
        undefined_among(draws),
        draws.divergent.size,
    )


def _smooth(draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Draws and gradients by coordinates in which the log density has no steps: there is no identity for others."""
    jumps = draws.joint.jumps
    rest = np.setdiff1d(np.arange(draws.slope.shape[2]), [] if jumps is None else jumps)
    return draws.slope_at[:, :, rest], draws.slope[:, :, rest]


def result_of(run: Run) -> Result:
    """The `Result` of a run that has finished: what it says, and whether to trust it."""
    assert run.edge is not None and run.summary is not None
    summary, edge = run.summary, run.edge
    headline = summary.headline if run.points is None else run.points.estimate
    findings = of_error(headline, run.asked.target_se, run.stopped)
    findings += [] if run.points is None else run.points.findings()
    findings += [finding for chains in chains_of(run) for finding in of_chains(chains, headline.error)]
    findings += [*of_overlap(edge.legs), *of_ratios(edge.legs), *of_checks(summary.checks, summary.headline)]
    findings += of_undefined(edge.rungs[k].undefined for k in (0, -1))
    about: dict[str, Any] = {
        "path": description(edge),
        "n_chains": run.n_chains,
        "n_draws": {f"{rung.tau:.4g}": rung.n_draws * run.n_chains for rung in edge.rungs},
        "brought": [f"M{k + 1}" for k, own in enumerate(edge.draws) if own.brought is not None],
    }
    opinions, differences = summary.opinions, summary.differences
    if run.points is not None:
        about["path"] += f"; then importance sampling, {run.points.n_points:,} points of each model"
        opinions = {summary.headline.name: summary.headline, **opinions}
        differences = {summary.headline.name: -run.points.difference}
    return Result(
        headline,
        *judge(findings),
        opinions,
        differences,
        summary.checks,
        edge.legs,
        edge.union.sharing,
        about,
        (edge.draws[0].theta(), edge.draws[1].theta()),
    )


def description(edge: Edge) -> str:
    warp = {"identity": "as they are", "shift": "shifted to each posterior", "affine": "whitened by each posterior"}
    own, shared = edge.union.size - edge.union.n_shared, edge.union.n_shared
    coordinates = "coordinate" if own == 1 else "coordinates"
    words = [f"links fitted to the draws for {own} unshared {coordinates}" if own else "nothing unshared to link"]
    if shared:
        words.append(f"{shared} shared read {warp[edge.warp]}")
    between = len(edge.rungs) - 2
    rungs = "1 rung" if between == 1 else f"{between} rungs"
    words.append("the two ends overlap" if not between else f"{rungs} between the ends")
    return "fitted links: " + ", ".join(words)
