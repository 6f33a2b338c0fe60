"""From a table and formulas to numbers, refusing every table whose answer would mean nothing."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.bridges.columns import (
    as_meant,
    check_entries,
    check_names,
    check_range,
    counted,
    gaps_in,
    hint_of,
    in_backticks,
    in_numbers,
    labelled,
    named_in,
    powers_in,
    right_of,
    whole_rows,
    without_unused_levels,
)
from crossfade.bridges.products import Matrices, in_one_order, is_product
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

FAMILIES = ("gaussian", "logistic", "poisson")
SCALINGS = ("standardise", "centre", "raw")
INTERCEPT = "Intercept"  # formulaic's name for the column of ones


class Recipe(NamedTuple):
    """How the columns of a formula are made from other rows, in the units of the first table."""

    spec: Any  # formulaic's
    mean: np.ndarray
    sd: np.ndarray
    response: tuple[float, float]  # what the response was shifted and divided by
    used: tuple[str, ...]  # the columns of the table that it reads

    def columns(self, table: pandas.DataFrame) -> np.ndarray:
        table, used = labelled(table), list(self.used)
        check_names(table, (), used, used)
        table = as_meant(table, used)
        check_entries(table, used)
        if said := gaps_in(table, used)[1]:
            raise CrossfadeError(f"values are missing in the new rows: {said}; leave these rows out or fill the gaps")
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")  # formulaic's word for a level of a factor that it has not seen
                found = np.asarray(self.spec.get_model_matrix(table, context={}, na_action="ignore"), dtype=float)
        except Exception as error:  # formulas hold arbitrary expressions, which raise arbitrary errors
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CrossfadeError(f"the new rows do not fit the formula: {reason}") from None
        return (found - self.mean) / self.sd


class Design(NamedTuple):
    """One formula's side of the data, after scaling: y [row], columns [row, parameter] and their names."""

    y: np.ndarray
    columns: np.ndarray
    names: tuple[str, ...]
    scale: str  # what was done to the columns, for people
    terms: dict[str, list[int]]  # the columns of every term
    recipe: Recipe
    notes: tuple[str, ...] = ()  # what was done to the table, for people

    @property
    def levels(self) -> dict[str, float]:
        """Columns of one level of a factor, and what they were divided by."""
        scaled = zip(self.names, self.recipe.sd, strict=True)
        return {name: float(sd) for name, sd in scaled if "[T." in name and not is_product(name)}


class Prepared(NamedTuple):
    """A table whose rows are whole and whose response is in numbers, and the formulas as formulaic reads them."""

    table: pandas.DataFrame
    parsed: dict[str, Any]  # by what messages call them
    needed: dict[str, list[str]]  # the columns that each names right of the ~
    response: str
    notes: list[str]


def prepared(table: pandas.DataFrame, *formulas: str, family: str, drop_missing: bool) -> Prepared:
    """The table that formulas with one response are about, or why there is none."""
    if family not in FAMILIES:
        names = {"binomial": "logistic", "normal": "gaussian"} | {own: own for own in FAMILIES}
        known, whose = names.get(family.casefold()), "R's " * (family == "binomial")
        hint = f" ({whose}{family} is {known} here)" if known else ""
        raise CrossfadeError(f"unknown family {family!r}: choose one of {', '.join(FAMILIES)}{hint}")
    if len(table) == 0:
        raise CrossfadeError("the table has no rows: there is nothing to compare the models on")
    table = labelled(table)
    labels = [f"formula {k + 1}" for k in range(len(formulas))] if len(formulas) > 1 else ["the formula"]
    texts = {which: in_backticks(text, table.columns) for which, text in zip(labels, formulas, strict=True)}
    parsed = {which: _parse(text, which, table) for which, text in texts.items()}
    response, *others = (str(formula.lhs) for formula in parsed.values())
    for other in others:
        if response != other:
            raise CrossfadeError(
                f"the formulas have different responses, {response!r} and {other!r}: a Bayes factor compares two "
                "explanations of the same data, so give all formulas one response"
                + next(filter(None, (hint_of(text, table.columns) for text in texts.values())), "")
            )
    needed = {which: named_in(right_of(text), table.columns) for which, text in texts.items()}
    used = list(dict.fromkeys(name for text in texts.values() for name in named_in(text, table.columns)))
    wanted = {str(name) for formula in parsed.values() for name in formula.required_variables if name != "."}
    check_names(table, formulas, wanted, used)
    table = as_meant(table, used)
    check_entries(table, used)
    table, notes = whole_rows(table, used, drop_missing)
    table = without_unused_levels(table, used)
    if (name := response.strip("`")) in table.columns:  # an expression such as log(y) is looked at later
        table, coding = in_numbers(table, name, family)
        notes += coding
    for which, text in texts.items():
        for own in powers_in(text):
            power = own.replace("^", "**")
            notes.append(f"{own} in {which} means {re.split(r' *[*^]', own)[0]}; the power is written I({power})")
    return Prepared(table, parsed, needed, response, notes)


