"""Workers sample ahead: the run then finds their segments as if it had kept them itself.

Nothing depends on how many workers there are, on which of them makes what, or on whether they live to the end: a run
makes for itself what it does not find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

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
    say(f"sampling {', '.join(name for name, *_ in tasks)} on {len(client.scheduler_info()['workers'])} workers")
    jobs: list[Task] = [(name, _segments, (function, args)) for name, function, args in tasks]
    for i, (name, segments) in enumerate(worked(client, jobs, say)):
        for own, arrays in segments.items():
            found.add(own, arrays)
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


def _segments(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Arrays]:
    """On a worker: all that a task samples. One that fails fails again where it is needed, and is named there."""
    memory = Memory()
    with keeping(memory), suppress(CrossfadeError, OutOfTime):
        function(*args)
    return dict(memory)
