"""Tables in text files as people have them: separated by commas, semicolons, tabs, bars or spaces, in any decimals."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crossfade.data import NAMES
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    import pandas

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", r"\t": "\t", "bar": "|", "pipe": "|", "space": " ", "point": "."}
LOOKED_AT = 50  # lines, to see what separates their entries
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


class Reading(NamedTuple):
    """How a table is to be read: None is found out."""

    sep: str | None = None
    decimal: str | None = None
    drop_missing: bool = False


def read_table(path: Path, reading: Reading = Reading()) -> tuple[pandas.DataFrame, list[str]]:  # noqa: B008
    """The table in a text file with a header line, and a note if it is not read as commas and decimal points."""
    sep, decimal = _asked(reading)
    if not path.exists() and path.name in {f"{name}.csv" for name in NAMES}:  # as the manual writes them
        path = Path(str(files("crossfade.data") / path.name))
    text, encoding = _text(path)
    sep = _separator(text, path) if sep is None else sep
    table = _parsed(text, path, sep, decimal or ".")
    if decimal is None:
        decimal = _decimal(table, path)
        if decimal == ",":
            table = _with_commas(table, text, path, sep)
    _check_header(table, path)
    _check_names(text, path, sep)
    notes = [f"{path.name} is not in UTF-8 and was read as {encoding}"] if encoding else []
    if (sep, decimal) == (",", "."):
        return table, notes
    point = "commas" if decimal == "," else "points"
    return table, [*notes, f"{path.name} was read as separated by {SEPARATORS[sep]}, with decimal {point}"]


def _asked(reading: Reading) -> tuple[str | None, str | None]:
    sep, decimal = (None if own is None else WORDS.get(own, own) for own in (reading.sep, reading.decimal))
    if sep is not None and sep not in SEPARATORS:
        raise CrossfadeError(f"--sep {reading.sep}: give one of , ; tab | space")
    if decimal not in (None, ".", ","):
        raise CrossfadeError(f"--decimal {reading.decimal}: give . or ,")
    return sep, decimal


def _text(path: Path) -> tuple[str, str]:
    """What is in a file, and the encoding if it is another than UTF-8."""
    if path.is_dir():
        raise CrossfadeError(f"{path} is a folder: give a CSV file")
    if not path.is_file():
        raise CrossfadeError(f"there is no file {path}: give the path of a CSV file")
    data = path.read_bytes()
    if data[:4] == b"PK\x03\x04":
        raise CrossfadeError(f"{path} is not CSV but a spreadsheet or archive: save it as CSV first")
    text, encoding = _decoded(data, path)
    if "\0" in text:
        raise CrossfadeError(f"{path} is not CSV but a binary file: give a CSV file")
    if not text.strip():
        raise CrossfadeError(f"{path} is empty: it needs a header line and rows of data")
    return text, encoding


def _decoded(data: bytes, path: Path) -> tuple[str, str]:
    """UTF-8, or what Excel writes in Western Europe and as "Unicode text"."""
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        marked = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding, codec = ("UTF-16", "utf-16") if marked else ("Windows-1252", "cp1252")
        with suppress(UnicodeDecodeError):
            if "\0" not in (text := data.decode(codec)):
                return text, encoding
        raise CrossfadeError(
            f"{path} is not CSV text in UTF-8 (byte {error.start} is {data[error.start]:#04x}): save it "
            "as CSV with that encoding"
        ) from None


def _separator(text: str, path: Path) -> str:
    """What cuts the header, and all lines into equally many entries; commas where nothing does."""
    lines = [line for line in text.splitlines() if line.strip()][:LOOKED_AT]
    found = {}
    for sep in SEPARATORS:
        try:  # several spaces count as one
            cut = map(_by_spaces, lines) if sep == " " else csv.reader(lines, delimiter=sep, skipinitialspace=True)
            n_header, *n_entries = map(len, cut)
        except csv.Error:  # an entry longer than can be: of thousands of columns that something else separates
            continue
        if n_header > 1:
            found[sep] = set(n_entries) <= {n_header}
            if not found[sep] and set(n_entries) == {n_header + 1}:
                raise CrossfadeError(
                    f"{path} is not a CSV file that can be read (its header names {n_header} columns, its rows have "
                    f"{n_header + 1} entries): name all columns in the header; R leaves out the name of row names, "
                    "and with row.names = FALSE also these"
                )
    even = [sep for sep, all_alike in found.items() if all_alike]
    uneven = [sep for sep in found if sep != " "]  # of words in a header that are no columns
    return next(iter(even or uneven), ",")


def _by_spaces(line: str) -> list[str]:
    return re.findall(r"\"[^\"]*\"|\S+", line)


def _parsed(text: str, path: Path, sep: str, decimal: str) -> pandas.DataFrame:
    import pandas

    cut = r"\s+" if sep == " " else sep
    try:
        with warnings.catch_warnings():
            # A line longer than the header would silently lose its end, or turn the first column into labels.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            return pandas.read_csv(
                io.StringIO(text),
                sep=cut,
                index_col=False,
                skipinitialspace=True,
                decimal=decimal,
                low_memory=False,  # or a column's parts are read as numbers or text each by itself: 1 and "1"
            )
    except pandas.errors.EmptyDataError:
        raise CrossfadeError(f"{path} is empty: it needs a header line and rows of data") from None
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0]
        raise CrossfadeError(f"{path} is not a CSV file that can be read ({reason}): mend that line") from None


def _decimal(table: pandas.DataFrame, path: Path) -> str:
    """A comma where whole columns are numbers only if it is; nothing is guessed where it may mark thousands."""
    from pandas.api.types import is_numeric_dtype

    for name in table.columns:
        if is_numeric_dtype(column := table[name]):
            continue
        entries = [str(entry).strip() for entry in column.dropna()]
        with_comma = [entry for entry in entries if DECIMAL_COMMA.fullmatch(entry)]
        if not with_comma or not all(DECIMAL_COMMA.fullmatch(e) or WHOLE.fullmatch(e) for e in entries):
            continue
        if all(THOUSANDS.fullmatch(entry) for entry in with_comma):
            raise CrossfadeError(
                f"column {name!r} of {path} has entries like {with_comma[0]!r}: if that is a decimal comma, give "
                "--decimal ',' and if it marks thousands, take it out of the file"
            )
        return ","
    return "."


def _with_commas(before: pandas.DataFrame, text: str, path: Path, sep: str) -> pandas.DataFrame:
    """The same table with decimal commas; not if other columns then are no numbers any more."""
    from pandas.api.types import is_float_dtype, is_numeric_dtype

    table = _parsed(text, path, sep, ",")
    for name in before.columns:
        if is_float_dtype(before[name]) and not is_numeric_dtype(table[name]):
            commas = next(own for own in table.columns if is_float_dtype(table[own]))
            raise CrossfadeError(
                f"{path} has decimal commas in column {commas!r} and decimal points in column {name!r}: write all of "
                "them in one way"
            )
    return table


def _check_names(text: str, path: Path, sep: str) -> None:
    """Of two columns with one name pandas would call the second one x.1."""
    line = next(line for line in text.splitlines() if line.strip())
    entries = _by_spaces(line) if sep == " " else next(csv.reader([line], delimiter=sep, skipinitialspace=True))
    names = [name.strip('"') for name in entries if name]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise CrossfadeError(f"{path} has {names.count(twice[0])} columns called {twice[0]!r}: rename all but one")


def _check_header(table: pandas.DataFrame, path: Path) -> None:
    import pandas

    names = [str(name) for name in table.columns]
    if len(names) == 1:
        raise CrossfadeError(
            f"{path} has one column only, {names[0]!r}: a response and a covariate need two (if it has more, say what "
            "separates them with --sep)"
        )
    if pandas.to_numeric(pandas.Series(names).str.replace(",", "."), errors="coerce").notna().all():
        raise CrossfadeError(
            f"{path} begins with numbers ({', '.join(names[:4])}): put a line with the columns' names first"
        )
