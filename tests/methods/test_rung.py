"""Rungs: where the next one goes, where more draws go, and how they are written down."""

import numpy as np
import pytest

from crossfade.methods.rung import Rung, allocate, legs_of, middle

SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


def test_the_middle_of_two_rungs_halves_the_length_between():
    """Where the spread of the ratio falls from 3 to 1, more of the way lies at the wide end."""
    wide, narrow = (
        Rung(tau, (sd * SIGNS, sd * SIGNS), (SIGNS[:, :, None],) * 2) for tau, sd in ((0.0, 3.0), (1.0, 1.0))
    )
    t = middle(wide, narrow)
    assert 3 * t - t**2 == pytest.approx((3 - 1) / 2)
    endless = narrow._replace(ratio=(np.full((2, 2), np.inf),) * 2)
    assert middle(wide, endless) == 0.5 and middle(wide, wide._replace(tau=1.0)) == 0.5


def test_rungs_of_unequal_length_are_written_as_several():
    short, long = (
        Rung(tau, (np.arange(4.0 * n).reshape(4, n),) * 2, (np.zeros((4, n, 1)),) * 2)
        for tau, n in ((0.0, 50), (1.0, 150))
    )
    first, second = legs_of((short, long))
    assert first.forward.tau.tolist() == [0.0, 1.0, 1.0, 1.0] and first.sign == second.sign == 0.5
    assert first.forward.log_ratio.shape == (4, 4, 50)
    np.testing.assert_array_equal(first.forward.log_ratio[2, 1:].ravel(), long.ratio[0][2])
    odd = long._replace(ratio=(long.ratio[0][:, :77],) * 2)  # the user's: the oldest draws are dropped
    leg = legs_of((short, odd))[0]
    np.testing.assert_array_equal(leg.forward.log_ratio[:, 1], odd.ratio[0][:, 27:])


def test_draws_go_where_they_help_most():
    random = np.random.default_rng(1)

    def rung(tau, sd):
        return Rung(tau, tuple(sd * random.normal(size=(8, 100)) for _ in (0, 1)), (np.zeros((8, 100, 1)),) * 2)

    even = allocate((rung(0.0, 1.0), rung(1.0, 1.0)), 2.0, 100)
    assert even[0] == pytest.approx(100, abs=100) and sum(even) >= 200
    wide, narrow = allocate((rung(0.0, 5.0), rung(1.0, 0.5)), 4.0, 100)
    assert wide > 3 * narrow >= 0
