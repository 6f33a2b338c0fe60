"""What is typed for an error and a budget, and what it means."""

import numpy as np
import pytest

from crossfade.methods.budget import TARGET_SE, asked
from crossfade.types import CrossfadeError


def test_budgets_are_read():
    assert asked(None, None) == (TARGET_SE, 600.0, None)
    assert asked(0.05, "5 min").seconds == 300 and asked(0.05, 7).seconds == 7
    assert asked(0.05, "2 h").seconds == 7200 and asked(0.05, "1_000 s").seconds == 1000
    assert asked(0.05, "20,000 draws") == (0.05, None, 20_000)
    assert asked(0.05, "1,5 min").seconds == 90 and asked(0.05, "1,000.5 s").seconds == 1000.5
    assert asked(np.float32(0.5), np.int64(60)) == (0.5, 60.0, None)


@pytest.mark.parametrize(
    "bad", ["soon", -1, 0, "5 parsecs", float("inf"), float("nan"), [1], "1.2.3 s", "1,2,3 s", True, "0 draws"]
)
def test_budgets_that_are_none(bad):
    with pytest.raises(CrossfadeError, match="budget"):
        asked(0.05, bad)


@pytest.mark.parametrize("bad", [0.0, -0.1, "a", float("nan"), True])
def test_errors_that_are_none(bad):
    with pytest.raises(CrossfadeError, match="target_se"):
        asked(bad, None)
