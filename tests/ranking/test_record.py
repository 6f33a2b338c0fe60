"""What follows from log evidences: probabilities, terms, averages, chances; each against a sum by hand."""

import numpy as np
import pytest
from assertions import rng
from scipy.special import logsumexp

import crossfade
from crossfade.ranking.prior import prior_of
from crossfade.ranking.record import Moments, Ranking, ranked
from crossfade.types import CrossfadeError

LOG_Z = np.array([-100.0, -101.0, -103.0, -100.5])
TERMS = (frozenset("a"), frozenset(), frozenset("b"), frozenset({"a", "b"}))
NAMES = ("y ~ a", "y ~ 1", "y ~ b", "y ~ a + b")


def ranking(spread=0.01, prior=None, **fields):
    """Four models whose noise is known: independent over 16 groups."""
    noise = spread * np.sqrt(16) * rng(1).normal(size=(16, 4))
    left_out = LOG_Z - (noise - noise.mean(axis=0)) / 15
    weights = prior_of(prior, NAMES, TERMS)
    moments = tuple({name: Moments(np.array(2.0), np.array(0.25)) for name in own} for own in TERMS)
    return ranked(
        Ranking(
            NAMES, LOG_Z, left_out, weights, "trustworthy", (), {}, TERMS, moments, about={"absolute": True}, **fields
        )
    )


def test_probabilities_and_the_papers_formula_of_one_against_all_others():
    own = ranking()
    p = np.exp(LOG_Z - logsumexp(LOG_Z))
    assert own.names == ("y ~ a", "y ~ a + b", "y ~ 1", "y ~ b")
    for name, right in zip(NAMES, p, strict=True):
        assert own.probabilities[name].value == pytest.approx(right, rel=1e-12)
    # B_i,rest = Z_i / mean of the other Z, with equal priors
    rest = logsumexp(LOG_Z[1:]) - np.log(3)
    assert own.table["log_bayes_factor_over_rest"].iloc[0] == pytest.approx(LOG_Z[0] - rest, rel=1e-9)
    assert own.log_bayes_factor("y ~ b", "y ~ a").value == pytest.approx(3.0)
    assert own.log_bayes_factor("y ~ a", "y ~ b").value == pytest.approx(-3.0)


def test_errors_are_those_of_the_noise():
    own = ranking(spread=0.02)
    assert own.log_bayes_factor("y ~ 1", "y ~ a").error == pytest.approx(0.02 * np.sqrt(2), rel=0.6)
    p = own.probabilities["y ~ a"]
    assert 0 < p.error < 0.02  # |dp/dlogZ| is at most 1/4
    covariance = own.covariance
    assert covariance[0, 0] == 0 and np.sqrt(covariance[2, 2]) == pytest.approx(own.table["error"].iloc[2])
    with pytest.raises(CrossfadeError, match="no model 'z'"):
        own.log_bayes_factor("z", "y ~ a")


def test_how_sure_the_winner_is():
    assert ranking(spread=0.001).chance_of_winner == 1.0
    doubtful = ranking(spread=0.5).chance_of_winner
    assert 0.5 < doubtful < 0.95  # half a unit apart, known to 0.5 each


def test_terms_over_all_and_over_matched_models():
    p = np.exp(LOG_Z - logsumexp(LOG_Z))
    table = ranking().inclusion
    assert table.loc["a", "probability"] == pytest.approx(p[0] + p[3])
    assert table.loc["a", "log_bayes_factor"] == pytest.approx(np.log((p[0] + p[3]) / (p[1] + p[2])))
    # here every model with a term has a twin without it
    assert table.loc["b", "matched_log_bayes_factor"] == pytest.approx(np.log((p[2] + p[3]) / (p[0] + p[1])))
    # with a:b a twin is missing for a, so that "matched" leaves the interaction out
    fewer = ranking().without("y ~ 1").inclusion
    assert fewer.loc["a", "matched_log_bayes_factor"] == pytest.approx(LOG_Z[3] - LOG_Z[2])
    assert table.loc["a", "error"] > 0


