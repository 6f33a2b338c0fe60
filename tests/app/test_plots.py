"""Pictures and the table of a prior's scale: they say what the numbers say, and refuse with a way out."""

import sys

import numpy as np
import pytest

from crossfade.app import plots, terminal
from crossfade.app.page import of_sensitivity
from crossfade.methods.sensitivity import Sensitivity
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing, Trace

PNG = b"\x89PNG"


def curve(*values: float, k: tuple[float, ...] | None = None) -> Sensitivity:
    factors = 2.0 ** np.arange(-1, len(values) - 1)
    estimates = tuple(Estimate(value, 0.1, 31.0, "mbar") for value in values)
    tails = np.array([[-np.inf] * len(values), k or [0.1] * len(values)])
    return Sensitivity("group[T.b]", factors, tuple(f"Normal(0, {f:g})" for f in factors), estimates, tails)


def page(sensitivity: Sensitivity) -> str:
    written = terminal._written(of_sensitivity(sensitivity), terminal.console(coloured=False))
    assert max(map(len, written.splitlines())) <= 80
    return " ".join(written.split())


def test_the_table_says_where_the_answer_changes():
    text = page(curve(1.0, 0.5, -0.5, -3.0, k=(0.1, -np.inf, 0.2, 0.9)))
    for expected in (
        "Prior of group[T.b]", "x 0.5", "Normal(0, 0.5)", "1.00 ± 0.10", "0.90", "not reliable",
        "changes sides at x 1.41: it depends on the prior of group[T.b]",
    ):  # fmt: skip
        assert expected in text, expected
    assert text.count("not reliable") == 2  # of the last row, and of the legend


def test_the_table_says_how_far_the_answer_stands(capsys):
    assert "favoured from x 0.5 to x 2 (a log Bayes factor of 0.50 to 2.00)" in page(curve(1.0, 0.5, 2.0))
    assert "0 is within the error of some" in page(curve(1.0, 0.1, 2.0))
    assert "None of these scales" in page(curve(1.0, 0.5, k=(0.9, np.inf)))
    assert "changes sides within a part from x 0.5 to x 2 that" in page(curve(1.0, 0.1, -1.0, k=(0.1, 0.9, 0.1)))
    assert "Reliable at x 1 alone" in page(curve(-np.inf, 0.5))
    terminal.show(*of_sensitivity(curve(1.0, 0.5)))
    assert "Prior of group[T.b]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "sensitivity",
    [
        curve(1.0, 0.5, -0.5, -3.0, k=(0.1, 0.1, 0.2, 0.9)),
        curve(500.0, 501.0, 502.0),
        curve(-np.inf, 0.5, np.nan, k=(np.inf, 0.1, np.inf)),
        curve(1.0, 2.0, k=(0.9, 0.9)),
    ],
)
def test_a_curve_is_drawn(sensitivity, tmp_path):
    plots.plot_sensitivity(sensitivity, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)


def test_zero_is_shown_unless_it_would_flatten_the_curve():
    def limits(*values: float) -> tuple[float, float]:
        numbers = np.array(values)
        return plots._limits(numbers - 0.1, numbers + 0.1, numbers)

    assert limits(2.0, 3.0)[0] < 0 < limits(2.0, 3.0)[1]
    assert limits(500.0, 502.0)[0] > 499


def trace(tau, *, n_draws: int = 40, equilibrium: bool = True, gap: float = 0.0) -> Trace:
    """Normal ratios of variance 4 along the path; `gap` drives the two ends apart."""
    tau = np.asarray(tau, float)
    random = np.random.default_rng(len(tau))
    log_ratio = random.normal((4 + gap) * tau[None, :, None] - 2, 2.0, (8, len(tau), n_draws))
    log_ratio[0, 0, 0] = -np.inf
    return Trace(tau, log_ratio, np.ones(log_ratio.shape[:2]), equilibrium)


def result(*legs: Leg) -> Result:
    return Result(Estimate(0.0, 0.1, 15.0, "mbar"), "weak", (), {}, {}, {}, legs, Sharing((), (), ()), {})


PATHS = {
    "two halves, rungs written twice": [(0.5, trace([0, 0, 0.4, 1])), (0.5, trace([0, 0, 0.4, 1]))],
    "the ends alone": [(0.5, trace([0, 1])), (0.5, trace([0, 1]))],
    "no overlap": [(1.0, trace([0, 1], gap=1e6))],
    "a sweep": [(1.0, trace(np.linspace(0, 1, 300), n_draws=1, equilibrium=False))],
    "two legs": [(-1.0, trace(np.linspace(0, 1, 20) ** 5)), (1.0, trace(np.linspace(0, 1, 20) ** 5))],
}


@pytest.mark.parametrize("case", PATHS)
def test_a_path_is_drawn(case, tmp_path):
    legs = [Leg(f"leg {i}", sign, own, None) for i, (sign, own) in enumerate(PATHS[case])]
    plots.plot_path(result(*legs), tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(PNG)
    plots.plot_path(result(*legs)._replace(verdict="do not use"), tmp_path / "none.png")
    assert case == "two legs" or (tmp_path / "none.png").read_bytes() != (tmp_path / "path.png").read_bytes()


def test_overlaps_are_those_of_the_rungs():
    (start, end, shared), (_, last, _) = plots.overlaps_of(trace([0, 0, 0.4, 1]))
    assert (start, end, last) == (0.0, 0.4, 1.0)
    assert 0.3 < shared < 0.5
    assert plots.overlaps_of(trace([0, 1], gap=1e6)) == [(0.0, 1.0, pytest.approx(0.0, abs=1e-12))]
    assert plots.overlaps_of(trace([0, 1], n_draws=1, equilibrium=False)) == []


def test_what_cannot_be_drawn_is_said(tmp_path, monkeypatch):
    with pytest.raises(CrossfadeError, match="no path to draw"):
        plots.plot_path(result(), tmp_path / "path.png")
    with pytest.raises(CrossfadeError, match=r"curve.xyz: end the name of the picture with one of .*\.png"):
        plots.plot_sensitivity(curve(1.0, 2.0), tmp_path / "curve.xyz")
    with pytest.raises(CrossfadeError, match=r"folder .*nowhere does not exist"):
        plots.plot_sensitivity(curve(1.0, 2.0), tmp_path / "nowhere" / "curve.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(CrossfadeError, match=r"pip install 'crossfade\[plot\]'"):
        plots.plot_sensitivity(curve(1.0, 2.0), tmp_path / "curve.png")
    assert list(tmp_path.iterdir()) == []
