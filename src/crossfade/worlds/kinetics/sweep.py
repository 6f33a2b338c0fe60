"""The tempered Metropolis-within-Gibbs sweep between two Michaelis-Menten models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from crossfade.paths.path import Path
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Kernel
from crossfade.types import Array, Energy, Float, State, Theta
from crossfade.worlds.design import mix
from crossfade.worlds.kinetics.union import LARGEST, Gram, Scales, Union, positive_mass

STEP = 0.1  # sd of the random walk of every constant
# (centre, others, variance): V_j | rest ~ N(centre - sum over i of others_i V_i, variance) on V_j >= 0
Conditional = tuple[Array, dict[int, Array], Array]


def apart(tau: Array, function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), compiled as a program of its own (the branch of a condition that always holds).

    XLA runs the many small loops of a large program through a scheduler, which costs more than the loops themselves;
    a branch that touches small arrays only is run straight on. Measured: a tenth of the time of a step.
    """

    def never(*arguments: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *arguments))

    return jax.lax.cond(tau >= 0, lambda *own: function(*own), never, *arguments)


def slice_step(level: Array, place: Array, x: Array, mean: Array) -> Array:
    """A step that leaves N(mean, variance) on x >= 0 invariant, at any distance of the mean below 0.

    `level` is 2 variance E with E ~ Exp(1), `place` a uniform. Given x, a height under the density is drawn, and the
    new value evenly from where the density is higher: |x' - mean| < h, h^2 = (x - mean)^2 + 2 variance E. In the bulk
    x' is uncorrelated with x, in the tail (an exponential) the correlation is 1/2.
    """
    h = jnp.sqrt((x - mean) ** 2 + level)
    # mean + h without cancellation where the mean is negative
    top = jnp.where(mean < 0, (x * (x - 2 * mean) + level) / (h - mean), mean + h)
    bottom = jnp.maximum(mean - h, 0.0)
    return bottom + place * (top - bottom)


class Noise(NamedTuple):
    """What a sweep draws ahead."""

    level: Float[Array, " s"]  # Exp(1), the heights of the slices
    place: Float[Array, " s"]  # uniform, the new values in them
    keep: Float[Array, " 2"]  # uniform^(1/s), for the acceptance of s2 and d2
    gamma: Float[Array, " 2"]  # of the shapes of 1 / s2 and 1 / d2
    log_u: Float[Array, " 1"]  # log of a uniform, for the acceptance of the constants
    walk: Float[Array, " s-1"]  # the moves of the constants
    rescale: Array  # [2] or none: a normal, and the log of a uniform

    @classmethod
    def unpacked(cls, flat: Array, s: int) -> Noise:
        return cls(*jnp.split(flat, np.cumsum([s, s, 2, 2, 1, s - 1])))


