"""Tables of `compare_many` on disk, read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossfade.many import ANSWER, COLUMNS, Many, checked_out
from crossfade.types import CrossfadeError


def load_many(path: str | Path) -> Many:
    """A table that `Many.save`, `compare_many(out=...)` or `crossfade compare --by ... --out` wrote."""
    path = checked_out(path)
    if not path.is_file():
        raise CrossfadeError(f"there is no file {path}: give a table that was written by compare_many or --by")
    try:
        table = _read(path)
    except (ValueError, ImportError) as error:
        raise CrossfadeError(f"{path} cannot be read as a table ({error}): write it again") from None
    if missing := [name for name in ANSWER if name not in table.columns]:
        raise CrossfadeError(
            f"{path} has no column {missing[0]!r}, so it is not a table of compare_many. To report a ranking, store it "
            "with --out RANKING.json and give that file"
        )
    table = table.reindex(columns=list(COLUMNS))
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return Many(tuple({**row, "name": str(row["name"])} for row in rows))


def _read(path: Path) -> Any:
    import pandas

    if path.suffix.lower() == ".csv":
        empty = {name: [""] for name in COLUMNS if name != "name"}  # nothing else: a data set may be called NA
        return pandas.read_csv(path, dtype={"name": str}, keep_default_na=False, na_values=empty)
    if path.suffix.lower() == ".jsonl":
        return pandas.read_json(path, lines=True, dtype={"name": str})
    return pandas.read_parquet(path).reset_index()
