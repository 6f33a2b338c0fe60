"""The one loop: chains that follow a ladder along a path and write down log_ratio."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.coordinates import Coordinates
from crossfade.density.precision import in_float64
from crossfade.density.programs import let_go
from crossfade.paths.path import Path, Unconstrained
from crossfade.sampling.kept import found_or_made
from crossfade.sampling.kernel import Kernel, broken
from crossfade.types import Array, CrossfadeError, Energy, Leg, State, Trace

KEYS = 1024  # that are made at once: one compiled shape
PLACE = "place "  # before the number of an array of the last states, in what is kept
N_STARTS = 1000  # draws of the priors that are tried before a start is called impossible

Observe = Callable[[State, Path, Array], dict[str, Array]]


class Schedule(NamedTuple):
    """Steps kept and dropped: `n_warm_up` at the first tau, then `n_burn` + `n_draws` at every rung."""

    n_draws: int = 1
    n_burn: int = 0
    n_warm_up: int = 1000


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: `trace` holds the rungs that were finished and `state` where the chains stood."""

    def __init__(self, trace: Trace, state: State):
        super().__init__(f"stopped after {len(trace.tau)} finished rungs")
        self.trace = trace
        self.state = state
        self.legs: tuple[Leg, ...] = ()  # what a comparison had when it was stopped


class BrokenEnergy(CrossfadeError):
    """A log density was NaN or +inf during a run."""


class Score(eqx.Module):
    """What controlled moments need: the position and the gradient of log q_tau there, both as flat vectors.

    In unconstrained coordinates, since Stein's identity fails where a density does not vanish at a boundary.
    """

    coordinates: Coordinates | None = None  # None: the path is already over unconstrained vectors

    def __call__(self, state: State, path: Path, tau: Array) -> dict[str, Array]:
        u, energy = state.theta, path.energy
        if self.coordinates is not None:
            u, energy = self.coordinates.inverse(u), Unconstrained(energy, self.coordinates)
        return {"theta": u, "score": jax.grad(lambda u: energy(u).at(tau))(u)}


def nothing(state: State, path: Path, tau: Array) -> dict[str, Array]:
    """Record log_ratio only, which is enough for all other estimators."""
    return {}


