"""What the README shows works, and its table of methods is the table of methods."""

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def run(block: str) -> dict:
    shown: dict = {}
    exec(
        block.replace("64_000", "2_000")
        .replace("n_chains=16", "n_chains=8")
        .replace('method="NETI-DIFF", kernel', 'method="NETI-DIFF", n_iter=2_000, kernel'),
        shown,
    )
    return shown


def test_the_example_with_formulas_runs():
    result = run(BLOCKS[0])["result"]
    assert abs(result.log_bayes_factor.value - 6.81) < 0.5
    assert result.legs[0].forward.log_ratio.shape == (8, 2000, 1)


def test_the_example_with_a_model_of_ones_own_is_right():
    """Against a sum over a grid of both parameters."""
    from scipy.special import logsumexp
    from scipy.stats import norm

    shown = run(BLOCKS[1])
    y, result = shown["y"], shown["result"]
    mu, log_sd = np.linspace(-6, 6, 601)[:, None], np.linspace(-5, 5, 501)[None, :]
    prior = norm.logpdf(mu)
    one = logsumexp(prior[:, 0] + norm.logpdf(y, mu, 1).sum(axis=1)) + np.log(12 / 600)
    likelihood = sum(norm.logpdf(value, mu, np.exp(log_sd)) for value in y)
    two = logsumexp(prior + norm.logpdf(log_sd) + likelihood) + np.log(12 / 600) + np.log(10 / 500)
    estimate = result.log_bayes_factor
    assert abs(estimate.value - (two - one)) < 4 * estimate.error < 0.4
    assert result.sharing.shared == ("mu",) and result.sharing.only_2 == ("log_sd",)


def test_the_table_of_methods():
    from crossfade import METHODS

    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \|", README, flags=re.MULTILINE)
    assert [row[0] for row in rows] == list(METHODS)
    for (_, route, ladder, estimator), method in zip(rows, METHODS.values(), strict=True):
        assert route == ("two, from no data" if method.two_legs else "straight, M1 to M2")
        assert ladder.endswith("N x 1" if method.n_rungs is None else f"{method.n_rungs} x draws")
        assert estimator == method.estimator.replace("_", " ")


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(path):
    assert (Path(__file__).parents[1] / path).exists()
