"""A CSV file as a table, or a sentence about why it is none."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas


def read_csv(path: Path) -> pandas.DataFrame:
    """The table in a comma-separated file with a header line."""
    import pandas

    if path.is_dir():
        raise CrossfadeError(f"{path} is a folder: give a CSV file")
    if not path.is_file():
        raise CrossfadeError(f"there is no file {path}: give the path of a CSV file")
    _check_text(path)
    try:
        with warnings.catch_warnings():
            # A line longer than the header would silently lose its end, or turn the first column into labels.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            table = pandas.read_csv(path, index_col=False, encoding="utf-8-sig", skipinitialspace=True)
    except pandas.errors.EmptyDataError:
        raise CrossfadeError(f"{path} is empty: it needs a header line and rows of data") from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0]
        raise CrossfadeError(f"{path} is not a CSV file that can be read ({reason}): mend that line") from None
    _check_header(path, table)
    return table


def _check_text(path: Path) -> None:
    data = path.read_bytes()
    if data[:4] == b"PK\x03\x04":
        raise CrossfadeError(f"{path} is not CSV but a spreadsheet or archive: save it as CSV first")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CrossfadeError(
            f"{path} is not CSV text in UTF-8 (byte {error.start} is {data[error.start]:#04x}): save it "
            "as CSV with that encoding"
        ) from None
    if "\0" in text:
        raise CrossfadeError(f"{path} is not CSV but a binary file: give a CSV file")
    header = text.lstrip().partition("\n")[0].strip()
    for separator, called in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if separator in header and "," not in header:
            raise CrossfadeError(
                f"{path} begins with {header!r}: it is separated by {called}, not by commas; save it with "
                "commas (and with points in the decimals)"
            )


def _check_header(path: Path, table: pandas.DataFrame) -> None:
    import pandas

    names = [str(name) for name in table.columns]
    if len(names) == 1:
        raise CrossfadeError(f"{path} has one column only, {names[0]!r}: a response and a covariate need two")
    if pandas.to_numeric(pandas.Series(names), errors="coerce").notna().all():
        raise CrossfadeError(
            f"{path} begins with numbers ({', '.join(names[:4])}): put a line with the columns' names first"
        )
