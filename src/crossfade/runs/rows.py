"""Tasks that make rows of a table: each is done once, and what it made is kept in the folder of the run.

Nothing that a task samples on its way is kept, so a task that is killed begins anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crossfade.runs.ahead import share
from crossfade.runs.leases import leases
from crossfade.runs.plan import is_looking
from crossfade.runs.workers import Task, worked
from crossfade.sampling.clock import OutOfTime
from crossfade.sampling.kept import Arrays, keeper, keeping

Rows = list[dict[str, Any]]
PASSING = "passing"  # marks a row that failed for a reason that may be gone next time, such as a full disk


def rows_of(
    tasks: list[Task], made_from: dict[str, str], client: Any, say: Callable[[str], None]
) -> Iterator[tuple[str, Rows, bool]]:
    """Names of tasks, their rows, and whether they were kept: those first, then the others as they are made.

    `made_from` has a digest of all that decides the rows of a task, by its name. Who only looks gets those that are
    kept; who shares a folder with others makes those that nobody works on, and ends there.
    """
    waiting = []
    for task in tasks:
        kept = _find(_key(task[0], made_from[task[0]]))
        if kept is None:
            waiting.append(task)
        else:
            yield task[0], kept, True
    if is_looking():
        return
    if (own := leases()) is not None:
        keys = {name: _key(name, made_from[name]) for name, *_ in waiting}
        # a task of the same name that is made from something else is another task
        share(own, [(f"{name} ({keys[name][-8:]})", _make, (keys[name], f, args)) for name, f, args in waiting])
    alone: list[Task] = [(name, _alone, (function, args)) for name, function, args in waiting]
    for name, rows in worked(client, alone, say):
        _add(_key(name, made_from[name]), rows)
        yield name, rows, False


def _key(name: str, made_from: str) -> str:
    """A name may hold what that of a file in a chunk may not."""
    return f"rows {hashlib.sha256(json.dumps([name, made_from]).encode()).hexdigest()[:32]}"


def _find(key: str) -> Rows | None:
    kept = keeper()
    try:
        found = None if kept is None else kept.find(key)
    except OutOfTime:  # who only looks finds nothing more
        return None
    return None if found is None else json.loads(found["json"].tobytes())


def _add(key: str, rows: Rows) -> None:
    """Kept, unless it may come out otherwise next time."""
    if not any([row.pop(PASSING, False) for row in rows]) and (kept := keeper()) is not None:
        kept.add(key, _arrays(rows))


def _arrays(rows: Rows) -> Arrays:
    return {"json": np.frombuffer(json.dumps(rows, default=_plain).encode(), np.uint8)}


def _plain(value: Any) -> Any:
    """A number of NumPy's, or a path."""
    return value.item() if hasattr(value, "item") else str(value)


def _make(key: str, function: Any, args: tuple[Any, ...]) -> None:
    _add(key, _alone(function, args))


def _alone(function: Any, args: tuple[Any, ...]) -> Rows:
    with keeping(None):
        return list(function(*args))
