"""`crossfade rank`: many formulas, all subsets of one, polynomials of all orders, or models in Python files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from crossfade.app.options import (
    Family,
    NoiseRate,
    NoiseShape,
    PriorMean,
    PriorPrecision,
    PriorSd,
    Quiet,
    Scaling,
    Seed,
)
from crossfade.app.terminal import keep_compiled, show
from crossfade.types import DO_NOT_USE, CrossfadeError

Many = Annotated[
    list[str],
    typer.Argument(
        help="A CSV file and formulas like 'y ~ x', or models like models.py:m1.",
        metavar="DATA FORMULA ... | FILE.py:M1 FILE.py:M2 ...",
    ),
]


def rank(
    what: Many,
    all_subsets: Annotated[
        str | None, typer.Option(help="Every model with some of the terms of this formula.", metavar="FORMULA")
    ] = None,
    orders: Annotated[
        str | None, typer.Option(help="With one formula 'y ~ x': polynomials of these orders.", metavar="LOW:HIGH")
    ] = None,
    target_se: Annotated[float | None, typer.Option(help="The worst standard error to stop at. (default 0.05)")] = None,
    budget: Annotated[str | None, typer.Option(help="At most '90 s', '5 min' or '20000 draws'.")] = None,
    family: Family = "gaussian",
    model_prior: Annotated[
        str, typer.Option(help="uniform: all models alike; size: every number of terms alike.")
    ] = "uniform",
    seed: Seed = 0,
    n_chains: Annotated[int | None, typer.Option(help="Independent chains of each model.")] = None,
    route: Annotated[str, typer.Option(help="auto: formulas need no chains; path: chains in any case.")] = "auto",
    design: Annotated[str, typer.Option(help="Of chains: tree, star or chain.")] = "tree",
    out: Annotated[Path | None, typer.Option(help="Store the ranking here: .json, or its table as .csv.")] = None,
    top: Annotated[int, typer.Option(help="Models on the page.")] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON.")] = False,
    scaling: Scaling = "standardise",
    prior_mean: PriorMean = None,
    prior_precision: PriorPrecision = None,
    noise_shape: NoiseShape = 0.1,
    noise_rate: NoiseRate = 0.1,
    prior_sd: PriorSd = None,
    quiet: Quiet = False,
) -> None:
    """Rank many models of one data set: which, how sure, and which terms matter."""
    from crossfade.app import rankings
    from crossfade.app.store import check_folder

    if out is not None:
        check_folder(out)
        if out.suffix not in (".json", ".csv"):
            raise CrossfadeError(f"--out {out}: give a name that ends in .json or .csv")
    priors = (prior_mean, prior_precision, noise_shape, noise_rate, prior_sd)
    models, about = _models(what, all_subsets, orders, family, scaling, priors)
    from crossfade.ranking import rank as run

    if not about or route != "auto":
        keep_compiled()
    found = run(
        models, target_se=target_se, budget=budget, prior=model_prior, seed=seed, n_chains=n_chains, route=route,
        design=design, progress=not quiet and not as_json,
    )  # fmt: skip
    found = found._replace(about={**found.about, **about})
    if out is not None and out.suffix == ".csv":
        found.table.to_csv(out)
    elif out is not None:
        rankings.save(found, out)
    if as_json:
        print(json.dumps(rankings.as_json(found)))
    else:
        show(*rankings.of_ranking(found, top))
    if found.verdict == DO_NOT_USE:
        raise typer.Exit(3)


def _models(
    what: list[str], all_subsets: str | None, orders: str | None, family: str, scaling: str, priors: tuple[Any, ...]
) -> tuple[Any, dict[str, str]]:
    """The models, and what the page says about them."""
    from crossfade.app.arguments import load_model, prior_of_options, read_csv

    if what[0].rpartition(":")[0].endswith(".py"):
        if all_subsets is not None or orders is not None:
            raise CrossfadeError("--all-subsets and --orders are for formulas: give a CSV file")
        names = [text.rpartition(":")[2] for text in what]
        names = names if len(set(names)) == len(names) else what  # two files may call a model the same
        return {name: load_model(text, text) for name, text in zip(names, what, strict=True)}, {}
    from crossfade.ranking import terms

    data, *formulas = what
    settings: dict[str, Any] = {"family": family, "scaling": scaling, "prior": prior_of_options(*priors)}
    table = read_csv(Path(data))
    about = {"data": f"{Path(data).name}, {len(table)} rows, {family} family"}
    if all_subsets is not None:
        if formulas or orders is not None:
            raise CrossfadeError("--all-subsets takes one formula and no others")
        return terms.all_subsets(table, all_subsets, **settings), about
    if orders is not None:
        low, colon, high = orders.partition(":")
        if len(formulas) != 1 or not colon or not (low.isdigit() and high.isdigit()):
            raise CrossfadeError(f"--orders {orders}: give one formula like 'y ~ x', and orders like 1:10")
        return terms.orders(table, formulas[0], int(low), int(high), **settings), about
    if len(formulas) < 2:
        raise CrossfadeError("give two formulas or more, or --all-subsets 'y ~ a + b', or --orders 1:10 with one")
    return terms.from_many_formulas(table, *formulas, **settings), about