class Sweep(Kernel):
    """Rates one by one, noise variance, ridge, and a random walk of all constants at once: leaves q_tau invariant."""

    union: Union

    def conditionals(self, gram: Gram, variance: Array, ridge: Array, tau: Array) -> list[Conditional]:
        """Of the rates in turn; they do not depend on the rates themselves."""
        members = range(self.union.size)
        powers = self.union.weights(tau)

        def shared(i: int, j: int) -> Any:
            return sum(power for power, own in zip(powers, self.union.uses, strict=True) if i in own and j in own)

        scales = 1 / (jnp.stack([shared(i, i) * gram[i, i] for i in members]) + 1 / ridge)
        return [
            (
                (shared(i, i) * gram[i, -1] + 1 / ridge) * scales[i],
                {j: shared(i, j) * gram[i, j] * scales[i] for j in members if j != i},
                variance * scales[i],
            )
            for i in members
        ]

    def noise_shape(self, tau: Array) -> Array:
        return self.union.hyper[0] + (mix(tau, self.union.n) + self.union.size) / 2

    def noise_rate(self, squares: Array, away: Array, ridge: Array) -> Array:
        """s2 | rest ~ IG(shape, rate) / Phi(1 / sqrt(d2 s2))^s; `squares` is R_tau and `away` |V - 1|^2."""
        return self.union.hyper[1] + (squares + away / ridge) / 2

    def ridge_shape(self) -> Array:
        return self.union.hyper[2] + self.union.size / 2

    def ridge_rate(self, away: Array, variance: Array) -> Array:
        """d2 | rest ~ IG(shape, rate) / Phi(1 / sqrt(d2 s2))^s"""
        return self.union.hyper[3] + away / (2 * variance)

    def passes(self, u: Array, old: Array, new: Array) -> Array:
        """Accepts with probability (Phi_old / Phi_new)^s, what the inverse gamma leaves out; u is a uniform^(1/s)."""
        return u * new < old

    def noise(self, key: Array, theta: Theta, tau: Array) -> Array:
        keys = jax.random.split(key, 4)
        s = self.union.size
        u = jax.random.uniform(keys[0], (2 * s + 3,)) + 2.0**-53  # never 0 or 1
        noise = Noise(
            level=-jnp.log(u[:s]),
            place=u[s : 2 * s],
            keep=u[2 * s : 2 * s + 2] ** (1 / s),
            gamma=jnp.stack(
                [standard_gamma(keys[1], self.noise_shape(tau)), standard_gamma(keys[2], self.ridge_shape())]
            ),
            log_u=jnp.log(u[-1:]),
            walk=STEP * jax.random.normal(keys[3], (s - 1,)),
            rescale=jnp.zeros(0),
        )
        return jnp.concatenate(noise)

    def scales(self, flat: Array, gram: Gram, rates: list[Array], variance: Array, ridge: Array, tau: Array) -> Scales:
        """Rates, noise variance and ridge in turn."""
        noise, rates = Noise.unpacked(flat, self.union.size), list(rates)
        for j, (centre, others, spread) in enumerate(self.conditionals(gram, variance, ridge, tau)):
            mean = centre - sum(others[i] * rates[i] for i in others)
            rates[j] = slice_step(2 * spread * noise.level[j], noise.place[j], rates[j], mean)
        squares = self.union.squares(gram, rates)
        away = sum((rate - 1) ** 2 for rate in rates)
        # A proposal x from the inverse gamma is accepted with (Phi_old / Phi_x)^s. All four Phi that the two steps
        # may need are computed at once: two proposals of d2, for the old and for the proposed s2.
        proposed = self.noise_rate(self.union.tempered(squares, tau), away, ridge) / noise.gamma[0]
        variances = jnp.stack([variance, proposed])
        ridges = self.ridge_rate(away, variances) / noise.gamma[1]
        masses = positive_mass(jnp.concatenate([ridge * variances, ridges * variances]))
        taken = self.passes(noise.keep[0], masses[0], masses[1]) & (proposed <= LARGEST)
        variance = jnp.where(taken, proposed, variance)
        mass, its_mass = jnp.where(taken, masses[1], masses[0]), jnp.where(taken, masses[3], masses[2])
        proposed = jnp.where(taken, ridges[1], ridges[0])
        also = self.passes(noise.keep[1], mass, its_mass) & (proposed <= LARGEST)
        ridge, mass = jnp.where(also, proposed, ridge), jnp.where(also, its_mass, mass)
        return Scales(rates, variance, ridge, mass, away, squares, 1.0 * taken + also)

    def walk(
        self, flat: Array, scales: Scales, constants: Array, moved: Array, its_squares: list[Array], tau: Array
    ) -> tuple[Array, Energy, Array]:
        """All constants at once, and the energies of the new state."""
        union, noise = self.union, Noise.unpacked(flat, self.union.size)
        gain = (union.tempered(scales.squares, tau) - union.tempered(its_squares, tau)) / (2 * scales.variance)
        of_prior = jnp.sum(jnp.where(moved > 0, (constants - 1) ** 2 - (moved - 1) ** 2, -jnp.inf))
        taken = noise.log_u[0] < gain + of_prior / (2 * union.hyper[4])
        constants = jnp.where(taken, moved, constants)
        squares = [jnp.where(taken, new, old) for new, old in zip(its_squares, scales.squares, strict=True)]
        return constants, union.energy(squares, constants, scales), (scales.accepted + taken) / 3

    def __call__(self, noise: Array, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        union, theta = self.union, state.theta
        rates, constants = union.rates(theta), union.constants(theta)
        moved = constants + Noise.unpacked(noise, union.size).walk
        columns, its_columns = union.columns(constants, jnp.abs(moved))
        scales = apart(tau, self.scales, noise, union.gram(columns), rates, theta["variance"], theta["ridge"], tau)
        its_squares = union.squares_at(its_columns, scales.rates)
        constants, energy, accepted = apart(tau, self.walk, noise, scales, constants, moved, its_squares, tau)
        return State(union.theta(scales.rates, constants, scales.variance, scales.ridge), energy), accepted


class RescalingSweep(Sweep):
    """The same from no data, where s2 is known to a factor of e^200 only: s2 and all rates also move by one factor.

    s2 -> c s2, V -> sqrt(c) V leaves the fit and the prior of V nearly alone, so that steps as wide as s2 is uncertain
    are accepted. Without them s2 and V hold each other in place, and s2 goes a little up or down at a time.
    """

    def noise(self, key: Array, theta: Theta, tau: Array) -> Array:
        here, there = jax.random.split(key)
        normal, uniform = jax.random.split(there)
        rescale = jnp.stack([jax.random.normal(normal), -jax.random.exponential(uniform)])
        return jnp.concatenate([super().noise(here, theta, tau), rescale])

    def scales(self, flat: Array, gram: Gram, rates: list[Array], variance: Array, ridge: Array, tau: Array) -> Scales:
        old = super().scales(flat, gram, rates, variance, ridge, tau)
        z, log_u = Noise.unpacked(flat, self.union.size).rescale
        # log s2 given all but its scale is about an exponential variable of this rate
        log_c = 2.4 * z / (self.union.hyper[0] + mix(tau, self.union.n) / 2)
        new = self.rescaled(old, gram, log_c)
        taken = (log_u < self.gain(old, new, log_c, tau)) & (new.variance <= LARGEST) & (new.variance >= 1 / LARGEST)
        chosen: Scales = jax.tree.map(lambda a, b: jnp.where(taken, a, b), new, old)
        return chosen._replace(accepted=old.accepted)

    def rescaled(self, old: Scales, gram: Gram, log_c: Array) -> Scales:
        rates = [jnp.exp(log_c / 2) * rate for rate in old.rates]
        variance = jnp.exp(log_c) * old.variance
        return old._replace(
            rates=rates,
            variance=variance,
            mass=positive_mass(old.ridge * variance),
            away=sum((rate - 1) ** 2 for rate in rates),
            squares=self.union.squares(gram, rates),
        )

    def gain(self, old: Scales, new: Scales, log_c: Array, tau: Array) -> Array:
        """Log of the acceptance: q_tau(new) / q_tau(old) times the Jacobian c^(1 + s/2)."""
        constants = jnp.ones(self.union.size - 1)  # whatever they are, their prior cancels
        after, before = (self.union.energy(half.squares, constants, half).at(tau) for half in (new, old))
        return after - before + (1 + self.union.size / 2) * log_c


class PrintedSweep(Sweep):
    """The paper's printed scheme, which does not leave q_tau invariant: for comparison only."""

    def conditionals(self, gram: Gram, variance: Array, ridge: Array, tau: Array) -> list[Conditional]:
        return super().conditionals(gram, jnp.ones(()), ridge, tau)

    def noise_rate(self, squares: Array, away: Array, ridge: Array) -> Array:
        return super().noise_rate(squares, away, 1 / ridge)

    def ridge_rate(self, away: Array, variance: Array) -> Array:
        return super().ridge_rate(away, 1 / variance)

    def passes(self, u: Array, old: Array, new: Array) -> Array:
        return jnp.array(True)
