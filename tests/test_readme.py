"""What the README shows works, and its table of methods is the table of methods."""

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def run(block: str) -> dict:
    shown: dict = {}
    exec(block.replace("64_000", "2_000").replace("n_chains=16", "n_chains=8"), shown)
    return shown


def test_the_example_with_numpyro_models_is_right(tmp_path, monkeypatch):
    """Against a sum over a grid of both parameters."""
    from scipy.special import logsumexp
    from scipy.stats import halfnorm, norm, t

    monkeypatch.chdir(tmp_path)  # it stores a file
    shown = run(BLOCKS[0])
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


@pytest.mark.slow
def test_the_examples_with_formulas_run():
    shown = run("import crossfade\n" + BLOCKS[1])
    assert abs(shown["result"].log_bayes_factor.value - shown["paper"].log_bayes_factor.value) < 0.5
    assert len(shown["ranking"].names) == 20 and shown["ranking"].verdict == "trustworthy"
    assert shown["curve"].name == "z" and shown["alone"].verdict == "trustworthy"


def test_the_table_of_methods():
    from crossfade import METHODS

    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \|", README, flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["auto", *METHODS]
    for (_, route, ladder, estimator), method in zip(rows[1:], METHODS.values(), strict=True):
        assert route == ("two, from no data" if method.two_legs else "straight, M1 to M2")
        assert ladder.endswith("N x 1" if method.n_rungs is None else f"{method.n_rungs} x draws")
        assert estimator == method.estimator.replace("_", " ")


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(path):
    assert (Path(__file__).parents[1] / path).exists()
