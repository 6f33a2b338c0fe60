"""The circadian clock: which of two networks regulates it, from the gradients of seven genes (5 + 5 data sets)."""

from __future__ import annotations

import zlib
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas

from crossfade.papers import biopathway_figures, clock
from crossfade.papers.jobs import Job, Rows
from crossfade.papers.rows import AUTO, NETI_DIFF, Problem, default_method, neti_diff, two_legs
from crossfade.papers.statistics import ratio_interval
from crossfade.worlds import kinetics

TITLE = "Biopathway"
GENES = tuple(gene for gene in clock.GENES if clock.WILDTYPE[gene] != clock.MUTANT[gene])  # the others contribute 0
RUNGS = (10, 20, 50, 100)
LENGTHS = {False: (10_000, 40_000), True: (10_000, 40_000, 100_000, 400_000, 1_600_000, 6_400_000)}
FIXED_LENGTH = {False: 20_000, True: 100_000}  # iterations where only the target differs, not the length
TARGET = {False: 0.03, True: 0.01}  # standard error of the reference, per response
# What else could have been meant: other priors, all rows kept, and no light.
VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "all 143 rows": {"drop_knocked_out": False},
    "without light": {"light": False},
    "noise IG(0.5, 0.5)": {"hyper": {"noise_shape": 0.5, "noise_rate": 0.5}},
    "ridge IG(2, 2)": {"hyper": {"ridge_rate": 2.0}},
    "ridge IG(0.5, 0.5)": {"hyper": {"ridge_shape": 0.5, "ridge_rate": 0.5}},
    "ridge IG(2, 20)": {"hyper": {"ridge_rate": 20.0}},
    "constants' variance 0.1": {"hyper": {"constant_variance": 0.1}},
}


def problem(
    network: str, instance: int, gene: str, *, drop_knocked_out: bool = True, light: bool = True, hyper: Any = None,
    as_printed: bool = False,
) -> Problem:  # fmt: skip
    """M1 is the wildtype network and M2 the mutant, whatever the data came from."""
    response = clock.response(network, instance, gene, drop_knocked_out=drop_knocked_out)
    sets = [
        {name: sign for name, sign in regulators[gene].items() if light or name != clock.LIGHT}
        for regulators in (clock.WILDTYPE, clock.MUTANT)
    ]
    m1, m2 = (
        kinetics.model(response.y, response.own, response.regulators, signs, hyper=kinetics.Hyper(**(hyper or {})))
        for signs in sets
    )
    kernel = partial(kinetics.gibbs, as_printed=as_printed)
    return Problem(m1, m2, kernel, path=kinetics.path)


def run(kind: str, network: str, instance: int, gene: str, seed: int, n_runs: int, **settings: Any) -> Rows:
    """One job: `kind` is "ti", "neti", "printed" (the paper's conditionals), "variant" or "auto"."""
    about = {"kind": kind, "network": network, "instance": instance, "gene": gene}
    key = jax.random.key(seed)
    if kind == "variant":
        about["variant"] = settings["variant"]
        found = neti_diff(
            problem(network, instance, gene, **VARIANTS[settings["variant"]]), settings["n_iter"], n_runs, key
        )
    elif kind == "printed":
        found = neti_diff(problem(network, instance, gene, as_printed=True), settings["n_iter"], n_runs, key)
    elif kind == "auto":
        found = default_method(problem(network, instance, gene), n_runs, seed % 10_000, settings["target_se"], True)
    elif kind == "ti":
        found = two_legs(problem(network, instance, gene), settings["n_iter"], RUNGS, n_runs, key)
    else:
        found = neti_diff(problem(network, instance, gene), n_runs=n_runs, key=key, **settings)
    return [{**about, **row} for row in found]


def jobs(full: bool, n_runs: int) -> list[Job]:
    """In short runs, TI is run on one data set of each network; NETI-DIFF and the default method on all ten."""

    def job(kind: str, network: str, instance: int, gene: str, n_runs: int = n_runs, **settings: Any) -> Job:
        where = {"kind": kind, "network": network, "instance": instance, "gene": gene}
        name = "-".join(str(v).replace(" ", "_") for v in (*where.values(), *settings.values()))
        seed = zlib.crc32(name.encode()) % 2**31
        return Job(name, f"{__name__}:run", {**where, "seed": seed, "n_runs": n_runs, **settings})

    # Gene after gene within each kind: data sets of one gene share a compiled program, and workers that begin
    # together should not compile the same one.
    sets = list(product(clock.NETWORKS, clock.INSTANCES, GENES))
    some = [each for each in sets if each[1] == 1]
    found = [job("auto", *each, n_runs=1, target_se=TARGET[full]) for each in sets]
    for n in LENGTHS[full]:
        found += [job("ti", *each, n_iter=n) for each in (sets if full else some)]
        found += [job("neti", *each, n_iter=n, ladder=ladder) for ladder in ("sigmoid", "power") for each in sets]
    found += [job("printed", *each, n_iter=FIXED_LENGTH[full]) for each in (sets if full else some)]
    # Other columns or rows are other programs, which take longer to compile than to run.
    variants = [name for name, own in VARIANTS.items() if full or set(own) <= {"hyper"}]
    found += [job("variant", *each, n_iter=FIXED_LENGTH[full], variant=v) for v in variants for each in some]
    return found


