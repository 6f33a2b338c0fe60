"""`crossfade doctor`: examinations before a comparison."""

from __future__ import annotations

import typer

from crossfade.app.compared import models_of
from crossfade.app.machine import checkup, print_json
from crossfade.app.options import (
    Decimal,
    DropMissing,
    Family,
    Json,
    NoiseRate,
    NoiseShape,
    PriorMean,
    PriorPrecision,
    PriorSd,
    Quiet,
    Scaling,
    Seed,
    Sep,
    What,
)
from crossfade.app.output import NO_ANSWER
from crossfade.app.page import of_checkup, of_notes
from crossfade.app.request import check_numbers
from crossfade.app.terminal import aside, keep_compiled, show


def doctor(
    what: What,
    family: Family = "gaussian",
    seed: Seed = 0,
    sep: Sep = None,
    decimal: Decimal = None,
    drop_missing: DropMissing = False,
    scaling: Scaling = "standardise",
    prior_mean: PriorMean = None,
    prior_precision: PriorPrecision = None,
    noise_shape: NoiseShape = 0.1,
    noise_rate: NoiseRate = 0.1,
    prior_sd: PriorSd = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Examine two models before comparing them: data, gradients, normalisation, a placebo parameter."""
    given = dict(locals())
    check_numbers(given)
    m1, m2, _ = models_of(given)
    keep_compiled()
    from crossfade.doctor import check

    with aside():
        found = check(m1, m2, seed=seed, progress=not (quiet or as_json))
    if as_json:
        print_json("checkup", **checkup(found), notes=m1.notes)
    else:
        show(*of_notes(m1.notes), *of_checkup(found))
    if not found.ok:
        raise typer.Exit(NO_ANSWER)
