"""Chains with a region at the edge that they seldom enter and seldom leave."""

import numpy as np
from assertions import rng


def draws_with_a_side(stay, n_draws=100, share=0.06, height=4.0):
    """32 chains of a standard normal with a side that holds `share` of the mass and is left after `stay` draws."""
    random = rng(3)
    inside = random.uniform(size=32) < share
    leave, enter = 1 / stay, share / (1 - share) / stay
    found = np.empty((32, n_draws))
    for k in range(n_draws):
        found[:, k] = np.where(inside, height, 0.0) + random.normal(size=32)
        inside ^= random.uniform(size=32) < np.where(inside, leave, enter)
    return found[:, :, None]
