"""Work on other processes, by Dask: a local cluster, or any scheduler that runs already."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any
from uuid import uuid4

from crossfade.types import CrossfadeError

Task = tuple[str, Callable[..., Any], tuple[Any, ...]]  # a name, a function, and its arguments


def worked(client: Any, tasks: list[Task], say: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    """Names of tasks and what they give: here, in order, or on the workers of a client, as they come.

    A task whose worker dies is done again by another one; what is left when the scheduler dies is done here.
    """
    waiting = {name: task for task in tasks for name in task[:1]}
    if client is not None:
        from distributed import CancelledError, KilledWorker, as_completed

        run = uuid4().hex[:8]  # two comparisons may share a scheduler
        packed = {name: _packed(name, function, args) for name, function, args in tasks}
        named = {client.submit(_called, own, key=f"{name}-{run}"): name for name, own in packed.items()}
        try:
            for future in as_completed(list(named), loop=client.loop):
                yield named[future], future.result()
                del waiting[named[future]]
                future.release()
        except KilledWorker as error:
            name = next(name for future, name in named.items() if future.status == "error")
            raise CrossfadeError(
                f"{name} was given to several workers and each of them died ({error}): give the workers more memory"
            ) from None
        except CancelledError:
            say(f"the scheduler is gone: what is left ({', '.join(waiting)}) is done here")
    for name, function, args in waiting.values():
        yield name, function(*args)


def _packed(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """With the functions themselves, also those of a notebook: only what this process has written is ever read."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps((function, args)))
    except Exception as error:  # of whatever a user's model holds
        raise CrossfadeError(
            f"{name} cannot be sent to a worker ({type(error).__name__}: {error}): put it into a module that the "
            "workers can import, or leave the workers out"
        ) from None


def _called(packed: bytes) -> Any:
    """On a worker, whose output is that of the command: what a model prints there must not stand in its JSON."""
    import cloudpickle

    with redirect_stdout(sys.stderr):
        function, args = cloudpickle.loads(packed)
        return function(*args)


@contextmanager
def cluster(n_workers: int | None, scheduler: str | None = None, scheduler_file: str | None = None) -> Iterator[Any]:
    """A client of so many local processes, or of a scheduler that runs already; None if nothing is asked for."""
    if n_workers is None and scheduler is None and scheduler_file is None:
        yield None
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise CrossfadeError("workers need Dask: pip install 'crossfade[dask]'") from None
    if scheduler is not None or scheduler_file is not None:
        try:
            client = Client(scheduler, scheduler_file=scheduler_file, timeout=30, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:  # a scheduler with TLS asks for credentials by a TypeError
            raise CrossfadeError(f"the scheduler {scheduler or scheduler_file} does not answer ({error})") from None
        with client:
            yield client
        return
    if n_workers is None or n_workers < 1:
        raise CrossfadeError(f"--workers {n_workers}: give a number of at least 1")
    # processes of their own, never forks: JAX has threads; and the default of nobody else who uses Dask
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as own,
        Client(own, set_as_default=False) as client,
    ):
        yield client
