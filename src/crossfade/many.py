"""One pair of models, many data sets: a table with a row each, which grows as rows are finished and survives a kill."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfade.methods.progress import Say, chosen, duration
from crossfade.methods.regressions import without_chains
from crossfade.methods.widths import answers_alone
from crossfade.runs.workers import Task, worked
from crossfade.types import DO_NOT_USE, CrossfadeError, Result

if TYPE_CHECKING:
    import pandas

FAILED = "failed"
COLUMNS = ("name", "log_bayes_factor", "error", "probability", "verdict", "reason", "seed", "seconds")
ENDINGS = (".csv", ".jsonl", ".parquet")
JOURNAL = ".unfinished.jsonl"


class Many(NamedTuple):
    """What `compare_many` returns: a row per data set, in the order in which they were given."""

    rows: tuple[dict[str, Any], ...]

    @property
    def table(self) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(COLUMNS)).set_index("name")

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        return dict(Counter(row["verdict"] for row in self.rows))

    def save(self, path: str | Path) -> None:
        """Write the table as CSV, JSON lines or Parquet, by the ending; it appears complete or not at all."""
        path = checked_out(path)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
        try:
            if path.suffix == ".jsonl":
                unfinished.write_text("".join(f"{_line(row)}\n" for row in self.rows), encoding="utf-8")
            elif path.suffix == ".csv":
                self.table.to_csv(unfinished)
            else:
                self.table.to_parquet(unfinished)
            unfinished.replace(path)
        except ImportError as error:
            raise CrossfadeError(f"Parquet needs pyarrow ({error}): install it, or write .csv or .jsonl") from None
        finally:
            unfinished.unlink(missing_ok=True)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
        return f"{len(self.rows)} data sets: {counts}\n{self.table.drop(columns=['seed', 'seconds'])}"


Compare = Callable[[Any, int], Result]  # of one data set, with a seed


def compare_many(
    m1: Any,
    m2: Any,
    data_sets: Mapping[Any, Any] | Iterable[Any],
    *,
    out: str | Path | None = None,
    seed: int = 0,
    client: Any = None,
    progress: bool | Say = True,
    **settings: Any,
) -> Many:
    """The log Bayes factor of M2 over M1 on every data set, as a table.

    Models are NumPyro functions of the data, or functions that make a model of any kind from them; a data set is a
    tuple of arguments, a dict of named ones, or one array. Two formulas take a table each (and `family`, `prior`,
    `scaling`, `drop_missing`). Data sets of the same shapes compile once. `settings` are those of `compare`; a row's
    random numbers depend on `seed` and on its name alone. A data set that fails says why in its row and does not stop
    the rest.
    With a Dask `client` its workers make the rows.
    With `out` (.csv, .jsonl or .parquet) finished rows are kept as they come: after a kill the same call goes on.
    """
    named = data_sets.items() if isinstance(data_sets, Mapping) else enumerate(data_sets)
    asked = sorted(settings.items())  # all of them, before formulas take out theirs
    if isinstance(m1, str) and isinstance(m2, str):
        one, what = _by_formulas(m1, m2, settings), f"{m1} | {m2}"
    elif callable(m1) and callable(m2):
        one, what = _by_functions(m1, m2, settings), f"{_called(m1)} | {_called(m2)}"
    else:
        raise CrossfadeError("compare_many takes two formulas, or two functions of a data set: a NumPyro model is one")
    return table_of(named, one, f"{what} | {seed} | {asked!r}", out, seed, chosen(progress), client)


def table_of(
    named: Iterable[tuple[Any, Any]],
    one: Compare,
    what: str,
    out: str | Path | None,
    seed: int,
    say: Say,
    client: Any = None,
) -> Many:
    """A row per data set; those that are finished in the journal of `out` are taken from there."""
    journal = None if out is None else Journal(checked_out(out), what)
    sets = [(str(name), data) for name, data in named]
    if len({name for name, _ in sets}) != len(sets):
        twice = next(name for name, count in Counter(name for name, _ in sets).items() if count > 1)
        raise CrossfadeError(f"two data sets are called {twice!r}: give each a name of its own")
    digests = {name: _digest(data) if journal else "" for name, data in sets}
    done = {} if journal is None else journal.done
    rows = {name: done[name, digests[name]] for name, _ in sets if (name, digests[name]) in done}
    tasks: list[Task] = [
        (name, _row, (name, data, one, seed_of(seed, name))) for name, data in sets if name not in rows
    ]
    began = time.perf_counter()
    for i, (name, row) in enumerate(worked(client, tasks)):
        rows[name] = row
        if journal:
            journal.add(row, digests[name])
        left = (time.perf_counter() - began) / (i + 1) * (len(sets) - len(rows))
        say(f"{len(rows):,} of {len(sets):,} data sets | {name}: {_said(row)} | about {duration(left)} left")
    say("")
    found = Many(tuple(rows[name] for name, _ in sets))
    if out is not None and journal is not None:
        found.save(out)
        journal.remove()
    return found


def _row(name: str, data: Any, one: Compare, seed: int) -> dict[str, Any]:
    began = time.perf_counter()
    row: dict[str, Any] = dict.fromkeys(COLUMNS, None) | {"name": name, "seed": seed}
    try:
        with answers_alone():
            result = one(data, seed)
    except Exception as error:  # of a user's model, on data that nobody has looked at
        words = str(error) if isinstance(error, CrossfadeError) else f"{type(error).__name__}: {error}"
        row |= {"verdict": FAILED, "reason": words.splitlines()[0] if words else type(error).__name__}
    else:
        row |= {"verdict": result.verdict, "reason": " ".join(result.reasons)}
        if result.verdict != DO_NOT_USE:
            answer = result.log_bayes_factor
            row |= {"log_bayes_factor": answer.value, "error": answer.error, "probability": result.probability}
    return row | {"seconds": round(time.perf_counter() - began, 3)}


def _by_formulas(formula_1: str, formula_2: str, settings: dict[str, Any]) -> Compare:
    from crossfade.bridges.formula import Prior, designs, regressions

    family, scaling = settings.pop("family", "gaussian"), settings.pop("scaling", "standardise")
    prior, drop_missing = settings.pop("prior", Prior()), settings.pop("drop_missing", False)

    def one(table: Any, seed: int) -> Result:
        both = designs(table, formula_1, formula_2, family=family, scaling=scaling, drop_missing=drop_missing)
        first, second = regressions(both, family, prior)
        if isinstance(found := without_chains(first, second, {**settings, "seed": seed}), Result):
            return found
        from crossfade.api import compare

        return compare(first, second, seed=seed, progress=False, **settings)

    return one


def _by_functions(m1: Callable[..., Any], m2: Callable[..., Any], settings: dict[str, Any]) -> Compare:
    from crossfade.api import compare
    from crossfade.bridges.door import called

    def one(data: Any, seed: int) -> Result:
        return compare(called(m1, data), called(m2, data), seed=seed, progress=False, **settings)

    return one


def _called(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _said(row: dict[str, Any]) -> str:
    value = row["log_bayes_factor"]
    return row["verdict"] if value is None else f"{value:.3g} +- {row['error']:.2g} {row['verdict']}"


def seed_of(seed: int, name: str) -> int:
    """A seed of its own for every data set, whatever the others are and in whatever order they come."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4], "little")