def chain_keys(key: Array, n_chains: int, first: int = 0) -> Array:
    """One key per chain, folded by the chain's number: chains can be run apart and joined."""
    number = np.arange(first, first + -(-n_chains // KEYS) * KEYS)
    keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(number)
    return jax.random.wrap_key_data(jnp.asarray(np.asarray(jax.random.key_data(keys))[:n_chains]))


@in_float64
def anneal(
    path: Path,
    kernel: Kernel,
    tau: np.ndarray,
    keys: Array,
    *,
    schedule: Schedule = Schedule(),  # noqa: B008 - immutable
    state: State | None = None,
    observe: Observe = nothing,
    segment: int | None = None,
) -> tuple[Trace, State]:
    """Run len(keys) chains along tau and return their trace and last states.

    `tau` is one ladder for all chains [rung], or one for each of them [chain, rung] (`apart` has a trace for each).
    One draw per rung without burn-in is the non-equilibrium run (N x 1); several are the equilibrium run (K x
    draws). Each step's randomness is folded from the chain's key and the step's number, so results depend
    neither on how chains are batched nor on the length of the jitted segments.
    """
    let_go()
    tau = np.asarray(tau, float)
    fits = tau.ndim == 1 or (tau.ndim == 2 and len(tau) == len(keys))
    if not (fits and tau.size and np.all((tau >= 0) & (tau <= 1))):
        raise CrossfadeError("tau must be a vector of numbers between 0 and 1, or one for every chain [chain, rung]")
    rungs, per_rung = tau.T, schedule.n_burn + schedule.n_draws
    taus = np.concatenate([np.repeat(rungs[:1], schedule.n_warm_up, axis=0), np.repeat(rungs, per_rung, axis=0)])
    n_steps, n_chains = len(taus), len(keys)
    length = segment or _segment_length(n_steps, n_chains)
    if state is None:
        state = begin(path, keys, rungs[0])
    _stop_if_broken(state, rungs[:1], np.array(broken(state.energy))[None])
    if (impossible := np.isneginf(state.energy.at(rungs[0]))).any():
        where = np.broadcast_to(rungs[0], n_chains)[impossible][0]
        raise CrossfadeError(
            f"in {N_STARTS} draws of the priors there was none that is possible at tau = {where:g}: pass state=, or "
            "narrow the priors to where the likelihood is not zero"
        )

    done: list[Any] = []
    try:
        with _progress(n_steps, n_steps > length) as advance:
            for first in range(0, n_steps, length):
                index = first + np.arange(length)
                live = index < n_steps
                now = taus[np.minimum(index, n_steps - 1)]
                state, record = _kept_segment(path, kernel, keys, state, (index, now, live), observe)
                _stop_if_broken(state, now, record.pop("broken"))
                n_live = int(live.sum())
                done.append({name: values[:n_live] for name, values in record.items()})
                advance(n_live)
    except KeyboardInterrupt as interrupt:
        raise Interrupted(_trace(tau, done, schedule), state) from interrupt
    return _trace(tau, done, schedule), state


@eqx.filter_jit
def begin(path: Path, keys: Array, tau: Array) -> State:
    """A start for every chain: the first draw of the path's start that is possible at tau (one, or one per chain)."""

    def draw(key: Array, attempt: Array) -> State:
        theta = jax.tree.map(lambda x: x.astype(float), path.start(jax.random.fold_in(key, attempt)))
        return State(theta, path.energy(theta))

    def first(key: Array, tau: Array) -> State:
        key = jax.random.fold_in(key, 2**31 - 1)  # a number no step has: apart from every step's randomness

        def impossible(carry: tuple[Array, State]) -> Array:
            return (carry[1].energy.at(tau) == -jnp.inf) & (carry[0] < N_STARTS)

        def again(carry: tuple[Array, State]) -> tuple[Array, State]:
            return carry[0] + 1, draw(key, carry[0])

        # Entered with a state that is impossible, so that a draw is compiled once and not before the loop as well.
        theta = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(draw, key, 0).theta)
        nowhere = State(theta, Energy(jnp.array(-jnp.inf), jnp.array(-jnp.inf)))
        return jax.lax.while_loop(impossible, again, (jnp.array(0), nowhere))[1]

    return jax.vmap(first, in_axes=(0, _axis(tau)))(keys, tau)


def _axis(tau: Array) -> int | None:
    """Chains on one ladder share what depends on tau alone: it is computed once for all of them."""
    return 0 if jnp.ndim(tau) else None


def _kept_segment(path: Path, kernel: Kernel, keys: Array, state: State, steps: Any, observe: Observe) -> Any:
    """The next segment, found again where one made of the same is kept."""
    leaves, tree = jax.tree.flatten(state)

    def make() -> dict[str, np.ndarray]:
        new, record = _segment(path, kernel, keys, state, steps, observe)
        # places by number, since the name of a parameter may hold what a file cannot
        places = {f"{PLACE}{i}": own for i, own in enumerate(jax.tree.leaves(new))}
        return {name: np.asarray(own) for name, own in {**places, **record}.items()}

    # what to record is no array, so its name tells two runs of the same chains apart
    made_from = (path, kernel, keys, state, steps, np.frombuffer(_name(observe), np.uint8))
    record = dict(found_or_made(made_from, make))
    places = [jnp.asarray(record.pop(f"{PLACE}{i}")) for i in range(len(leaves))]
    return jax.tree.unflatten(tree, places), record


def _name(observe: Observe) -> bytes:
    return getattr(observe, "__qualname__", type(observe).__qualname__).encode()


@eqx.filter_jit
def _segment(path: Path, kernel: Kernel, keys: Array, state: State, steps: Any, observe: Observe) -> Any:
    index, taus, live = steps
    one = jax.tree.map(lambda x: x[0], state.theta)

    def ahead(step: Array, tau: Array) -> Any:
        def own(key: Array, tau: Array) -> Any:
            return kernel.noise(jax.random.fold_in(key, step), one, tau)

        return jax.vmap(own, in_axes=(0, _axis(tau)))(keys, tau)

    def body(state: State, step: Any) -> tuple[State, dict[str, Array]]:
        noise, tau, is_live = step

        def move(noise: Any, old: State, tau: Array) -> tuple[State, dict[str, Array]]:
            new, accepted = kernel(noise, old, path, tau)
            # A broken state stays as it is, so that its parameters can be shown; padding steps change nothing.
            frozen = broken(old.energy) | ~is_live
            new = jax.tree.map(lambda a, b: jnp.where(frozen, b, a), new, old)
            own = {"log_ratio": new.energy.ratio, "acceptance": accepted.astype(jnp.float32)}
            return new, {**own, **observe(new, path, tau), "broken": broken(new.energy)}

        return jax.vmap(move, in_axes=(0, 0, _axis(tau)))(noise, state, tau)

    return jax.lax.scan(body, state, (jax.vmap(ahead)(index, taus), taus, live))


def _segment_length(n_steps: int, n_chains: int) -> int:
    """About 2**17 chain-steps a call: long enough to hide dispatch, short enough for memory and Ctrl-C."""
    longest = max(2**17 // n_chains, 256)
    n_segments = -(-n_steps // longest)
    return -(-n_steps // n_segments)


def _trace(tau: np.ndarray, done: list[Any], schedule: Schedule) -> Trace:
    """Step records to [chain, rung, draw], warm-up and burn-in dropped, unfinished rungs left out."""
    if not done:
        empty = np.empty((0, 0, schedule.n_draws))
        return Trace(tau[..., :0], empty, empty[:, :, 0], schedule.n_draws > 1)
    record = {name: np.concatenate([part[name] for part in done]) for name in done[0]}
    per_rung = schedule.n_burn + schedule.n_draws

    def fold(steps: np.ndarray) -> np.ndarray:
        kept = steps[schedule.n_warm_up :]
        n_rungs = len(kept) // per_rung
        kept = kept[: n_rungs * per_rung].reshape(n_rungs, per_rung, *kept.shape[1:])[:, schedule.n_burn :]
        return np.moveaxis(kept, 2, 0)

    folded = {name: fold(steps) for name, steps in record.items()}
    log_ratio = folded.pop("log_ratio")
    acceptance = folded.pop("acceptance").mean(axis=2)
    return Trace(tau[..., : log_ratio.shape[1]], log_ratio, acceptance, schedule.n_draws > 1, folded)


def _stop_if_broken(state: State, taus: np.ndarray, is_broken: np.ndarray) -> None:
    if not is_broken.any():
        return
    step, chain = np.argwhere(is_broken)[0]
    theta = ", ".join(f"{name} = {_short(value[chain])}" for name, value in sorted(state.theta.items()))
    start, end = float(state.energy.start[chain]), float(state.energy.end[chain])
    tau = np.broadcast_to(taus[step], is_broken.shape[1])[chain]
    raise BrokenEnergy(
        f"the log density became {start} under M1's end and {end} under M2's end of the path, at "
        f"tau = {tau:.6g} in chain {chain}, where {theta}. Evaluate both models there: a log density must "
        "be a number or -inf. Guard the operation that fails (log of 0, division by 0, overflow), or narrow the prior."
    )


def _short(value: Array) -> str:
    return np.array2string(np.asarray(value), precision=6, threshold=8)


@contextmanager
def _progress(n_steps: int, wanted: bool) -> Any:
    """A bar on the terminal; nothing at all where there is none, or where it would go from nothing to all at once."""
    if not (wanted and sys.stderr.isatty()):
        with nullcontext():
            yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("annealing", total=n_steps)
        yield lambda n: bar.advance(task, n)


def join(traces: list[Trace]) -> Trace:
    """One trace from runs of different chains along the same ladder."""
    first = traces[0]
    for other in traces[1:]:
        if not np.array_equal(first.tau, other.tau) or first.equilibrium != other.equilibrium:
            raise CrossfadeError("only traces along the same ladder and schedule can be joined")
    extra = {name: np.concatenate([t.extra[name] for t in traces]) for name in first.extra}
    return first._replace(
        log_ratio=np.concatenate([t.log_ratio for t in traces]),
        acceptance=np.concatenate([t.acceptance for t in traces]),
        extra=extra,
    )


def apart(trace: Trace) -> list[Trace]:
    """A trace for every chain, along its own ladder: chains that are runs of their own are estimated one by one."""
    ladders = np.broadcast_to(trace.tau, trace.log_ratio.shape[:2])
    return [trace.take(chains=[i])._replace(tau=tau) for i, tau in enumerate(ladders)]