def designs(
    table: pandas.DataFrame, *formulas: str, family: str, scaling: str, drop_missing: bool = False
) -> list[Design]:
    """The designs of formulas with one response, on the same rows and the same scale."""
    if scaling not in SCALINGS:
        raise CrossfadeError(f"unknown scaling {scaling!r}: choose one of {', '.join(SCALINGS)}")
    table, parsed, needed, response, notes = prepared(table, *formulas, family=family, drop_missing=drop_missing)
    every = in_one_order({which: _matrices(formula, table, which) for which, formula in parsed.items()})
    y = next(iter(every.values()))[0]
    if len(set(y)) == 1:
        raise CrossfadeError(f"the response {response!r} is {y[0]:g} in every row: there is nothing to explain")
    check_range(y, response, family)
    if family == "gaussian" and set(y) == {0, 1}:
        notes.append(f"the response {response} is 0 or 1 in every row: was the logistic family meant?")
    columns_of: dict[frozenset[str], str] = {}
    for which, (_, columns, names, terms, _) in every.items():
        if INTERCEPT in terms:  # the column of ones is the term 1
            raise CrossfadeError(
                f"a column may not be called {INTERCEPT!r}, the name of the column of ones: rename the column"
            )
        if (twin := columns_of.setdefault(frozenset(names), which)) != which:
            both = "both formulas" if len(formulas) == 2 else f"{twin} and {which}"
            raise CrossfadeError(
                f"{both} have the same columns ({', '.join(every[twin][2])}), so the Bayes factor is 1: "
                "change one of them (in a formula x**2 means x; the square of x is written I(x**2))"
            )
        _check_design(columns, names, which)
        if family == "gaussian" and "variance" in names:
            raise CrossfadeError(
                "a column may not be called 'variance', the name of the noise variance: rename the column"
            )

    centred = scaling != "raw" and all(INTERCEPT in names for _, _, names, *_ in every.values())
    said = _describe(scaling, centred, family)
    units = (0.0, 1.0)
    if scaling == "standardise" and family == "gaussian":
        (shift,), (sd,) = _units(y[:, None], ("",), scaling, centred)
        y, units = (y - shift) / sd, (float(shift), float(sd))
    found = []
    for which, (_, own, names, terms, spec) in every.items():
        recipe = Recipe(spec, *_units(own, names, scaling, centred), units, tuple(needed[which]))
        found.append(Design(y, (own - recipe.mean) / recipe.sd, names, said, terms, recipe, tuple(notes)))
    if scaling == "standardise" and (note := _of_levels(found)):
        found = [own._replace(notes=(*own.notes, note)) for own in found]
    return found


def _of_levels(found: list[Design]) -> str:
    """What standardising means for the prior of a difference between two groups."""
    times = [1 / sd for own in found for sd in own.levels.values()]
    if not times:
        return ""
    low, high = f"{min(times):.2g}", f"{max(times):.2g}"
    wide = low if low == high else f"{low} to {high}"
    return (
        f"levels of a factor are standardised too: a difference from the first level has a prior {wide} times as wide"
    )


def _parse(formula: str, which: str, table: pandas.DataFrame) -> Any:
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        parsed = Formula(formula)
    except (FormulaicError, SyntaxError) as error:
        # formulaic marks the place with colours and brackets of its own; the first line is the reason.
        reason = str(error).splitlines()[0].rstrip(".")
        if "`.` operator" in reason:
            reason = "a dot does not stand for all columns here; name them"
        if "|" in formula:
            reason = "random effects are not for formulas; write such a model in NumPyro or PyMC"
        write = hint_of(formula, table.columns) or "write it like 'y ~ x1 + x2'"
        there = ", ".join(map(str, table.columns))
        raise CrossfadeError(
            f"{which}, {formula!r}, cannot be read ({reason}): {write.strip(' ()')}; the columns are {there}"
        ) from None
    if not hasattr(parsed, "lhs"):
        raise CrossfadeError(f"{which}, {formula!r}, has no response: write it like 'y ~ x1 + x2'")
    if len(list(parsed.lhs)) != 1:
        raise CrossfadeError(f"{which}, {formula!r}, has more than one response: name one left of the ~")
    return parsed


