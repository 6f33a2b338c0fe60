"""`crossfade compare --by COLUMN`: two formulas on every group of rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossfade.app.arguments import formulas, read_csv
from crossfade.app.compared import PRIORS, client_of
from crossfade.app.page import Row, Section
from crossfade.app.words import odds, with_error
from crossfade.many import FAILED, Many, checked_out, compare_many
from crossfade.types import DO_NOT_USE, CrossfadeError, Estimate

SETTINGS = ("target_se", "budget", "family", "seed", "scaling", "log_prior_odds", "out", "directory")
SHOWN = 20  # rows on the page; all are in the table that is written


def compared_by(given: Mapping[str, Any], progress: bool) -> Many:
    """A table of the groups that the column makes."""
    groups, formula_1, formula_2, prior = _groups(given)
    settings: dict[str, Any] = {name: given[name] for name in SETTINGS}
    settings |= {"route": given["route"]} if given["route"] != "auto" else {}
    with client_of(given) as client:
        return compare_many(formula_1, formula_2, groups, prior=prior, client=client, progress=progress, **settings)


def so_far(given: Mapping[str, Any]) -> dict[str, Any]:
    """How many groups are done."""
    n_groups, found = len(_groups(given)[0]), compared_by(given, progress=False)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.verdicts.items())
    said = f"{len(found.rows)} of {n_groups} groups are done" + (f": {counts}" if counts else "")
    return {"said": said, "groups": n_groups, "done": len(found.rows), "verdicts": found.verdicts}


def _groups(given: Mapping[str, Any]) -> tuple[dict[str, Any], str, str, Any]:
    column = given["by"]
    data, formula_1, formula_2, prior = formulas(given["what"], *(given[name] for name in PRIORS))
    if given["out"] is not None:
        checked_out(given["out"])
    table = read_csv(data)
    if column not in table.columns:
        there = ", ".join(map(str, table.columns))
        raise CrossfadeError(f"--by {column}: there is no such column in {data.name}; its columns are {there}")
    if missing := int(table[column].isna().sum()):
        raise CrossfadeError(f"--by {column}: the column is empty in {missing} rows; fill them or drop these rows")
    groups = {str(name): rows.reset_index(drop=True) for name, rows in table.groupby(column, sort=False)}
    return groups, formula_1, formula_2, prior


def of_many(found: Many, column: str, out: Path | None) -> tuple[Section, ...]:
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
    return table, *without, Section(lines=(f"{len(found.rows)} groups: {counts}.",), note=stored.strip())
