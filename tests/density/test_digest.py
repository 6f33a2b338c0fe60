"""The digest of responses: of their values, whatever their order."""

import numpy as np
import pandas

import crossfade
from crossfade.density.digest import digest


def test_the_digest_is_of_the_values():
    y = np.array([0.3, -0.2, 0.0])
    assert digest(y) == digest([-0.0, 0.3, -0.2]) == digest(y.reshape(3, 1))
    assert digest(y).startswith("3 responses, SHA-256 ") and digest(y) != digest(y + 1e-12)
    assert digest(None) == ""


def test_results_and_rankings_say_which_data_they_are_of():
    table = pandas.DataFrame({"y": [1.0, 2.0, 4.0, 3.0], "x": [0.0, 1.0, 2.0, 4.0]})
    pair = crossfade.from_formulas(table, "y ~ 1", "y ~ x", scaling="raw")
    expected = digest(table["y"])
    assert crossfade.compare(*pair).about["responses"] == expected
    ranking = crossfade.rank(crossfade.from_many_formulas(table, "y ~ 1", "y ~ x", scaling="raw"), progress=False)
    assert ranking.about["responses"] == expected
