"""First draws: when they are thrown away and made anew."""

from types import SimpleNamespace

import numpy as np
from assertions import rng
from sides import draws_with_a_side

from crossfade.methods.pilot import _slow


def test_first_draws_that_seldom_reach_the_edges_start_again():
    assert _slow(SimpleNamespace(u=draws_with_a_side(stay=25, height=2.5)))
    assert not _slow(SimpleNamespace(u=draws_with_a_side(stay=1.1, height=2.5)))


def test_chains_in_separate_places_are_for_others_to_bring_together():
    apart = SimpleNamespace(u=rng(4).normal(size=(32, 100, 1)) + 9.0 * (np.arange(32) % 2)[:, None, None])
    assert not _slow(apart)
