"""Mixtures against sums over all allocations: evidences, conditionals and runs."""

from functools import cache
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate, rng
from conditionals import mismatches
from linear_pairs import TAUS, key
from scipy import stats
from scipy.special import gammaln, logsumexp

from crossfade import compare
from crossfade.analysis.errors import jackknife
from crossfade.analysis.estimators import stepping_stone, trapezoid
from crossfade.data import load
from crossfade.density.model import log_density, without_data
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.sampling.gamma import attempts, gamma_from
from crossfade.sampling.ladder import power, sigmoid
from crossfade.types import CrossfadeError, State
from crossfade.worlds import mixture
from crossfade.worlds.mixture import Labels, Means, WeightsAndPrecisions

VELOCITY = load("galaxy")["velocity"].to_numpy(float)
FIVE = VELOCITY[[0, 10, 40, 41, 80]]
GALAXY = 0.492  # log p(y | K = 4) - log p(y | K = 3), error 0.003


@cache
def log_subset(subset):
    """log p of the data of one component: mean integrated out by hand, precision by a sum over its logarithm."""
    y = FIVE[list(subset)]
    log_precision, step = np.linspace(-15, 6, 421, retstep=True)
    log_terms = [
        (stats.multivariate_normal(np.zeros(len(y)), np.exp(-x) * np.eye(len(y)) + 1000.0).logpdf(y) if len(y) else 0.0)
        + stats.expon.logpdf(np.exp(x))
        + x
        for x in log_precision
    ]
    return logsumexp(log_terms) + np.log(step)


def log_evidence(n_components, per_labelling=False):
    """log of the sum over all K^n allocations of p(z) p(y | z), p(z) = (K - 1)! prod n_k! / (n + K - 1)!."""
    log_terms = []
    for z in product(range(n_components), repeat=len(FIVE)):
        subsets = [tuple(i for i, label in enumerate(z) if label == k) for k in range(n_components)]
        log_p = gammaln(n_components) - gammaln(len(FIVE) + n_components)
        log_terms.append(log_p + sum(gammaln(len(s) + 1) + log_subset(s) for s in subsets))
    return logsumexp(log_terms) - per_labelling * gammaln(n_components + 1)


def test_the_truth_itself_by_draws_of_the_prior():
    """p(y) is the mean of p(y | theta) over the prior: crude, but nothing in it is derived."""
    random, n = rng(3), 400_000
    m = mixture.summed(FIVE, 2)
    theta = {
        "weight_2": random.dirichlet(np.ones(2), n),
        "mean_2": random.normal(0, np.sqrt(1000), (n, 2)),
        "precision_2": random.exponential(size=(n, 2)),
    }
    log_l = np.asarray(jax.jit(jax.vmap(lambda theta: m.log_likelihood(theta)))(theta))
    scaled = np.exp(log_l - log_evidence(2))
    error = scaled.std() / np.sqrt(n)
    assert error < 0.1
    assert abs(scaled.mean() - 1) < 4 * error
    assert abs(scaled.mean() - np.exp(-np.log(2))) > 4 * error  # the wrong twin: one labelling only


def test_summing_the_allocations_out_of_the_model_gives_the_mixture_likelihood():
    full, short = mixture.model(FIVE, 3), mixture.summed(FIVE, 3)
    theta = {"weight_3": jnp.array([0.2, 0.5, 0.3]), "mean_3": FIVE[1:4], "precision_3": jnp.array([0.3, 1.0, 2.0])}
    joint = jax.jit(jax.vmap(lambda z: full.log_joint({**theta, "z_3": z})))
    every = jnp.array(list(product(range(3), repeat=len(FIVE))), float)
    assert float(jax.nn.logsumexp(joint(every))) == pytest.approx(float(short.log_joint(theta)), abs=1e-9)


def test_allocations_are_labels_and_nothing_else():
    m = mixture.model(FIVE, 3)
    theta = {"weight_3": jnp.array([0.2, 0.5, 0.3]), "z_3": jnp.array([0.0, 1, 2, 1, 1])}
    prior = m.priors["z_3"]
    expected = np.log([0.2, 0.5, 0.3, 0.5, 0.5]).sum()
    assert float(log_density(prior, "z_3", theta)) == pytest.approx(expected, abs=1e-12)
    for wrong in (0.5, -1.0, 3.0):
        moved = {**theta, "z_3": theta["z_3"].at[2].set(wrong)}
        assert float(log_density(prior, "z_3", moved)) == -np.inf
    draws = np.asarray(jax.vmap(prior(theta).sample)(chain_keys(key(2), 4000))).ravel()
    counts = np.bincount(draws.astype(int), minlength=3)
    assert stats.chisquare(counts, 20_000 * np.array([0.2, 0.5, 0.3])).pvalue > 1e-4
    assert stats.chisquare(counts, 20_000 * np.array([0.3, 0.5, 0.2])).pvalue < 1e-4


