"""Edges: two sets of draws faded into each other, rungs where they are needed, errors that know of the fits."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from assertions import assert_estimate
from likelihoods import Likelihood
from lines import Y, in_numpyro, truth
from scipy import stats

import crossfade
from crossfade.density.model import Model
from crossfade.methods import edge as module
from crossfade.methods.edge import GOOD_OVERLAP, fade, fitted, grown, left_out, with_rung
from crossfade.methods.rung import middle
from crossfade.sampling.hmc import SEGMENT
from crossfade.types import CrossfadeError


@pytest.fixture(scope="module")
def draws():
    return tuple(crossfade.sample(model, n_draws=100, n_chains=16, seed=k) for k, model in enumerate(in_numpyro()))


@pytest.fixture(scope="module")
def edge(draws):
    return crossfade.fade(*draws)


def test_draws_sampled_once_give_the_exact_answer(edge):
    assert crossfade.fade is fade and len(edge.rungs) == 2 and min(edge.overlaps()) > GOOD_OVERLAP
    summary = edge.summary()
    assert_estimate(summary.headline, truth(), max_error=0.05)
    with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
        assert_estimate(summary.headline, truth() + np.log(2), max_error=0.05)
    assert_estimate(summary.opinions["stepping_stone"], truth(), max_error=0.1)
    assert_estimate(summary.checks["slope"], 1.0, max_error=1.0)
    assert_estimate(summary.checks["halves"], 0.0, max_error=0.1)
    assert_estimate(summary.checks["hysteresis"], 0.0, max_error=0.1)
    quick = edge.quick_summary().headline
    assert quick.value == summary.headline.value and quick.error > 0


def test_each_half_is_read_with_the_fit_to_the_other(edge):
    """The other half's link is not the half's own: no draw is used twice."""
    first, second = (fit.links[1] for fit in edge.fits)
    half = len(edge.draws[1].u) // 2
    own = [edge.draws[1].u[chains, :, 1].mean() for chains in (slice(half), slice(half, None))]
    shared = [edge.draws[1].u[chains, :, 0].mean() for chains in (slice(half), slice(half, None))]
    for link, fit, mean, at in zip((first, second), edge.fits, own[::-1], shared[::-1], strict=True):
        v = fit.warps[1].inverse(np.array([at]))
        assert float((link.intercept + link.slopes @ v)[0]) == pytest.approx(mean, abs=1e-9)


def test_chains_that_do_not_pair_up_are_refused(draws):
    few = crossfade.sample(in_numpyro()[0], n_draws=25, n_chains=4)
    with pytest.raises(CrossfadeError, match="4 and 16 chains: give both the same even number"):
        fitted(few, draws[1])


def test_draws_of_other_data_are_refused(draws):
    joint = draws[0].joint._replace(data=Y + 1)
    with pytest.raises(CrossfadeError, match="different data"):
        fade(draws[0]._replace(joint=joint), draws[1])


def test_more_draws_grow_the_ends_and_fit_anew(edge, draws):
    more = grown(edge, [50, 25], SEGMENT)
    assert [rung.n_draws for rung in more.rungs] == [150, 125]
    whole = fitted(draws[0].more(50), draws[1].more(25))
    np.testing.assert_array_equal(more.rungs[0].ratio[0], whole.rungs[0].ratio[0])
    assert not np.array_equal(more.fits[0].links[1].root, edge.fits[0].links[1].root)
    assert [rung.n_draws for rung in edge.rungs] == [100, 100]  # the old edge is as it was


def test_leaving_chains_out_changes_the_fits_but_no_random_number(edge, monkeypatch):
    seen = []
    real = module.completed

    def watched(union, own, k, u, noise):
        seen.append((own, k, noise))
        return real(union, own, k, u, noise)

    monkeypatch.setattr(module, "completed", watched)
    without = left_out(edge)
    half = edge.draws[0].n_chains // 2
    assert len(without) == 2 * module.N_GROUPS
    first, last = without[0], without[-1]  # a group of half 1, and one of half 2
    kept = half - half // module.N_GROUPS
    assert [leg.forward.n_chains for leg in first] == [kept, half]
    assert [leg.forward.n_chains for leg in last] == [half, kept]
    # the half that lost chains is read as before, the other with a new fit
    np.testing.assert_array_equal(first[0].forward.log_ratio, edge.legs[0].forward.log_ratio[half - kept :])
    assert not np.array_equal(first[1].forward.log_ratio, edge.legs[1].forward.log_ratio)
    assert not np.array_equal(seen[0][0].links[1].root, edge.fits[1].links[1].root)
    # the draws are completed by the same random numbers as ever
    for own, k, noise in seen[:2]:
        whole = module._noise(edge, k)
        np.testing.assert_array_equal(noise.normal, whole.normal[half:])
        np.testing.assert_array_equal(noise.uniform, whole.uniform[half:])
        assert own is seen[0][0]


def decay(p, rate):
    """exp(-rate s) of every s that there is: a gamma prior of s gives its evidence in closed form."""
    return -rate * jnp.sum(p["s"]) if "s" in p else 0.0 * p["mu"]


RATE, N = 1.5, 12
UNLIKE = N * 0.2 * np.log(1 / (1 + RATE))


@pytest.fixture(scope="module")
def unlike():
    """log s of twelve gammas of shape 1/5: too skewed for Student's t, so the ends barely overlap."""
    mu = dist.Normal(0.0, 1.0)
    m1 = Model({"mu": mu}, Likelihood(decay, RATE))
    m2 = Model({"mu": mu, "s": dist.Gamma(0.2 * np.ones(N), 1.0)}, Likelihood(decay, RATE))
    return fitted(*(crossfade.sample(m, n_draws=100, n_chains=16, seed=k) for k, m in enumerate((m1, m2))))


