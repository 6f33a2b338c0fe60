"""Who works on what, in a folder that several machines share: for clusters where no scheduler may run.

A lease is a file that its holder touches while it works; one that has not been touched for a while may be taken over.
Clocks that disagree, or a holder that was only slow, cost work done twice and nothing else: chunks are named by what
they hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Event, Thread

from crossfade.runs.chunks import write_whole
from crossfade.types import CrossfadeError

EXPIRES = 60.0  # seconds without a touch, after which a lease may be taken over
DONE = "done"


class WorkDone(CrossfadeError):
    """Nothing is left that nobody works on."""


class Leases:
    """The tasks of one folder."""

    def __init__(self, folder: Path, say: Callable[[str], None], expires: float = EXPIRES):
        self.folder, self.say, self.expires = folder, say, expires

    def path(self, task: str) -> Path:
        return self.folder / f"task-{hashlib.sha256(task.encode()).hexdigest()[:16]}.json"

    def state(self, task: str) -> str:
        """ "", "taken" or "done"."""
        path = self.path(task)
        try:
            age = time.time() - path.stat().st_mtime
            said = json.loads(path.read_text(encoding="utf-8"))
        except OSError:  # not there
            return ""
        except ValueError:  # being written, or cut off: it expires like any other
            said = {}
        if said.get("state") == DONE:
            return DONE
        return "taken" if -self.expires < age < self.expires else ""

    @contextmanager
    def held(self, task: str) -> Iterator[bool]:
        """Whether the task is ours; while it is, others leave it alone, and at the end it is done."""
        path = self.path(task)
        if self.state(task) or not self._take(path, task):
            yield False
            return
        stop = Event()
        touching = Thread(target=self._touch, args=(path, stop), daemon=True)
        touching.start()
        try:
            yield True
            write_whole(path, json.dumps(self._said(task, DONE)).encode())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            stop.set()
            touching.join()

    def _take(self, path: Path, task: str) -> bool:
        """Several may try: who can make the file has it. One that has expired is put away first."""
        if path.exists():
            try:
                path.rename(path.with_suffix(f".{os.getpid()}.expired"))
            except OSError:  # somebody else was faster
                return False
            path.with_suffix(f".{os.getpid()}.expired").unlink(missing_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump(self._said(task, "taken"), file)
        except FileExistsError:
            return False
        return True

    def _said(self, task: str, state: str) -> dict[str, str]:
        return {"task": task, "state": state, "by": f"{socket.gethostname()} {os.getpid()}"}

    def _touch(self, path: Path, stop: Event) -> None:
        while not stop.wait(self.expires / 4):
            try:
                os.utime(path)
            except OSError:  # taken over, or the folder is gone: the work is kept all the same
                return


_leases: ContextVar[Leases | None] = ContextVar("leases", default=None)


@contextmanager
def working(leases: Leases) -> Iterator[None]:
    """Runs inside this context do what nobody else does of what can be done on its own, and end there."""
    token = _leases.set(leases)
    try:
        yield
    finally:
        _leases.reset(token)


def leases() -> Leases | None:
    return _leases.get()
