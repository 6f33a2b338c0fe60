"""Pictures: they show the numbers of the record, and refuse with a way out."""

import sys

import numpy as np
import pytest
import stored

import crossfade
from crossfade.app import plots, terminal
from crossfade.app.page import of_sensitivity
from crossfade.app.plots import curves, path, priors, rankings, style
from crossfade.app.plots.parameters import own_parameters
from crossfade.app.words import with_error
from crossfade.many import Many
from crossfade.methods.sensitivity import Sensitivity
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing, Trace

PNG = b"\x89PNG"
HOSTILE = "<script>alert(1)</script> $x^2$ " + "very_long_name" * 12


def curve(*values: float, k: tuple[float, ...] | None = None) -> Sensitivity:
    factors = 2.0 ** np.arange(-1, len(values) - 1)
    estimates = tuple(Estimate(value, 0.1, 31.0, "mbar") for value in values)
    tails = np.array([[-np.inf] * len(values), k or [0.1] * len(values)])
    return Sensitivity("group[T.b]", factors, tuple(f"Normal(0, {f:g})" for f in factors), estimates, tails)


def page(sensitivity: Sensitivity) -> str:
    written = terminal._written(of_sensitivity(sensitivity), terminal.console(coloured=False))
    assert max(map(len, written.splitlines())) <= 80
    return " ".join(written.split())


def words(figure) -> str:
    """All that is written in a picture."""
    found = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    return " ".join(" ".join(found).split())


def tips(figure) -> list[str]:
    found = [artist.get_gid() or "" for artist in figure.findobj()]
    return [gid.removeprefix(style.TIP) for gid in found if gid.startswith(style.TIP)]


# Sensitivity ------------------------------------------------------------------------------------------------------


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
    figure = sensitivity.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)
    assert f"at × 1: {with_error(sensitivity.estimates[1])} with Normal(0, 1)" in words(figure)
    assert len(tips(figure)) == len(sensitivity.factors)


def test_where_a_curve_changes_sides_is_marked_on_the_side_that_is_free():
    for values, above in (((1.0, 0.5, -0.5, -3.0), True), ((-3.0, -0.5, 0.5, 1.0), False)):
        figure = curve(*values).plot()
        (mark,) = [text for text in figure.axes[0].texts if "changes sides" in text.get_text()]
        assert (mark.xyann[1] > 0) == above


def test_zero_is_shown_unless_it_would_flatten_the_curve():
    def limits(*values: float) -> tuple[float, float]:
        numbers = np.array(values)
        return curves._limits(numbers - 0.1, numbers + 0.1, numbers)

    assert limits(2.0, 3.0)[0] < 0 < limits(2.0, 3.0)[1]
    assert limits(500.0, 502.0)[0] > 499


# Results ----------------------------------------------------------------------------------------------------------

SHOWN = {
    "auto": {"ratios", "integrand", "overlap", "convergence", "differs"},
    "mbar": {"ratios", "integrand", "overlap", "convergence", "opinions"},
    "neti_diff": {"ratios", "integrand", "convergence", "opinions"},
}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("kind", plots.OF_RESULT)
def test_every_kind_of_picture_of_a_real_run(name, kind, tmp_path):
    result = stored.run(name)
    if kind not in SHOWN[name]:
        with pytest.raises(CrossfadeError, match=r'method="|plot "'):
            result.plot(kind, tmp_path / "none.png")
        assert list(tmp_path.iterdir()) == []
        return
    figure = result.plot(kind, tmp_path / f"{kind}.png" if name == "auto" else None)
    assert name != "auto" or (tmp_path / f"{kind}.png").read_bytes().startswith(PNG)
    assert tips(figure)
    if kind not in ("differs", "overlap"):
        assert with_error(result.log_bayes_factor) in words(figure)


def test_the_marked_answer_is_the_results():
    result = stored.run("auto")
    answer, (low, high) = result.log_bayes_factor, result.log_bayes_factor.interval()
    axis = result.plot("ratios").axes[0]
    assert any(np.allclose(line.get_xdata(), answer.value) for line in axis.lines if len(line.get_xdata()) == 2)
    assert [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axis.patches if patch.get_gid()][-1] == (
        pytest.approx(low),
        pytest.approx(high),
    )
    opinions = stored.run("mbar")
    (first, *_) = opinions.plot("opinions").axes[0].containers
    assert first.lines[0].get_xdata() == pytest.approx([opinions.log_bayes_factor.value])


def test_the_integral_of_the_integrand_is_the_answer():
    for name, estimator, near in (("auto", "mbar", 1e-3), ("mbar", "trapezoid", 1e-9)):
        result = stored.run(name)
        found = 0.0
        for leg in result.legs:
            tau, mean, error = path.curve_of(leg.forward)
            found += leg.sign * float(np.diff(tau) @ (mean[1:] + mean[:-1]) / 2)
            assert (error > 0).all()
        answers = {result.raw_estimate.name: result.raw_estimate, **result.opinions}
        assert found == pytest.approx(answers[estimator].value, abs=near)


