"""What the paper left for later, measured on its data: control variates on the direct path, relaxation, 1 of m."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas

from crossfade.api import compare
from crossfade.papers import biopathway, charts, pima, radiata
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.radiocarbon import problem as polynomials
from crossfade.papers.rows import NETI_DIFF, Problem, neti_diff, rows, two_legs
from crossfade.papers.statistics import of_runs, relaxation
from crossfade.types import Estimate
from crossfade.worlds import linear

TITLE = "Future work of the paper"
CONTROLLED = ("TI-standard", "CTI", NETI_DIFF, "CTI-DIFF")
N_CHAINS = 4  # control variates are fitted on other chains than those they correct
LENGTHS = {False: (2_000, 4_000, 8_000), True: (2_000, 4_000, 8_000, 16_000, 32_000)}
ORDERS = tuple(range(1, 11))
REFERENCE = 5
WORLDS = {False: ("radiata", "pima"), True: ("radiata", "pima", "biopathway NI")}


def others(full: bool) -> tuple[int, ...]:
    """The orders that are compared with the reference."""
    return tuple(order for order in ORDERS if order != REFERENCE and (full or order % 2))


def problems() -> dict[str, Problem]:
    """The worlds for control variates; of the biopathway, the gene NI of one wildtype data set."""
    gene = biopathway.problem("wildtype", 1, "NI")
    return {"radiata": radiata.problem(), "pima": pima.problem(), "biopathway NI": gene}


def controlled(world: str, method: str, n_iter: int, n_runs: int) -> Rows:
    """Runs of four chains each, with and without control variates, on the paths of TI and of NETI-DIFF."""
    ours = problems()[world]
    settings: dict[str, Any] = {"method": method, "n_iter": n_iter, "n_chains": N_CHAINS, "kernel": ours.kernel}
    found = []
    for run in range(n_runs + 1):  # the first compiles and is not counted
        began = time.process_time()
        result = compare(ours.m1, ours.m2, seed=max(run, 1), **settings)
        about = {"kind": "controlled", "world": world, "method": method, "n_iter": n_iter, "truth": ours.truth}
        cost = {"cpu": time.process_time() - began, "run": run - 1}
        found.append({**about, **cost, "estimate": result.log_bayes_factor.value})
    return found[1:]


def relaxed(n_runs: int, full: bool) -> Rows:
    """Pima: sweeps of several lengths read at 1/length = 0, against one sweep that costs as much as all of them."""
    ours, key = pima.problem(), jax.random.key(5)
    lengths = LENGTHS[full]
    short = np.array(
        [
            [row["estimate"] for row in neti_diff(ours, n, n_runs, jax.random.fold_in(key, i))]
            for i, n in enumerate(lengths)
        ]
    )
    # The spread of a sweep falls with the square root of its length; only the proportions matter for the weights.
    read = [
        relaxation([(n, Estimate(float(x), n**-0.5, np.inf)) for n, x in zip(lengths, run, strict=True)]).value
        for run in short.T
    ]
    total = sum(lengths)
    one = neti_diff(ours, total, n_runs, jax.random.fold_in(key, len(lengths)))
    about = {"kind": "relaxation", "world": "pima", "truth": ours.truth, "cpu": np.nan, "n_iter": total}
    found = rows(np.array(read), **about, method="extrapolated") + [
        {**about, "method": "one long sweep", "run": row["run"], "estimate": row["estimate"]} for row in one
    ]
    for n, values in zip(lengths, short, strict=True):
        found += rows(values, **{**about, "n_iter": n}, method="sweep")
    return found


def one_of_many(route: str, order: int, n_iter: int, n_runs: int) -> Rows:
    """log evidence of a polynomial relative to the reference order, by NETI-DIFF from it or by TI of each alone."""
    key = jax.random.fold_in(jax.random.key(9), order)
    ours = polynomials(REFERENCE, order)
    if route == "reference":
        found = neti_diff(ours, n_iter, n_runs, key)
    else:
        found = [row for row in two_legs(ours, n_iter, (50,), n_runs, key) if row["method"] == "TI-optimal"]
    about = {"kind": "one of many", "world": "radiocarbon", "route": route, "order": order}
    return [{**about, **{k: row[k] for k in ("run", "estimate", "truth", "cpu", "n_iter", "method")}} for row in found]


def jobs(full: bool, n_runs: int) -> list[Job]:
    n_runs = max(n_runs, 8)
    found = [
        Job(f"{world}-{method}".replace(" ", "_"), f"{__name__}:controlled",
            {"world": world, "method": method, "n_iter": 16_000 if full else 4_000, "n_runs": n_runs})
        for world in WORLDS[full] for method in CONTROLLED
    ]  # fmt: skip
    found.append(Job("relaxation", f"{__name__}:relaxed", {"n_runs": 4 * n_runs, "full": full}))
    for order in others(full):
        for route in ("reference", "separate"):
            settings = {"route": route, "order": order, "n_iter": 256_000 if full else 32_000, "n_runs": n_runs}
            found.append(Job(f"{route}-{order}", f"{__name__}:one_of_many", settings))
    return found


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    settled = runs[runs["kind"] == "controlled"].copy()
    # The biopathway has no closed form: the mean over all runs of the least variable method stands in for it.
    for _, part in settled.groupby("world"):
        if part["truth"].isna().all():
            best = part.groupby("method")["estimate"].agg(["mean", "var"]).sort_values("var")["mean"].iloc[0]
            settled.loc[part.index, "truth"] = best
    many = runs[runs["kind"] == "one of many"]
    return {
        "control-variates": of_runs(settled, ["world", "method", "n_iter"]),
        "relaxation": of_runs(runs[runs["kind"] == "relaxation"], ["method", "n_iter"]),
        "one-of-many": of_runs(many, ["route", "order", "method", "n_iter"]),
        "probabilities": probabilities(many),
    }


def probabilities(many: pandas.DataFrame) -> pandas.DataFrame:
    """p(M_i | data) of all orders, equally likely before: exact, and the spread over runs by both routes."""
    orders = sorted({REFERENCE, *many["order"].astype(int)})
    evidence = np.array([linear.log_evidence(linear.radiocarbon(order)) for order in orders])
    table = pandas.DataFrame({"order": orders, "exact": np.exp(evidence - np.logaddexp.reduce(evidence))})
    for route, part in many.groupby("route"):
        wide = part.pivot(index="run", columns="order", values="estimate")
        wide[REFERENCE] = 0.0
        log_p = wide.reindex(columns=orders).to_numpy()
        p = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True))
        table[f"{route}"], table[f"{route}_sd"] = p.mean(axis=0), p.std(axis=0, ddof=1)
    return table


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    written: list[Path] = []
    found = tables(runs)
    with charts.figure(folder, "future", (11, 4.0), "What the paper left for later", written) as drawn:
        left, middle, right = drawn.subplots(1, 3)
        table = found["control-variates"]
        worlds = list(table["world"].unique())
        series = {}
        for method in CONTROLLED:
            part = table[table["method"] == method].set_index("world").loc[worlds]
            series[method] = (part["variance"], part["variance"], part["variance"])
        charts.bars(left, worlds, series, log=True)
        left.set_ylabel("variance over runs")
        left.set_title("control variates (C...) on both paths", loc="left")
        left.legend(fontsize=8)
        rest = found["relaxation"]
        bias, half = rest["bias"], 2 * rest["bias_error"]
        names = [f"{m}\n{charts.thousands(n)}" for m, n in zip(rest["method"], rest["n_iter"], strict=True)]
        at = np.arange(len(rest))
        middle.errorbar(at, bias, half, fmt="o", color=charts.MORE[0], capsize=3)
        middle.axhline(0, color=charts.INK, lw=0.9)
        middle.set_xticks(at, names, rotation=60, fontsize=8)
        middle.set_ylabel("bias, with 2 standard errors")
        middle.set_title("Pima: relaxation extrapolated", loc="left")
        many = found["one-of-many"]
        for i, (route, part) in enumerate(many.groupby("route")):
            rms = np.sqrt(part["variance"] + part["bias"] ** 2)
            right.plot(part["order"], rms, charts.MARKERS[i] + "-", color=charts.MORE[i], label=route)
        right.set_yscale("log")
        right.set(xlabel="order of the polynomial", ylabel=f"rms error, relative to order {REFERENCE}")
        right.set_title("1 of many: reference or alone", loc="left")
        right.legend()
    return written
