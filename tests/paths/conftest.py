import pytest

from crossfade.density.precision import float64


@pytest.fixture(autouse=True)
def double_precision():
    with float64():
        yield
