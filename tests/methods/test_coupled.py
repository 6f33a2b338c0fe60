"""Coupled importance sampling: its densities, its coupling, its error."""

import numpy as np
import pytest
from assertions import assert_estimate, rng
from scipy.stats import multivariate_normal, multivariate_t

from crossfade.analysis.weights import weight_share
from crossfade.methods.coupled import NOTHING, Coupled, Side, Stream, Student, around_mode, fitted, refined, split
from crossfade.methods.coupled import weighted as weighted_points

ROOT = np.array([[1.0, 0.0], [0.6, 0.8]])


def student(widths=((1.0, 1.0), (1.0, 1.0)), dof=5.0):
    return Student(np.array([1.0, -1.0]), ROOT, np.array(widths), dof)


def normal(mean, covariance, log_z=0.0):
    own = multivariate_normal(mean, covariance)
    return lambda points: np.atleast_1d(own.logpdf(points)) + log_z


def test_an_even_student_is_scipys():
    points, log_density = student().drawn(rng(1).uniform(size=(50, 3)))
    theirs = multivariate_t([1.0, -1.0], ROOT @ ROOT.T, df=5.0).logpdf(points)
    np.testing.assert_allclose(log_density, theirs, rtol=1e-12)
    np.testing.assert_allclose(student().log_density(points), theirs, rtol=1e-12)


def test_a_split_student_is_normalised_and_drawn_from_its_density():
    own = student(widths=((0.5, 2.0), (1.5, 0.7)), dof=8.0)
    axis = np.linspace(-40, 40, 1601)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    mass = np.exp(own.log_density(grid)) * (axis[1] - axis[0]) ** 2
    assert mass.sum() == pytest.approx(1, abs=2e-4)
    points, log_density = own.drawn(rng(2).uniform(size=(40_000, 3)))
    np.testing.assert_allclose(own.log_density(points), log_density, rtol=1e-9)
    sd = points.std(axis=0)
    np.testing.assert_allclose(points.mean(axis=0), mass @ grid, atol=5 * sd.max() / 200)
    assert (points[:, 0] < 1.0).mean() == pytest.approx(0.25, abs=0.01)  # 0.5 / (0.5 + 1.5)


@pytest.mark.parametrize("skewness", [-0.6, 0.0, 0.3])
def test_two_halves_with_the_asked_moments(skewness):
    centre, widths = split(np.array([skewness]))
    own = Student(centre, np.eye(1), widths, 1e7)
    points, _ = own.drawn(np.column_stack([np.full(100_001, 0.5), (np.arange(100_001) + 0.5) / 100_001]))
    assert points.mean() == pytest.approx(0, abs=1e-3)
    assert points.var() == pytest.approx(1, abs=1e-3)
    assert (points**3).mean() == pytest.approx(skewness, abs=2e-3)


def test_no_side_is_so_narrow_that_mass_is_cut_off():
    _, widths = split(np.array([-5.0, 5.0]))
    assert widths.min() > 0.4


def test_known_evidences_and_what_is_shared_cancels():
    """Two normals with log evidences 3 and 5; the t of their three shared coordinates is far off, that of the rest is
    not."""
    first, second = normal(np.zeros(3), np.eye(3), 3.0), normal(np.zeros(4), np.eye(4), 5.0)
    sides = (
        Side(first, Student(np.full(3, 0.5), 1.5 * np.eye(3), ones(3), 8.0)),
        Side(second, Student(np.array([0.5, 0.5, 0.5, 0.0]), np.diag([1.5, 1.5, 1.5, 1.0]), ones(4), 8.0)),
    )
    coupled, apart = Coupled(sides, 3, 0), Coupled(sides, 0, 0)
    for both in (coupled, apart):
        both.more(256)
        assert_estimate(both.answer().estimate(), 2.0, max_error=0.03)
    assert coupled.answer().variance < 0.3 * apart.answer().variance
    with pytest.raises(AssertionError, match="sigma"):
        assert_estimate(coupled.answer().estimate(), 2.05, max_error=0.03)


def ones(d):
    return np.ones((2, d))


def test_errors_are_right_over_seeds():
    """z of 200 seeds: skewed targets, from a t around the mode as it is."""

    def log_gamma(points):  # exp(u) ~ Gamma(4, 1)
        return (4 * points - np.exp(points)).sum(axis=1) - points.shape[1] * np.log(6.0)

    side = Side(log_gamma, around_mode(np.full(2, np.log(4.0)), np.diag([4.0, 4.0])))
    z = []
    for seed in range(200):
        both = Coupled((NOTHING, side), 0, seed)
        both.more(64)
        estimate = both.answer().estimate()
        z.append(estimate.value / estimate.error)
    assert 0.6 < np.mean(np.square(z)) < 1.5  # Student's t with 15 degrees of freedom: 1.15
    assert np.abs(z).max() < 6


def test_more_points_leave_the_first_as_they_were():
    side = Side(normal([0.0], [[1.0]]), Student(np.zeros(1), np.eye(1), ones(1), 8.0))
    once, twice = Coupled((NOTHING, side), 0, 7), Coupled((NOTHING, side), 0, 7)
    once.more(64)
    twice.more(32)
    before = twice.weighted[1].points.copy()
    twice.more(32)
    np.testing.assert_array_equal(before, twice.weighted[1].points[:, :32])
    np.testing.assert_array_equal(once.weighted[1].points, twice.weighted[1].points)


def test_numbers_are_inside_the_interval():
    uniform = Stream(3, (0,)).more(4096)
    assert uniform.min() > 0 and uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=1e-3)


def test_fitting_makes_weights_even():
    """A log gamma with a long tail below: the curvature at its mode knows nothing of it."""

    def log_density(points):
        return (0.4 * points - np.exp(points)).sum(axis=1)

    side = Side(log_density, around_mode(np.full(3, np.log(0.4)), 0.4 * np.eye(3)))
    uniform = Stream(4, (3,)).more(256)
    before, after = (weight_share(weighted_points(s, uniform).log_weight) for s in (side, refined(side, 0, 4096)))
    assert after > before
    assert after > 0.6


def test_few_heavy_points_ask_for_a_wider_look():
    side = Side(normal([30.0, 0.0], np.eye(2)), student())
    own = weighted_points(side, Stream(3, (0,)).more(16))
    later = fitted(own, side.proposal)
    assert later.root[0, 0] > ROOT[0, 0] and later.centre[0] > 1.0