def test_halves_converge_to_numbers_whose_mean_is_the_answer():
    result = stored.run("auto")
    ends = [line.get_ydata()[-1] for line in result.plot("convergence").axes[0].lines if len(line.get_ydata()) > 2]
    assert np.mean(ends) == pytest.approx(result.raw_estimate.value, abs=1e-9)


def trace(tau, *, n_draws: int = 40, equilibrium: bool = True, gap: float = 0.0) -> Trace:
    """Normal ratios of variance 4 along the path; `gap` drives the two ends apart."""
    tau = np.asarray(tau, float)
    random = np.random.default_rng(len(tau))
    log_ratio = random.normal((4 + gap) * tau[None, :, None] - 2, 2.0, (8, len(tau), n_draws))
    log_ratio[0, 0, 0] = -np.inf
    return Trace(tau, log_ratio, np.ones(log_ratio.shape[:2]), equilibrium)


def result(*legs: Leg, **changes) -> Result:
    found = Result(Estimate(0.0, 0.1, 15.0, "mbar"), "weak", (), {}, {}, {}, legs, Sharing((), (), ()), {})
    return found._replace(**changes)


PATHS = {
    "two halves, rungs written twice": [(0.5, trace([0, 0, 0.4, 1])), (0.5, trace([0, 0, 0.4, 1]))],
    "the ends alone": [(0.5, trace([0, 1])), (0.5, trace([0, 1]))],
    "no overlap": [(1.0, trace([0, 1], gap=1e6))],
    "a sweep": [(1.0, trace(np.linspace(0, 1, 300), n_draws=1, equilibrium=False))],
    "two legs": [(-1.0, trace(np.linspace(0, 1, 20) ** 5)), (1.0, trace(np.linspace(0, 1, 20) ** 5))],
}


@pytest.mark.parametrize("case", PATHS)
def test_a_path_is_drawn_and_without_a_number_where_there_is_none(case):
    legs = [Leg(f"leg {i}", sign, own, None) for i, (sign, own) in enumerate(PATHS[case])]
    shown, hidden = result(*legs), result(*legs, verdict="do not use")
    assert ("0.00 ± 0.10" in words(shown.plot("integrand"))) == (case != "two legs")
    assert "±" not in words(hidden.plot("integrand"))
    for kind in ("convergence", "opinions"):
        with pytest.raises(CrossfadeError, match='"do not use", so its number is not drawn'):
            hidden.plot(kind)
    if case == "a sweep":
        return
    assert "overlap" in words(shown.plot("overlap"))
    if case != "two legs":
        assert "±" not in words(hidden.plot("ratios"))


def test_overlaps_are_those_of_the_rungs():
    (start, end, shared), (_, last, _) = path.overlaps_of(trace([0, 0, 0.4, 1]))
    assert (start, end, last) == (0.0, 0.4, 1.0)
    assert 0.3 < shared < 0.5
    assert path.overlaps_of(trace([0, 1], gap=1e6)) == [(0.0, 1.0, pytest.approx(0.0, abs=1e-12))]
    assert path.overlaps_of(trace([0, 1], n_draws=1, equilibrium=False)) == []


def test_priors_are_read_from_the_words_of_a_result():
    noise = {"variance": "InverseGamma(3, 2)"}
    assert priors.distribution("Normal(1, 2)", {}).std() == pytest.approx(2)
    assert priors.distribution("HalfNormal(2)", {}).support()[0] == 0  # NumPyro's words
    assert priors.distribution("HalfNormal(0, 2)", {}).pdf(1) == priors.distribution("HalfNormal(2)", {}).pdf(1)
    assert priors.distribution("Gamma(2, 4)", {}).mean() == pytest.approx(0.5)
    assert priors.distribution("Normal(0, 1) of shape (3,)", {}).std() == pytest.approx(1)
    # The marginal prior of a coefficient, against draws of it.
    marginal = priors.distribution("Normal(1, variance / 4)", noise)
    random = np.random.default_rng(0)
    draws = 1 + random.normal(size=100_000) * np.sqrt(2 / random.gamma(3, size=100_000) / 4)
    assert np.percentile(draws, [10, 50, 90]) == pytest.approx(marginal.ppf([0.1, 0.5, 0.9]), abs=0.02)
    for unknown in ("Gamma(2, f())", "Normal(0, variance / 4)", "Horseshoe(1)", "Normal(1)", "(3,) array", ""):
        assert priors.distribution(unknown, {}) is None


