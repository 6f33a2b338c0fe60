"""Exact invariance: chains that start as exact draws of q_tau must still be exact draws after the kernel."""

import blackjax.mcmc.integrators as integrators
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from linear_pairs import KINDS, TAUS, crossed, exact_draws, key, nested
from scipy import stats

from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.sampling.gamma import standard_gamma
from crossfade.sampling.kernel import (
    HMC,
    Conditional,
    Cycle,
    Diagonal,
    Gibbs,
    Kernel,
    Metropolis,
    Whitening,
    _choose,
)
from crossfade.types import State
from crossfade.worlds import linear
from crossfade.worlds.conjugate import Coefficients, Joint, Variance

N_CHAINS = 20_000


def moved(pair, kernel, tau, offset, n_steps=3):
    """The same 20,000 exact draws before and after three steps of the kernel."""
    before = exact_draws(pair, tau, N_CHAINS, offset)
    keys = chain_keys(key(offset + 1), N_CHAINS)
    schedule = Schedule(1, n_steps - 1, 0)
    _, after = anneal(direct(*pair), kernel, np.array([tau]), keys, schedule=schedule, state=before)
    return before, after


def worst_z(before, after):
    """Largest paired z over bounded functions of every parameter and of log_ratio."""

    def features(state):
        columns = [*state.theta.values(), state.energy.ratio]
        return np.array(columns)

    x, y = features(before), features(after)
    centre = np.median(x, axis=1, keepdims=True)
    width = stats.median_abs_deviation(x, axis=1)[:, None]
    zs = []
    for bend in (np.tanh, lambda v: np.tanh(v) ** 2, lambda v: np.tanh(v / 3) ** 4):
        difference = bend((y - centre) / width) - bend((x - centre) / width)
        zs.append(difference.mean(axis=1) / (difference.std(axis=1) / np.sqrt(N_CHAINS) + 1e-12))
    return np.abs(zs).max()


def steps(pair):
    names = tuple(dict.fromkeys(name for m in pair for name in m.names))
    return Diagonal({name: np.asarray(0.4) for name in names})


def whitened(pair):
    both = linear.pair(*pair)
    return Whitening(both.pencil, both.names)


class NoRejection(Kernel):
    """Wrong twin of Metropolis and HMC: proposes and always accepts."""

    inner: Kernel

    def noise(self, key, theta, tau):
        return self.inner.noise(key, theta, tau)

    def __call__(self, noise, state, path, tau):
        shifted = (noise[0], jnp.full_like(noise[1], -jnp.inf), *noise[2:])
        return self.inner(shifted, state, path, tau)


class StaleTau(Kernel):
    """Wrong twin of any kernel: works at 0.5 tau + 0.25, a temperature of its own."""

    inner: Kernel

    def noise(self, key, theta, tau):
        return self.inner.noise(key, theta, 0.5 * tau + 0.25)

    def __call__(self, noise, state, path, tau):
        return self.inner(noise, state, path, 0.5 * tau + 0.25)


class WithoutVariance(Coefficients):
    """The paper's slip for its hierarchical model: the covariance of the coefficients without s2."""

    def draw(self, noise, theta, tau):
        return super().draw(noise, {**theta, "variance": jnp.ones(())}, tau)


class WithoutPriorTerm(Variance):
    """Wrong twin: the shape lacks p / 2, as if the prior were not scaled."""

    def shape(self, tau):
        return self.pair.shape(tau)


class WrongShape(Joint):
    """Wrong twin of the exact draw: half a degree of freedom too many."""

    def noise(self, key, tau):
        gamma, normal = jax.random.split(key)
        shape = self.pair.shape(tau) + 0.5
        return standard_gamma(gamma, shape), jax.random.normal(normal, (len(self.pair.names),))


def kernels(pair):
    """name: (kernel, its wrong twin)"""
    both = linear.pair(*pair)
    gibbs = Gibbs((Coefficients(both), Variance(both)))
    metropolis = Metropolis(steps(pair))
    hmc = HMC(steps(pair), 0.5, 4)
    return {
        "metropolis": (metropolis, NoRejection(metropolis)),
        "hmc": (hmc, NoRejection(HMC(steps(pair), 1.2, 4))),
        "coefficients": (Gibbs((Coefficients(both),)), Gibbs((WithoutVariance(both),))),
        "variance": (Gibbs((Variance(both),)), Gibbs((WithoutPriorTerm(both),))),
        "joint": (Gibbs((Joint(both),)), Gibbs((WrongShape(both),))),
        "cycle": (Cycle((gibbs, metropolis)), Cycle((gibbs, NoRejection(metropolis)))),
        "stale": (gibbs, StaleTau(gibbs)),
    }


@pytest.mark.parametrize(
    "name",
    ["variance", "joint", "stale"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("hmc", "metropolis", "coefficients", "cycle")],
)
def test_every_kernel_leaves_q_tau_alone_and_its_wrong_twin_does_not(name):
    pair = crossed(**KINDS["scaled"])
    right, wrong = kernels(pair)[name]
    for i, tau in enumerate(TAUS):
        assert worst_z(*moved(pair, right, tau, 10 * i)) < 4.5
    assert worst_z(*moved(pair, wrong, 0.3, 40)) > 8


