"""The shipped data are the published ones, with the known errors of public copies mended."""

import numpy as np
import pytest

from crossfade.data import NAMES, load
from crossfade.types import CrossfadeError

CLOCK = ("GI", "LHY", "NI", "PRR7", "PRR9", "TOC1", "Y")


@pytest.mark.parametrize(
    ("name", "n_rows", "columns"),
    [
        ("radiata", 42, ["y", "x", "z"]),
        ("pima", 532, ["npreg", "glu", "bp", "skin", "bmi", "ped", "age", "y", "source"]),
        ("radiocarbon", 343, ["rc_age", "precision", "cal_age"]),
        ("galaxy", 82, ["velocity", "velocity_mass"]),
        ("diabetes", 442, ["age", "sex", "bmi", "bp", "tc", "ldl", "hdl", "tch", "ltg", "glu", "y"]),
        ("circadian", 1430, ["network", "instance", "condition", "time", *CLOCK, "LightP", *(f"d{g}" for g in CLOCK)]),
    ],
)
def test_shape(name, n_rows, columns):
    table = load(name)
    assert len(table) == n_rows
    assert list(table.columns) == columns
    assert not table.isna().any().any()


def test_all_names_are_tested():
    assert NAMES == ("radiata", "pima", "radiocarbon", "galaxy", "diabetes", "circadian")


def test_radiata_has_the_right_rows_1_and_9():
    table = load("radiata")
    assert table.iloc[0].tolist() == [3040, 29.2, 25.4]
    assert table.iloc[8].tolist() == [3160, 27.1, 26.3]
    assert table.iloc[12].tolist() == [3670, 32.2, 29.0]


def test_pima_positives_and_split():
    table = load("pima")
    assert table["y"].sum() == 177
    assert set(table["y"]) == {0, 1}
    assert (table["source"][:200] == "tr").all() and (table["source"][200:] == "te").all()


def test_radiocarbon_keeps_the_published_row_329():
    assert load("radiocarbon")["cal_age"][326:331].tolist()[1:4] == [6640, 6600, 6680]


def test_diabetes_is_in_the_units_of_the_study():
    table = load("diabetes")
    assert table.iloc[0].tolist() == [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87, 151]
    assert (table["y"].sum(), table["y"].min(), table["y"].max()) == (67243, 25, 346)
    np.testing.assert_allclose(table["tch"], table["tc"] / table["hdl"], atol=0.7)  # rounded, more or less


def test_galaxy_78th_value_is_corrected_in_one_column_only():
    table = load("galaxy")
    assert table["velocity"][77] == 26.960
    assert table["velocity_mass"][77] == 26.690
    assert np.array_equal(table["velocity"].drop(77), table["velocity_mass"].drop(77))


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(CrossfadeError, match=r"no data set 'iris': choose one of radiata, pima, radiocarbon, galaxy"):
        load("iris")
