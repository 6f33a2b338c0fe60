"""Workers sample ahead: the run then finds their segments as if it had kept them itself.

Nothing depends on how many workers there are, on which of them makes what, or on whether they live to the end: a run
makes for itself what it does not find.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import numpy as np

from crossfade.runs.chunks import Warn
from crossfade.runs.leases import DONE, Leases, WorkDone, leases
from crossfade.runs.workers import Task, worked
from crossfade.sampling.clock import OutOfTime
from crossfade.sampling.kept import Arrays, Memory, keeper, keeping
from crossfade.types import CrossfadeError


@contextmanager
def sampled_ahead(client: Any, tasks: list[Task], say: Warn) -> Iterator[None]:
    """What tasks sample on the workers of a Dask client is found inside this context, and kept if that is asked for."""
    if (own := leases()) is not None:
        share(own, tasks)
    if client is None:
        yield
        return
    kept = keeper()
    found = Memory() if kept is None else kept
    left = [task for task in tasks if found.find(_done(task[0])) is None]
    jobs: list[Task] = [(name, _segments, (function, args)) for name, function, args in left]
    if jobs:
        say(f"sampling {', '.join(name for name, *_ in jobs)} on {len(client.scheduler_info()['workers'])} workers")
    for i, (name, (segments, whole)) in enumerate(worked(client, jobs, say)):
        for own, arrays in segments.items():
            found.add(own, arrays)
        if whole:  # whoever goes on with the run asks nobody for it again
            found.add(_done(name), {"whole": np.array(True)})
        say(f"{name} is sampled, {i + 1} of {len(jobs)}")
    with keeping(found):
        yield


def share(own: Leases, tasks: list[Task]) -> NoReturn:
    """Do what nobody works on; what is made is kept by the run's folder."""
    for name, function, args in tasks:
        with own.held(name) as ours:
            if ours:
                own.say(f"sampling {name}")
                with suppress(CrossfadeError):  # said again by the run itself
                    function(*args)
                if (kept := keeper()) is not None:
                    kept.flush()  # before anybody is told that it is done
    states = [own.state(name) for name, *_ in tasks]
    raise WorkDone(
        f"{states.count(DONE)} of {len(tasks)} tasks are done, {states.count('taken')} are worked on elsewhere"
    )


def _done(name: str) -> str:
    """Under which it is kept that workers have done a task; its own name may hold what that of a file may not."""
    return f"ahead {hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _segments(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[dict[str, Arrays], bool]:
    """On a worker: all that a task samples, and whether it came to its end before the time did.

    One that fails fails again where it is needed, and is named there.
    """
    memory = Memory()
    with keeping(memory):
        try:
            function(*args)
        except OutOfTime:
            return dict(memory), False
        except CrossfadeError:
            pass
    return dict(memory), True
