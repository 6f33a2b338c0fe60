"""Non-reversible parallel tempering from prior to posterior, for posteriors in separate pieces.

Every replicate holds one state per rung. HMC moves each within its rung, then neighbours swap, even and odd pairs in
turn (Okabe et al. 2001; Syed et al. 2022): a state travels down to the prior, forgets where it was, and comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.density.joint import Flat, Joint, flat
from crossfade.density.precision import in_float64
from crossfade.types import Array, CrossfadeError, Theta, Trace

SEGMENT = 50
TARGET_ACCEPTANCE = 0.8


class Powers(eqx.Module):
    """log prior (with the Jacobian of unconstrained space) and log likelihood at u."""

    prior: Flat
    log_likelihood: Callable[[Theta], Array]

    def __call__(self, u: Array) -> tuple[Array, Array]:
        return self.prior(u), self.log_likelihood(self.prior.theta(u))


class Tempered(NamedTuple):
    """Replicates in mid-run."""

    powers: Powers
    start: Any  # key -> u, an independent draw of the prior; None: HMC moves the first rung like any other
    keys: Array  # [replicate]
    tau: np.ndarray  # [rung]
    u: np.ndarray  # [replicate, rung, size]
    scale: np.ndarray  # [rung, size]
    step_size: np.ndarray  # [rung]
    n_steps: int = 0


class Passage(NamedTuple):
    """What a stretch of steps recorded."""

    log_likelihood: np.ndarray  # [replicate, rung, draw]
    u: np.ndarray  # [replicate, rung, draw, size]
    rejection: np.ndarray  # [gap]
    acceptance: np.ndarray  # [rung]
    round_trips: int


class _PriorDraw(eqx.Module):
    density: Flat
    start: Any

    def __call__(self, key: Array) -> Array:
        return self.density.inverse(self.start(key))


@eqx.filter_jit
def _drawn(draw: _PriorDraw, keys: Array) -> Array:
    return jax.vmap(draw)(keys)


@in_float64
def begin(joint: Joint, key: Array, n_replicates: int, n_rungs: int = 16) -> Tempered:
    """All rungs at draws of the prior, on a power ladder."""
    if joint.log_prior is None or joint.log_likelihood is None:
        raise CrossfadeError("tempering from the prior needs the prior and the likelihood apart")
    density = flat(joint, joint.log_prior)
    powers = Powers(density, flat(joint, joint.log_likelihood).log_density)
    draw = _PriorDraw(density, joint.start)
    keys = jax.random.split(key, n_replicates)
    n = n_replicates * n_rungs
    u = np.asarray(_drawn(draw, jax.random.split(jax.random.fold_in(key, 1), n)))
    spread = np.clip((np.quantile(u, 0.84, axis=0) - np.quantile(u, 0.16, axis=0)) / 2, 1e-6, 1e6)
    tau = np.linspace(0, 1, n_rungs) ** 3
    return Tempered(
        powers,
        draw if joint.exact_start else None,
        keys,
        tau,
        u.reshape(n_replicates, n_rungs, -1),
        np.tile(spread, (n_rungs, 1)),
        np.full(n_rungs, 0.1),
    )


@in_float64
def tune(run: Tempered, n_rounds: int = 5) -> Tempered:
    """Rounds of growing length: spread and step size of every rung, rungs at equal steps of the barrier."""
    for i in range(n_rounds):
        run, seen = advance(run, 2 ** max(i - 1, 0), gain=0.1)
        recent = seen.u[:, :, seen.u.shape[2] // 2 :]
        scale = np.maximum(recent.std(axis=(0, 2)), 1e-8)
        run = run._replace(
            scale=scale, step_size=np.clip(run.step_size * np.median(run.scale / scale, axis=1), 0.01, 1)
        )
        if 0 < i < n_rounds - 1:
            run = _placed(run, seen.rejection, final=i == n_rounds - 2)
    return run


def _placed(run: Tempered, rejection: np.ndarray, final: bool) -> Tempered:
    """Rungs at equal steps of the cumulative rejection; the last time, as many as twice the barrier asks for."""
    barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rejection, 1e-3))])
    n_rungs = len(run.tau)
    if final:
        n_rungs = int(np.clip(np.ceil(2 * barrier[-1]) + 4, 8, 48))
    tau = np.interp(np.linspace(0, barrier[-1], n_rungs), barrier, run.tau)
    tau[0], tau[-1] = 0.0, 1.0
    near = np.argmin(np.abs(tau[:, None] - run.tau[None, :]), axis=1)
    return run._replace(tau=tau, u=run.u[:, near], scale=run.scale[near], step_size=run.step_size[near])


@in_float64
def advance(run: Tempered, n_segments: int, gain: float = 0.0) -> tuple[Tempered, Passage]:
    """n_segments x SEGMENT steps of all rungs of all replicates."""
    parts = []
    u, step_size = run.u, run.step_size
    for _ in range(n_segments):
        steps = np.arange(run.n_steps, run.n_steps + SEGMENT)
        n_leapfrog = 3 + (steps * 0.6180339887498949 % 1 * 8).astype(int)
        tuning = (run.tau, run.scale, step_size)
        u, step_size, record = _segment(
            run.powers, run.start, run.keys, u, tuning, (steps, n_leapfrog), np.asarray(gain)
        )
        parts.append(jax.tree.map(np.asarray, record))
        u, step_size = np.asarray(u), np.asarray(step_size)
        run = run._replace(u=u, step_size=step_size, n_steps=run.n_steps + SEGMENT)
    record = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    log_likelihood = np.moveaxis(record["log_likelihood"], 0, 2)
    if np.isnan(log_likelihood).any():
        raise CrossfadeError("the log likelihood is NaN at a tempered draw: it must be a number or -inf everywhere")
    passage = Passage(
        log_likelihood,
        np.moveaxis(record["u"], 0, 2),
        2 * record["rejection"].mean(axis=(0, 1)),  # every pair is tried at every second step
        record["acceptance"].mean(axis=(0, 1)),
        _round_trips(record["swapped"]),
    )
    return run, passage


@eqx.filter_jit
def _segment(powers: Powers, start: Any, keys: Array, u: Array, tuning: Any, steps: Any, gain: Array) -> Any:
    from blackjax.mcmc import hmc

    kernel = hmc.build_kernel()
    tau, scale, step_size = tuning
    n_rungs, size = scale.shape

    def at(tau: Array, scale: Array, z: Array) -> Array:
        prior, likelihood = powers(scale * z)
        return prior + jnp.where(tau == 0, 0.0, tau * likelihood)

    def within(key: Array, tau: Array, scale: Array, eps: Array, u: Array, length: Array) -> Any:
        def log_density(z: Array) -> Array:
            return at(tau, scale, z)

        state = hmc.init(u / scale, log_density)
        state, info = kernel(key, state, log_density, eps, jnp.ones(size), length)
        return scale * state.position, info.acceptance_rate

    def replicate(key: Array, u: Array, eps: Array, index: Array, length: Array) -> Any:
        key = jax.random.fold_in(key, index)
        moves, swaps, fresh = jax.random.split(key, 3)
        u, accepted = jax.vmap(within, (0, 0, 0, 0, 0, None))(
            jax.random.split(moves, n_rungs), tau, scale, eps, u, length
        )
        if start is not None:
            u = u.at[0].set(start(fresh))
        likelihood = jax.vmap(lambda u: powers(u)[1])(u)
        gap = jnp.diff(tau) * (likelihood[:-1] - likelihood[1:])
        tried = jnp.arange(n_rungs - 1) % 2 == index % 2
        chance = jnp.minimum(1.0, jnp.exp(jnp.nan_to_num(gap, nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)))
        swapped = tried & (jax.random.uniform(swaps, gap.shape) < chance)
        order = jnp.arange(n_rungs)
        order = order + jnp.append(swapped, False) - jnp.append(False, swapped)
        record = {
            "log_likelihood": likelihood[order],
            "u": u[order],
            "rejection": jnp.where(tried, 1 - chance, 0.0),
            "acceptance": accepted,
            "swapped": swapped,
        }
        return u[order], record

    def step(carry: Any, now: Any) -> Any:
        u, eps = carry
        index, length = now
        u, record = jax.vmap(replicate, (0, 0, None, None, None))(keys, u, eps, index, length)
        eps = eps * jnp.exp(gain * (record["acceptance"].mean(axis=0) - TARGET_ACCEPTANCE))
        return (u, eps), record

    (u, step_size), record = jax.lax.scan(step, (u, step_size), steps)
    return u, step_size, record


def _round_trips(swapped: np.ndarray) -> int:
    """How often a state went from the prior to the posterior and back, over all replicates [step, replicate, gap]."""
    n_steps, n_replicates, n_gaps = swapped.shape
    trips = 0
    for r in range(n_replicates):
        where = np.arange(n_gaps + 1)  # which state sits at each rung
        seen_top = np.zeros(n_gaps + 1, bool)
        for t in range(n_steps):
            for k in np.flatnonzero(swapped[t, r]):
                where[k], where[k + 1] = where[k + 1], where[k]
            seen_top[where[-1]] = True
            if seen_top[where[0]]:
                trips += 1
                seen_top[where[0]] = False
    return trips


def trace_of(run: Tempered, passage: Passage) -> Trace:
    """The waist: log likelihoods are the log ratios from prior to posterior."""
    return Trace(run.tau, passage.log_likelihood, np.tile(passage.acceptance, (len(passage.u), 1)), True)
