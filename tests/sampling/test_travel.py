"""HMC along the path between models that bring no sampler: from any library, with any names."""

import jax
import jax.numpy as jnp
import lines
import numpy as np
import pytest
from assertions import assert_estimate
from linear_pairs import key
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

from crossfade.api import compare
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.methods.table import METHODS
from crossfade.sampling.travel import _shape, ways


def with_rungs(name, n_rungs):
    return METHODS[name]._replace(n_rungs=n_rungs)


@pytest.mark.parametrize(
    ("library", "method", "n_iter", "ceiling"),
    [
        pytest.param("numpyro", "NETI-DIFF", 1000, 0.1, marks=pytest.mark.slow),
        pytest.param("numpyro", with_rungs("MBAR", 10), 1000, 0.05, marks=pytest.mark.slow),
        pytest.param("numpyro", with_rungs("TI-standard", 30), 2400, 0.15, marks=pytest.mark.slow),
        pytest.param("pymc", "NETI-DIFF", 1000, 0.1, marks=pytest.mark.slow),
    ],
)
def test_models_of_any_library_meet_the_exact_answer(library, method, n_iter, ceiling):
    result = compare(*lines.PAIRS[library](), method=method, n_iter=n_iter, n_chains=8, seed=1)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=ceiling)
    with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
        assert_estimate(result.log_bayes_factor, lines.truth() + np.log(2), max_error=ceiling)
    assert result.sharing.shared == ("mu",) and result.sharing.only_2 == ("b",)


Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])


def two_meanings():
    """s is log sd in M1 and sd in M2; the mean is shared."""
    priors = {"m": dist.Normal(0.0, 1.0)}
    m1 = Model({**priors, "s": dist.Normal(0.0, 0.5)}, lambda p: dist.Normal(p["m"], jnp.exp(p["s"])).log_prob(Y).sum())
    m2 = Model({**priors, "s": dist.HalfNormal(2.0)}, lambda p: dist.Normal(p["m"], p["s"]).log_prob(Y).sum())
    m, u = np.linspace(-4, 4, 161)[:, None], np.linspace(-5, 5, 401)[None, :]
    log_l = stats.norm.logpdf(m) + sum(stats.norm.logpdf(y, m, np.exp(u)) for y in Y)
    priors = stats.norm.logpdf(u, 0, 0.5), stats.halfnorm.logpdf(np.exp(u), scale=2) + u
    first, second = (float(logsumexp(log_l + prior)) for prior in priors)
    return m1, m2, second - first


@pytest.mark.slow
def test_one_name_with_two_meanings_is_right_in_the_table_too():
    m1, m2, truth = two_meanings()
    result = compare(m1, m2, method="NETI-DIFF", n_iter=2000, n_chains=8)
    assert result.sharing.shared == ("m",) and "support" in result.sharing.apart[0]
    assert_estimate(result.log_bayes_factor, truth, max_error=0.1)
    with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
        assert_estimate(result.log_bayes_factor, truth + np.log(2), max_error=0.1)


def test_starts_are_posterior_draws_completed_from_the_prior():
    there, back = ways(*(as_joint(m) for m in lines.in_numpyro()), key(1))
    starts = jax.vmap(there.path.start)(jax.random.split(key(2), 2000))
    exact = lines.posterior(0, np.random.default_rng(1))["mu"].ravel()
    slope, mean = np.asarray(starts).T  # in the order of their names: b, mu
    assert stats.ks_2samp(mean, exact).pvalue > 1e-4
    assert stats.kstest(slope, stats.norm.cdf).pvalue > 1e-4
    assert float(back.path.energy(starts[0]).ratio) == -float(there.path.energy(starts[0]).ratio)


@pytest.mark.parametrize("size", [2, 150])  # a matrix, and variances alone
def test_steps_have_the_size_of_both_ends_at_their_own_tau(size):
    random = np.random.default_rng(3)
    shape = _shape([random.normal(size=(4000, size)) * np.array([sd] + [2] * (size - 1)) for sd in (1.0, 0.1)])
    assert shape.vectors.ndim == (2 if size == 2 else 1)
    back = shape.reversed()
    for tau, sd in ((0.0, 1.0), (0.5, np.sqrt(2 / 101)), (1.0, 0.1)):
        for own, where in ((shape, tau), (back, 1 - tau)):
            moves = [own.spread(jnp.array(where), z) for z in np.eye(size)]
            assert np.sqrt(sum(float(move[0]) ** 2 for move in moves)) == pytest.approx(sd, rel=0.1)
