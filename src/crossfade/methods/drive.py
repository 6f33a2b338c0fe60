"""Driving a run: the budget of time, what is said meanwhile, and an answer whenever it is stopped."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from crossfade.methods.fitted import due, ended, step, with_edge
from crossfade.methods.progress import Say, duration
from crossfade.methods.run import Run
from crossfade.sampling.clock import OutOfTime, until
from crossfade.sampling.hmc import SEGMENT
from crossfade.sampling.kept import keeper
from crossfade.types import CrossfadeError

REFITS = 5.0  # times a first look at the error, that the last one takes


def drive(run: Run, say: Say, began: float | None = None) -> Run:
    """Call `step` until it has finished, the time since it began is used up, or somebody presses Ctrl-C."""
    pace = Pace(time.perf_counter() if began is None else began, run.asked.seconds or np.inf)
    while not run.finished:
        say(pace.line(run))
        before = time.perf_counter()
        try:
            with until(pace.end):
                later = step(run)
        except OutOfTime as stop:
            why = str(stop) or f"the budget of {run.asked.seconds:g} s is used up"
            run = _cut_short(run, why, pace.spent)
            break
        except KeyboardInterrupt as stop:
            try:
                run = _cut_short(run, "it was stopped by hand", pace.spent)
            except CrossfadeError as missing:
                raise KeyboardInterrupt(str(missing)) from stop
            break
        pace = pace.after(run, later, time.perf_counter() - before)
        # what is kept is not cut to what time allows: a run that goes on later makes the same steps
        run = later if keeper() is not None else later._replace(room=pace.room)
    say("")
    return run


class Pace(NamedTuple):
    """How fast a run goes, and what it can still afford."""

    began: float
    seconds: float  # that it may take
    per_draw: float = 0.0  # seconds for one more draw of every chain at one rung
    per_look: float = 0.0  # seconds for computing the error

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.began

    @property
    def end(self) -> float:
        """When sampling must stop, so that the answer is there in time."""
        return self.began + self.seconds - min(REFITS * self.per_look, 0.3 * self.seconds)

    @property
    def room(self) -> float:
        left = self.end - time.perf_counter()
        return np.inf if not np.isfinite(left) or self.per_draw == 0 else max(left, 0.0) / self.per_draw

    def after(self, run: Run, later: Run, seconds: float) -> Pace:
        """With what was learnt from one step."""
        if (n := _n_draws(later) - _n_draws(run)) > 0 and later.edge is not None and run.edge is not None:
            return self._replace(per_draw=seconds / n)
        if n > 0:
            return self._replace(per_draw=max(self.per_draw, seconds / n))
        if later.summary is not None and run.summary is None:
            return self._replace(per_look=seconds)
        return self

    def line(self, run: Run) -> str:
        """What a run is doing, what it has found so far, and how long it will take."""
        said = [due(run), f"{_n_draws(run) * run.n_chains:,} draws"]
        if run.summary is not None:
            headline, target = run.summary.headline, run.asked.target_se
            n_more = _n_draws(run) * max((headline.error / target) ** 2 * 1.15 - 1, 1.0 if run.n_longer else 0.0)
            left = min(n_more * self.per_draw + REFITS * self.per_look, self.began + self.seconds - time.perf_counter())
            said.append(f"log Bayes factor {headline.value:.3g} +- {headline.error:.2g}, {target:g} asked")
            said.append(f"{duration(self.spent)} so far, about {duration(max(left, 1.0))} left")
        else:
            said.append(f"{duration(self.spent)} so far")
        return " | ".join(said)


def _n_draws(run: Run) -> int:
    """Per chain, over all rungs."""
    if run.edge is not None:
        return sum(rung.n_draws for rung in run.edge.rungs)
    return sum(draws.n_draws for draws in run.draws if draws is not None and draws.u.shape[2])


def _cut_short(run: Run, why: str, spent: float) -> Run:
    """The answer from what there is; an error that says what was missing, if there are not draws of both models."""
    if run.edge is None:
        enough = [draws is not None and (draws.n_draws >= SEGMENT or not draws.u.shape[2]) for draws in run.draws]
        if not all(enough):
            k = enough.index(False)
            needed = spent * (4 if k == 0 and run.joints[0].places else 2)
            raise CrossfadeError(
                f"there is no answer yet, because {why}: it had come to {due(run)} in {duration(spent)}. Draws of "
                f"M{k + 1} are missing; give it about {duration(max(needed, 5.0))}"
            )
        run = with_edge(run._replace(may_give_up=False))
    return ended(run, why)