@pytest.fixture(scope="module")
def laddered(unlike):
    return fade(*unlike.draws)


def test_rungs_are_put_where_the_overlap_is_bad(unlike, laddered):
    assert min(unlike.overlaps()) < GOOD_OVERLAP
    one = with_rung(unlike)
    assert len(one.rungs) == 3 and len(unlike.rungs) == 2
    assert one.rungs[1].tau == middle(*unlike.rungs) and 0 < one.rungs[1].tau < 1
    assert one.rungs[1].n_draws == module.PILOT_SEGMENTS * SEGMENT
    two = with_rung(one)
    worst = int(np.argmin(one.overlaps()))
    tau = [rung.tau for rung in two.rungs]
    assert one.rungs[worst].tau < tau[worst + 1] < one.rungs[worst + 1].tau
    assert min(laddered.overlaps()) >= GOOD_OVERLAP and len(laddered.rungs) > 2
    assert (np.diff([rung.tau for rung in laddered.rungs]) > 0).all()
    assert len(fade(*unlike.draws, max_rungs=3).rungs) == 3


def test_the_answer_with_rungs_is_exact(laddered):
    more = grown(laddered, [0, *[100] * (len(laddered.rungs) - 2), 100], SEGMENT)
    assert [rung.n_draws for rung in more.rungs] == [100, *[200] * (len(laddered.rungs) - 1)]
    assert more.fits is laddered.fits  # the rungs were sampled with them
    np.testing.assert_array_equal(more.rungs[1].ratio[0][:, :100], laddered.rungs[1].ratio[0])
    assert left_out(more) == []  # nothing can be made anew
    # M1's draws are as many as were fitted to, so the halves are taken to be wholly correlated; both grown, by half.
    assert laddered.fitted_share == more.fitted_share == 1.0
    assert grown(laddered, [100, *[0] * (len(laddered.rungs) - 2), 100], SEGMENT).fitted_share == 0.5
    summary = more.summary()
    assert_estimate(summary.headline, UNLIKE, max_error=0.15)
    with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
        assert_estimate(summary.headline, UNLIKE + np.log(2), max_error=0.15)
    assert more.legs[0].forward.n_draws == 100 and len(more.legs[0].forward.tau) == 2 * len(more.rungs) - 1


def _grouped(y, with_groups):
    """Measurements [group, time] of one mean (M1), or of groups around it with a spread that may be nothing (M2)."""

    def likelihood(p):
        return dist.Normal(p["mean"] + p.get("effect", jnp.zeros(len(y)))[:, None], 1.0).log_prob(y).sum()

    priors = {"mean": dist.Normal(0.0, 2.0)}
    if with_groups:
        priors["spread"] = dist.HalfNormal(1.0)
        priors["effect"] = lambda p: dist.Normal(0.0, p["spread"]).expand([len(y)]).to_event(1)
    return Model(priors, likelihood)


@pytest.mark.slow
def test_effects_in_a_funnel_that_only_one_model_has():
    """Is there a spread between 30 groups? The data have none, so the neck of the funnel holds much of the mass."""
    y = np.random.default_rng(3).normal(size=(30, 4))
    spread, d = np.linspace(1e-6, 6, 4001), np.linspace(-3, 3, 2001)[:, None]

    def log_evidence(spread):  # by group means: mean of 4 values around d has variance 1/4 + spread^2
        variance = 0.25 + spread**2
        each = [stats.norm.logpdf(d, m, np.sqrt(variance)) for m in y.mean(axis=1)]
        return np.log(np.trapezoid(np.exp(sum(each) + stats.norm.logpdf(d, 0, 2)), d[:, 0], axis=0))

    weighted = np.exp(log_evidence(spread)) * 2 * stats.norm.pdf(spread)
    right = np.log(np.trapezoid(weighted, spread)) - log_evidence(np.zeros(1))[0]
    result = crossfade.compare(_grouped(y, False), _grouped(y, True), route="path", progress=False, seed=2)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, right, max_error=0.05)
    with pytest.raises(AssertionError):  # the wrong twin: a prior of the spread without its factor 2
        assert_estimate(result.log_bayes_factor, right - np.log(2), max_error=0.05)
