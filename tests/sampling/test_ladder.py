import numpy as np
import pytest

from crossfade.sampling import ladder
from crossfade.types import CrossfadeError


@pytest.mark.parametrize("make", [ladder.linear, ladder.power, ladder.sigmoid])
@pytest.mark.parametrize("n", [*range(2, 40), 99, 1000, 64_001])
def test_every_ladder_goes_from_0_to_1_and_never_back(make, n):
    tau = make(n)
    assert tau.shape == (n,) and tau[0] == 0 and tau[-1] == 1
    assert np.all(np.diff(tau) >= 0)
    assert np.all(np.diff(tau[tau < 0.5]) > 0)


@pytest.mark.parametrize("n", [4, 10, 11, 100, 101, 4000])
def test_sigmoid_is_symmetric_and_odd_ones_have_a_middle(n):
    tau = ladder.sigmoid(n)
    np.testing.assert_allclose(tau + tau[::-1], 1, atol=1e-15)
    assert (0.5 in tau) == bool(n % 2)


def test_the_papers_floor_is_the_wrong_twin():
    """With N* = floor(x*) the lower half passes 1/2: ten points contain tau = 1 in their middle."""

    def printed(n, alpha=5):
        n_star = np.floor(n / 2 * 0.5 ** (-1 / alpha))
        half = (np.arange(1, n // 2 + 1) / n_star) ** alpha
        return np.concatenate([half, 1 - half[::-1]])

    assert printed(10)[4] == 1.0
    for n in (10, 20, 100, 1000):
        assert np.any(np.diff(printed(n)) < 0)
        assert np.all(np.diff(ladder.sigmoid(n)) >= 0)


def test_sigmoid_spends_as_much_of_the_lower_half_as_the_condition_allows():
    for n in (10, 100, 1000):
        below = ladder.sigmoid(n)[1 : n // 2]
        n_star = 1 / below[0] ** 0.2
        assert below[-1] < 0.5 <= (len(below) / (n_star - 1)) ** 5 * (1 + 1e-9)


def test_power_is_the_power_law():
    np.testing.assert_allclose(ladder.power(5, 3), (np.arange(5) / 4) ** 3)


def test_too_short_a_ladder_is_refused():
    with pytest.raises(CrossfadeError, match="at least 2 rungs"):
        ladder.sigmoid(1)


def test_tangents_meet_where_the_formula_of_the_seed_says():
    a, b = ladder.Rung(0.1, -5.0, 40.0), ladder.Rung(0.7, 3.0, 2.0)
    by_formula = (b.mean - a.mean + a.tau * a.variance - b.tau * b.variance) / (a.variance - b.variance)
    assert ladder.tangents_meet(a, b) == pytest.approx(by_formula, abs=1e-14)
    # printed with f in place of t (Friel, Hurn & Wyse, eq. 17) it leaves the interval
    wrong = (b.mean - a.mean + a.mean * a.variance - b.mean * b.variance) / (a.variance - b.variance)
    assert not a.tau < wrong < b.tau
    flat = ladder.Rung(0.7, 3.0, 40.0)
    assert ladder.tangents_meet(a, flat) == pytest.approx(0.4)


def test_triangle_is_the_area_between_chord_and_tangents():
    a, b = ladder.Rung(0.0, 0.0, 3.0), ladder.Rung(1.0, 1.0, 0.5)
    tau = ladder.tangents_meet(a, b)
    height = 3.0 * tau - tau
    assert ladder.triangle(a, b) == pytest.approx(height / 2)
    assert ladder.rectangle(a, b) == pytest.approx(0.5)


def curved(tau):
    """Mean and variance of a run whose log Z bends most near 0, at a place that is the run's own."""
    sharp = np.array([1e-3, 1e-2, 0.1])
    return ladder.Rung(np.broadcast_to(tau, 3), np.log(tau + sharp), 1 / (tau + sharp))


def test_every_run_places_its_own_rungs():
    together = ladder.place_by_tangents(curved, 12)
    assert together.tau.shape == (3, 12) and (np.diff(together.tau) > 0).all()
    for i in range(3):
        alone = ladder.place_by_tangents(lambda tau, i=i: ladder.Rung(*(v[i] for v in curved(tau))), 12)
        np.testing.assert_array_equal(np.array(alone), np.array(together)[:, i])
    # the wrong twin: one ladder for all, placed by the mean of the runs
    pooled = ladder.place_by_tangents(lambda tau: ladder.Rung(*(v.mean() for v in curved(tau))), 12)
    assert (np.abs(together.tau - pooled.tau).max(axis=1) > 1e-3).all()


def test_runs_may_have_different_numbers_of_rungs_in_any_order():
    rungs = ladder.place_by_tangents(curved, 8)
    fewer = ladder.Rung(*(np.array(values) for values in rungs))
    for values in fewer:
        values[0, 2:] = np.nan
    shuffled = fewer.at(np.tile([3, 7, 0, 2, 6, 1, 4, 5], (3, 1)))
    found = ladder.next_by_tangents(shuffled)
    np.testing.assert_array_equal(found[1:], ladder.next_by_tangents(rungs)[1:])
    assert found[0] == ladder.next_by_tangents(ladder.Rung(*(values[0, :2] for values in rungs)))
    assert found[0] != ladder.next_by_tangents(rungs)[0]


def test_a_rung_goes_to_the_middle_where_tangents_do_not_meet():
    ends = np.array([0.0, 1.0])
    for mean, variance in ((ends, (2.0, 2.0)), (ends, (1.1, 1.05)), ((-np.inf, 0.0), (np.nan, 1.0))):
        assert ladder.next_by_tangents(ladder.Rung(ends, np.array(mean), np.array(variance))) == 0.5


def test_equal_length_halves_the_length_of_a_known_path():
    """For V = 4 / (tau + e)^2 the length is 2 log((tau + e)/e): equal steps of the logarithm."""
    e = 1e-4
    pilot = ladder.sigmoid(200)
    make = ladder.equal_length(pilot, 4 / (pilot + e) ** 2)
    tau = make(101)
    assert tau[0] == 0 and tau[-1] == 1
    exact = e * (1 / e + 1) ** (np.arange(101) / 100) - e
    length = np.diff(2 * np.log((tau + e) / e))
    np.testing.assert_allclose(length, length.mean(), rtol=0.05)
    np.testing.assert_allclose(tau[1:-1], exact[1:-1], rtol=0.05)


def test_equal_length_of_a_constant_variance_is_linear():
    np.testing.assert_allclose(ladder.equal_length(ladder.power(9), np.full(9, 2.0))(11), ladder.linear(11), atol=1e-12)


def test_equal_length_refuses_a_variance_of_zero():
    with pytest.raises(CrossfadeError, match="longer pilot"):
        ladder.equal_length(ladder.linear(3), np.array([1.0, 0.0, 1.0]))
