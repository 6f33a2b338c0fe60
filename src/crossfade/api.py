"""The questions: compare, evidence, sample, and a run step by step. The only place with defaults."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

from crossfade.density.digest import digest
from crossfade.density.exchangeable import with_hints
from crossfade.density.joint import Joint, as_joint, notes_of, nothing
from crossfade.density.precision import in_float64
from crossfade.density.programs import kept_on_disk, let_go
from crossfade.density.regression import regression_of, titles_of
from crossfade.density.sharing import Share, check_data, other_order, union
from crossfade.methods import fallback, fitted, pilot
from crossfade.methods.answer import result_of
from crossfade.methods.budget import Asked, asked, check_common
from crossfade.methods.drive import drive
from crossfade.methods.progress import Say, chosen, duration
from crossfade.methods.regressions import AUTO, ROUTES, without_chains
from crossfade.methods.run import Run
from crossfade.methods.table import KernelFn, Method, by_table, row_of
from crossfade.methods.widths import with_widths
from crossfade.runs.ahead import sampled_ahead
from crossfade.runs.longer import grown_ahead
from crossfade.runs.made_from import called
from crossfade.runs.plan import in_directory
from crossfade.runs.workers import Task
from crossfade.sampling.clock import until
from crossfade.sampling.draws import Draws, restored, warmed
from crossfade.sampling.kept import decided
from crossfade.types import CrossfadeError, Result

# A Model, a Joint, a pm.Model, a NumPyro function, or a tuple of one and its arguments: `as_joint` is the door.
AnyModel: TypeAlias = Any


@kept_on_disk()
@in_float64
def compare(
    m1: AnyModel,
    m2: AnyModel,
    *,
    method: str | Method = AUTO,
    target_se: float | None = None,
    budget: float | str | None = None,
    share: Share = None,
    draws: tuple[Any, Any] | None = None,
    discontinuous: Sequence[str] = (),
    exchangeable: Sequence[str] = (),
    n_iter: int | None = None,
    kernel: KernelFn | None = None,
    n_chains: int | None = None,
    seed: int = 0,
    log_prior_odds: float = 0.0,
    route: str = AUTO,
    directory: str | Path | None = None,
    client: Any = None,
    progress: bool | Say = True,
) -> Result:
    """The log Bayes factor of M2 over M1 with its standard error over independent chains, and a verdict.

    A model is one of ours, a pm.Model, a NumPyro function, or a tuple of one and its arguments: `(model, y)`. A
    `Result` comes back: its `log_bayes_factor`, `verdict` and `reasons`, the draws, and a page when it is printed.

    - `target_se`, `budget`: go on until the standard error is this (0.05), or this is spent (ten minutes): seconds,
      "5 min" or "100000 draws".
    - `share`: which parameters are the same, by default those of equal name; {"a": "b"}, or [] for none.
    - `draws`: posterior draws of both models that you have; None for one to be sampled.
    - `discontinuous`, `exchangeable`: parameters in which a likelihood has steps, such as a change point; those of
      components whose numbering means nothing, such as the means, spreads and weights of a mixture.
    - `route`: "auto" takes the cheapest that is right: regressions have a closed form or importance sampling from their
      modes, small smooth models end in importance sampling; "path" asks for chains alone.
    - `directory`: all that is sampled is kept there as it comes: the same call goes on after a kill, and a smaller
      `target_se` adds to what there is. `client`: workers of Dask sample both models at once, to the same bits.
    - `log_prior_odds`: log p(M2)/p(M1), for `probability`. `progress`: False for no line on the terminal.
    - `method`: "auto" fits linking densities to draws. Those of the table (`METHODS`) take `n_iter` kept iterations
      (16,000) of each chain on each leg, and a `kernel` (HMC where neither it nor the models bring one).
    """
    began = time.perf_counter()
    let_go()
    check_common(seed, log_prior_odds, n_chains)
    if method != AUTO:
        row_of(method)
        _refuse(method, target_se=target_se, budget=budget, draws=draws, client=client)
        _refuse(method, discontinuous=discontinuous or None, exchangeable=exchangeable or None)
        _refuse(method, route=None if route == AUTO else route)
    else:
        _refuse(method, n_iter=n_iter, kernel=kernel)
    if route not in ROUTES:
        raise CrossfadeError(f"unknown route {route!r}: choose one of {', '.join(ROUTES)}")
    hints: dict[str, Any] = {"discontinuous": discontinuous, "exchangeable": exchangeable}
    chains: dict[str, Any] = {"method": method, "route": route, "share": share, "draws": draws, "n_chains": n_chains}
    why: Result | str = ""
    if (r1 := regression_of(m1)) is not None and (r2 := regression_of(m2)) is not None:
        check_data(r1, r2)
        wants: dict[str, Any] = {"target_se": target_se, "budget": budget, "log_prior_odds": log_prior_odds}
        why = without_chains(r1, r2, {**chains, **hints, **wants, "seed": seed})
        if isinstance(why, Result):
            return with_widths(why, r1, r2)
    j1, j2 = as_joint(m1, "M1"), as_joint(m2, "M2")
    check_data(j1, j2)
    if method == AUTO:
        own = (None, None) if draws is None else draws
        if not (isinstance(own, tuple | list) and len(own) == 2):
            raise CrossfadeError("draws= takes two things, the draws of M1 and of M2; give None for one to be sampled")
        j1, j2 = with_hints([j1, j2], discontinuous, exchangeable)
        wanted, say = asked(target_se, budget), chosen(progress)
        if n_chains is None and (client is not None or directory is not None):
            n_chains = fitted.usual_chains((j1, j2))  # whatever a gradient takes on the machine that asks
        settings: dict[str, Any] = {"seed": seed, "n_chains": n_chains, "share": share}
        jobs: list[Task] = [
            (f"M{k + 1}", first_draws, (m1, m2, k, hints, wanted, settings))
            for k, joint in enumerate((j1, j2))
            if joint.places and own[k] is None
        ]
        plan = {**settings, "route": route, **hints}
        kept, longer = in_directory(directory, {"M1": j1, "M2": j2}, plan, say), {"M1": m1, "M2": m2}
        with kept, sampled_ahead(client, jobs, say), grown_ahead(client, longer, say):
            result = _by_default(j1, j2, wanted, draws=(own[0], own[1]), say=say, route=route, **settings)
        if why:
            result.about["notes"].append(f"chains were run, because {why}")
    else:
        settings = {"n_iter": n_iter, "n_chains": n_chains, "seed": seed, "share": share}
        plan = {**settings, "method": row_of(method)[1], "kernel": kernel and called(kernel)}
        with in_directory(directory, {"M1": j1, "M2": j2}, plan, chosen(progress)):
            result = by_table(j1, j2, method, kernel=kernel, **settings)
    return with_widths(_described(result, j1, j2, seed, log_prior_odds, time.perf_counter() - began), j1, j2)


@in_float64
def first_draws(m1: AnyModel, m2: AnyModel, k: int, hints: dict[str, Any], wanted: Asked, said: dict[str, Any]) -> None:
    """What a comparison samples of one of its models before it looks at both: for workers, who keep it."""
    joints = with_hints([as_joint(m1, "M1"), as_joint(m2, "M2")], *hints.values())
    run = fitted.begin((joints[0], joints[1]), wanted, **said)
    with until(np.inf if wanted.seconds is None else time.perf_counter() + wanted.seconds):
        pilot.settled(run, k)


def _by_default(
    j1: Joint,
    j2: Joint,
    wanted: Any,
    *,
    seed: int,
    n_chains: int | None,
    share: Share,
    draws: tuple[Any, Any],
    say: Say,
    route: str,
) -> Result:
    began = time.perf_counter()
    joined = union(j1, j2, share)  # before any work: what cannot be shared as asked is an error
    may_give_up = all(own is None for own in draws) and all(joint.separable or not joint.places for joint in (j1, j2))
    settings: dict[str, Any] = {"n_chains": n_chains, "share": share, "draws": draws}
    run = fitted.begin((j1, j2), wanted, seed, **settings, may_give_up=may_give_up, points=route == AUTO)
    run = drive(run, say, began)
    if run.given_up:
        needed, spent = decided("tempering", partial(fallback.forecast, run.joints)), time.perf_counter() - began
        if wanted.seconds is not None and needed > wanted.seconds - spent:
            why = f"{run.given_up}; tempering from the priors would need about {duration(spent + needed)}"
            run = drive(run._replace(may_give_up=False, given_up="", finished=False), say, began)
            result = result_of(run)
            if result.verdict != "trustworthy":
                result = result._replace(reasons=(*result.reasons, why))
        else:
            say(f"{run.given_up}: tempering from the priors instead, about {duration(needed)} for a first answer")
            result = fallback.tempered(run.joints, wanted, seed, run.given_up, say, spent)
            result = result._replace(sharing=joined.sharing)
    else:
        result = result_of(run)
    j1, j2 = run.joints
    about = {"method": AUTO, "estimator": "mbar", "target_se": wanted.target_se, "notes": notes_of(j1, j2)}
    about["numbered"] = [list(joint.numbered) for joint in run.joints]
    return result._replace(about={**about, **result.about})


@in_float64
def begin(
    m1: AnyModel,
    m2: AnyModel,
    *,
    target_se: float | None = None,
    budget: float | str | None = None,
    share: Share = None,
    draws: tuple[Any, Any] = (None, None),
    discontinuous: Sequence[str] = (),
    exchangeable: Sequence[str] = (),
    n_chains: int | None = None,
    seed: int = 0,
) -> Run:
    """A run of the default method that has not begun: data, of which `step` makes the next state.

    `while not run.finished: run = step(run)`, and `result_of(run)`; a budget of time is the caller's to keep.
    """
    check_common(seed, 0.0, n_chains)
    j1, j2 = as_joint(m1, "M1"), as_joint(m2, "M2")
    check_data(j1, j2)
    j1, j2 = with_hints([j1, j2], discontinuous, exchangeable)
    return fitted.begin((j1, j2), asked(target_se, budget), seed, n_chains=n_chains, share=share, draws=draws)


def _described(result: Result, j1: Joint, j2: Joint, seed: int, log_prior_odds: float, seconds: float) -> Result:
    """With what a reader wants to know of it, whatever the method."""
    twice = {
        name: (first, j2.priors[name])
        for name, first in j1.priors.items()
        if name in j2.priors and (first != j2.priors[name] or name in result.sharing.tempered)
    }
    about = {
        "seed": seed,
        "evidence": not j1.places and j1.data is None,  # over the model of nothing
        "log_prior_odds": float(log_prior_odds),
        "priors": {**j1.priors, **j2.priors},
        "tempered_priors": twice,
        "notes": [*result.about.get("notes", notes_of(j1, j2)), *other_order(j1, j2)],
        **titles_of(j1, j2),
        "dims": {name: list(dims) for joint in (j1, j2) for name, dims in joint.dims.items()},
        "coords": {**j1.coords, **j2.coords},
        "responses": digest(j2.data),
        "seconds": seconds,
    }
    return result._replace(about={**result.about, **about})


@in_float64
def evidence(
    model: AnyModel,
    *,
    target_se: float | None = None,
    budget: float | str | None = None,
    draws: Any = None,
    discontinuous: Sequence[str] = (),
    exchangeable: Sequence[str] = (),
    n_chains: int | None = None,
    seed: int = 0,
    directory: str | Path | None = None,
    progress: bool | Say = True,
) -> Result:
    """log p(data) of one model: `log_bayes_factor` of the result, over the model of nothing whose evidence is 1.

    The reference is a normalised Student's t fitted to posterior draws, so the path is short; a difference of two
    evidences still has the noise of both, which `compare` of the two models has not.
    """
    own = None if draws is None else (None, draws)
    settings: dict[str, Any] = {"target_se": target_se, "budget": budget, "n_chains": n_chains, "seed": seed}
    settings |= {"discontinuous": discontinuous, "exchangeable": exchangeable}
    return compare(nothing(), model, draws=own, directory=directory, progress=progress, **settings)


@kept_on_disk()
@in_float64
def sample(
    model: AnyModel,
    *,
    n_draws: int = 100,
    discontinuous: Sequence[str] = (),
    exchangeable: Sequence[str] = (),
    n_chains: int = 32,
    seed: int = 0,
) -> Draws:
    """Posterior draws of one model, n_draws from each chain after warming up; `.more(n)` goes on where they stopped.

    Sampled once, they serve any number of edges (`fade`). `.save(path)` keeps them, and `restored_draws(model, path)`
    gives them back in another process or on another machine, where `.more(n)` goes on to the last bit.
    """
    check_common(seed, 0.0, n_chains)
    (joint,) = with_hints([as_joint(model)], discontinuous, exchangeable)
    return warmed(joint, jax.random.key(seed), n_chains).more(n_draws)


@in_float64
def restored_draws(
    model: AnyModel,
    kept: Mapping[str, np.ndarray] | str | Path,
    *,
    discontinuous: Sequence[str] = (),
    exchangeable: Sequence[str] = (),
) -> Draws:
    """Draws from the file that `Draws.save` wrote (or what `arrays` gave), to go on with; of the same model."""
    (joint,) = with_hints([as_joint(model)], discontinuous, exchangeable)
    return restored(joint, kept)


def _refuse(method: str | Method, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            other = "the methods of the table: name one by method=" if method == AUTO else 'method="auto", the default'
            raise CrossfadeError(f"{name}= is for {other}")