@pytest.mark.slow
def test_whitened_steps_of_metropolis_and_hmc_leave_q_tau_alone():
    pair = crossed(**KINDS["known"])
    for i, kernel in enumerate((Metropolis(whitened(pair)), HMC(whitened(pair), np.pi / 6, 3))):
        assert worst_z(*moved(pair, kernel, 0.3, 100 + 10 * i)) < 4.5


@pytest.mark.slow
def test_a_conditional_given_as_a_distribution_is_a_block():
    pair = nested(**KINDS["known"])

    def given(theta, tau):
        """b | the rest, by completing the square: only M2 sees b, at tau; the prior is N(0, 1)."""
        y, design = pair[1].log_likelihood.y, pair[1].log_likelihood.design
        residual = y - design[:, :2] @ jnp.stack([theta["one"], theta["a"]])
        b = design[:, 2]
        precision = tau * b @ b / 0.8 + 1.0
        return dist.Normal(tau * (b @ residual) / 0.8 / precision, precision**-0.5)

    def too_wide(theta, tau):
        return dist.Normal(given(theta, tau).loc, 1.2 * given(theta, tau).scale)

    block = Conditional("b", given)
    assert worst_z(*moved(pair, Gibbs((block,)), 0.3, 130)) < 4.5
    assert worst_z(*moved(pair, Gibbs((Conditional("b", too_wide),)), 0.3, 130)) > 8
    path = direct(*pair)
    theta = {"one": 0.1, "a": -0.2, "b": 0.7}
    other = {**theta, "b": -1.1}
    for tau in TAUS:
        by_block = block.log_prob(theta, tau) - block.log_prob(other, tau)
        assert float(by_block) == pytest.approx(
            float(path.energy(theta).at(tau) - path.energy(other).at(tau)), abs=1e-9
        )


def test_leapfrog_is_blackjaxs_velocity_verlet():
    pair = crossed(**KINDS["scaled"])
    path = direct(*pair)
    theta = path.start(key(2))
    state = State(theta, path.energy(theta))
    unit = Diagonal({name: np.asarray(1.0) for name in theta})
    kernel = HMC(unit, 0.03, 5)
    z, _, jitter = kernel.noise(key(3), theta, 0.3)
    mine, _ = kernel((z, jnp.array(-jnp.inf), jitter), state, path, 0.3)  # log u = -inf: always accepted

    def log_q(theta):
        return path.energy(theta).at(0.3)

    step = integrators.velocity_verlet(log_q, lambda p: 0.5 * sum(v**2 for v in p.values()))
    theirs = integrators.IntegratorState(theta, z, *jax.value_and_grad(log_q)(theta))
    for _ in range(5):
        theirs = step(theirs, 0.03 * jitter)
    for name in theta:
        assert float(mine.theta[name]) == pytest.approx(float(theirs.position[name]), abs=1e-12)


def test_diagonal_steps_widen_as_the_paper_says():
    step = Diagonal({"b": np.asarray(0.1), "s": np.asarray(0.1)}, tempered_up=("b",), cap=np.asarray(10.0))
    one = {"b": jnp.ones(()), "s": jnp.ones(())}
    for tau in (0.0, 1e-6, 0.01, 0.25, 1.0):
        moved = step(jnp.array(tau), one)
        wanted = np.sqrt(min(0.01 / tau, 100)) if tau else 10.0
        assert float(moved["b"]) == pytest.approx(wanted, rel=1e-12)
        assert float(moved["s"]) == 0.1


def test_a_broken_proposal_is_taken_so_that_the_loop_can_show_it():
    from crossfade.types import Energy

    old = State({"x": jnp.array(0.0)}, Energy(jnp.array(0.0), jnp.array(0.0)))
    new = State({"x": jnp.array(1.0)}, Energy(jnp.array(jnp.nan), jnp.array(0.0)))
    taken, _ = _choose(jnp.array(-0.1), jnp.array(jnp.nan), new, old)
    assert float(taken.theta["x"]) == 1.0
    impossible = State({"x": jnp.array(1.0)}, Energy(jnp.array(-jnp.inf), jnp.array(-jnp.inf)))
    kept, _ = _choose(jnp.array(-0.1), jnp.array(-jnp.inf), impossible, old)
    assert float(kept.theta["x"]) == 0.0


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0, 1.7, 25.5, 400.0])
def test_gamma_variates_are_gamma(shape):
    draws = eqx.filter_jit(jax.vmap(lambda k: standard_gamma(k, jnp.array(shape))))(chain_keys(key(9), 40_000))
    assert stats.kstest(np.asarray(draws), stats.gamma(shape).cdf).pvalue > 1e-4
    assert stats.kstest(np.asarray(draws), stats.gamma(shape * 1.05).cdf).pvalue < 1e-4  # the wrong twin
