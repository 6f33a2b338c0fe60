"""What a folder of chunks is a run of: models, data, settings and versions. Another run may not go on in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from crossfade.runs.chunks import ENDING, Chunks, Warn, write_whole
from crossfade.sampling.kept import keeping
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    from crossfade.density.joint import Joint

PLAN = "plan.json"
FORMAT = 1
VERSIONS = ("crossfade", "jax", "jaxlib", "blackjax", "numpyro", "numpy", "scipy")  # that may change the numbers
POINTS = (0.0, 0.1, -0.2)  # at which log densities are held against those of the plan

_looking: ContextVar[bool] = ContextVar("looking", default=False)


@contextmanager
def looking() -> Iterator[None]:
    """Runs inside this context sample nothing: they end where what is kept of them ends."""
    token = _looking.set(True)
    try:
        yield
    finally:
        _looking.reset(token)


def is_looking() -> bool:
    return _looking.get()


def opened(folder: str | Path, models: Mapping[str, Joint], settings: Mapping[str, Any], warn: Warn) -> Chunks:
    """The folder of a run, made where there is none; refused if it holds another run."""
    path, plan = Path(folder), plan_of(models, settings)
    if is_looking() and read_plan(path) is None:
        raise CrossfadeError(f"nothing of the run in {path} has been sampled yet")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrossfadeError(f"{path} cannot be made ({error.strerror}): choose another folder for the run") from None
    there = read_plan(path)
    if there is None:
        if any(path.glob("*.npz")):
            raise CrossfadeError(f"{path} holds chunks but no {PLAN}: choose another folder, or put its plan back")
        there = _first(path / PLAN, plan)
    if found := differences(there, plan):
        raise CrossfadeError(
            f"{path} holds another run: {'; '.join(found)}. Go on with the same models, data, settings and versions, "
            "or choose another folder"
        )
    return Chunks(path, warn, only_looking=is_looking())


def _first(path: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan in the folder, which is ours unless another run was faster: of two that begin at once one is refused."""
    ours = path.with_name(f".{path.name}.{uuid4().hex}.unfinished")
    write_whole(ours, json.dumps(plan, indent=1).encode())
    try:
        os.link(ours, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        ours.replace(path)
    finally:
        ours.unlink(missing_ok=True)
    return read_plan(path.parent) or plan


def read_plan(folder: Path) -> dict[str, Any] | None:
    path = folder / PLAN
    if not path.is_file():
        return None
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, UnicodeDecodeError, ValueError):
        raise CrossfadeError(f"{path} cannot be read: put back the one that was written when the run began") from None


def plan_of(models: Mapping[str, Joint], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "models": {name: _described(joint) for name, joint in models.items()},
        "settings": {name: repr(value) for name, value in settings.items()},
        "versions": {name: version(name) for name in VERSIONS},
    }


def _described(joint: Joint) -> dict[str, Any]:
    """Parameters and priors in words, and the log density at some points, which knows the data to the digit."""
    from crossfade.sampling.evaluate import values

    size = joint.coordinates.size
    at = values(joint.density, np.array(POINTS)[:, None] * np.ones(size))
    return {
        "parameters": {name: list(joint.coordinates.shapes[name]) for name in joint.names},
        "priors": dict(joint.priors),
        "log density": [float(value) if np.isfinite(value) else str(value) for value in at],
    }


def in_numbers(model: Any) -> list[str]:
    """What tells a model from others that are written alike: to the digits that all machines agree on."""
    from crossfade.density.joint import as_joint
    from crossfade.density.precision import float64

    with float64():
        said = _described(as_joint(model))
    return [repr(said["parameters"]), repr(said["priors"]), *(f"{float(own):.9g}" for own in said["log density"])]


def gathered(into: Path, others: Iterable[Path], warn: Warn) -> int:
    """Chunks of other folders of the same run, copied into one; how many were new."""
    plan, n = read_plan(into), 0
    for other in others:
        there = read_plan(other)
        if there is None:
            raise CrossfadeError(f"{other} holds no run: it has no {PLAN}")
        if plan is None:
            try:
                into.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CrossfadeError(
                    f"{into} cannot be made ({error.strerror}): choose another folder for the run"
                ) from None
            write_whole(into / PLAN, (other / PLAN).read_bytes())
            plan = there
        if found := differences(plan, there):
            raise CrossfadeError(f"{other} holds another run than {into}: {'; '.join(found)}")
        for path in sorted(other.glob(f"*{ENDING}")):
            if (into / path.name).exists():
                continue
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != path.stem:
                warn(f"chunk {path.name[:12]} of {other} is not what was written: it is left out")
                continue
            write_whole(into / path.name, data)
            n += 1
    return n


def differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What two plans do not have in common, in words."""
    if there.get("format") != now["format"]:
        return [f"it was written by another version of crossfade (format {there.get('format')}, now {now['format']})"]
    found = []
    for name in {**there["models"], **now["models"]}:
        first, second = there["models"].get(name), now["models"].get(name)
        if first is None or second is None:
            found.append(f"model {name} is {'not in it' if first is None else 'missing'}")
        elif first["parameters"] != second["parameters"]:
            found.append(f"{name} has other parameters ({', '.join(first['parameters'])})")
        elif first["priors"] != second["priors"]:
            changed = [own for own in first["priors"] if first["priors"][own] != second["priors"].get(own)]
            found.append(f"{name} has another prior of {', '.join(changed)}")
        elif not all(map(_equal, first["log density"], second["log density"])):
            found.append(f"{name} has another likelihood or other data")
    for part in ("settings", "versions"):
        for name in {**there[part], **now[part]}:
            if (before := there[part].get(name)) != (after := now[part].get(name)):
                found.append(f"{name} was {before or 'not given'} and is {after or 'not given'}")
    return found


def _equal(first: float | str, second: float | str) -> bool:
    """But for rounding, since chunks of one run may come from several machines."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return bool(np.isclose(first, second, rtol=1e-9, atol=1e-9))


@contextmanager
def in_directory(
    folder: str | Path | None, models: Mapping[str, Joint], settings: Mapping[str, Any], warn: Warn
) -> Iterator[None]:
    """What is sampled inside this context is kept in a folder, and found there if it has been sampled before."""
    if folder is None:
        yield
        return
    with opened(folder, models, settings, warn) as chunks, keeping(chunks):
        yield
