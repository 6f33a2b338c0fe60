"""Waves of a series: exact for a random walk, and for a series that returns to its mean all but the last corner."""

import numpy as np
import pytest

from crossfade.density.precision import float64
from crossfade.density.series import Series, waves

N = 40


def test_waves_are_orthonormal_and_those_of_a_walk():
    step = np.arange(1, N + 1)
    with float64():
        _, scale = Series(np.zeros(()), None, 0.0, np.ones(()), np.ones(())).in_waves(waves(N, False), np.zeros(()))
    height = waves(N, False) * np.asarray(scale)
    np.testing.assert_allclose(height @ height.T, np.minimum.outer(step, step), atol=1e-11)
    for free in (False, True):
        np.testing.assert_allclose(waves(N, free).T @ waves(N, free), np.eye(N), atol=1e-12)


@pytest.mark.parametrize("pull", [-0.6, 0.0, 0.5, 0.97])
def test_precision_of_a_series_is_diagonal_in_its_waves_but_for_a_corner(pull):
    """x_t - pull x_{t-1} = 2 noise_t has precision A'A / 4; the waves are exact once its last entry is made so."""
    a = np.eye(N) - pull * np.eye(N, k=-1)
    precision = a.T @ a / 4
    precision[-1, -1] += ((1 - pull) ** 2 - (1 - pull)) / 4
    with float64():
        _, scale = Series(np.zeros(()), None, 0.0, np.asarray(pull), np.full((), 2.0)).in_waves(
            waves(N, False), np.zeros(())
        )
    rotated = waves(N, False).T @ precision @ waves(N, False)
    np.testing.assert_allclose(rotated, np.diag(np.asarray(scale) ** -2), atol=1e-12)


def test_mean_of_the_waves_is_that_of_the_path():
    with float64():
        loc, _ = Series(np.full((), 3.0), None, 0.5, np.full((), 0.8), np.ones(())).in_waves(
            waves(N, False), np.zeros(())
        )
    path = [3.0]
    for _ in range(N - 1):
        path.append(0.5 + 0.8 * path[-1])
    np.testing.assert_allclose(waves(N, False) @ np.asarray(loc), path, atol=1e-10)
