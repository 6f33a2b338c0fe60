"""Both Michaelis-Menten designs of a pair as columns of one, and the tempered Gibbs sweep over them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.models.truncated import slice_step
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.path import Path
from crossfade.types import Array, Energy, State, Theta

LOG_2PI = float(np.log(2 * np.pi))
STEP = 0.1  # sd of the random walk of every constant
Gram = dict[tuple[int, int], Array]  # scalars rather than a matrix: their sums are compiled to few and simple loops
LARGEST = 1e280  # of s2 and d2: beyond, sums of squares overflow


def response(x: Array, constant: Array, inhibits: Any) -> Array:
    """x / (x + k), or k / (x + k); 0 where both are 0."""
    return jnp.where(inhibits, constant, x) / jnp.maximum(x + constant, 1e-300)


def positive_mass(product: Array) -> Array:
    """Phi(1 / sqrt(d2 s2)): the mass on V >= 0 of N(1, d2 s2)."""
    return 0.5 + 0.5 * jax.lax.erf(jnp.sqrt(0.5 / product))


def sums(terms: list[Array]) -> tuple[Array, ...]:
    """The sum of each vector, all in one pass."""
    zeros = tuple(jnp.zeros(()) for _ in terms)
    return (
        ()
        if not terms
        else tuple(jax.lax.reduce(tuple(terms), zeros, lambda a, b: tuple(map(operator.add, a, b)), (0,)))
    )


def apart(tau: Array, function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), compiled as a program of its own (the branch of a condition that always holds).

    XLA runs the many small loops of a large program through a scheduler, which costs more than the loops themselves;
    a branch that touches small arrays only is run straight on. Measured: a tenth of the time of a step.
    """

    def never(*arguments: Any) -> Any:
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *arguments))

    return jax.lax.cond(tau >= 0, lambda *own: function(*own), never, *arguments)


class Noise(NamedTuple):
    """What a sweep draws ahead."""

    level: Array  # [s]: Exp(1), the heights of the slices
    place: Array  # [s]: uniform, the new values in them
    keep: Array  # [2]: uniform^(1/s), for the acceptance of s2 and d2
    gamma: Array  # [2]: of the shapes of 1 / s2 and 1 / d2
    log_u: Array  # [1]: log of a uniform, for the acceptance of the constants
    walk: Array  # [s - 1]

    @classmethod
    def unpacked(cls, flat: Array, s: int) -> Noise:
        return cls(*jnp.split(flat, np.cumsum([s, s, 2, 2, 1])))


class Scales(NamedTuple):
    """A state half-way: rates, noise variance and ridge are new, and what is known of them."""

    rates: list[Array]
    variance: Array
    ridge: Array
    mass: Array  # Phi(1 / sqrt(d2 s2))
    away: Array  # |V - 1|^2
    squares: list[Array]  # residual sums of squares of both ends
    accepted: Array


class Conditional(NamedTuple):
    """V_j | rest ~ N(centre - sum over i of others_i V_i, variance) on V_j >= 0."""

    centre: Array
    others: dict[int, Array]
    variance: Array


