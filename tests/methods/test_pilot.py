"""First draws: when they are thrown away and made anew."""

from types import SimpleNamespace

import numpy as np
from assertions import rng

from crossfade.methods.pilot import _slow


def with_a_side(stay):
    """32 chains that enter a side of 6 % of the mass, and leave it after `stay` draws on average."""
    random = rng(3)
    inside, found = random.uniform(size=32) < 0.06, np.empty((32, 100, 1))
    for k in range(100):
        found[:, k, 0] = 2.5 * inside + random.normal(size=32)
        inside ^= random.uniform(size=32) < np.where(inside, 1, 0.06 / 0.94) / stay
    return SimpleNamespace(u=found)


def test_first_draws_that_seldom_reach_the_edges_start_again():
    assert _slow(with_a_side(stay=25))
    assert not _slow(with_a_side(stay=1.1))


def test_chains_in_separate_places_are_for_others_to_bring_together():
    apart = SimpleNamespace(u=rng(4).normal(size=(32, 100, 1)) + 9.0 * (np.arange(32) % 2)[:, None, None])
    assert not _slow(apart)
