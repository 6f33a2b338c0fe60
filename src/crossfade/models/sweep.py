"""Both Michaelis-Menten designs of a pair as columns of one, and the tempered Gibbs sweep over them."""

from __future__ import annotations

import operator
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
    return tuple(jax.lax.reduce(tuple(terms), zeros, lambda a, b: tuple(map(operator.add, a, b)), (0,)))


class Conditional(NamedTuple):
    """V_j | rest ~ N(centre - sum over i of others_i V_i, variance) on V_j >= 0."""

    centre: Array
    others: dict[int, Array]
    variance: Array


class Union(eqx.Module):
    """Both designs as columns of one: D_k has those of the columns of D that the rates in uses_k multiply.

    Sums over the data are kept as scalars and not as matrices: a step is then compiled to few and simple loops.
    """

    y: np.ndarray
    loss: np.ndarray  # minus the gene's own concentration
    x: np.ndarray  # [regulator, n]
    inhibits: np.ndarray  # [regulator]
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

    def gram(self, columns: list[Array]) -> dict[tuple[int, int], Array]:
        """D_i'D_j by (i, j), and D_i'y by (i, -1)."""
        pairs = [(i, j) for i in range(self.size) for j in range(-1, i + 1)]
        found = sums([columns[i] * (self.y if j < 0 else columns[j]) for i, j in pairs])
        lower = dict(zip(pairs, found, strict=True))
        return lower | {(j, i): value for (i, j), value in lower.items() if j >= 0}

    def squares(self, gram: dict[tuple[int, int], Array], rates: list[Array]) -> list[Array]:
        """The residual sums of squares of both ends."""
        return [
            jnp.sum(self.y**2)
            + sum(rates[i] * (sum(rates[j] * gram[i, j] for j in own) - 2 * gram[i, -1]) for i in own)
            for own in self.uses
        ]

    def squares_at(self, columns: list[Array], rates: list[Array]) -> list[Array]:
        """The same without the sums of products."""
        residuals = [self.y - sum(rates[i] * columns[i] for i in own) for own in self.uses]
        return list(sums([residual**2 for residual in residuals]))

    def energy(
        self, squares: list[Array], away: Array, constants: Array, variance: Array, ridge: Array, mass: Array
    ) -> Energy:
        """Of the direct path; `away` is |V - 1|^2 and `mass` Phi(1 / sqrt(d2 s2))."""
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

    def conditionals(self, gram: Any, variance: Array, ridge: Array, tau: Array) -> list[Conditional]:
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

    def noise(self, key: Array, theta: Theta, tau: Array) -> dict[str, Array]:
        keys = jax.random.split(key, 4)
        s = self.union.size
        u = jax.random.uniform(keys[0], (2 * s + 3,)) + 2.0**-53
        return {
            "level": -jnp.log(u[:s]),
            "place": u[s : 2 * s],
            "keep": u[2 * s : 2 * s + 2] ** (1 / s),
            "log_u": jnp.log(u[-1]),
            "variance": standard_gamma(keys[1], self.noise_shape(tau)),
            "ridge": standard_gamma(keys[2], self.ridge_shape()),
            "walk": STEP * jax.random.normal(keys[3], (s - 1,)),
        }

    def __call__(self, noise: Any, state: State, path: Path, tau: Array) -> tuple[State, Array]:
        union, theta = self.union, state.theta
        variance, ridge = theta["variance"], theta["ridge"]
        rates, constants = union.rates(theta), union.constants(theta)
        powers = union.weights(tau)

        moved = constants + noise["walk"]
        columns, its_columns = union.columns(constants, jnp.abs(moved))
        gram = union.gram(columns)
        for j, (centre, others, spread) in enumerate(self.conditionals(gram, variance, ridge, tau)):
            mean = centre - sum(others[i] * rates[i] for i in others)
            rates[j] = slice_step(2 * spread * noise["level"][j], noise["place"][j], rates[j], mean)
        squares = union.squares(gram, rates)
        tempered = powers[0] * squares[0] + powers[1] * squares[1]
        away = sum((rate - 1) ** 2 for rate in rates)

        # A proposal x from the inverse gamma is accepted with (Phi_old / Phi_x)^s. All four Phi that the two steps
        # may need are computed at once: two proposals of d2, for the old and for the proposed s2.
        proposed = self.noise_rate(tempered, away, ridge) / noise["variance"]
        variances = jnp.stack([variance, proposed])
        ridges = self.ridge_rate(away, variances) / noise["ridge"]
        masses = positive_mass(jnp.concatenate([ridge * variances, ridges * variances]))
        taken_1 = self.passes(noise["keep"][0], masses[0], masses[1]) & (proposed <= LARGEST)
        variance = jnp.where(taken_1, proposed, variance)
        mass, its_mass = jnp.where(taken_1, masses[1], masses[0]), jnp.where(taken_1, masses[3], masses[2])
        proposed = jnp.where(taken_1, ridges[1], ridges[0])
        taken_2 = self.passes(noise["keep"][1], mass, its_mass) & (proposed <= LARGEST)
        ridge, mass = jnp.where(taken_2, proposed, ridge), jnp.where(taken_2, its_mass, mass)

        its_squares = union.squares_at(its_columns, rates)
        its_tempered = powers[0] * its_squares[0] + powers[1] * its_squares[1]
        of_prior = jnp.sum(jnp.where(moved > 0, (constants - 1) ** 2 - (moved - 1) ** 2, -jnp.inf))
        gain = (tempered - its_tempered) / (2 * variance) + of_prior / (2 * union.hyper[4])
        taken_3 = noise["log_u"] < gain
        constants = jnp.where(taken_3, moved, constants)
        squares = [jnp.where(taken_3, new, old) for new, old in zip(its_squares, squares, strict=True)]

        new = union.theta(rates, constants, variance, ridge)
        energy = union.energy(squares, away, constants, variance, ridge, mass)
        return State(new, energy), jnp.mean(jnp.stack([taken_1, taken_2, taken_3]))


class PrintedSweep(Sweep):
    """The paper's printed scheme, which does not leave q_tau invariant: for comparison only."""

    def conditionals(self, gram: Any, variance: Array, ridge: Array, tau: Array) -> list[Conditional]:
        return super().conditionals(gram, jnp.ones(()), ridge, tau)

    def noise_rate(self, squares: Array, away: Array, ridge: Array) -> Array:
        return super().noise_rate(squares, away, 1 / ridge)

    def ridge_rate(self, away: Array, variance: Array) -> Array:
        return super().ridge_rate(away, 1 / variance)

    def passes(self, u: Array, old: Array, new: Array) -> Array:
        return jnp.array(True)
