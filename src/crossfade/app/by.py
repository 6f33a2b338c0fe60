"""`crossfade compare --by COLUMN`: two formulas on every group of rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossfade.app.arguments import formulas, read_csv
from crossfade.app.page import Row, Section
from crossfade.app.words import odds, with_error
from crossfade.many import FAILED, Many, checked_out, compare_many
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

SHOWN = 20  # rows on the page; all are in the table that is written


def compared_by(column: str, what: list[str], family: str, priors: tuple[Any, ...], **settings: Any) -> Many:
    """A table of the groups that the column makes."""
    data, formula_1, formula_2, prior = formulas(what, *priors)
    if settings.get("out") is not None:
        checked_out(settings["out"])
    table = read_csv(data)
    if column not in table.columns:
        there = ", ".join(map(str, table.columns))
        raise CrossfadeError(f"--by {column}: there is no such column in {data.name}; its columns are {there}")
    if missing := int(table[column].isna().sum()):
        raise CrossfadeError(f"--by {column}: the column is empty in {missing} rows; fill them or drop these rows")
    groups = {str(name): rows.reset_index(drop=True) for name, rows in table.groupby(column, sort=False)}
    return compare_many(formula_1, formula_2, groups, family=family, prior=prior, **settings)


def of_many(found: Many, column: str, out: Path | None, shown: int | None = SHOWN) -> tuple[Section, ...]:
    """The rows that say most (all of them where `shown` is None), and how many there are of each verdict."""
    every, shown = shown is None, len(found.rows) if shown is None else shown
    answered = [row for row in found.rows if row["log_bayes_factor"] is not None]
    answered.sort(key=lambda row: -abs(row["log_bayes_factor"]))
    rows = [
        Row((row["name"], with_error(Estimate(value, row["error"], 1.0)), odds(value), row["verdict"]))
        for row in answered[:shown]
        for value in [row["log_bayes_factor"]]
    ]
    columns = (column, "log Bayes factor", "Bayes factor", "verdict")
    title = "Strongest" if len(answered) > shown else "Answers"
    table = Section(title, columns, (1,), tuple(rows))
    bad = [row for row in found.rows if row["verdict"] in (FAILED, DO_NOT_USE)]
    lines = [f"{row['name']}: {row['reason']}" for row in bad[:shown]]
    lines += [f"... and {len(bad) - shown} more"] if len(bad) > shown else []
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.verdicts.items())
    stored = f"All rows are in {out}." if out is not None else "Give --out TABLE.csv to keep them all."
    without = (Section("Without an answer", lines=tuple(lines)),) if bad else ()
    return table, *without, Section(lines=(f"{len(found.rows)} groups: {counts}.",), note="" if every else stored)