def of_networks(runs: pandas.DataFrame) -> pandas.DataFrame:
    """Runs summed over genes: the log Bayes factor of a network, with the default method's as the truth."""
    by = ["kind", "variant", "network", "instance", "method", "ladder", "rungs", "n_iter", "run"]
    total = runs.groupby(by, dropna=False).agg(
        estimate=("estimate", "sum"), cpu=("cpu", "sum"), evaluations=("evaluations", "sum"), genes=("gene", "nunique")
    )
    total = total.reset_index()
    total = total[total["genes"] == len(GENES)]
    reference = total[total["method"] == AUTO].groupby(["network", "instance"])["estimate"].mean().rename("truth")
    return total.join(reference, on=["network", "instance"])


def tables(runs: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    runs = runs.assign(variant=runs.get("variant"))
    whole = of_networks(runs)
    return {
        "log-bayes-factors": _answers(runs, whole),
        "responses": _responses(runs),
        "variances": variances(whole),
        "ratios": variance_ratios(whole),
        "variants": _variants(runs),
    }


def _answers(runs: pandas.DataFrame, whole: pandas.DataFrame) -> pandas.DataFrame:
    """The paper's table: log Bayes factors for all data sets, here by every method, each at its greatest length."""
    ours = runs[runs["method"] == AUTO]
    found = ours.groupby(["network", "instance"]).agg(
        auto=("estimate", "sum"), auto_error=("error", lambda e: float(np.sqrt((e**2).sum())))
    )
    found["verdicts"] = ours.groupby(["network", "instance"])["verdict"].agg(lambda v: ", ".join(sorted(set(v))))
    for label, part in (
        (NETI_DIFF, whole[(whole["kind"] == "neti") & (whole["ladder"] == "sigmoid")]),
        ("TI-optimal", whole[(whole["method"] == "TI-optimal") & (whole["rungs"] == max(RUNGS))]),
        ("as_printed", whole[whole["kind"] == "printed"]),
    ):
        most = part.groupby(["network", "instance"])["n_iter"].transform("max")
        longest = part[part["n_iter"] == most].groupby(["network", "instance"])["estimate"]
        found[label], found[f"{label}_error"] = longest.mean(), longest.std(ddof=1) / np.sqrt(longest.size())
    return found.reset_index().sort_values(["network", "instance"], ascending=[False, True])


def _responses(runs: pandas.DataFrame) -> pandas.DataFrame:
    ours = runs[runs["method"] == AUTO]
    return ours[["network", "instance", "gene", "estimate", "error", "verdict", "cpu"]].sort_values(
        ["network", "instance", "gene"], ascending=[False, True, True]
    )


def variances(whole: pandas.DataFrame) -> pandas.DataFrame:
    """Variance over runs and mean absolute error of every data set and setting."""
    part = whole[whole["kind"].isin(["neti", "ti"])].assign(off=lambda t: (t["estimate"] - t["truth"]).abs())
    by = ["network", "instance", "method", "ladder", "rungs", "n_iter"]
    found = part.groupby(by, dropna=False).agg(
        variance=("estimate", "var"), mean=("estimate", "mean"), mae=("off", "mean"), truth=("truth", "first"),
        runs=("run", "size"), cpu=("cpu", "mean"), evaluations=("evaluations", "mean"),
    )  # fmt: skip
    return found.reset_index()


def variance_ratios(whole: pandas.DataFrame) -> pandas.DataFrame:
    """Mean variance of TI-optimal over mean variance of NETI-DIFF, over the data sets that have both."""
    table = variances(whole)
    ours = table[(table["method"] == NETI_DIFF) & (table["ladder"] == "sigmoid")]
    theirs = table[table["method"].str.startswith("TI")]
    both = theirs.merge(ours, on=["network", "instance", "n_iter"], suffixes=("", "_neti"))
    found = []
    for (network, method, rungs, n_iter), part in both.groupby(["network", "method", "rungs", "n_iter"]):
        ratio = part["variance"].mean() / part["variance_neti"].mean()
        # Every data set brings its own degrees of freedom; a mean of variances has about their sum.
        n = float((part["runs"] - 1).sum() + 1)
        low, high = ratio_interval(n, n, ratio)
        bias = (part["mean"] - part["truth"]).mean(), (part["mean_neti"] - part["truth"]).mean()
        found.append(
            {"network": network, "method": method, "rungs": rungs, "n_iter": n_iter, "data_sets": len(part),
             "ratio": ratio, "low": low, "high": high, "at_equal_cpu": ratio * (part["cpu"] / part["cpu_neti"]).mean(),
             "bias": bias[0], "bias_neti": bias[1]}
        )  # fmt: skip
    return pandas.DataFrame(found)


def _variants(runs: pandas.DataFrame) -> pandas.DataFrame:
    """How the answer of the first data set of each network moves with what the paper does not print."""
    part = runs[runs["kind"] == "variant"]
    found = part.groupby(["variant", "network", "gene"], sort=False)["estimate"].mean().unstack("gene")
    found["network_total"] = found.sum(axis=1)
    return found.reset_index()


def figures(runs: pandas.DataFrame, folder: Path) -> list[Path]:
    whole = of_networks(runs.assign(variant=runs.get("variant")))
    return biopathway_figures.draw(whole, variances(whole), folder)
