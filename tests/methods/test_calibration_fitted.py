"""Error bars of the default method over many seeds, and traps: how often is a trusted answer wrong?"""

import numpy as np
import pytest
from traps import TRAPS

from crossfade.api import compare
from crossfade.worlds import linear
from crossfade.worlds.glm import logistic, mixed

N_SEEDS = 100


def pairs():
    radiata = linear.radiata()
    return {
        "pima": (logistic.pima(), -2.625013, 0.002),
        "radiata": (radiata, linear.log_evidence(radiata[1]) - linear.log_evidence(radiata[0]), 0.002),
        "mixed": (mixed.pair(100), mixed.REFERENCE[100][0], 0.01),
    }


def z_scores(pair, truth, target_se):
    found = []
    for seed in range(N_SEEDS):
        estimate = compare(*pair, target_se=target_se, seed=seed).raw_estimate
        found.append((estimate.value - truth) / estimate.error)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pima", "radiata", "mixed"])
def test_error_bars_over_a_hundred_seeds(name):
    z = z_scores(*pairs()[name])
    print(f"{name}: mean z {z.mean():+.2f}, variance {np.mean(z**2):.2f}, largest {np.abs(z).max():.2f}")
    assert 0.7 < np.mean(z**2) < 1.4
    # the wrong twin: errors as if all draws were independent of the fits and of each other, half as large
    assert not 0.7 < np.mean((2 * z) ** 2) < 1.4


@pytest.mark.slow
def test_trusted_answers_of_traps_are_right():
    trusted, wrong, lines = 0, 0, []
    for name, make in TRAPS.items():
        trap = make()
        words = {"trustworthy": 0, "weak": 0, "do not use": 0}
        off = 0
        for seed in range(20):
            draws = trap.draws(seed) if trap.draws else None
            result = compare(trap.m1, trap.m2, seed=seed, draws=draws, budget=60)
            words[result.verdict] += 1
            estimate = result.log_bayes_factor
            off += result.verdict == "trustworthy" and abs(estimate.value - trap.truth) > 4 * estimate.error
        trusted, wrong = trusted + words["trustworthy"], wrong + off
        lines.append(f"{name:16s} {words}  trusted and off by more than 4 errors: {off}")
    print("\n".join([*lines, f"{wrong} of {trusted} trusted answers wrong"]))
    assert trusted > 60  # a verdict that trusts nothing would pass
    assert wrong <= 0.01 * trusted
