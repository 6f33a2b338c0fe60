"""Rankings of what a search kept, against rankings of all models: the same numbers, although most are not listed."""

from itertools import combinations

import numpy as np
import pandas
import pytest
from assertions import rng

import crossfade
from crossfade.ranking import rank, search, terms, whole
from crossfade.ranking.terms import all_subsets
from crossfade.ranking.whole import counts_of

MAINS = "out ~ a + b + c + d + e + f + g + h"
PRODUCTS = "out ~ (a + b + c + d)**2"


@pytest.fixture(scope="module")
def table():
    random = rng(3)
    found = pandas.DataFrame(random.normal(size=(80, 8)), columns=list("abcdefgh"))
    found["g"] += 0.9 * found["a"]
    found["out"] = 0.7 * found["a"] - 0.4 * found["b"] + random.normal(size=80)
    found["yes"] = (found["out"] > 0).astype(float)
    return found


@pytest.fixture
def few(monkeypatch):
    """A search, which sees all models and lists those with four fifths of the mass."""

    def ranked(subsets, prior):
        with monkeypatch.context() as patched:
            patched.setattr(terms, "MOST", 5)
            patched.setattr(search, "ALL_BUT", 0.2)
            return rank(subsets, prior=prior, progress=False)

    return ranked


def assert_same(listed, full):
    """Numbers of the models that are listed, and of all terms that some of them have."""
    assert listed.names == tuple(name for name in full.names if name in listed.names)
    assert len(listed.names) < len(full.names) / 2
    columns = ["probability", "prior", "log_bayes_factor_over_rest"]
    np.testing.assert_allclose(listed.table[columns], full.table.loc[[*listed.names], columns], rtol=1e-7)
    columns = ["probability", "prior", "log_bayes_factor"]
    np.testing.assert_allclose(
        listed.inclusion[columns], full.inclusion.loc[listed.inclusion.index, columns], rtol=1e-7
    )


@pytest.mark.parametrize("formula", [MAINS, PRODUCTS])
def test_numbers_of_a_search_are_those_among_all_models(table, few, formula, tmp_path):
    space = all_subsets(table, formula)
    for prior, other in (("uniform", "size"), ("size", None)):
        listed, full = few(space, prior), rank(space, prior=prior, progress=False)
        assert_same(listed, full)
        aside = 1 - listed.posterior.sum()
        assert aside > 0.05  # the twin: probabilities among those listed
        assert f"models that were looked at and are not listed have {aside:.1g} together" in " ".join(
            str(listed).split()
        )
        assert "are not listed" not in " ".join(str(full).split())
        listed.save(tmp_path / "found.json")
        kept = crossfade.load_ranking(tmp_path / "found.json")
        assert_same(kept, full)
        assert_same(kept.with_prior(other), full.with_prior(other))
        second = listed.names[1]
        assert_same(kept.without(second), full.without(second))
    if formula == MAINS:
        np.testing.assert_allclose(listed.inclusion["prior"], 0.5)
    first, second = listed.names[:2]
    named = listed.with_prior({first: 1.0, second: 3.0})
    assert named.posterior.sum() == pytest.approx(1) and set(named.prior) == {0.25, 0.75, 0.0}
    assert_same(named.with_prior("size"), full.with_prior("size"))


def test_a_term_that_all_listed_models_have(table, few):
    strong = table.assign(out=3 * table["a"] + table["out"])
    space = all_subsets(strong, MAINS)
    listed, full = few(space, None), rank(space, progress=False)
    assert all("a" in own for own in listed.terms)
    assert listed.inclusion.loc["a", "log_bayes_factor"] == pytest.approx(full.inclusion.loc["a", "log_bayes_factor"])
    assert 20 < listed.inclusion.loc["a", "log_bayes_factor"] < 200


def test_what_was_left_aside_is_taken_by_laplace(table, few):
    space = all_subsets(table, MAINS.replace("out", "yes"), family="logistic")
    listed, full = few(space, None), rank(space, progress=False)
    gap = listed.inclusion["probability"] - full.inclusion.loc[listed.inclusion.index, "probability"]
    assert np.abs(gap).max() < 0.01
    assert listed.posterior[0] == pytest.approx(full.posterior[0], rel=0.03)
    assert listed.posterior[0] / listed.posterior.sum() > 1.1 * full.posterior[0]  # the twin


@pytest.mark.parametrize(
    "formula", ["out ~ a + b + c", "out ~ a*b*c + d", PRODUCTS, "out ~ a:b + a:c + b", "out ~ a*b + c*d + e"]
)
def test_models_are_counted(table, formula):
    space = all_subsets(table, formula)
    counts, every = counts_of(space.parents), [*space.every()]
    sizes = range(space.n_terms + 1)
    assert counts.every.tolist() == [sum(len(own) == k for own in every) for k in sizes]
    for term in space.columns:
        assert counts.having[term].tolist() == [sum(len(own) == k and term in own for own in every) for k in sizes]


def test_models_that_are_too_many_to_count_have_no_prior_of_terms(table, few, monkeypatch):
    names = [f"x{i}" for i in range(15)]
    assert counts_of({name: [] for name in names}).every.sum() == 2**15
    parents = {name: [] for name in names} | {f"{a}:{b}": [a, b] for a, b in combinations(names, 2)}
    assert not counts_of(parents).having
    monkeypatch.setattr(whole, "MOST_STEPS", 2)
    found = few(all_subsets(table, "out ~ (a + b + c + f)**2"), "size")
    assert found.inclusion[["prior", "log_bayes_factor"]].isna().all(axis=None)
    assert found.table[["prior", "log_bayes_factor_over_rest"]].isna().all(axis=None)
    assert 0.7 < found.posterior.sum() < 1 and "best of" in str(found)


def test_two_models_are_listed_where_one_has_nearly_all(table, few):
    random = rng(1)
    long = pandas.DataFrame(random.normal(size=(20_000, 6)), columns=list("abcdef"))
    long["out"] = long["a"] + random.normal(size=20_000)
    assert len(few(all_subsets(long, "out ~ a + b + c + d + e + f"), "size").names) >= 2