def _digest(data: Any) -> str:
    """Of the data themselves: a row that was kept is not taken for other data."""
    return hashlib.sha256(b"".join(_bytes(data))).hexdigest()[:16]


def _bytes(data: Any) -> Iterator[bytes]:
    if isinstance(data, Mapping):
        for name in sorted(data, key=str):
            yield str(name).encode()
            yield from _bytes(data[name])
    elif isinstance(data, tuple | list):
        for part in data:
            yield from _bytes(part)
    elif hasattr(data, "to_csv"):
        yield data.to_csv().encode()
    else:
        array = np.asarray(data)
        yield f"{array.dtype}{array.shape}".encode()
        yield array.tobytes() if array.dtype != object else repr(array.tolist()).encode()


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, default=float)


def checked_out(path: str | Path) -> Path:
    """Before any work: a name with an ending that is known, in a folder that is there."""
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise CrossfadeError(f"{path.name}: a table is written as {', '.join(ENDINGS)}; give a name that ends so")
    if not path.parent.is_dir():
        raise CrossfadeError(f"the folder {path.parent} does not exist: create it, or write the table elsewhere")
    return path


class Journal:
    """Finished rows beside the table to be, a line each; a line that was cut off is not there."""

    def __init__(self, out: Path, what: str):
        self.path = out.with_name(out.name + JOURNAL)
        self.done: dict[tuple[str, str], dict[str, Any]] = {}
        head = json.dumps({"what": what})
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        if lines:
            if lines[0] != head:
                raise CrossfadeError(
                    f"{self.path} holds rows of another comparison (models, seed or settings differ): remove it, or "
                    "write the table elsewhere"
                )
            for line in lines[1:]:
                try:
                    kept = json.loads(line)
                except json.JSONDecodeError:  # the last one, cut off
                    continue
                self.done[kept["row"]["name"], kept["digest"]] = kept["row"]
            self._write("")  # ends a line that was cut off; rows that are there are never written again
        else:
            self._write(head)

    def add(self, row: dict[str, Any], digest: str) -> None:
        self._write(json.dumps({"row": row, "digest": digest}, default=float))

    def _write(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
