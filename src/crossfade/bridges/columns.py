"""The columns that formulas name: found under any name, without gaps, and a response in numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

SET_APART = re.compile(r"(`[^`]*`|\"[^\"]*\"|'[^']*')")  # names in backticks, and text: not to be looked into
SEVERAL_WORDS = re.compile(r"[^\W\d]\w*(?:[. ]+\w+)+")  # can be nothing else in a formula: body.mass, body mass
IDENTIFIER = re.compile(r"(?<![\w.])[^\W\d]\w*(?!\w)(?!\s*\()(?!\s*=(?!=))")  # no function, no name of an argument
NUMBER_WITH_MARKS = r"[+-]?(?:\d{1,3}(?:[., ']\d{3})+|\d+)(?:[.,]\d+)?"  # decimal commas, marks of thousands
# The word that means 1, and the one that means 0.
YES_NO = (
    *(("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("1", "0"), ("on", "off"), ("present", "absent")),
    *(("positive", "negative"), ("success", "failure"), ("case", "control")),
    *(("ja", "nein"), ("wahr", "falsch"), ("oui", "non"), ("vrai", "faux"), ("sí", "no"), ("si", "no"), ("sì", "no")),
)


def in_backticks(formula: str, columns: Iterable[Any]) -> str:
    """With backticks, which formulaic wants, around columns such as body.mass or body mass."""
    parts = SET_APART.split(formula)
    for name in sorted(map(str, columns), key=len, reverse=True):
        if SEVERAL_WORDS.fullmatch(name):
            pattern = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w.(])")
            # What was put in backticks for a longer name is set apart from then on.
            parts = [
                piece
                for i, part in enumerate(parts)
                for piece in ([part] if i % 2 else SET_APART.split(pattern.sub(f"`{name}`", part)))
            ]
    return "".join(parts)


def named_in(formula: str, columns: Iterable[Any]) -> list[str]:
    """The columns that a formula names, functions of them included, once `in_backticks` has seen it."""
    parts = SET_APART.split(formula)
    names = {part[1:-1] for part in parts if part.startswith("`")}
    names |= {found for part in parts[::2] for found in IDENTIFIER.findall(part)}
    return [str(name) for name in dict.fromkeys(columns) if str(name) in names]


def right_of(formula: str) -> str:
    """What is right of the ~, which a name in backticks may hold as well."""
    left = re.match(rf"(?:{SET_APART.pattern}|[^~])*~", formula)
    return formula[left.end() :] if left else formula


def labelled(table: pandas.DataFrame) -> pandas.DataFrame:
    """With text for the labels of all columns, as formulas have it: 2019 becomes "2019"."""
    if all(isinstance(name, str) for name in table.columns):
        return table
    return table.set_axis([str(name) for name in table.columns], axis="columns")


def hint_of(formula: str, columns: Iterable[Any]) -> str:
    """What may have been meant by a name of several words in a formula that is no column."""
    names = list(map(str, columns))
    if odd := [own for own in names if own in formula and not (own.isidentifier() or SEVERAL_WORDS.fullmatch(own))]:
        return f" (write {odd[0]!r} in backticks: `{odd[0]}`)"
    words = [word for part in SET_APART.split(formula)[::2] for word in SEVERAL_WORDS.findall(part)]
    close = [near[0] for word in words if word not in names and (near := get_close_matches(word, names, n=1))]
    return f" (did you mean {close[0]!r}?)" if close else ""


def powers_in(formula: str) -> list[str]:
    """Terms such as x^2, which mean x in a formula; not those of functions, I(x^2), or of several terms, (a + b)^2."""
    inside = re.compile(r"\w\([^()]*\)")
    while inside.search(formula):
        formula = inside.sub("f", formula)
    return [own.group() for own in re.finditer(r"(?:`[^`]+`|(?<![\w.)])[^\W\d]\w*)\s*(?:\^|\*\*)\s*\d+", formula)]


def check_names(table: pandas.DataFrame, formulas: Sequence[str], wanted: Iterable[str], used: list[str]) -> None:
    """Every column that a formula names is there, once."""
    columns = list(map(str, table.columns))
    # formulaic takes `body.mass` for something of body.
    begins = {name.partition(".")[0] for name in used if "." in name}
    for name in sorted(wanted):
        if name in columns or name in begins:
            continue
        hint = next(filter(None, (hint_of(text, columns) for text in formulas)), "")
        if not hint and (close := get_close_matches(name, columns, n=1)):
            hint = f" (did you mean {close[0]!r}?)"
        raise CrossfadeError(f"there is no column {name!r} in the table: its columns are {', '.join(columns)}{hint}")
    for name in used:
        if columns.count(name) > 1:
            raise CrossfadeError(f"the table has more than one column {name!r}: rename all but one")


def as_meant(table: pandas.DataFrame, used: list[str]) -> pandas.DataFrame:
    """With columns of the kinds that formulaic knows: numbers, in whatever they were kept, and text."""
    import pandas

    changed: dict[str, Any] = {}
    for name in used:
        column = table[name]
        if isinstance(column.dtype, pandas.CategoricalDtype):
            continue
        gaps = column.isna().to_numpy()
        if column.dtype == object:  # databases hand numbers out like this
            there = column[~gaps]
            if len(there) and all(isinstance(value, Real | Decimal | np.bool_) for value in there):
                whole = column.infer_objects()
                changed[name] = (
                    [np.nan if gap else float(value) for value, gap in zip(column, gaps, strict=True)]
                    if whole.dtype == object
                    else whole
                )
        elif isinstance(column.dtype, pandas.api.extensions.ExtensionDtype):
            if pandas.api.types.is_numeric_dtype(column):
                changed[name] = column.to_numpy(dtype=float, na_value=np.nan) if gaps.any() else column.to_numpy()
            elif pandas.api.types.is_string_dtype(column):
                changed[name] = column.astype(object)
    return table.assign(**changed) if changed else table


def without_unused_levels(table: pandas.DataFrame, used: list[str]) -> pandas.DataFrame:
    """Of factors whose rows of some level are gone: there is nothing to learn of these."""
    import pandas

    factors = [name for name in used if isinstance(table[name].dtype, pandas.CategoricalDtype)]
    changed: dict[str, Any] = {name: table[name].cat.remove_unused_categories() for name in factors}
    return table.assign(**changed) if changed else table


def check_entries(table: pandas.DataFrame, used: list[str]) -> None:
    """No column of numbers has infinite ones, or text among them."""
    import pandas

    for name in used:
        column = table[name]
        if pandas.api.types.is_numeric_dtype(column):
            if len(infinite := np.flatnonzero(np.isinf(column.to_numpy(dtype=float, na_value=np.nan)))):
                raise CrossfadeError(f"column {name!r} has {counted(infinite, 'infinite value')}: mend these rows")
            continue
        if isinstance(column.dtype, pandas.CategoricalDtype):  # a factor, whatever its levels look like
            continue
        # Text that mostly reads as numbers is a spoilt column of numbers, not a factor with many levels.
        there = column.notna()
        plain = pandas.to_numeric(column, errors="coerce").notna()
        marked = there & column.astype(str).str.strip().str.fullmatch(NUMBER_WITH_MARKS)
        if there.any() and (plain | marked).sum() >= there.sum() / 2:
            text = there & ~plain & ~marked if not plain.any() else there & ~plain
            rows = np.flatnonzero(text if text.any() else there)
            raise CrossfadeError(
                f"column {name!r} has {counted(rows, 'entry', 'entries')} that cannot be read as a number, "
                f"{seen(column.iloc[rows])}: mend them, or make every entry a label if it is a factor"
            )


def gaps_in(table: pandas.DataFrame, used: list[str]) -> tuple[np.ndarray, str]:
    """Which rows have a gap in any of these columns, and all gaps in words."""
    gaps = table[used].isna()
    by_column = [f"{name!r} has {counted(np.flatnonzero(gaps[name]))}" for name in used if gaps[name].any()]
    return gaps.any(axis=1).to_numpy(), "; ".join(by_column)


def whole_rows(table: pandas.DataFrame, used: list[str], drop_missing: bool) -> tuple[pandas.DataFrame, list[str]]:
    """The rows without a gap in any of these columns, and a note if these are not all."""
    gaps, said = gaps_in(table, used)
    if not said:
        return table, []
    rows = f"{gaps.sum()} of {len(table)} rows"
    are = "is" if gaps.sum() == 1 else "are"
    if not drop_missing:
        raise CrossfadeError(
            f"values are missing in {rows}: {said}. Leave these rows out for all models alike with --drop-missing (in "
            "Python: drop_missing=True), or fill the gaps first"
        )
    if gaps.all():
        raise CrossfadeError(
            f"every row has a missing value in one of the columns: {said}; fill them, or leave a column out of the "
            "formulas"
        )
    note = f"{rows} {are} left out, of every model, because values are missing: {said}"
    return table[~gaps].reset_index(drop=True).infer_objects(), [note]


def in_numbers(table: pandas.DataFrame, name: str, family: str) -> tuple[pandas.DataFrame, list[str]]:
    """The table with a response of two labels as 1 and 0, and a note that says which is which."""
    from pandas import CategoricalDtype
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    column = table[name]
    if isinstance(column.dtype, CategoricalDtype) and is_numeric_dtype(column.cat.categories):
        column = column.astype(column.cat.categories.dtype)
        table = table.assign(**{name: column})
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return table, []
    words = column.astype(str).str.strip()
    one, zero, why = _two_levels(words)
    if not one or (family != "logistic" and not is_bool_dtype(column)):
        logistic = " or choose the logistic family, which takes two labels" if one else ""
        raise CrossfadeError(
            f"the response {name!r} is not numeric, its values are {seen(column)}: recode it as "
            f"numbers (as 0 and 1 for the logistic family, as counts for the poisson family){logistic}"
        )
    coded = (words.str.casefold() == one.casefold()).astype(float)
    return table.assign(**{name: coded}), [f"response {name}: {one} = 1, {zero} = 0{why}"]


def check_range(y: np.ndarray, response: str, family: str) -> None:
    """The response is something the family can produce; only the gaussian can produce any number."""
    if family == "logistic" and not set(y) <= {0, 1}:
        raise CrossfadeError(
            f"the response {response!r} must be 0 or 1 in the logistic family, but its values are "
            f"{seen(y)}: recode it, or use the gaussian family"
        )
    if family == "poisson" and len(bad := np.flatnonzero((y < 0) | (y != np.floor(y)))):
        raise CrossfadeError(
            f"the response {response!r} must be whole numbers of at least 0 in the poisson family, but it has "
            f"{counted(bad, 'other value')}, {seen(y[bad])}: give counts, or use the gaussian family"
        )


def _two_levels(words: pandas.Series) -> tuple[str, str, str]:
    """The label that becomes 1, the one that becomes 0, and why these where it is a convention; empty without two."""
    levels = {word.casefold(): word for word in words}
    if len(levels) != 2:
        return "", "", ""
    for one, zero in YES_NO:
        if set(levels) == {one, zero}:
            return levels[one], levels[zero], ""
    if len(set(words)) != 2:
        return "", "", ""
    first, second = sorted(set(words))
    return second, first, " (in alphabetical order; recode the column to turn them round)"


def counted(rows: np.ndarray, one: str = "", many: str = "") -> str:
    """'3 missing values (rows 2, 5, 9)', counting data rows from 1."""
    shown = ", ".join(str(row + 1) for row in rows[:8]) + (", ..." if len(rows) > 8 else "")
    if len(rows) == 1:
        return f"1 {one} (row {shown})".replace("  ", " ")
    return f"{len(rows)} {many or (one and one + 's')} (rows {shown})".replace("  ", " ")


def seen(values: Any) -> str:
    """The first few distinct values, as one would type them."""
    distinct = list(dict.fromkeys(np.asarray(values).tolist()))
    shown = [f"{value:g}" if isinstance(value, float) else repr(value) for value in distinct[:5]]
    return ", ".join([*shown, *(["..."] if len(distinct) > 5 else [])])