def test_what_differs_of_closed_forms_and_vectors():
    pair = crossfade.from_formulas(crossfade.data.load("radiata"), "y ~ x", "y ~ z")
    exact = crossfade.compare(*pair)
    assert [(own.name, own.model) for own in own_parameters(exact)] == [("x", 0), ("z", 1)]
    text = words(exact.plot("differs"))
    assert "x of M1" in text and "z of M2" in text and "prior Normal(0, variance / 1)" in text
    for kind in ("ratios", "integrand", "overlap", "convergence"):
        with pytest.raises(CrossfadeError, match=r'closed form, without chains.*route="path"'):
            exact.plot(kind)
    vector = np.random.default_rng(0).normal(size=(4, 25, 9))
    about = {"priors": {"b": "something else"}, "tempered_priors": {"c": ("Normal(0, 1)", "Normal(0, 9)")}}
    own = result(sharing=Sharing(("c",), (), ("b",), ("c",)), draws=({"c": vector[..., 0]}, {"b": vector}), about=about)
    figure = own.plot("differs")
    assert len([axis for axis in figure.axes if axis.get_visible()]) == 6
    assert "the first 6 of 10" in words(figure) and "b[5] of M2" in words(figure)
    with pytest.raises(CrossfadeError, match="none differs"):
        result().plot("differs")


# Rankings and tables ----------------------------------------------------------------------------------------------


def test_pictures_of_a_ranking(tmp_path):
    ranking = stored.ranking()
    figure = ranking.plot("probabilities", tmp_path / "p.png")
    bars = [bar for bar in figure.axes[0].patches if bar.get_width() > 0]
    assert [bar.get_width() for bar in bars] == pytest.approx(list(ranking.posterior))
    figure = ranking.plot("network", tmp_path / "n.png")
    assert len([tip for tip in tips(figure) if tip.startswith("log Bayes factor of")]) == len(ranking.names) - 1
    a, b = ranking.about["tree"][0].split(" | ")
    assert f"log Bayes factor of {b} over {a}: {with_error(ranking.log_bayes_factor(a, b))}" in tips(figure)
    assert {path.name for path in tmp_path.iterdir()} == {"p.png", "n.png"}
    for kind in plots.OF_RANKING:
        with pytest.raises(CrossfadeError, match="do not use"):
            ranking._replace(verdict="do not use").plot(kind)
    with pytest.raises(CrossfadeError, match=r'"probabilities", or rank with route="path"'):
        ranking._replace(about={"route": "closed form"}).plot("network")


def test_labels_of_formulas_can_be_told_apart():
    assert rankings.labels(["y ~ a", "y ~ a + b"], 20) == ["a", "a + b"]
    assert rankings.labels(["y ~ a", "z ~ a"], 20) == ["y ~ a", "z ~ a"]
    assert rankings.labels(["pooled", "varying"], 20) == ["pooled", "varying"]
    alike = ["y ~ " + "a" * 20 + middle + "b" * 20 for middle in "xy"]
    assert [own[:3] for own in rankings.labels(alike, 20)] == ["1. ", "2. "]


def test_long_and_hostile_names_do_not_break_a_picture(tmp_path):
    ranking = stored.ranking()
    names = tuple(f"{HOSTILE} | {i}\x00" for i in range(len(ranking.names)))
    other = dict(zip(ranking.names, names, strict=True))
    tree = [" | ".join(other[name] for name in pair.split(" | ")) for pair in ranking.about["tree"]]
    closure = tuple(own._replace(first=other[own.first], second=other[own.second]) for own in ranking.closure)
    bad = ranking._replace(names=names, about={"tree": tree}, closure=closure)
    for kind in plots.OF_RANKING:
        figure = bad.plot(kind, tmp_path / f"{kind}.svg")
        width = figure.get_window_extent().width
        right = max(t.get_window_extent().x1 for t in figure.findobj(lambda a: hasattr(a, "get_text")) if t.get_text())
        assert right < 1.02 * width
        assert "<script>" not in (tmp_path / f"{kind}.svg").read_text(encoding="utf-8")


def test_many_data_sets_are_drawn_in_order():
    rows = [{"name": f"gene {i}", "log_bayes_factor": float(i), "error": 0.1, "verdict": "weak"} for i in range(60)]
    rows.append({"name": "none", "log_bayes_factor": None, "error": None, "verdict": "failed"})
    figure = Many(tuple(rows)).plot()
    assert "20 data sets in the middle are left out" in words(figure) and "gene 59" in words(figure)
    with pytest.raises(CrossfadeError, match="no data set has an answer"):
        Many(tuple(rows[-1:])).plot()


# Refusals ---------------------------------------------------------------------------------------------------------


def test_what_cannot_be_drawn_is_said(tmp_path, monkeypatch):
    kinds = "ratios, integrand, overlap, convergence, opinions, differs"
    with pytest.raises(CrossfadeError, match=f"unknown picture 'nonsense': choose one of {kinds}"):
        result().plot("nonsense")
    with pytest.raises(CrossfadeError, match=r"curve.xyz: end the name of the picture with one of .*\.png"):
        curve(1.0, 2.0).plot(tmp_path / "curve.xyz")
    with pytest.raises(CrossfadeError, match=r"folder .*nowhere does not exist"):
        curve(1.0, 2.0).plot(tmp_path / "nowhere" / "curve.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(CrossfadeError, match=r"pip install 'crossfade\[plot\]'"):
        curve(1.0, 2.0).plot(tmp_path / "curve.png")
    assert list(tmp_path.iterdir()) == []
