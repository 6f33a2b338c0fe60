"""Workers make chains longer: what was found out about a model goes along, so that theirs are the run's to the bit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from crossfade.density.exchangeable import one_numbering
from crossfade.density.joint import as_joint
from crossfade.density.precision import in_float64
from crossfade.runs.ahead import sampled_ahead
from crossfade.runs.chunks import Warn
from crossfade.runs.workers import Task
from crossfade.sampling.clock import seconds_left, until
from crossfade.sampling.draws import Draws, restored
from crossfade.sampling.kept import helped


def grown_ahead(client: Any, models: Mapping[str, Any], say: Warn) -> AbstractContextManager[None]:
    """Inside this context the workers of a Dask client make longer what a run of these models makes longer."""
    return nullcontext() if client is None else helped(partial(_longer_ahead, client, models, say))


def _longer_ahead(
    client: Any, models: Mapping[str, Any], say: Warn, wanted: Mapping[str, tuple[Draws, int]]
) -> AbstractContextManager[None]:
    tasks: list[Task] = []
    for name, (draws, n) in wanted.items():
        hints = draws.joint.numbered, draws.joint.discontinuous
        args = models[name], hints, draws.emptied().arrays(), n, seconds_left()
        tasks.append((f"{n} more draws of {name}, from {draws.n_draws} on", _made_longer, args))
    return sampled_ahead(client, tasks, say) if tasks else nullcontext()


@in_float64
def _made_longer(
    model: Any, hints: tuple[tuple[str, ...], tuple[str, ...]], kept: Mapping[str, Any], n_draws: int, seconds: float
) -> None:
    """The chains of a model as they were, further: on a worker, who keeps what is sampled."""
    joint = as_joint(model)
    if hints[0]:
        joint = one_numbering(joint, hints[0], "the model")
    with until(time.perf_counter() + seconds):
        restored(joint._replace(discontinuous=hints[1]), kept).more(n_draws)
