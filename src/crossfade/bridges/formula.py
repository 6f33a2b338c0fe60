"""Two regression models from a table and two formulas; the design matrices are formulaic's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.bridges.design import Design, designs
from crossfade.bridges.products import is_product
from crossfade.density.regression import Regression
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

    from crossfade.density.model import Model

# Where Prior.sd is not given. A logit of 10 is as good as certain, but exp(10) is 22,000 times the rate.
SD = {"logistic": 10.0, "poisson": 2.5}


class Prior(NamedTuple):
    """Priors of the parameters after `scaling`; `means`, `precisions` and `sds` hold the exceptions, by name.

    A factor's name stands for all of its coefficients: {"group": 1.0} for group[T.b] and group[T.c].
    gaussian: coefficient ~ N(mean, variance/precision), 1/variance ~ Gamma(noise_shape, rate noise_rate)
    logistic, poisson: coefficient ~ N(mean, sd^2), sd 10 and 2.5 unless given
    """

    mean: float = 0.0
    means: Mapping[str, float] = {}
    precision: float = 1.0
    precisions: Mapping[str, float] = {}
    noise_shape: float = 0.1
    noise_rate: float = 0.1
    sd: float | None = None
    sds: Mapping[str, float] = {}


def from_formulas(
    table: pandas.DataFrame,
    formula_1: str,
    formula_2: str,
    *,
    family: str = "gaussian",
    prior: Prior = Prior(),  # noqa: B008 - immutable
    scaling: str = "standardise",
    drop_missing: bool = False,
) -> tuple[Model, Model]:
    """The models of two formulas with one response; columns of the same name are shared parameters.

    Scaling "standardise" turns every column but the intercept (and a gaussian response) into (x - mean)/sd
    with n - 1; "centre" subtracts the columns' means and leaves the response alone; "raw" changes nothing.
    Nothing is centred unless all formulas have an intercept.
    Rows with a gap in a column that a formula names are an error, or with `drop_missing` left out of both models.
    Columns such as body.mass or body mass are written as they are; others that are no names, in backticks.
    Of the logistic family the response may be two labels, such as yes and no: the result says which is 1.
    """
    both = designs(table, formula_1, formula_2, family=family, scaling=scaling, drop_missing=drop_missing)
    # The models alone do not know what was done to their columns, and priors and effects are on that scale.
    found = zip(regressions(both, family, prior), (formula_1, formula_2), strict=True)
    first, second = (own._replace(notes=(both[0].scale, *own.notes), title=formula) for own, formula in found)
    return as_model(first), as_model(second)


def regressions(designs: list[Design], family: str, prior: Prior) -> list[Regression]:
    """The models of designs under one prior, as numbers."""
    prior = _by_coefficient(prior, sorted({name for design in designs for name in design.names}))
    _check(prior, family)
    return [_regression(design, family, prior) for design in designs]


def statement(prior: Prior, family: str) -> str:
    """The priors in one line, for people."""

    def of(name: str) -> str:
        mean, precision = prior.means.get(name, prior.mean), prior.precisions.get(name, prior.precision)
        spread = f"sd {prior.sds.get(name, _sd(prior, family)):g}" if family in SD else f"variance/{precision:g}"
        return f"{name or 'coefficients'} ~ N({mean:g}, {spread})"

    changed = ", ".join(map(of, {**prior.means, **prior.precisions, **prior.sds}))
    noise = f"; 1/variance ~ Gamma({prior.noise_shape:g}, rate {prior.noise_rate:g})" if family == "gaussian" else ""
    return of("") + (f", but {changed}" if changed else "") + noise


def as_model(regression: Regression) -> Model:
    """The model of a regression, to be sampled."""
    family, y, design, names, mean, precision, noise, notes, title = regression
    if family in SD:
        from crossfade.worlds.glm import logistic, poisson

        make = {"logistic": logistic.model, "poisson": poisson.model}[family]
        return make(y, design, names, prior_mean=mean, prior_sd=precision**-0.5).described(notes, title)
    from crossfade.worlds import linear

    own = linear.Noise(*noise) if isinstance(noise, tuple) else noise
    assert own is not None
    model = linear.model(y, design, names, prior_mean=mean, prior_precision=precision, noise=own)
    return model.described(notes, title)


def _regression(design: Design, family: str, prior: Prior) -> Regression:
    names = design.names
    mean = np.array([prior.means.get(name, prior.mean) for name in names])
    if family in SD:
        precision = np.array([prior.sds.get(name, _sd(prior, family)) for name in names]) ** -2.0
        return Regression(family, *design[:3], mean, precision, None, design.notes)
    precision = np.array([prior.precisions.get(name, prior.precision) for name in names])
    return Regression(family, *design[:3], mean, precision, (prior.noise_shape, prior.noise_rate), design.notes)


def _sd(prior: Prior, family: str) -> float:
    return SD[family] if prior.sd is None else prior.sd


def _by_coefficient(prior: Prior, names: list[str]) -> Prior:
    """With the exceptions by the names of coefficients, where they were given by those of factors."""
    changed: dict[str, Any] = {}
    for field in ("means", "precisions", "sds"):
        changed[field] = {}
        for name, value in getattr(prior, field).items():
            if not (found := coefficients_of(name, names)):
                raise CrossfadeError(f"prior {field} name {name!r}, which no formula has: choose from {names}")
            changed[field] |= dict.fromkeys(found, value)
    return prior._replace(**changed)


def coefficients_of(name: str, names: Iterable[str]) -> list[str]:
    """The coefficient of this name, or those of the factor of this name."""
    known = list(names)
    return [name] if name in known else [own for own in known if own.startswith(f"{name}[") and not is_product(own)]


def _check(prior: Prior, family: str) -> None:
    for field in ("sd", "sds") if family == "gaussian" else ("precision", "precisions", "noise_shape", "noise_rate"):
        if getattr(prior, field) != getattr(Prior(), field):
            other = {"sd": "precision", "precision": "sd"}.get(field.removesuffix("s"))
            instead = f"give --prior-{other} (in Python: Prior({other}=...)) instead" if other else "leave it out"
            raise CrossfadeError(f"the {family} family has no prior {field}: {instead}")
    positive = {field: getattr(prior, field) for field in ("precision", "noise_shape", "noise_rate", "sd")}
    for field in ("precision", "sd"):
        positive |= {f"{field} of {name}": value for name, value in getattr(prior, f"{field}s").items()}
    for what, value in positive.items():
        if value is not None and not (np.isfinite(value) and value > 0):
            raise CrossfadeError(f"the prior {what} is {value}: it must be a positive number")
    for what, value in {"mean": prior.mean, **{f"mean of {n}": v for n, v in prior.means.items()}}.items():
        if not np.isfinite(value):
            raise CrossfadeError(f"the prior {what} is {value}: it must be a finite number")
