"""Both Michaelis-Menten designs of a pair as columns of one: sums over the data, and energies from them."""

from __future__ import annotations

import operator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from crossfade.types import Array, Bool, Energy, Float, Theta
from crossfade.worlds.design import LOG_2PI

LARGEST = 1e280  # of s2 and d2: beyond, sums of squares overflow
Gram = dict[tuple[int, int], Array]  # scalars rather than a matrix: their sums are compiled to few and simple loops


def response(x: Array, constant: Array, inhibits: Array | bool) -> Array:
    """x / (x + k), or k / (x + k); 0 where both are 0."""
    return jnp.where(inhibits, constant, x) / jnp.maximum(x + constant, 1e-300)


def positive_mass(product: Array) -> Array:
    """Phi(1 / sqrt(d2 s2)): the mass on V >= 0 of N(1, d2 s2)."""
    return 0.5 + 0.5 * jax.lax.erf(jnp.sqrt(0.5 / product))


def sums(terms: list[Array]) -> tuple[Array, ...]:
    """The sum of each vector, all in one pass."""
    if not terms:
        return ()
    return jax.lax.reduce(
        tuple(terms), (jnp.zeros(()),) * len(terms), lambda a, b: tuple(map(operator.add, a, b)), (0,)
    )


class Scales(NamedTuple):
    """A state half-way: rates, noise variance and ridge are new, and what is known of them."""

    rates: list[Array]
    variance: Array
    ridge: Array
    mass: Array  # Phi(1 / sqrt(d2 s2))
    away: Array  # |V - 1|^2
    squares: list[Array]  # residual sums of squares of both ends
    accepted: Array


class Union(eqx.Module):
    """Both designs as columns of one: D_k has those of the columns of D that the rates in uses_k multiply."""

    y: np.ndarray
    loss: np.ndarray  # minus the gene's own concentration
    x: Float[np.ndarray, "regulator n"]
    inhibits: Bool[np.ndarray, " regulator"]
    fixed: Float[np.ndarray, " 3"]  # sums of products without the constants, of (loss, y), (loss, loss), (y, y)
    n: Float[np.ndarray, " 2"]  # 0 for an end that has seen no data
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
