"""Kernels that leave q_tau invariant: Metropolis, HMC, Gibbs, and cycles of them.

A kernel draws its randomness ahead, from a key and tau alone (`noise`), and is then a deterministic map of the
state. The loop draws the noise of a whole segment in bulk, which is what makes short steps fast.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from numpyro.distributions import Distribution

from crossfade.paths.path import Path
from crossfade.sampling.pencil import Pencil
from crossfade.types import Array, CrossfadeError, Energy, State, Theta

# A step is linear in z: standard normal noise in, a move in parameter space out.
Step = Callable[[Array, Theta], Theta]


class Kernel(eqx.Module):
    """(noise, state, path, tau) -> (state, acceptance), where noise = kernel.noise(key, theta, tau)."""

    @abc.abstractmethod
    def noise(self, key: Array, theta: Theta, tau: Array) -> Any:
        """Randomness that does not depend on the state; of `theta` only the shapes may be used."""

    @abc.abstractmethod
    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        """One step that leaves q_tau invariant, and the fraction accepted."""


class Diagonal(eqx.Module):
    """Independent steps of given sd; a parameter that feels only a share of the data gets min(sd / share^1/2, cap).

    The share is tau for the names in `tempered_up` (those of M2 alone), 1 - tau for those in `tempered_down`.
    """

    sd: dict[str, Array]
    tempered_up: tuple[str, ...] = eqx.field(static=True, default=())
    tempered_down: tuple[str, ...] = eqx.field(static=True, default=())
    cap: Array = 10.0

    def __call__(self, tau: Array, z: Theta) -> Theta:
        def widened(sd: Array, share: Array) -> Array:
            return jnp.minimum(sd / jnp.sqrt(jnp.maximum(share, 1e-300)), self.cap)

        if missing := sorted(set(z) - set(self.sd)):
            raise CrossfadeError(f"no step is given for {missing}: Diagonal needs one for each of {sorted(z)}")
        scale = {name: jnp.asarray(sd) for name, sd in self.sd.items()}
        scale |= {name: widened(self.sd[name], tau) for name in self.tempered_up}
        scale |= {name: widened(self.sd[name], 1 - tau) for name in self.tempered_down}
        return {name: scale[name] * value for name, value in z.items()}


class Whitening(eqx.Module):
    """Steps shaped by an approximate precision (1 - tau) A_1 + tau A_2 of all parameters in `names`."""

    pencil: Pencil
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, tau: Array, z: Theta) -> Theta:
        move = self.pencil.spread(tau, jnp.stack([z[name] for name in self.names]))
        return {name: move[i] for i, name in enumerate(self.names)}


class Metropolis(Kernel):
    """Random walk theta + step(tau, z), accepted with min(1, q_tau(new) / q_tau(old))."""

    step: Step

    def noise(self, key: Array, theta: Theta, tau: Array) -> tuple[Theta, Array]:
        return _normal_and_log_uniform(key, theta)

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        z, log_u = noise
        theta = _add(state.theta, self.step(tau, z))
        proposal = State(theta, path.energy(theta))
        return _choose(log_u, proposal.energy.at(tau) - state.energy.at(tau), proposal, state)


class UniformMetropolis(Metropolis):
    """The same walk with z uniform on [-1, 1] in every parameter: any noise symmetric about 0 will do."""

    def noise(self, key: Array, theta: Theta, tau: Array) -> tuple[Theta, Array]:
        move, uniform = jax.random.split(key)
        flat, unravel = ravel_pytree(theta)
        z = jax.random.uniform(move, flat.shape, flat.dtype, -1.0, 1.0)
        return unravel(z), -jax.random.exponential(uniform)


class HMC(Kernel):
    """Hamiltonian steps in the coordinates whitened by `step`; each trajectory's step size is jittered by 10 %."""

    step: Step
    step_size: Array
    n_leapfrog: int = eqx.field(static=True)
    unroll: bool = eqx.field(static=True, default=True)  # faster steps, but as many gradients to compile

    def noise(self, key: Array, theta: Theta, tau: Array) -> tuple[Theta, Array, Array]:
        key, jitter = jax.random.split(key)
        return *_normal_and_log_uniform(key, theta), jax.random.uniform(jitter, minval=0.9, maxval=1.1)

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        momentum, log_u, jitter = noise
        size = self.step_size * jitter
        pull = jax.linear_transpose(lambda z: self.step(tau, z), momentum)

        def log_q(theta: Theta) -> tuple[Array, Energy]:
            energy = path.energy(theta)
            return energy.at(tau), energy

        def force(theta: Theta) -> tuple[Theta, Energy]:
            gradient, energy = jax.grad(log_q, has_aux=True)(theta)
            return pull(gradient)[0], energy

        def leapfrog(carry: Any, _: None) -> tuple[Any, None]:
            theta, momentum, push, _ = carry
            momentum = _add(momentum, push, size / 2)
            theta = _add(theta, self.step(tau, momentum), size)
            push, energy = force(theta)
            return (theta, _add(momentum, push, size / 2), push, energy), None

        begin = (state.theta, momentum, force(state.theta)[0], state.energy)
        (theta, last, _, energy), _ = jax.lax.scan(leapfrog, begin, length=self.n_leapfrog, unroll=self.unroll)
        gain = energy.at(tau) - state.energy.at(tau) + (_square(momentum) - _square(last)) / 2
        return _choose(log_u, gain, State(theta, energy), state)


