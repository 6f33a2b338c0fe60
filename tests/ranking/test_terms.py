"""Spaces of regressions: which models there are, their columns, and a search that finds what enumeration finds."""

import numpy as np
import pandas
import pytest
from assertions import rng

from crossfade.methods.progress import quiet
from crossfade.ranking import rank, search, terms
from crossfade.ranking.search import screened
from crossfade.ranking.terms import all_subsets, from_many_formulas, orders
from crossfade.types import CrossfadeError


@pytest.fixture(scope="module")
def table():
    random = rng(3)
    found = pandas.DataFrame(random.normal(size=(80, 8)), columns=list("abcdefgh"))
    found["g"] += 0.9 * found["a"]  # stands in for it
    found["kind"] = random.choice(["x", "y", "z"], size=80)
    found["out"] = found["a"] - 0.7 * found["b"] + 0.5 * found["c"] + random.normal(size=80)
    found["yes"] = (found["out"] > 0).astype(float)
    return found


def test_interactions_come_with_what_they_are_built_on(table):
    space = all_subsets(table, "out ~ a*b + c")
    every = [*space.every()]
    assert len(every) == 10 and frozenset({"a:b"}) not in every and frozenset({"a", "b", "a:b"}) in every
    assert space.name(frozenset({"a", "b", "a:b"})) == "out ~ a + b + a:b"
    assert space.model(frozenset()).names == ("Intercept",)
    assert len([*all_subsets(table, "out ~ a*b*c").every()]) == 19


def test_a_factor_is_one_term(table):
    space = all_subsets(table, "out ~ a + kind")
    assert len([*space.every()]) == 4
    assert space.model(frozenset({"kind"})).design.shape[1] == 3
    found = rank(space, progress=False)
    assert set(found.inclusion.index) == {"a", "kind"}


def test_orders_are_nested(table):
    space = orders(table, "out ~ a", 0, 4)
    assert list(space.models) == [f"order {k}" for k in range(5)]
    big, small = space.models["order 4"], space.models["order 2"]
    np.testing.assert_array_equal(big.design[:, :3], small.design)
    np.testing.assert_allclose(big.design[:, 1:].T @ big.design[:, 1:], 79 * np.eye(4), atol=1e-8)
    for formula, low, high in (("out ~ a + b", 1, 3), ("out ~ a", 3, 1)):
        with pytest.raises(CrossfadeError, match="order"):
            orders(table, formula, low, high)


def test_formulas_by_name(table):
    space = from_many_formulas(table, "out ~ a", "out ~  a + b", "out ~ kind")
    assert list(space.models) == ["out ~ a", "out ~ a + b", "out ~ kind"]
    assert space.terms["out ~ a + b"] == {"a", "b"}
    with pytest.raises(CrossfadeError, match="formula 1 and formula 3 have the same columns"):
        from_many_formulas(table, "out ~ a", "out ~ b", "out ~ a")
    with pytest.raises(CrossfadeError, match="two formulas or more"):
        from_many_formulas(table, "out ~ a")


def test_subsets_need_an_intercept(table):
    for formula in ("out ~ 0 + a + kind", "out ~ a + b - 1"):
        with pytest.raises(CrossfadeError, match=r"subsets need an intercept.* take the 0 or -1 out of it"):
            all_subsets(table, formula)


def test_an_interaction_is_one_in_either_order(table):
    with pytest.raises(CrossfadeError, match="formula 1 and formula 3 have the same columns"):
        from_many_formulas(table, "out ~ a*b", "out ~ c", "out ~ b*a")
    with pytest.raises(CrossfadeError, match=r"'out ~ a' and 'out ~ I\(a\)' are one model"):
        from_many_formulas(table, "out ~ a", "out ~ I(a)")
    space = from_many_formulas(table, "out ~ a*b", "out ~ b*a + c", "out ~ a")
    assert space.terms["out ~ a*b"] == {"a", "b", "a:b"} and space.terms["out ~ b*a + c"] == {"a", "b", "a:b", "c"}


@pytest.mark.parametrize(("response", "family"), [("out", "gaussian"), ("yes", "logistic")])
def test_a_search_finds_what_enumeration_finds(table, response, family, monkeypatch):
    formula = f"{response} ~ a + b + c + d + e + f + g + h"
    whole = rank(all_subsets(table, formula, family=family), progress=False)
    monkeypatch.setattr(terms, "MOST", 5)
    found = rank(all_subsets(table, formula, family=family), progress=False)
    assert found.names[:20] == whole.names[:20] and len(found.names) < len(whole.names) == 256
    gap = (found.inclusion["probability"] - whole.inclusion["probability"]).abs().max()
    assert gap < 0.002  # a thousandth of the mass is left aside
    assert "of up to 256 models were looked at" in found.about["search"]
    with pytest.raises(CrossfadeError, match="not weights by name"):
        rank(all_subsets(table, formula), prior={"out ~ a": 1.0}, progress=False)


@pytest.mark.parametrize("prior", [None, "size"])
def test_what_a_search_has_not_seen_is_told(table, prior, monkeypatch):
    """Stopped after 40 of 256 models, in truth some of the mass is missing; stopped later, none."""
    space = all_subsets(table, "out ~ a + b + c + d + e + f + g + h")
    whole = search.Search(space, prior)
    for own in space.every():
        whole.look(own)
    assert whole.unseen() == (0.0, 0.0)
    part = search.Search(space, prior)
    part.look(frozenset("abcdefgh"))
    while len(part.seen) < 40:
        part.leave()
    masses = {own: np.exp(value) for own, value in whole.seen.items()}
    truth = 1 - sum(masses[own] for own in part.seen) / sum(masses.values())
    share, error = part.unseen()
    assert 0.02 < truth < 0.9 and error < 0.05
    assert abs(share - truth) < 4 * error
    edge = {tuple(sorted(own)) for own in part.seen} & {names for _, names in part.queue}
    assert part.share == pytest.approx(
        sum(masses[frozenset(own)] for own in edge) / sum(masses[own] for own in part.seen), rel=1e-9
    )


def test_a_search_that_is_cut_short_says_what_is_missing(table, monkeypatch):
    monkeypatch.setattr(search, "MOST_SEEN", 20)
    monkeypatch.setattr(terms, "MOST", 5)
    found = rank(all_subsets(table, "out ~ a + b + c + d + e + f + g + h"), progress=False)
    missing = float(found.about["search"].partition("spent ")[2].partition("%")[0])
    assert missing > 5 and found.verdict != "trustworthy"
    assert f"were not looked at hold about {missing:.0f}%" in found.reasons[0]
    assert found.inclusion.loc["b", "probability"] > 0.9  # also if all models that were looked at have it


def test_screening_is_close_to_the_evidence(table):
    space = all_subsets(table, "yes ~ a + b + c", family="logistic")
    own = rank(space.space(quiet, None), progress=False)
    laplace = {space.name(subset): screened(space.model(subset)) for subset in space.every()}
    gaps = [laplace[name] - log_z for name, log_z in zip(own.names, own.log_evidence, strict=True)]
    assert np.abs(gaps).max() < 0.5 and np.ptp(gaps) > 3 * own.table["error"].max()  # which is why it is not enough
