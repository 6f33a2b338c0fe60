"""One pair of models, many data sets: a table with a row each, which grows as rows are finished and survives a kill."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade.files import appearing
from crossfade.methods.budget import asked, check_common
from crossfade.methods.progress import Say, chosen, duration
from crossfade.methods.regressions import without_chains
from crossfade.methods.widths import answers_alone
from crossfade.runs.made_from import called, made_from
from crossfade.runs.plan import in_directory, is_looking
from crossfade.runs.rows import PASSING, Rows, rows_of
from crossfade.runs.workers import Task
from crossfade.types import DO_NOT_USE, CrossfadeError, Result

if TYPE_CHECKING:
    import pandas

FAILED = "failed"
ANSWER = ("name", "log_bayes_factor", "error", "probability", "verdict", "reason", "seed", "seconds")
EFFECT = ("effect", "effect_low", "effect_high")  # of the one number that differs, where it is one
COLUMNS = (*ANSWER[:4], *EFFECT, *ANSWER[4:])
ENDINGS = (".csv", ".jsonl", ".parquet")
OF_COMPARE = (  # what `compare` takes beside the models and what is set for every row
    *("method", "target_se", "budget", "share", "draws", "discontinuous", "exchangeable", "n_iter", "kernel"),
    *("n_chains", "log_prior_odds", "route"),
)
MAY_CHANGE = ("target_se", "budget")  # when a table goes on; rows of another target are made again
UNFINISHED = ".unfinished"  # after the name of a table: the folder of its rows until it is written


class Many(NamedTuple):
    """What `compare_many` returns: a row per data set, in the order in which they were given; see `table`."""

    rows: tuple[dict[str, Any], ...]

    @property
    def table(self) -> pandas.DataFrame:
        """By name: log_bayes_factor (of M2 over M1), error, probability (of M2), verdict, reason, seed, seconds.

        Where one model has one number that the other has not, `effect` is its posterior mean, and `effect_low` and
        `effect_high` are the ends of its central 95 % interval.
        """
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(COLUMNS)).set_index("name")

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        return dict(Counter(row["verdict"] for row in self.rows))

    def save(self, path: str | Path) -> None:
        """Write the table as CSV, JSON lines or Parquet, by the ending; it appears complete or not at all."""
        path = checked_out(path)
        try:
            with appearing(path) as unfinished:
                if path.suffix.lower() == ".jsonl":
                    unfinished.write_text("".join(f"{_line(row)}\n" for row in self.rows), encoding="utf-8")
                elif path.suffix.lower() == ".csv":
                    self.table.to_csv(unfinished)
                else:
                    self.table.to_parquet(unfinished)
        except ImportError as error:
            raise CrossfadeError(f"Parquet needs pyarrow ({error}): install it, or write .csv or .jsonl") from None

    def plot(self, path: str | Path | None = None) -> Any:
        """The log Bayes factors in order, with 95 % intervals; also written to the path if there is one."""
        return import_module("crossfade.app.plots").of_curve(self, "many", path)

    def report(self, path: str | Path) -> None:
        """Write one HTML page with all of it, which needs nothing else."""
        import_module("crossfade.app.report").report_many(self, path)

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
    directory: str | Path | None = None,
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
    With `out` (.csv, .jsonl or .parquet) finished rows are kept as they come: after a kill the same call goes on. They
    are kept in `directory`, which stays, or else in a folder beside the table, which goes when the table is written.
    """
    named = data_sets.items() if isinstance(data_sets, Mapping) else enumerate(data_sets)
    every = dict(settings)  # before formulas take out theirs
    if isinstance(m1, str) and isinstance(m2, str):
        one, what = _by_formulas(m1, m2, settings), f"{m1} | {m2}"
    elif callable(m1) and callable(m2):
        kept = out is not None or directory is not None
        one, what = _by_functions(m1, m2, settings), f"{called(m1)} | {called(m2)}" if kept else ""
    else:
        raise CrossfadeError("compare_many takes two formulas, or two functions of a data set: a NumPyro model is one")
    _check_settings(settings, seed)
    plan = {"models": what, "seed": seed, **{name: own for name, own in every.items() if name not in MAY_CHANGE}}
    target = every.get("target_se")
    return table_of(named, one, plan, out, directory, seed, chosen(progress), client, target)