def _matrices(formula: Any, table: pandas.DataFrame, which: str) -> Matrices:
    """What formulaic makes of a formula; `context` is empty so that no variable of ours can slip in."""
    try:
        with np.errstate(all="ignore"):  # what comes out is checked below
            matrices = formula.get_model_matrix(table, context={}, na_action="ignore")
    except Exception as error:  # formulas hold arbitrary expressions, which raise arbitrary errors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if missing := re.search(r"(?:name '|`)([^'`]+)[`'] is not (?:defined|present)", reason):
            there = ", ".join(map(str, table.columns))
            hint = hint_of(str(formula), table.columns)
            reason = f"there is no column or function {missing[1]!r}; the columns are {there}{hint}"
        if "'xor'" in reason:
            reason = "^ is no power within I(...); write I(x**2) for the square of x"
        raise CrossfadeError(f"{which} cannot be evaluated on this table: {reason}") from None
    lhs, rhs = matrices.lhs, matrices.rhs
    names = tuple(map(str, rhs.columns))
    y, columns = np.asarray(lhs, dtype=float), np.asarray(rhs, dtype=float)
    if y.shape[1] != 1:
        raise CrossfadeError(f"{which}: the response is not one column of numbers but {', '.join(lhs.columns)}")
    for name, values in zip((str(lhs.columns[0]), *names), np.column_stack([y, columns]).T, strict=True):
        if len(bad := np.flatnonzero(~np.isfinite(values))):
            raise CrossfadeError(
                f"{which}: {name!r} has {counted(bad, 'entry', 'entries')} without a finite value: mend "
                "the data or change the formula"
            )
    if not names:
        raise CrossfadeError(f"{which} has no column, not even an intercept: add one")
    terms = {str(term): list(columns) for term, columns in rhs.model_spec.term_indices.items()}
    return Matrices(y[:, 0], columns, names, terms, rhs.model_spec)


def _check_design(columns: np.ndarray, names: tuple[str, ...], which: str) -> None:
    """No constant column but the intercept, enough rows, and no column that the others already say."""
    n_rows, n_columns = columns.shape
    for name, values in zip(names, columns.T, strict=True):
        if name != INTERCEPT and np.ptp(values) <= 1e-12 * np.abs(values).max():
            raise CrossfadeError(
                f"{which}: the covariate {name!r} is constant ({values[0]:g} in every row): leave it out"
            )
    if n_rows < max(n_columns, 2):
        raise CrossfadeError(
            f"{which} has {n_columns} column{'s' * (n_columns > 1)} but the table only {n_rows} "
            f"row{'s' * (n_rows > 1)}: it needs at least {max(n_columns, 2)}"
        )
    centred = INTERCEPT in names
    unit = columns - columns.mean(axis=0) * np.array([centred and name != INTERCEPT for name in names])
    unit /= np.linalg.norm(unit, axis=0)
    for j in range(1, n_columns):
        weights = np.linalg.lstsq(unit[:, :j], unit[:, j], rcond=None)[0]
        if np.linalg.norm(unit[:, j] - unit[:, :j] @ weights) < 1e-9:
            said_by = [repr(other) for other, weight in zip(names, weights, strict=False) if abs(weight) > 1e-6]
            raise CrossfadeError(
                f"{which} is collinear: {names[j]!r} is a linear combination of {', '.join(said_by)}; leave one of "
                "them out"
            )


def _units(columns: np.ndarray, names: tuple[str, ...], scaling: str, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """What every column is shifted and divided by."""
    free = np.array([name != INTERCEPT for name in names])
    mean = np.where(free & centred, columns.mean(axis=0), 0.0)
    sd = np.where(free, columns.std(axis=0, ddof=1), 1.0) if scaling == "standardise" else np.ones(len(free))
    return mean, sd


def _describe(scaling: str, centred: bool, family: str) -> str:
    if scaling == "raw":
        return "columns as they are"
    what = "covariates" if family != "gaussian" or scaling == "centre" else "response and covariates"
    if centred:
        return f"{what} {'centred' if scaling == 'centre' else 'standardised: (x - mean)/sd with n - 1'}"
    why = "not centred, because not all formulas have an intercept"
    return f"{what} {why}" if scaling == "centre" else f"{what} divided by their sd with n - 1, but {why}"
