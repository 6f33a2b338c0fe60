"""`crossfade compare --by COLUMN`: two formulas on every group of rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crossfade.app.arguments import formulas
from crossfade.app.compared import PRIORS, client_of, reading_of
from crossfade.app.page import Row, Section, of_notes
from crossfade.app.tables import read_table
from crossfade.app.words import number, odds, with_error
from crossfade.many import EFFECT, FAILED, Many, checked_out, compare_many
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

SETTINGS = ("target_se", "budget", "family", "seed", "scaling", "log_prior_odds", "out", "directory")
SHOWN = 20  # rows on the page; all are in the table that is written


class Groups(NamedTuple):
    """What a column makes of a table, and what is compared on every group."""

    tables: dict[str, Any]
    formulas: tuple[str, str]
    prior: Any
    notes: list[str]  # what was done to the rows before
    about: dict[str, str]  # what the page says of the models


def compared_by(given: Mapping[str, Any], groups: Groups, progress: bool) -> Many:
    """A row for every group."""
    settings: dict[str, Any] = {name: given[name] for name in SETTINGS} | {"prior": groups.prior}
    settings |= {"route": given["route"]} if given["route"] != "auto" else {}
    with client_of(given) as client:
        return compare_many(*groups.formulas, groups.tables, client=client, progress=progress, **settings)


def so_far(given: Mapping[str, Any]) -> dict[str, Any]:
    """How many groups are done."""
    groups = groups_of(given)
    found = compared_by(given, groups, progress=False)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.verdicts.items())
    said = f"{len(found.rows)} of {len(groups.tables)} groups are done" + (f": {counts}" if counts else "")
    return {"said": said, "groups": len(groups.tables), "done": len(found.rows), "verdicts": found.verdicts}


def groups_of(given: Mapping[str, Any]) -> Groups:
    """The groups of rows with one value in the column of --by; what is wrong for all rows is said once."""
    from crossfade.bridges.design import designs, prepared
    from crossfade.bridges.formula import regressions, statement

    column, family, reading = given["by"], given["family"], reading_of(given)
    data, formula_1, formula_2, prior = formulas(given["what"], *(given[name] for name in PRIORS))
    if given["out"] is not None:
        checked_out(given["out"])
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
    every = table.groupby(column, sort=False)
    if twice := [name for name, count in Counter(str(name) for name, _ in every).items() if count > 1]:
        raise CrossfadeError(f"--by {column}: {twice[0]} stands there as a number and as text: write all in one way")
    whole = prepared(table, formula_1, formula_2, family=family, drop_missing=reading.drop_missing)
    table, notes = whole.table, [*notes, *whole.notes]
    both = designs(table, formula_1, formula_2, family=family, scaling=given["scaling"])
    regressions(both, family, prior)
    left = dict(iter(table.groupby(column, sort=False)))
    # one of which no row is left is not forgotten: its own row says why
    groups = {str(name): left.get(name, rows).reset_index(drop=True) for name, rows in every}
    about = {
        "M1": formula_1,
        "M2": formula_2,
        "data": f"{data.name}, {len(groups)} groups by {column}, {family} family",
    }
    about |= {"scale": f"{both[0].scale}, within each group", "priors": statement(prior, family)}
    return Groups(groups, (formula_1, formula_2), prior, notes, about)


def _effect(row: dict[str, Any]) -> str:
    if row.get("effect") is None:
        return ""
    mean, low, high = (number(row[name], (row["effect_high"] - row["effect_low"]) / 2) for name in EFFECT)
    return f"{mean} [{low}, {high}]"


def of_many(
    found: Many, column: str, out: Path | None, groups: Groups | None = None, shown: int | None = SHOWN
) -> tuple[Section, ...]:
    """The rows that say most (all of them where `shown` is None), and how many there are of each verdict."""
    every, shown = shown is None, len(found.rows) if shown is None else shown
    answered = [row for row in found.rows if row["log_bayes_factor"] is not None]
    answered.sort(key=lambda row: -abs(row["log_bayes_factor"]))
    with_effects = any(row.get("effect") is not None for row in answered)
    rows = [
        Row((row["name"], with_error(Estimate(value, row["error"], 1.0)), odds(value), *effect, row["verdict"]))
        for row in answered[:shown]
        for value in [row["log_bayes_factor"]]
        for effect in [(_effect(row),) if with_effects else ()]
    ]
    said = ("effect [95 %]",) if with_effects else ()
    columns = (column, "log BF", "Bayes factor", *said, "verdict")
    title = "Strongest" if len(answered) > shown else "Answers"
    table = Section(title, columns, (1,), tuple(rows))
    bad = [row for row in found.rows if row["verdict"] in (FAILED, DO_NOT_USE)]
    lines = [f"{row['name']}: {row['reason']}" for row in bad[:shown]]
    lines += [f"... and {len(bad) - shown} more"] if len(bad) > shown else []
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.verdicts.items())
    stored = f"All rows are in {out}." if out is not None else "Give --out TABLE.csv to keep them all."
    without = (Section("Without an answer", lines=tuple(lines)),) if bad else ()
    sums = Section(lines=(f"{len(found.rows)} groups: {counts}.",), note="" if every else stored)
    models = () if groups is None else (Section("Models", rows=tuple(Row(own) for own in groups.about.items())),)
    return *models, *of_notes(() if groups is None else groups.notes), table, *without, sums