def table_of(
    named: Iterable[tuple[Any, Any]],
    one: Compare,
    plan: Mapping[str, Any],
    out: str | Path | None,
    directory: str | Path | None,
    seed: int,
    say: Say,
    client: Any = None,
    target: float | None = None,
) -> Many:
    """A row per data set; those that are kept are not made again."""
    sets = [(str(name), data) for name, data in named]
    if len({name for name, _ in sets}) != len(sets):
        twice = next(name for name, count in Counter(name for name, _ in sets).items() if count > 1)
        raise CrossfadeError(f"two data sets are called {twice!r}: give each a name of its own")
    beside = None if out is None else checked_out(out).with_name(Path(out).name + UNFINISHED)
    folder = beside if directory is None else directory
    digests = {name: f"{made_from(data)} {target}" if folder is not None else "" for name, data in sets}
    tasks: list[Task] = [(name, _row, (name, data, one, seed_of(seed, name))) for name, data in sets]
    rows: dict[str, dict[str, Any]] = {}
    began, n_made = time.perf_counter(), 0
    with in_directory(folder, {}, plan, say):
        for name, (row,), kept in rows_of(tasks, digests, client, say):
            rows[name] = row
            n_made += not kept
            left = (time.perf_counter() - began) / max(n_made, 1) * (len(sets) - len(rows))
            if not kept:
                done = f"{len(rows):,} of {len(sets):,} data sets"
                say(f"{done} | {name}: {_said(row)} | about {duration(left)} left")
    say("")
    found = Many(tuple(rows[name] for name, _ in sets if name in rows))
    if out is not None and not is_looking():
        found.save(out)
        if directory is None and beside is not None:
            shutil.rmtree(beside)
    return found


def _row(name: str, data: Any, one: Compare, seed: int) -> Rows:
    began = time.perf_counter()
    row: dict[str, Any] = dict.fromkeys(COLUMNS, None) | {"name": name, "seed": seed}
    try:
        with answers_alone():
            result = one(data, seed)
    except Exception as error:  # of a user's model, on data that nobody has looked at
        words = str(error) if isinstance(error, CrossfadeError) else f"{type(error).__name__}: {error}"
        row |= {"verdict": FAILED, "reason": words.splitlines()[0] if words else type(error).__name__}
        row |= {} if isinstance(error, CrossfadeError) else {PASSING: True}
    else:
        row |= {"verdict": result.verdict, "reason": " ".join(result.reasons)}
        if result.verdict != DO_NOT_USE:
            answer = result.log_bayes_factor
            row |= {"log_bayes_factor": answer.value, "error": answer.error, "probability": result.probability}
            if len(found := import_module("crossfade.app.effects").effects(result)) == 1:
                row |= dict(zip(EFFECT, found[0][2:], strict=True))
    return [row | {"seconds": round(time.perf_counter() - began, 3)}]


def _check_settings(settings: Mapping[str, Any], seed: int) -> None:
    """What is wrong for all data sets alike is said once, and not in every row."""
    if unknown := [name for name in settings if name not in OF_COMPARE]:
        raise CrossfadeError(f"compare_many takes no {unknown[0]!r}: choose from {', '.join(OF_COMPARE)}")
    check_common(seed, settings.get("log_prior_odds", 0.0), settings.get("n_chains"))
    asked(settings.get("target_se"), settings.get("budget"))


def _by_formulas(formula_1: str, formula_2: str, settings: dict[str, Any]) -> Compare:
    from crossfade.bridges.formula import Prior, designs, regressions

    family, scaling = settings.pop("family", "gaussian"), settings.pop("scaling", "standardise")
    prior, drop_missing = settings.pop("prior", Prior()), settings.pop("drop_missing", False)

    def one(table: Any, seed: int) -> Result:
        both = designs(table, formula_1, formula_2, family=family, scaling=scaling, drop_missing=drop_missing)
        first, second = regressions(both, family, prior)
        found = without_chains(first, second, {**settings, "seed": seed})
        if not isinstance(found, Result):
            from crossfade.api import compare

            found = compare(first, second, seed=seed, progress=False, **settings)
        return found._replace(about={**found.about, "levels": both[0].levels | both[1].levels})

    return one


def _by_functions(m1: Callable[..., Any], m2: Callable[..., Any], settings: dict[str, Any]) -> Compare:
    from crossfade.api import compare
    from crossfade.bridges.door import called as given_to

    def one(data: Any, seed: int) -> Result:
        return compare(given_to(m1, data), given_to(m2, data), seed=seed, progress=False, **settings)

    return one


def _said(row: dict[str, Any]) -> str:
    value = row["log_bayes_factor"]
    return row["verdict"] if value is None else f"{value:.3g} +- {row['error']:.2g} {row['verdict']}"


def seed_of(seed: int, name: str) -> int:
    """A seed of its own for every data set, whatever the others are and in whatever order they come."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4], "little")


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, default=float)


def checked_out(path: str | Path) -> Path:
    """Before any work: a name with an ending that is known, in a folder that is there."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise CrossfadeError(f"{path.name}: a table is written as {', '.join(ENDINGS)}; give a name that ends so")
    if not path.parent.is_dir():
        raise CrossfadeError(f"the folder {path.parent} does not exist: create it, or write the table elsewhere")
    return path