def test_priors_over_models():
    by_size = ranking(prior="size")
    assert dict(zip(by_size.names, by_size.prior, strict=True)) == pytest.approx(
        {"y ~ 1": 1 / 3, "y ~ a": 1 / 6, "y ~ b": 1 / 6, "y ~ a + b": 1 / 3}
    )
    other = ranking().with_prior({"y ~ b": 1.0, "y ~ 1": 3.0})
    assert other.names[:2] == ("y ~ 1", "y ~ b") and other.probabilities["y ~ a"].value == 0
    odds = other.probabilities["y ~ 1"].value / other.probabilities["y ~ b"].value
    assert np.log(odds) == pytest.approx(2 + np.log(3))
    for bad, said in (("flat", "unknown prior"), ({"q": 1.0}, "which is no model"), ({"y ~ a": -1.0}, "at least 0")):
        with pytest.raises(CrossfadeError, match=said):
            ranking().with_prior(bad)


def test_a_model_without_prior_weight_is_never_best():
    """However much its evidence says: here more than the logarithm of the smallest number."""
    far = ranked(
        ranking()._replace(log_evidence=np.array([0.0, -1500.0, -1501.0, -1502.0]), left_out=np.zeros((16, 4)))
    )
    first, *others = far.names
    own = far.with_prior({others[0]: 1.0, others[1]: 1.0})
    assert own.names == (*others[:2], first, others[2])  # those without weight by their evidence
    assert own.probabilities[first].value == 0 and own.chance_of_winner == 1.0
    assert own.probabilities[others[0]].value == pytest.approx(1 / (1 + np.exp(-1)))
    over = own.table["log_bayes_factor_over_rest"]
    assert over[others[0]] == pytest.approx(1.0) and over[others[1]] == pytest.approx(-1.0)
    both = np.logaddexp(-1500.0, -1501.0) - np.log(2)  # its own prior has no say in a Bayes factor
    assert over[first] == pytest.approx(-both) and over[others[2]] == pytest.approx(-1502.0 - both)
    assert np.isnan(far.with_prior({first: 1.0}).table["log_bayes_factor_over_rest"][first])  # there are no others


def test_averages_over_models_that_are_next_to_impossible():
    own = ranking()._replace(log_evidence=np.array([0.0, 0.0, -2000.0, -2001.0]))
    p = 1 / (1 + np.exp(-1))
    moments = ({}, {}, {"q": Moments(np.array(1.0), np.array(0.5))}, {"q": Moments(np.array(3.0), np.array(0.5))})
    mean, sd = own._replace(moments=moments).average("q", given=True)
    assert mean == pytest.approx(p + 3 * (1 - p)) and sd == pytest.approx(np.sqrt(0.5 + 4 * p * (1 - p)))
    assert own._replace(moments=moments).average("q")[0] == 0
    with pytest.raises(CrossfadeError, match="all models with a parameter 'q' have a prior weight of 0"):
        own._replace(moments=moments, prior=np.array([0.5, 0.5, 0.0, 0.0])).average("q", given=True)


def test_averages_over_models():
    own = ranking()
    p = {name: own.probabilities[name].value for name in NAMES}
    inside = p["y ~ a"] + p["y ~ a + b"]
    mean, sd = own.average("a")
    assert mean == pytest.approx(2 * inside)
    assert sd == pytest.approx(np.sqrt(inside * (0.25 + 4) - (2 * inside) ** 2))
    assert own.average("a", given=True) == (pytest.approx(2.0), pytest.approx(0.5))
    with pytest.raises(CrossfadeError, match="no model has a parameter 'q'"):
        own.average("q")


def test_a_file_keeps_everything_but_the_draws(tmp_path):
    own = ranking()
    own.save(tmp_path / "ranking.json")
    again = crossfade.load_ranking(tmp_path / "ranking.json")
    assert str(again) == str(own) and again.probabilities == own.probabilities
    assert again.average("a") == own.average("a") and again.covariance.tolist() == own.covariance.tolist()
    with pytest.raises(CrossfadeError, match="no draws to go on with"):
        again.more(0.01)
    for asked in (lambda: again.predict(None), lambda: again.average(lambda theta: theta["a"])):
        with pytest.raises(CrossfadeError, match="read from a file, which keeps its numbers but neither models nor"):
            asked()
    (tmp_path / "other.json").write_text("[1]")
    for name, said in (("other.json", "not a ranking"), ("none.json", "no file")):
        with pytest.raises(CrossfadeError, match=said):
            crossfade.load_ranking(tmp_path / name)


def test_the_page_in_words():
    text = str(ranking())
    assert "TRUSTWORTHY: the best of 4 models has probability 0.494" in text
    assert "y ~ a + b" in text and "log inclusion BF" in text
    assert "<script>" not in ranking()._replace(names=("<script>", *NAMES[1:]))._repr_html_()
