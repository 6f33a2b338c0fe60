"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Spelt out for --help, which must not wait for JAX and SciPy; a test holds them to the tables they name.
METHODS = (
    "TI-standard, TI-optimal, CTI, NETI, NETI-DIFF, NETI-DIFF-length, CTI-DIFF, AIS, Crooks, stepping-stone, BAR, MBAR"
)
ESTIMATORS = "trapezoid, corrected_trapezoid, stepping_stone, bar, mbar, jarzynski, crooks, controlled"

What = Annotated[
    list[str],
    typer.Argument(
        help="A CSV file and two formulas like 'y ~ x', or two models like models.py:m1 (a crossfade, NumPyro or "
        "PyMC model, or a function that makes one).",
        metavar="DATA FORMULA1 FORMULA2 | FILE.py:M1 FILE.py:M2",
    ),
]
Family = Annotated[str, typer.Option(help="Of formulas: gaussian, logistic or poisson.")]
Scaling = Annotated[str, typer.Option(help="Of formulas: standardise, centre or raw.")]
PriorMean = Annotated[
    list[str] | None, typer.Option(help="Of the coefficients: a number for all, or NAME=NUMBER. (default 0)")
]
PriorPrecision = Annotated[
    list[str] | None, typer.Option(help="gaussian: coefficient ~ N(mean, variance/precision); as above. (default 1)")
]
NoiseShape = Annotated[float, typer.Option(help="gaussian: 1/variance ~ Gamma(shape, rate).")]
NoiseRate = Annotated[float, typer.Option(help="gaussian: see --noise-shape.")]
PriorSd = Annotated[
    list[str] | None,
    typer.Option(help="logistic (default 10), poisson (default 2.5): coefficient ~ N(mean, sd^2); as above."),
]
Sep = Annotated[
    str | None,
    typer.Option(help="What separates the columns of the table: , ; tab | space. (default: found out)", metavar="SEP"),
]
Decimal = Annotated[
    str | None, typer.Option(help="Of the table: . or , in its decimals. (default: found out)", metavar="POINT")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave rows with missing values out, of all models alike.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the answer only, not how far it is.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else (docs/json.md has the fields).")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        help="Keep all that is sampled in this folder, as it comes: see crossfade resume, status, extend, gather.",
        metavar="FOLDER",
    ),
]
Workers = Annotated[int | None, typer.Option(help="Sample on so many processes of this machine (needs Dask).")]
Scheduler = Annotated[
    str | None, typer.Option(help="Sample on the workers of this Dask scheduler.", metavar="tcp://HOST:PORT")
]
SchedulerFile = Annotated[
    Path | None, typer.Option(help="The same, by the file that the scheduler has written.", metavar="FILE")
]
OnlyPlan = Annotated[
    bool,
    typer.Option("--plan", help="With --dir: only write down what to do; then crossfade work FOLDER, many times."),
]
