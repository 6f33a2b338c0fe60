"""`crossfade demo`: two regressions whose Bayes factor is known exactly."""

from __future__ import annotations

from crossfade.app.options import Json, Quiet
from crossfade.app.output import answer
from crossfade.app.terminal import console, keep_compiled
from crossfade.app.words import number, with_error

INTRODUCTION = (
    "The strength of 42 boards of radiata pine was measured. Does their density predict it better (M1), or their "
    "density adjusted for the resin in them (M2)? crossfade draws parameters of both models given the data, and "
    "computes from the draws how much better M2 predicts the data than M1: the Bayes factor.\n"
)


def demo(as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare two regressions whose Bayes factor is known exactly (42 pine boards)."""
    keep_compiled()
    from crossfade.api import compare as run
    from crossfade.worlds import linear

    out = console()
    quiet = quiet or as_json
    if not quiet:
        out.print(INTRODUCTION)
    m1, m2 = linear.radiata()
    result = run(m1, m2, target_se=0.005, seed=0, route="path", progress=not quiet)
    about = {
        "M1": "strength ~ density",
        "M2": "strength ~ density adjusted for resin",
        "data": "radiata, 42 rows, gaussian family",
        "scale": "covariates centred",
        "prior": "intercept ~ N(3000, variance/0.06), slope ~ N(185, variance/6); 1/variance ~ Gamma(3, rate 180000)",
    }
    exact = linear.log_evidence(m2) - linear.log_evidence(m1)
    result = result._replace(about={**result.about, **about})
    answer(result, as_json=as_json, exact=exact)
    if quiet:
        return
    estimate = result.log_bayes_factor
    off = abs(estimate.value - exact) / estimate.error
    out.print(
        f"\nFor these two models the exact log Bayes factor can be computed: it is {number(exact, 1e-3)}. "
        f"The estimate above, {with_error(estimate)}, is {off:.1f} standard errors away from it."
    )
