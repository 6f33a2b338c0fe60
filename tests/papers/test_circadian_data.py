"""The data set of the clock: it comes out again, its mask is noise, its gradients are those of the formula."""

import numpy as np
import pandas as pd
import pytest
from assertions import rng
from scipy import stats

from crossfade.data import load
from crossfade.papers.circadian import generate, regression
from crossfade.papers.circadian.design import CONDITIONS, NETWORKS
from crossfade.papers.circadian.reactions import GENES
from crossfade.types import CrossfadeError


def too_wide_or_narrow(draws):
    """Whether the sum of squares of N(0, 1) draws would be out of the middle 99.9 %."""
    return not 5e-4 < stats.chi2(len(draws)).cdf((draws**2).sum()) < 1 - 5e-4


def test_a_segment_of_the_data_set_comes_out_again():
    table = load("circadian")
    for key in (("wildtype", 3, "ko_PRR7_PRR9"), ("mutant", 5, "LL")):
        again = generate.segment(*key)
        shipped = table[(table["network"] == key[0]) & (table["instance"] == key[1]) & (table["condition"] == key[2])]
        slopes = [f"d{gene}" for gene in GENES]
        pd.testing.assert_frame_equal(
            again.drop(columns=slopes), shipped.drop(columns=slopes).reset_index(drop=True), check_dtype=False
        )
        # An optimiser is in between, and the shipped digits are four.
        np.testing.assert_allclose(again[slopes], shipped[slopes], atol=2e-4)


def test_seeds_of_the_data_set_differ():
    keys = [(n, i, c) for n in NETWORKS for i in generate.INSTANCES for c in CONDITIONS]
    assert len({generate.seed(*key) for key in keys}) == 110


def test_mask_is_standard_normal_and_only_in_the_segments_of_a_knock_out():
    table = load("circadian")
    noise = {gene: table[gene] % 1 != 0 for gene in GENES}
    for gene, name in (("GI", "ko_GI"), ("LHY", "ko_LHY"), ("TOC1", "ko_TOC1"), ("PRR7", "ko_PRR7_PRR9")):
        assert (noise[gene] == (table["condition"] == name)).all()
    assert not (noise["NI"] | noise["Y"]).any()
    draws = np.concatenate([table[gene][noise[gene]] for gene in GENES])
    assert len(draws) == 5 * 130 and stats.kstest(draws, "norm").pvalue > 1e-3
    assert not too_wide_or_narrow(draws) and too_wide_or_narrow(1.2 * draws) and too_wide_or_narrow(draws / 1.2)
    with pytest.raises(CrossfadeError, match="was knocked out and has counts"):
        regression.masked(np.ones((13, 2)), [1], np.random.default_rng(1))


def kernel(a, b, log):
    return np.exp(log[1]) * np.exp(-((a[:, None] - b) ** 2) / (2 * np.exp(2 * log[0])))


def log_posterior(log, x):
    covariance = kernel(regression.HOURS, regression.HOURS, log) + 0.1 * np.eye(13)
    return stats.multivariate_normal(np.zeros(13), covariance).logpdf(x) + stats.t(4).logpdf(np.exp(log[0])) + log[0]


def some_segments():
    table = load("circadian")
    return [
        table[gene].to_numpy(float)[13 * i : 13 * i + 13] for i, gene in enumerate(("PRR9", "Y", "LHY", "TOC1", "NI"))
    ]


def test_gradient_is_that_of_the_posterior_mean():
    hours = regression.HOURS
    for counts in some_segments():
        x = counts - counts.mean()
        log = regression.fit(x)
        weights = np.linalg.solve(kernel(hours, hours, log) + 0.1 * np.eye(13), x)
        apart = hours[:, None] - hours
        formula = (-apart / np.exp(2 * log[0]) * kernel(hours, hours, log)) @ weights
        got = regression.gradient(counts)
        np.testing.assert_allclose(got, formula, atol=1e-6)
        step = 1e-4
        rise = (kernel(hours + step, hours, log) - kernel(hours - step, hours, log)) @ weights / (2 * step)
        np.testing.assert_allclose(got, rise, atol=1e-4)
        # One length too few, and the slopes of all curves are wrong.
        wrong = (-apart / np.exp(log[0]) * kernel(hours, hours, log)) @ weights
        assert np.abs(got - wrong).max() > 0.5


def test_length_and_amplitude_are_at_the_mode():
    random = rng(2)
    for counts in some_segments():
        x = counts - counts.mean()
        log = regression.fit(x)
        best = log_posterior(log, x)
        assert all(log_posterior(log + 0.02 * random.normal(size=2), x) <= best for _ in range(20))


def test_gradient_of_a_known_curve():
    hours = regression.HOURS
    curve, slope = 50 + 40 * np.sin(2 * np.pi * hours / 24), 40 * 2 * np.pi / 24 * np.cos(2 * np.pi * hours / 24)
    assert np.abs(regression.gradient(curve) - slope).max() < 0.1
    assert np.abs(regression.coarse_gradient(curve) - slope).max() > 0.4  # what the process is there for
    np.testing.assert_allclose(regression.gradient(curve + 1000), regression.gradient(curve), atol=1e-5)


def test_a_constant_segment_does_not_change():
    assert not regression.gradient(np.full(13, 7.0)).any()
    dark = load("circadian").query("condition == 'DD'")
    assert not dark["GI"].any() and not dark["dGI"].any()


def test_coarse_gradient():
    x = np.array([1.0, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8])
    assert regression.coarse_gradient(x)[[0, 1, 2, 11, 12]].tolist() == [2, 0.25, -0.75, 1.5, 3]
