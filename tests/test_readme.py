"""The README is short, its example is right, and the manual's table of methods is the table of methods."""

import re

import numpy as np
from manual import DOCS, ROOT, blocks

README = ROOT / "README.md"
LONGEST = 120  # lines: ten seconds, then two minutes


def test_the_example_with_numpyro_models_is_right(tmp_path, monkeypatch):
    """Against a sum over a grid of both parameters."""
    from scipy.special import logsumexp
    from scipy.stats import halfnorm, norm, t

    monkeypatch.chdir(tmp_path)
    shown: dict = {}
    exec(next(block.text for block in blocks(README) if "import numpyro" in block.text), shown)
    y, result = shown["y"], shown["result"]
    mu, sd = np.linspace(-6, 6, 601)[:, None], np.linspace(0.01, 8, 800)[None, :]
    prior = norm.logpdf(mu)
    one = logsumexp(prior[:, 0] + norm.logpdf(y, mu, 1).sum(axis=1)) + np.log(12 / 600)
    likelihood = sum(t.logpdf(value, 4, mu, sd) for value in y)
    two = logsumexp(prior + halfnorm.logpdf(sd) + likelihood) + np.log(12 / 600) + np.log(0.01)
    estimate = result.log_bayes_factor
    assert abs(estimate.value - (two - one)) < 4 * estimate.error < 0.2
    assert result.verdict == "trustworthy"
    assert result.sharing.shared == ("mu",) and result.sharing.only_2 == ("sd",)


def test_it_is_short_and_begins_with_two_commands():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert [word in text for word in ("\n    make demo ", "\n    make test ")] == [True, True]


def test_its_figures_are_those_of_the_manual():
    """One table stands in both; a figure that is measured anew is changed in both."""
    tables = [
        re.findall(r"^\| .* of (?:20|30) \| .*$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for page in (README, DOCS / "accuracy.md")
    ]
    assert len(tables[0]) == 7 and tables[0] == tables[1]


def test_the_table_of_methods():
    from crossfade import METHODS

    text = (DOCS / "choosing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \| .+? \|$", text, flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["auto", *METHODS]
    for (_, route, ladder, estimator), method in zip(rows[1:], METHODS.values(), strict=True):
        assert route == ("two, from no data" if method.two_legs else "straight, M1 to M2")
        assert ladder.endswith("N x 1" if method.n_rungs is None else f"{method.n_rungs} x draws")
        assert estimator == method.estimator.replace("_", " ")
