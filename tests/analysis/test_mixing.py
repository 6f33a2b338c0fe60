"""Effective draws at the edges: a region that chains seldom enter and seldom leave."""

import numpy as np
from assertions import rng
from sides import draws_with_a_side

from crossfade.analysis.judge import EFFECTIVE
from crossfade.analysis.mixing import mixing, tail_effective


def test_independent_draws_have_as_many_at_the_edges():
    effective = tail_effective(rng(4).normal(size=(32, 100, 3)))
    assert 0.6 * 3200 < effective < 1.5 * 3200


def test_a_side_that_is_seldom_entered_shows_at_the_edges():
    sticky, quick = draws_with_a_side(stay=20), draws_with_a_side(stay=1.1)
    assert tail_effective(sticky) < EFFECTIVE[0] < tail_effective(quick)
    assert tail_effective(sticky) < mixing(sticky).effective


def test_a_side_in_one_coordinate_of_many_is_found():
    others = rng(5).normal(size=(32, 100, 300))
    assert tail_effective(others) > EFFECTIVE[0]
    assert tail_effective(np.concatenate([others, draws_with_a_side(stay=20)], axis=2)) < EFFECTIVE[0]


def test_nothing_to_mix():
    assert tail_effective(np.zeros((32, 100, 0))) == np.inf
    assert mixing(np.zeros((32, 100, 0))).effective == np.inf
