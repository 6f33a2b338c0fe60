"""Gaussian graphical models against closed forms, quadrature, Wishart draws and exact invariance."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assertions import assert_estimate, rng
from conditionals import TwoBlocksWithoutPriorTerm, WithoutPriorTerm, assert_one_go_is_block_by_block, mismatches
from linear_pairs import TAUS, key
from scipy import stats
from scipy.special import logsumexp

from crossfade import compare
from crossfade.analysis.errors import jackknife
from crossfade.analysis.estimators import trapezoid
from crossfade.density.model import without_data
from crossfade.paths.path import direct
from crossfade.sampling.anneal import Schedule, anneal, chain_keys
from crossfade.sampling.kernel import Kernel
from crossfade.sampling.ladder import sigmoid
from crossfade.types import CrossfadeError, State
from crossfade.worlds import graphical, linear
from crossfade.worlds.conjugate import Coefficients, Joint, Marginal, Variance
from crossfade.worlds.graphical import GENES, MUTANT, WILDTYPE

# Mean and standard deviation of log p(wildtype) / p(mutant) over 2,000 data sets of 100.
BY_STRENGTH = {
    0.0: (-3.534, 1.09),
    0.1: (-2.215, 2.00),
    0.2: (1.184, 3.29),
    0.3: (6.647, 4.65),
    0.4: (14.133, 6.02),
    0.5: (23.551, 7.34),
}
X = graphical.simulate(0.3, n=40, seed=5)
CHAIN = ("a", "b", "c")
# Not nested: M1 has a -> c and M2 has b -> c; a -> b is shared.
CROSSED = tuple(graphical.model(X[:, :3], {"b": ("a",), "c": (one,)}, CHAIN, df=4.0) for one in ("a", "b"))


def columns(x, names):
    return x[:, [GENES.index(name) for name in names]]


def as_multivariate_t(x, node, parents):
    """x_m ~ t_{2a}(0, b/a (I + D D')): the second derivation, in the space of the data."""
    d, a = columns(x, parents), (10 - 7 + GENES.index(node) + 1) / 2
    return stats.multivariate_t(shape=0.5 / a * (np.eye(len(x)) + d @ d.T), df=2 * a).logpdf(columns(x, [node])[:, 0])


@pytest.mark.parametrize("parents", [WILDTYPE, MUTANT])
def test_evidence_by_four_derivations(parents):
    m = graphical.model(X, parents)
    truth = graphical.log_evidence(m)
    assert sum(as_multivariate_t(X, node, parents.get(node, ())) for node in GENES) == pytest.approx(truth, abs=1e-8)
    along = graphical.network(without_data(m), m)
    assert float(along.log_normaliser(1.0)) == pytest.approx(truth, abs=1e-8)
    assert float(along.log_normaliser(0.0)) == pytest.approx(0.0, abs=1e-10)
    as_regressions = as_multivariate_t(X, "LHY", ())  # a regression needs a column
    for node, names in parents.items():
        noise = linear.Noise((3 + GENES.index(node) + 1) / 2, 0.5)
        own = linear.model(columns(X, [node])[:, 0], columns(X, names), names, noise=noise)
        as_regressions += linear.log_evidence(own)
    assert as_regressions == pytest.approx(truth, abs=1e-8)


def test_evidence_by_quadrature_of_the_models_own_density():
    """A network of two nodes and one edge: log_joint summed over a grid of all three parameters."""
    m = graphical.model(X[:20, :2], {"b": ("a",)}, ("a", "b"), df=3.0)
    grids = np.linspace(-3, 4, 57), np.linspace(-3, 4, 57), np.linspace(-2, 4, 241)
    log_a, log_b, slope = (axis.ravel() for axis in np.meshgrid(*grids, indexing="ij"))
    values = jax.vmap(m.log_joint)({"log_variance": jnp.stack([log_a, log_b], axis=1), "beta_a_b": jnp.asarray(slope)})
    by_quadrature = logsumexp(np.asarray(values)) + sum(np.log(grid[1] - grid[0]) for grid in grids)
    assert by_quadrature == pytest.approx(graphical.log_evidence(m), abs=1e-6)


def test_the_prior_is_that_of_wishart_draws():
    """W = A diag(1/v) A' with A unit upper triangular, A_jm = -beta_jm."""
    w = stats.wishart(10, np.eye(7)).rvs(5000, random_state=rng(1))
    lower = np.linalg.cholesky(w[:, ::-1, ::-1])[:, ::-1, ::-1]  # the factor of the reversed order is upper triangular
    root = np.diagonal(lower, axis1=1, axis2=2)
    v, betas = root**-2.0, -lower / root[:, None, :]
    m = graphical.model(X, WILDTYPE)
    prior = m.priors["log_variance"]
    for i in range(len(GENES)):
        gamma = stats.gamma(prior.concentration[i], scale=1 / prior.rate[i])
        assert stats.kstest(1 / v[:, i], gamma.cdf).pvalue > 1e-4
        assert stats.kstest(1 / v[:, i], stats.gamma(gamma.args[0] + 0.5, scale=2).cdf).pvalue < 1e-4  # wrong twin
        for j in range(i):
            assert stats.kstest(betas[:, j, i] / np.sqrt(v[:, i]), stats.norm.cdf).pvalue > 1e-4
    drawn = jax.jit(jax.vmap(lambda key: m.sample_prior(key)))(chain_keys(key(2), 5000))
    assert stats.ks_2samp(drawn["log_variance"][:, 2], np.log(v[:, 2])).pvalue > 1e-4
    assert stats.ks_2samp(drawn["beta_LHY_PRR9"], betas[:, 0, 1]).pvalue > 1e-4


@cache
def exact_values(b, n_sets):
    return np.array([graphical.log_bayes_factor(*graphical.pair(b, seed=seed)) for seed in range(n_sets)])


@pytest.mark.parametrize("n_sets", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_mean_over_data_sets_is_the_tables_and_changes_its_sign_between_01_and_02(n_sets):
    for b, (mean, sd) in BY_STRENGTH.items():
        values = exact_values(b, n_sets)
        assert abs(values.mean() - mean) < 4 * sd * np.sqrt(1 / n_sets + 1 / 2000)
        assert values.std(ddof=1) == pytest.approx(sd, rel=5 / np.sqrt(2 * n_sets))
    assert exact_values(0.1, n_sets).mean() < 0 < exact_values(0.2, n_sets).mean()


class UnitVariances(Coefficients):
    def log_prob(self, theta, tau):
        return super().log_prob({**theta, "log_variance": jnp.zeros_like(theta["log_variance"])}, tau)


class WithoutJacobian(Variance):
    """The density of v where that of log v is due."""

    def log_prob(self, theta, tau):
        return super().log_prob(theta, tau) - jnp.sum(theta["log_variance"])


class NotMarginal(Joint):
    """Variances as if given the coefficients, where beta should be integrated out."""

    def log_prob(self, theta, tau):
        return Variance(self.pair).log_prob(theta, tau) + Coefficients(self.pair).log_prob(theta, tau)


PAIRS = {
    "nested": graphical.pair(0.3, n=40),
    "crossed": CROSSED,
    "from no data": (without_data(CROSSED[1]), CROSSED[1]),
    "to no data": (CROSSED[0], without_data(CROSSED[0])),
}


WRONG = (UnitVariances, WithoutPriorTerm, WithoutJacobian, NotMarginal)


def joint_noise(network, tau, random, n=None):
    """What Joint.noise gives, for one chain or n, by NumPy."""
    size = () if n is None else (n,)
    shape = np.asarray(Marginal(network).shape(tau))
    return random.gamma(shape, size=(*size, len(shape))), random.normal(size=(*size, len(network.names)))


@pytest.mark.parametrize("name", PAIRS)
def test_every_conditional_is_the_paths_energy_to_1e_9_and_wrong_ones_are_not(name):
    path, network = direct(*PAIRS[name]), graphical.network(*PAIRS[name])
    right, wrong = [kind(network) for kind in (Coefficients, Variance, Joint)], [kind(network) for kind in WRONG]
    random = rng(7)
    for tau in TAUS:
        theta, other = (Joint(network).draw(joint_noise(network, tau, random), {}, tau) for _ in range(2))
        variances = {"log_variance": other["log_variance"]}
        betas = {beta: other[beta] for beta in network.names}
        moves = [betas, variances, other, betas, variances, variances, other]
        off = np.abs(mismatches(path, right + wrong, theta, moves, jnp.array(tau)))
        assert off[: len(right)].max() < 1e-9
        assert off[len(right) :].min() > 1e-6


@pytest.mark.parametrize("name", ["nested", "from no data"])
def test_two_blocks_in_one_go_are_the_blocks_one_by_one(name):
    pair = PAIRS[name]
    zeros = {name: jnp.zeros(jnp.shape(getattr(prior, "rate", 0.0))) for m in pair for name, prior in m.priors.items()}
    assert_one_go_is_block_by_block(pair, graphical.gibbs(*pair), zeros)


class NoRejection(Kernel):
    inner: Kernel

    def noise(self, key, theta, tau):
        return self.inner.noise(key, theta, tau)

    def __call__(self, noise, state, path, tau):
        return self.inner((noise[0], jnp.full_like(noise[1], -jnp.inf)), state, path, tau)


@pytest.mark.slow
def test_the_papers_walk_leaves_exact_draws_alone_and_without_rejection_does_not():
    pair, n = CROSSED, 10_000
    path, walk = direct(*pair), graphical.metropolis(*pair)
    network, random = graphical.network(*pair), rng(3)
    for tau in TAUS:
        theta = jax.vmap(lambda noise, tau=tau: Joint(network).draw(noise, {}, tau))(
            joint_noise(network, tau, random, n)
        )
        before = State(theta, jax.vmap(lambda theta: path.energy(theta))(theta))

        def worst_z(kernel, before=before, tau=tau):
            keys, schedule = chain_keys(key(4), n), Schedule(1, 19, 0)
            trace, after = anneal(path, kernel, np.array([tau]), keys, schedule=schedule, state=before)
            assert trace.acceptance.mean() > 0.3
            zs = []
            for name, x in before.theta.items():
                centre, width = np.median(x), stats.median_abs_deviation(x)
                for bend in (np.tanh, lambda v: np.tanh(v) ** 2):
                    moved = bend((after.theta[name] - centre) / width) - bend((x - centre) / width)
                    zs.append(moved.mean() / (moved.std() / np.sqrt(n)))
            return np.abs(zs).max()

        assert worst_z(walk) < 4.5
        if tau == 0.3:
            assert worst_z(NoRejection(walk)) > 8
    noise, _ = walk.noise(key(5), {"x": jnp.zeros(4000)}, 0.3)
    assert stats.kstest(np.asarray(noise["x"]), stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.slow
def test_runs_from_mutant_to_wildtype_meet_the_exact_value():
    m1, m2 = graphical.pair(0.3)
    truth = graphical.log_bayes_factor(m1, m2)
    path, start = direct(m1, m2), {name: jnp.zeros(16) for name in m2.names} | {"log_variance": jnp.zeros((16, 7))}
    state = State(start, jax.vmap(lambda theta: path.energy(theta))(start))
    both = graphical.network(m1, m2)
    right, wrong = (
        jackknife(anneal(path, kernel, sigmoid(20_000), chain_keys(key(6), 16), state=state)[0], trapezoid)
        for kernel in (graphical.gibbs(m1, m2), TwoBlocksWithoutPriorTerm(both))
    )
    assert_estimate(right, truth, max_error=0.06)
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(wrong, truth, max_error=0.06)


@pytest.mark.slow
def test_compare_exact_draws_the_papers_walk_and_the_default_method_meet_the_exact_value():
    m1, m2 = graphical.pair(0.3)
    truth = graphical.log_bayes_factor(m1, m2)
    result = compare(m1, m2, method="NETI-DIFF", n_iter=4000, n_chains=16)
    assert_estimate(result.log_bayes_factor, truth, max_error=0.1)
    assert set(result.sharing.only_2) == {"beta_PRR9_PRR7", "beta_PRR7_NI"}
    assert not result.sharing.only_1 and not result.sharing.tempered
    trace, _ = anneal(direct(m1, m2), graphical.exact(m1, m2), sigmoid(6000), chain_keys(key(6), 16))
    assert_estimate(jackknife(trace, trapezoid), truth, max_error=0.1)
    walked = compare(m1, m2, method="NETI-DIFF", n_iter=100_000, n_chains=16, kernel=graphical.metropolis)
    assert_estimate(walked.log_bayes_factor, truth, max_error=0.3)
    default = compare(m1, m2)
    assert default.verdict == "trustworthy"
    assert_estimate(default.log_bayes_factor, truth, max_error=0.06)


def test_wrong_input_is_named():
    with pytest.raises(CrossfadeError, match="one column for each"):
        graphical.model(X[:, :6], WILDTYPE)
    with pytest.raises(CrossfadeError, match="finite"):
        graphical.model(np.where(X.max() == X, np.nan, X), WILDTYPE)
    with pytest.raises(CrossfadeError, match="df > 6"):
        graphical.model(X, WILDTYPE, df=6.0)
    with pytest.raises(CrossfadeError, match="no nodes"):
        graphical.model(X, {"PRR7": ("CCA1",)})
    with pytest.raises(CrossfadeError, match="comes after it"):
        graphical.model(X, {"LHY": ("TOC1",)})
    with pytest.raises(CrossfadeError, match="one order="):
        graphical.gibbs(CROSSED[0], graphical.model(X[:, :3], {}, ("a", "c", "b"), df=4.0))
    with pytest.raises(CrossfadeError, match="the same df"):
        graphical.gibbs(graphical.model(X, MUTANT), graphical.model(X, WILDTYPE, df=12.0))
