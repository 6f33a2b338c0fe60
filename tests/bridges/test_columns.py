"""Tables as people have them: every way to keep numbers, text and gaps is read as what it is."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from crossfade.bridges.design import designs
from crossfade.bridges.formula import Prior, from_formulas, regressions
from crossfade.ranking.terms import from_many_formulas
from crossfade.types import CrossfadeError

N = 12
RANDOM = np.random.default_rng(3)
WHOLE, GROUP, TRUE = np.arange(N) % 5, np.array(list("abc" * 4)), np.arange(N) % 4 == 0
TABLE = pd.DataFrame({"y": RANDOM.normal(size=N), "z": RANDOM.normal(size=N), "x": WHOLE, "g": GROUP, "q": TRUE})


def design(formula, *, family="gaussian", drop_missing=False, **columns):
    table = TABLE.assign(**columns)
    return designs(table, formula, family=family, scaling="raw", drop_missing=drop_missing)[0]


def same(formula, **columns):
    found, plain = design(formula, **columns), design(formula)
    assert found.names == plain.names
    np.testing.assert_array_equal(found.columns, plain.columns)
    np.testing.assert_array_equal(found.y, plain.y)


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ C(x)"])
@pytest.mark.parametrize("kind", ["Int64", "Float64", "object", "Decimal", "mixed"])
def test_numbers_in_any_keeping_are_numbers(formula, kind):
    kept = {"Decimal": [Decimal(int(own)) for own in WHOLE], "mixed": [Decimal(0), *WHOLE[1:]]}
    column = pd.Series(kept[kind], dtype=object) if kind in kept else pd.Series(WHOLE).astype(kind)
    found = design(formula, x=column)
    np.testing.assert_array_equal(found.columns, design(formula).columns)
    if kind in ("Int64", "object"):
        assert found.names == design(formula).names  # of the others, levels are called 2.0


@pytest.mark.parametrize("kind", ["boolean", "object"])
def test_booleans_in_any_keeping(kind):
    same("y ~ q", q=pd.Series(TRUE).astype(kind))
    found = design("q ~ z", family="logistic", q=pd.Series(TRUE).astype(kind))
    np.testing.assert_array_equal(found.y, TRUE)
    assert "response q: True = 1, False = 0" in found.notes


def test_text_of_the_string_dtype_is_a_factor():
    same("y ~ g", g=pd.Series(GROUP, dtype="string"))
    converted = designs(TABLE.convert_dtypes(), "y ~ x + g + q", family="gaussian", scaling="raw")[0]
    np.testing.assert_array_equal(converted.columns, design("y ~ x + g + q").columns)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([None, *WHOLE[1:]], dtype="Int64"),
        pd.array([None, *map(float, WHOLE[1:])], dtype="Float64"),
        pd.array([None, *TRUE[1:]], dtype="boolean"),
        pd.array([None, *GROUP[1:]], dtype="string"),
        pd.Series([None, *WHOLE[1:]], dtype=object),
        pd.Series([pd.NA, *TRUE[1:]], dtype=object),
        pd.Series([Decimal("nan"), *map(Decimal, WHOLE[1:].tolist())], dtype=object),
        pd.Categorical([None, *WHOLE[1:]]),
    ],
    ids=["Int64", "Float64", "boolean", "string", "whole numbers", "booleans", "Decimal", "categories"],
)
def test_gaps_in_any_keeping_are_gaps(column):
    with pytest.raises(CrossfadeError, match=r"missing in 1 of 12 rows: 'k' has 1 \(row 1\)"):
        design("y ~ k", k=column)
    assert len(design("y ~ k", k=column, drop_missing=True).y) == N - 1


def test_a_categorical_is_a_factor_whatever_its_categories():
    assert design("y ~ x", x=pd.Categorical(WHOLE)).names == ("Intercept", *(f"x[T.{k}]" for k in range(1, 5)))
    assert design("y ~ x", x=pd.Categorical(WHOLE.astype(str))).names[-1] == "x[T.4]"


def test_a_categorical_response_of_numbers_is_one_of_numbers():
    np.testing.assert_array_equal(design("q ~ z", family="logistic", q=pd.Categorical(TRUE * 1)).y, TRUE)
    np.testing.assert_array_equal(design("q ~ z", family="logistic", q=pd.Categorical(TRUE)).y, TRUE)
    np.testing.assert_array_equal(design("x ~ z", family="poisson", x=pd.Categorical(WHOLE)).y, WHOLE)


def test_levels_without_rows_are_dropped():
    table = TABLE.assign(g=pd.Categorical(GROUP))
    kept = table[table["g"] != "b"]
    assert designs(kept, "y ~ g", family="gaussian", scaling="raw")[0].names == ("Intercept", "g[T.c]")
    gaps = table.assign(z=table["z"].where(table["g"] != "c"))
    (found,) = designs(gaps, "y ~ g + z", family="gaussian", scaling="raw", drop_missing=True)
    assert found.names == ("Intercept", "g[T.b]", "z")
    assert list(kept["g"].cat.categories) == ["a", "b", "c"]  # the user's table is as it was


def test_labels_that_are_no_text():
    table = TABLE.rename(columns={"x": 2019})
    (found,) = designs(table, "y ~ `2019` + z", family="gaussian", scaling="standardise")
    assert found.names == ("Intercept", "2019", "z") and 2019 in table.columns
    np.testing.assert_allclose(found.recipe.columns(table), found.columns)
    table["2019"] = table["z"]
    with pytest.raises(CrossfadeError, match="more than one column '2019'"):
        designs(table, "y ~ `2019`", family="gaussian", scaling="raw")


def test_new_rows_are_read_alike():
    (found,) = designs(TABLE, "y ~ x + g + q", family="gaussian", scaling="raw")
    kept = {"x": [Decimal(int(own)) for own in WHOLE], "g": pd.array(GROUP, dtype="string"), "q": TRUE.astype(object)}
    np.testing.assert_array_equal(found.recipe.columns(TABLE.assign(**kept)[::2]), found.columns[::2])
    kept["q"] = pd.array([None, *TRUE[1:]], dtype="boolean")
    with pytest.raises(CrossfadeError, match=r"missing in the new rows: 'q' has 1 \(row 1\)"):
        found.recipe.columns(TABLE.assign(**kept))


@pytest.mark.parametrize(
    ("formula", "needed"),
    [
        ("np.exp(y) ~ x", ("x",)),
        ("`a~b` ~ x + `c~d`", ("x", "c~d")),
        ("np.exp(y) ~ x + I(y**2)", ("y", "x")),
    ],
)
def test_new_rows_need_what_is_right_of_the_tilde(formula, needed):
    table = TABLE.assign(**{"a~b": TABLE["y"], "c~d": TABLE["z"]})
    (found,) = designs(table, formula, family="gaussian", scaling="raw")
    assert set(found.recipe.used) == set(needed)
    np.testing.assert_allclose(found.recipe.columns(table[list(needed)]), found.columns)


def test_a_level_may_hold_a_colon():
    at = {"h": np.where(TRUE, "10:30", "11:00")}
    own = design("y ~ h*z", **at)
    (found,) = regressions([own], "gaussian", Prior(precisions={"h": 2.0}))
    assert found.names == ("Intercept", "h[T.11:00]", "z", "h[T.11:00]:z")
    assert found.precision.tolist() == [1.0, 2.0, 1.0, 1.0]
    assert list(own.levels) == ["h[T.11:00]"]


@pytest.mark.parametrize("formula", ["y ~ z + Intercept", "y ~ 0 + Intercept"])
@pytest.mark.parametrize("family", ["gaussian", "logistic"])
def test_a_column_called_intercept_is_refused(formula, family):
    with pytest.raises(CrossfadeError, match=r"may not be called 'Intercept'.*rename the column"):
        design(formula.replace("y", "q"), family=family, Intercept=TABLE["z"] + 1)


def test_no_rows_are_refused():
    with pytest.raises(CrossfadeError, match="the table has no rows"):
        from_formulas(TABLE[:0], "y ~ 1", "y ~ x")
    with pytest.raises(CrossfadeError, match="the table has no rows"):
        from_many_formulas(pd.DataFrame(columns=["y", "x"]), "y ~ 1", "y ~ x")