@jax.jit
def many_gammas(key, shape):
    return gamma_from(attempts(key, 40_000), jnp.full(40_000, shape))


@pytest.mark.parametrize("shape", [0.3, 1.0, 1.7, 42.0])
def test_gamma_variates_from_noise_drawn_ahead(shape):
    draws = np.asarray(many_gammas(key(3), shape))
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-4
    assert stats.kstest(draws, stats.gamma(shape * 1.05).cdf).pvalue < 1e-4


class Untempered(Labels):
    def log_p(self, theta, tau):
        return super().log_p(theta, jnp.array(1.0))


class TemperedPrior(Labels):
    """weight^t too, as if p(z | weight) were part of the likelihood."""

    def log_p(self, theta, tau):
        log_weight = jnp.log(self.part.of(theta, "weight"))[:, None]
        return super().log_p(theta, tau) + (self.part.share(tau) - 1) * log_weight


class SdForVariance(Means):
    def mean_and_precision(self, theta, tau):
        wrong = eqx.tree_at(lambda part: part.mean_precision, self.part, self.part.mean_precision**2)
        return Means(wrong).mean_and_precision(theta, tau)


class TemperedCounts(WeightsAndPrecisions):
    def shapes_and_rate(self, theta, tau):
        of_weight, shape, rate = super().shapes_and_rate(theta, tau)
        return 1 + self.part.share(tau) * (of_weight - 1), shape, rate


class UntemperedShape(WeightsAndPrecisions):
    def shapes_and_rate(self, theta, tau):
        of_weight, _, rate = super().shapes_and_rate(theta, tau)
        return of_weight, self.part.gamma[0] + (of_weight - 1) / 2, rate


PRIORS = {"mean_variance": 400.0, "shape": 2.0, "rate": 3.0, "concentration": 0.7}
TWO, THREE = mixture.model(FIVE, 2), mixture.model(FIVE, 3, **PRIORS)
PAIRS = {
    "2 to 3": (TWO, THREE),
    "from no data": (without_data(THREE), THREE),
    "to no data": (THREE, without_data(THREE)),
    "galaxy": mixture.galaxy(),
}
WRONG = (Untempered, TemperedPrior, SdForVariance, TemperedCounts, UntemperedShape)


def typical(part, random):
    """Parameters of one mixture near where its posterior is."""
    k, n = part.n_components, len(part.y)
    values = {
        "weight": random.dirichlet(np.full(k, 3.0)),
        "mean": random.choice(part.y, k) + random.normal(size=k),
        "precision": random.gamma(2.0, 0.2, size=k),
        "z": random.integers(k, size=n).astype(float),
    }
    return {f"{name}_{k}": jnp.asarray(value) for name, value in values.items()}


OWN = {Labels: ("z",), Means: ("mean",), WeightsAndPrecisions: ("weight", "precision")}


@pytest.mark.parametrize("name", PAIRS)
def test_every_conditional_is_the_paths_energy_to_1e_9_and_wrong_ones_are_not(name):
    path, right = direct(*PAIRS[name]), mixture.gibbs(*PAIRS[name]).blocks
    wrong = tuple(kind(block.part) for kind in WRONG for block in right if isinstance(block, kind.__bases__))
    random = rng(4)
    theta, moves = {}, []
    for block in right:
        theta |= typical(block.part, random)
    for block in right + wrong:
        own = next(names for kind, names in OWN.items() if isinstance(block, kind))
        k = block.part.n_components
        new = typical(block.part, random) | {f"z_{k}": jnp.zeros(len(block.part.y))}
        moves.append({f"{name}_{k}": new[f"{name}_{k}"] for name in own})
    for tau in TAUS:
        off = np.abs(mismatches(path, right + wrong, theta, moves, jnp.array(tau)))
        assert off[: len(right)].max() < 1e-9
        assert tau != 0.3 or off[len(right) :].min() > 1e-6