class Block(eqx.Module):
    """A full conditional of q_tau: drawn in production, and in tests its density must match the path's energy."""

    @abc.abstractmethod
    def noise(self, key: Array, tau: Array) -> Any:
        """Randomness that needs neither the state nor the block's parameters."""

    @abc.abstractmethod
    def draw(self, noise: Any, theta: Theta, tau: Array) -> Theta:
        """New values of the block's parameters given the rest of theta."""

    @abc.abstractmethod
    def log_prob(self, theta: Theta, tau: Array) -> Array:
        """Normalised log density of the block's parameters given the rest."""


class Conditional(Block):
    """One parameter whose full conditional is a NumPyro distribution of (theta, tau)."""

    name: str = eqx.field(static=True)
    distribution: Callable[[Theta, Array], Distribution]

    def noise(self, key: Array, tau: Array) -> Array:
        return key

    def draw(self, noise: Array, theta: Theta, tau: Array) -> Theta:
        return {self.name: self.distribution(theta, tau).sample(noise)}

    def log_prob(self, theta: Theta, tau: Array) -> Array:
        return jnp.sum(self.distribution(theta, tau).log_prob(theta[self.name]))


class Gibbs(Kernel):
    """Draws each block in turn from its full conditional."""

    blocks: tuple[Block, ...]

    def noise(self, key: Array, theta: Theta, tau: Array) -> tuple[Any, ...]:
        return tuple(block.noise(jax.random.fold_in(key, i), tau) for i, block in enumerate(self.blocks))

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        theta = state.theta
        for block, own in zip(self.blocks, noise, strict=True):
            theta = {**theta, **block.draw(own, theta, tau)}
        return State(theta, path.energy(theta)), jnp.ones(())


class Cycle(Kernel):
    """Kernels one after the other; reports the mean of their acceptances."""

    kernels: tuple[Kernel, ...]

    def noise(self, key: Array, theta: Theta, tau: Array) -> tuple[Any, ...]:
        return tuple(kernel.noise(jax.random.fold_in(key, i), theta, tau) for i, kernel in enumerate(self.kernels))

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        accepted = []
        for kernel, own in zip(self.kernels, noise, strict=True):
            state, fraction = kernel(own, state, path, tau)
            accepted.append(fraction)
        return state, sum(accepted) / len(accepted)


def broken(energy: Energy) -> Array:
    """NaN or +inf at either end: not a density. (-inf is a legitimate impossibility.)"""
    start, end = energy
    return jnp.isnan(start) | jnp.isnan(end) | (start == jnp.inf) | (end == jnp.inf)


def _choose(log_u: Array, gain: Array, new: State, old: State) -> tuple[State, Array]:
    # A broken proposal is taken, not rejected in silence: the loop then stops and shows where it happened.
    # (A trajectory that ran away to infinity says nothing about the model: that one is rejected.)
    somewhere = jnp.all(jnp.array([jnp.all(jnp.isfinite(value)) for value in jax.tree.leaves(new.theta)]))
    accept = (log_u < gain) | (broken(new.energy) & somewhere)
    state = jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, old)
    return state, accept.astype(float)


def _normal_and_log_uniform(key: Array, theta: Theta) -> tuple[Theta, Array]:
    normal, uniform = jax.random.split(key)
    flat, unravel = ravel_pytree(theta)
    z = jax.random.normal(normal, flat.shape, flat.dtype)
    return unravel(z), -jax.random.exponential(uniform)  # -Exp(1) is log of a uniform that is never 0


def _add(a: Theta, b: Theta, factor: Array | float = 1.0) -> Theta:
    return jax.tree.map(lambda x, y: x + factor * y, a, b)


def _square(z: Theta) -> Array:
    return sum(jnp.sum(value**2) for value in jax.tree.leaves(z))
