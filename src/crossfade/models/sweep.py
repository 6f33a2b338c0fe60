"""Both Michaelis-Menten designs of a pair as columns of one, and the tempered Gibbs sweep over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from crossfade.models.truncated import truncated_draw, truncated_noise
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.path import Path
from crossfade.types import Array, State, Theta

LOG_2PI = float(np.log(2 * np.pi))
STEP = 0.1  # sd of the random walk of every constant
LARGEST = 1e280  # of s2 and d2: beyond, sums of squares overflow


def saturation(x: Array, constant: Array) -> Array:
    """x / (x + k), and its limit 0 where both are 0."""
    return x / jnp.maximum(x + constant, 1e-300)


class Sums(NamedTuple):
    """All that V, s2 and d2 feel of the data at given constants, over the union of the columns."""

    gram: Array  # D'D [s, s]
    moment: Array  # D'y [s]


class Union(eqx.Module):
    """Both designs as columns of one, D_k V = D (uses_k V)."""

    y: np.ndarray
    own: np.ndarray
    x: np.ndarray  # [regulator, n]
    inhibits: np.ndarray  # [regulator], 0 or 1
    uses: np.ndarray  # [2, s], 0 or 1; degradation first
    n: np.ndarray  # [2], 0 for an end that has seen no data
    hyper: np.ndarray  # as in Hyper
    regulators: tuple[str, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """s, the number of rates."""
        return len(self.regulators) + 1

    def weights(self, tau: Array) -> Array:
        """[2]: the powers to which the two likelihoods enter q_tau."""
        return jnp.stack([1 - tau, tau]) * (self.n > 0)

    def n_tau(self, tau: Array) -> Array:
        return (1 - tau) * self.n[0] + tau * self.n[1]

    def design(self, constants: Array) -> Array:
        """D' [s, n]"""
        share = saturation(self.x, constants[:, None])
        inhibits = self.inhibits[:, None]
        return jnp.concatenate([-self.own[None], inhibits + (1 - 2 * inhibits) * share])

    def sums(self, constants: Array) -> Sums:
        columns = self.design(constants)
        return Sums(columns @ columns.T, columns @ self.y)

    def squares(self, sums: Sums, rates: Array) -> Array:
        """[2]: the residual sums of squares of both ends, from the sums."""
        own = self.uses * rates
        return self.y @ self.y + jnp.sum(own * (own @ sums.gram - 2 * sums.moment), axis=1)

    def squares_at(self, constants: Array, rates: Array) -> Array:
        """[2]: the same from the data."""
        return jnp.sum((self.y - (self.uses * rates) @ self.design(constants)) ** 2, axis=1)

    def rates(self, theta: Theta) -> Array:
        return jnp.stack([theta["degradation"], *(theta[f"rate_{name}"] for name in self.regulators)])

    def constants(self, theta: Theta) -> Array:
        return jnp.array([theta[f"constant_{name}"] for name in self.regulators])

    def theta(self, rates: Array, constants: Array, variance: Array, ridge: Array) -> Theta:
        of_rates = {f"rate_{name}": rates[i + 1] for i, name in enumerate(self.regulators)}
        of_constants = {f"constant_{name}": constants[i] for i, name in enumerate(self.regulators)}
        return {"variance": variance, "ridge": ridge, "degradation": rates[0], **of_rates, **of_constants}


class Sweep(Kernel):
    """Rates one by one, noise variance, ridge, and a random walk of all constants at once: leaves q_tau invariant."""

    union: Union

    def rate(self, j: int, sums: Sums, rates: Array, variance: Array, ridge: Array, tau: Array) -> tuple[Array, Array]:
        """V_j | rest ~ N(mean, sd^2) on V_j >= 0: the two numbers."""
        weights, uses = self.union.weights(tau), self.union.uses
        row = (weights * uses[:, j]) @ uses * sums.gram[j]
        precision = row[j] + 1 / ridge
        pull = (weights @ uses[:, j]) * sums.moment[j] + 1 / ridge
        mean = (pull - row @ rates + row[j] * rates[j]) / precision
        return mean, jnp.sqrt(variance / precision)

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

    def normaliser(self, product: Array) -> Array:
        """Phi(1 / sqrt(d2 s2)): the mass of a rate's prior on V >= 0 before it was normalised."""
        return ndtr(1 / jnp.sqrt(product))

    def noise(self, key: Array, theta: Theta, tau: Array) -> dict[str, Array]:
        keys = jax.random.split(key, 5)
        s = self.union.size
        u = jax.random.uniform(keys[3], (3,)) + 2.0**-53
        return {
            "rates": truncated_noise(keys[0], s),
            "variance": standard_gamma(keys[1], self.noise_shape(tau)),
            "ridge": standard_gamma(keys[2], self.ridge_shape()),
            "keep": u[:2] ** (1 / s),
            "log_u": jnp.log(u[2]),
            "walk": STEP * jax.random.normal(keys[4], (s - 1,)),
        }

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        union, theta = self.union, state.theta
        variance, ridge = theta["variance"], theta["ridge"]
        rates, constants = union.rates(theta), union.constants(theta)
        weights = union.weights(tau)

        sums = union.sums(constants)
        for j in range(union.size):
            mean, sd = self.rate(j, sums, rates, variance, ridge, tau)
            rates = rates.at[j].set(truncated_draw(noise["rates"][:, j], rates[j], mean, sd))
        squares, away = union.squares(sums, rates), jnp.sum((rates - 1) ** 2)

        # A proposal x from the inverse gamma is accepted with (Phi_old / Phi_x)^s
        mass = self.normaliser(ridge * variance)
        proposed = self.noise_rate(weights @ squares, away, ridge) / noise["variance"]
        its_mass = self.normaliser(ridge * proposed)
        taken_1 = (noise["keep"][0] * its_mass < mass) & (proposed <= LARGEST)
        variance, mass = jnp.where(taken_1, proposed, variance), jnp.where(taken_1, its_mass, mass)
        proposed = self.ridge_rate(away, variance) / noise["ridge"]
        its_mass = self.normaliser(proposed * variance)
        taken_2 = noise["keep"][1] * its_mass < mass
        ridge, mass = jnp.where(taken_2, proposed, ridge), jnp.where(taken_2, its_mass, mass)

        moved = constants + noise["walk"]
        inside = jnp.all(moved > 0)
        its_squares = union.squares_at(jnp.where(inside, moved, constants), rates)
        of_prior = jnp.sum((constants - 1) ** 2) - jnp.sum((moved - 1) ** 2)
        gain = weights @ (squares - its_squares) / (2 * variance) + of_prior / (2 * union.hyper[4])
        taken_3 = inside & (noise["log_u"] < gain)
        constants, squares = jnp.where(taken_3, moved, constants), jnp.where(taken_3, its_squares, squares)

        new = union.theta(rates, constants, variance, ridge)
        return State(new, path.energy(new)), (taken_1 + taken_2 + taken_3) / 3.0


class PrintedSweep(Sweep):
    """The paper's printed scheme, which does not leave q_tau invariant: for comparison only."""

    def rate(self, j: int, sums: Sums, rates: Array, variance: Array, ridge: Array, tau: Array) -> tuple[Array, Array]:
        return super().rate(j, sums, rates, jnp.ones(()), ridge, tau)

    def noise_rate(self, squares: Array, away: Array, ridge: Array) -> Array:
        return super().noise_rate(squares, away, 1 / ridge)

    def ridge_rate(self, away: Array, variance: Array) -> Array:
        return super().ridge_rate(away, 1 / variance)

    def normaliser(self, product: Array) -> Array:
        return jnp.ones(())
