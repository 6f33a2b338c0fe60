"""`crossfade compare --by COLUMN`: two formulas on every group of rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crossfade.app.arguments import formulas
from crossfade.app.page import Row, Section, of_notes
from crossfade.app.tables import Reading, read_table
from crossfade.app.words import odds, with_error
from crossfade.many import FAILED, Many, checked_out, compare_many
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

SHOWN = 20  # rows on the page; all are in the table that is written


def compared_by(
    column: str, what: list[str], family: str, priors: tuple[Any, ...], reading: Reading, **settings: Any
) -> tuple[Many, list[str]]:
    """A table of the groups that the column makes, and what was done to the rows before."""
    from crossfade.bridges.design import designs, prepared
    from crossfade.bridges.formula import regressions

    data, formula_1, formula_2, prior = formulas(what, *priors)
    if settings.get("out") is not None:
        checked_out(settings["out"])
    table, notes = read_table(data, reading)
    if column not in table.columns:
        there = ", ".join(map(str, table.columns))
        raise CrossfadeError(f"--by {column}: there is no such column in {data.name}; its columns are {there}")
    if missing := int(table[column].isna().sum()):
        if not reading.drop_missing:
            raise CrossfadeError(
                f"--by {column}: the column is empty in {missing} of {len(table)} rows; fill them, or leave them out "
                "with --drop-missing"
            )
        notes.append(f"{missing} of {len(table)} rows are left out, because {column} is empty")
        table = table[table[column].notna()].reset_index(drop=True)
    whole = prepared(table, formula_1, formula_2, family=family, drop_missing=reading.drop_missing)
    table, notes = whole.table, [*notes, *whole.notes]
    # What is wrong for all rows is said once, not in every group.
    regressions(designs(table, formula_1, formula_2, family=family, scaling=settings["scaling"]), family, prior)
    groups = {str(name): rows.reset_index(drop=True) for name, rows in table.groupby(column, sort=False)}
    return compare_many(formula_1, formula_2, groups, family=family, prior=prior, **settings), notes


def of_many(found: Many, column: str, out: Path | None, notes: Iterable[str] = ()) -> tuple[Section, ...]:
    """The rows that say most, and how many there are of each verdict."""
    answered = [row for row in found.rows if row["log_bayes_factor"] is not None]
    answered.sort(key=lambda row: -abs(row["log_bayes_factor"]))
    rows = [
        Row((row["name"], with_error(Estimate(value, row["error"], 1.0)), odds(value), row["verdict"]))
        for row in answered[:SHOWN]
        for value in [row["log_bayes_factor"]]
    ]
    columns = (column, "log Bayes factor", "Bayes factor", "verdict")
    title = "Strongest" if len(answered) > SHOWN else "Answers"
    table = Section(title, columns, (1,), tuple(rows))
    bad = [row for row in found.rows if row["verdict"] in (FAILED, DO_NOT_USE)]
    lines = [f"{row['name']}: {row['reason']}" for row in bad[:SHOWN]]
    lines += [f"... and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.verdicts.items())
    stored = f" All rows are in {out}." if out is not None else " Give --out TABLE.csv to keep them all."
    without = (Section("Without an answer", lines=tuple(lines)),) if bad else ()
    sums = Section(lines=(f"{len(found.rows)} groups: {counts}.",), note=stored.strip())
    return *of_notes(notes), table, *without, sums