def test_labels_are_drawn_with_their_probabilities():
    block = mixture.gibbs(TWO, THREE).blocks[3]
    theta = typical(block.part, rng(5))
    theta["weight_3"] = jnp.array([0.6, 0.0, 0.4])  # no level may fall to a label of weight 0
    p = np.exp(block.log_p(theta, 0.01))
    levels = (np.arange(4000) + 0.5)[:, None] / 4000 * np.ones(len(FIVE))
    z = np.asarray(jax.vmap(lambda u: block.draw(u, theta, 0.01)["z_3"])(levels))
    shares = np.array([(z == k).mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(shares, p / p.sum(axis=0), atol=1e-3)
    assert not (z == 1).any()


def begin(path, n_chains):
    """Chains that start at one point, so that no prior draws need to be compiled."""
    theta = {}
    for k in (2, 3):
        if f"z_{k}" in path.start.names:
            theta |= {f"weight_{k}": np.full(k, 1 / k), f"mean_{k}": np.zeros(k), f"precision_{k}": np.ones(k)}
            theta[f"z_{k}"] = np.zeros(len(FIVE))
    theta = {name: jnp.broadcast_to(value, (n_chains, *value.shape)) for name, value in theta.items()}
    return State(theta, jax.vmap(lambda theta: path.energy(theta))(theta))


@pytest.mark.slow
def test_runs_between_two_and_three_components_meet_the_exact_value():
    pair = mixture.model(FIVE, 2), mixture.model(FIVE, 3)
    truth = log_evidence(3) - log_evidence(2)
    path, kernel = direct(*pair), mixture.gibbs(*pair)
    state = begin(path, 16)
    trace, _ = anneal(path, kernel, sigmoid(11_000), chain_keys(key(5), 16), state=state, segment=4000)
    assert_estimate(jackknife(trace, trapezoid), truth, max_error=0.1)
    plan = Schedule(n_draws=200, n_burn=30)
    trace, _ = anneal(path, kernel, sigmoid(30), chain_keys(key(6), 16), schedule=plan, state=state, segment=4000)
    by_stones = jackknife(trace, stepping_stone)
    assert_estimate(by_stones, truth, max_error=0.1)
    with pytest.raises(AssertionError, match="sigma"):
        wrong = log_evidence(3, per_labelling=True) - log_evidence(2, per_labelling=True)
        assert_estimate(by_stones, wrong, max_error=0.1)


@pytest.mark.slow
def test_a_run_from_no_data_meets_the_exact_evidence():
    m = mixture.model(FIVE, 3)
    path, kernel = direct(without_data(m), m), mixture.gibbs(without_data(m), m)
    plan = Schedule(n_draws=200, n_burn=30)
    trace, _ = anneal(path, kernel, power(30), chain_keys(key(7), 16), schedule=plan, state=begin(path, 16))
    assert_estimate(jackknife(trace, stepping_stone), log_evidence(3), max_error=0.1)
    with pytest.raises(AssertionError):
        assert_estimate(jackknife(trace, stepping_stone), log_evidence(3, per_labelling=True), max_error=0.1)


@pytest.mark.slow
def test_the_default_method_meets_the_exact_value_with_allocations_summed_out():
    result = compare(mixture.summed(FIVE, 2), mixture.summed(FIVE, 3))
    assert_estimate(result.log_bayes_factor, log_evidence(3) - log_evidence(2), max_error=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["NETI-DIFF", "TI-standard"])
def test_galaxies_by_neti_diff_and_ti(method):
    result = compare(*mixture.galaxy(), method=method, n_iter=100_000, n_chains=16)
    assert_estimate(result.log_bayes_factor, GALAXY, max_error=0.25)
    assert not result.sharing.shared


def test_wrong_input_is_named():
    with pytest.raises(CrossfadeError, match="one column of finite numbers"):
        mixture.model([[1.0, 2.0]], 2)
    with pytest.raises(CrossfadeError, match="whole number"):
        mixture.summed(FIVE, 2.5)
    with pytest.raises(CrossfadeError, match="positive"):
        mixture.model(FIVE, 2, rate=0.0)
    with pytest.raises(CrossfadeError, match="the same priors"):
        mixture.gibbs(mixture.model(FIVE, 2), mixture.model(FIVE, 2, rate=2.0))