class Union(eqx.Module):
    """Both designs as columns of one: D_k has those of the columns of D that the rates in uses_k multiply."""

    y: np.ndarray
    loss: np.ndarray  # minus the gene's own concentration
    x: np.ndarray  # [regulator, n]
    inhibits: np.ndarray  # [regulator]
    fixed: np.ndarray  # [3]: sums of products that do not depend on the constants, of (loss, y), (loss, loss), (y, y)
    n: np.ndarray  # [2], 0 for an end that has seen no data
    hyper: np.ndarray  # as in Hyper
    log_constant: np.ndarray  # of the priors of all parameters
    uses: tuple[tuple[int, ...], tuple[int, ...]] = eqx.field(static=True)  # 0 is degradation, j the j-th regulator
    regulators: tuple[str, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """s, the number of rates."""
        return len(self.regulators) + 1

    def weights(self, tau: Array) -> tuple[Array, Array]:
        """The powers to which the two likelihoods enter q_tau."""
        return (1 - tau) * (self.n[0] > 0), tau * (self.n[1] > 0)

    def n_tau(self, tau: Array) -> Array:
        return (1 - tau) * self.n[0] + tau * self.n[1]

    def columns(self, *constants: Array) -> list[list[Array]]:
        """The columns of D for each of the vectors of constants.

        They are computed together: the divisions are then compiled to one loop that does several at a time.
        """
        each = response(self.x, jnp.stack(constants)[:, :, None], self.inhibits[:, None])
        return [[self.loss, *(each[k, i] for i in range(self.size - 1))] for k in range(len(constants))]

    def gram(self, columns: list[Array]) -> Gram:
        """D_i'D_j by (i, j), and D_i'y by (i, -1)."""
        pairs = [(i, j) for i in range(1, self.size) for j in range(-1, i + 1)]
        found = sums([columns[i] * (self.y if j < 0 else columns[j]) for i, j in pairs])
        lower = dict(zip(pairs, found, strict=True)) | {(0, -1): self.fixed[0], (0, 0): self.fixed[1]}
        return lower | {(j, i): value for (i, j), value in lower.items() if j >= 0}

    def squares(self, gram: Gram, rates: list[Array]) -> list[Array]:
        """The residual sums of squares of both ends."""
        return [
            self.fixed[2] + sum(rates[i] * (sum(rates[j] * gram[i, j] for j in own) - 2 * gram[i, -1]) for i in own)
            for own in self.uses
        ]

    def squares_at(self, columns: list[Array], rates: list[Array]) -> list[Array]:
        """The same without the sums of products."""
        residuals = [self.y - sum(rates[i] * columns[i] for i in own) for own in self.uses]
        return list(sums([residual**2 for residual in residuals]))

    def tempered(self, squares: list[Array], tau: Array) -> Array:
        first, second = self.weights(tau)
        return first * squares[0] + second * squares[1]

    def energy(self, squares: list[Array], constants: Array, scales: Scales) -> Energy:
        """Of the direct path."""
        _, variance, ridge, mass, away, _, _ = scales
        log_variance, log_ridge, log_mass = jnp.log(jnp.stack([variance, ridge, mass]))
        a_s, b_s, a_d, b_d, v = self.hyper
        s = self.size
        log_prior = (
            self.log_constant
            - (a_s + 1 + s / 2) * log_variance
            - (a_d + 1 + s / 2) * log_ridge
            - s * log_mass
            - (b_s + away / (2 * ridge)) / variance
            - b_d / ridge
            - jnp.sum((constants - 1) ** 2) / (2 * v)
        )
        ends = (
            log_prior - n / 2 * (LOG_2PI + log_variance) - (n > 0) * square / (2 * variance)
            for n, square in zip(self.n, squares, strict=True)
        )
        return Energy(*ends)

    def rates(self, theta: Theta) -> list[Array]:
        return [theta["degradation"], *(theta[f"rate_{name}"] for name in self.regulators)]

    def constants(self, theta: Theta) -> Array:
        return jnp.array([theta[f"constant_{name}"] for name in self.regulators])

    def theta(self, rates: list[Array], constants: Array, variance: Array, ridge: Array) -> Theta:
        of_rates = {f"rate_{name}": rates[i + 1] for i, name in enumerate(self.regulators)}
        of_constants = {f"constant_{name}": constants[i] for i, name in enumerate(self.regulators)}
        return {"variance": variance, "ridge": ridge, "degradation": rates[0], **of_rates, **of_constants}


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
            Conditional(
                (shared(i, i) * gram[i, -1] + 1 / ridge) * scales[i],
                {j: shared(i, j) * gram[i, j] * scales[i] for j in members if j != i},
                variance * scales[i],
            )
            for i in members
        ]

    def noise_shape(self, tau: Array) -> Array:
        return self.union.hyper[0] + (self.union.n_tau(tau) + self.union.size) / 2

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
        gram = union.gram(columns)
        scales = apart(tau, self.scales, noise, gram, rates, theta["variance"], theta["ridge"], tau)
        its_squares = union.squares_at(its_columns, scales.rates)
        constants, energy, accepted = apart(tau, self.walk, noise, scales, constants, moved, its_squares, tau)
        return State(union.theta(scales.rates, constants, scales.variance, scales.ridge), energy), accepted


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
