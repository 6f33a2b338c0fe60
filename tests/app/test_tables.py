"""Tables as people have them: what separates their columns, decimal commas, gaps, labels, names of columns."""

import re

import numpy as np
import pandas as pd
import pytest
from command_line import run, words

from crossfade.app.tables import Reading, read_table
from crossfade.types import CrossfadeError

RANDOM = np.random.default_rng(0)
N = 40
TABLE = pd.DataFrame(
    {
        "y": RANDOM.normal(size=N).round(3),
        "body.mass": RANDOM.normal(70, 9, N).round(1),
        "leaf area": RANDOM.normal(3, 1, N).round(2),
        "age": RANDOM.integers(20, 60, N),
        "sick": np.where(RANDOM.uniform(size=N) < 0.5, "yes", "no"),
        "arm": np.where(RANDOM.uniform(size=N) < 0.5, "b", "a"),
        "site": np.arange(N) % 2,
    }
)
GAPS = TABLE.assign(age=TABLE["age"].mask(TABLE.index.isin([3, 7])), sick=TABLE["sick"].mask(TABLE.index == 7))
PAIR = ("y ~ body.mass", "y ~ leaf area")


def written(folder, table=TABLE, **how):
    path = folder / "data.csv"
    table.to_csv(path, index=False, **how)
    return path


def answer(shown):
    assert shown.exit_code == 0, shown.output
    return words(shown.stdout).split("log Bayes factor ")[1].split()[0]


def test_columns_with_dots_and_spaces_and_what_formulaic_would_say_of_them(tmp_path):
    from crossfade.bridges.formula import designs

    shown = run("compare", written(tmp_path), *PAIR)
    plain = TABLE.rename(columns={"body.mass": "x", "leaf area": "z"})
    assert answer(shown) == answer(run("compare", written(tmp_path, plain), "y ~ x", "y ~ z"))
    assert "only in M1 body.mass only in M2 leaf area" in words(shown.stdout)
    settings = {"family": "gaussian", "scaling": "raw"}
    for formula in ("y ~ np.log(body.mass)", "y ~ np.log(`body.mass`)"):
        (found,) = designs(TABLE, formula, **settings)
        np.testing.assert_array_equal(found.columns[:, 1], np.log(TABLE["body.mass"]))
    (found,) = designs(TABLE.rename(columns={"age": "body.mass.index"}), "y ~ body.mass.index*body.mass", **settings)
    assert found.names == ("Intercept", "body.mass.index", "body.mass", "body.mass.index:body.mass")


@pytest.mark.parametrize(("encoding", "said"), [("cp1252", "Windows-1252"), ("utf-16", "UTF-16"), ("utf-8-sig", "")])
def test_other_encodings_are_read_and_said(tmp_path, encoding, said):
    table = TABLE.rename(columns={"age": "größe"})
    shown = run("compare", written(tmp_path, table, encoding=encoding), "y ~ 1", "y ~ größe")
    assert answer(shown) == answer(run("compare", written(tmp_path), "y ~ 1", "y ~ age"))
    assert "only in M2 größe" in words(shown.stdout)
    assert (f"data.csv is not in UTF-8 and was read as {said}" in words(shown.stdout)) == bool(said)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ agee", "(did you mean 'age'?)"),
        ("y ~ body-mass", "(write 'body-mass' in backticks: `body-mass`)"),
        ("y ~ .", "a dot does not stand for all columns here; name them"),
    ],
)
def test_names_that_are_not_there(tmp_path, formula, message):
    table = TABLE.rename(columns={"body.mass": "body-mass"})
    refused = run("compare", written(tmp_path, table), "y ~ age", formula)
    assert refused.exit_code == 2 and message in words(refused.stderr)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, ""),
        ({"sep": ";"}, "separated by semicolons, with decimal points"),
        ({"sep": ";", "decimal": ","}, "separated by semicolons, with decimal commas"),
        ({"sep": "\t", "decimal": ","}, "separated by tabs, with decimal commas"),
        ({"sep": "|"}, "separated by bars"),
        ({"sep": " "}, "separated by spaces"),
        ({"decimal": ",", "quoting": 1}, "separated by commas, with decimal commas"),
    ],
)
def test_separators_and_decimal_commas_are_found_out_and_said(tmp_path, how, said):
    path = written(tmp_path, **how)
    table, notes = read_table(path)
    pd.testing.assert_frame_equal(table, TABLE, check_dtype=False)
    assert said in " ".join(notes) and bool(notes) == bool(said)
    shown = run("compare", path, *PAIR)
    assert answer(shown) == answer(run("compare", written(tmp_path), *PAIR))
    assert said in words(shown.stdout)


def test_options_that_say_how_a_table_is_written(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y;x\n1;1,234\n2;2,345\n3;5,432\n")
    with pytest.raises(CrossfadeError, match=r"column 'x' of .* has entries like '1,234': .*--decimal ','.*thousands"):
        read_table(path)
    assert read_table(path, Reading(decimal=","))[0]["x"].tolist() == [1.234, 2.345, 5.432]
    assert read_table(path, Reading(sep="semicolon", decimal="comma"))[0]["x"].tolist() == [1.234, 2.345, 5.432]
    for option, message in (("--sep", "--sep x: give one of , ; tab | space"), ("--decimal", "x: give . or ,")):
        refused = run("compare", path, "y ~ x", "y ~ 1", option, "x")
        assert refused.exit_code == 2 and message in words(refused.stderr)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("y;x;z\n1;2,5;3.5\n2;3,5;4.5\n", "decimal commas in column 'x' and decimal points in column 'z'"),
        ('y x z\n"1" 3 4 5\n"2" 4 5 6\n', "header names 3 columns, its rows have 4 entries"),
        ("body mass\n1\n2\n", "has one column only, 'body mass'"),
    ],
)
def test_tables_that_cannot_be_read_one_way(tmp_path, content, message):
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(CrossfadeError, match=message):
        read_table(path)


def test_a_column_of_a_long_table_has_one_type(tmp_path):
    """Or pandas reads parts of it as numbers and parts as text, and a group of --by loses most of its rows."""
    site = [*("123" * 100_000)[:-1], "B4"]
    lines = "\n".join(f"{i % 7},{i % 5},{own}" for i, own in enumerate(site))
    (tmp_path / "long.csv").write_text(f"y,x,site\n{lines}\n", encoding="utf-8")
    table, _ = read_table(tmp_path / "long.csv")
    assert sorted(table["site"].unique()) == ["1", "2", "3", "B4"]


@pytest.mark.parametrize("sep", [",", ";", " "])
def test_two_columns_of_one_name_are_refused(tmp_path, sep):
    lines = "".join(f"{sep.join(row)}\n" for row in ("yxx", "123", "231", "312"))
    (tmp_path / "data.csv").write_text(lines, encoding="utf-8")
    with pytest.raises(CrossfadeError, match="2 columns called 'x': rename all but one"):
        read_table(tmp_path / "data.csv")


def test_a_table_of_very_many_columns_is_read(tmp_path):
    names = ",".join(f"gene{i}" for i in range(20_000))
    rows = "\n".join(",".join(str((i + j) % 7) for j in range(20_000)) for i in range(5))
    (tmp_path / "wide.csv").write_text(f"{names}\n{rows}\n", encoding="utf-8")
    assert read_table(tmp_path / "wide.csv")[0].shape == (5, 20_000)


SICK = ("sick ~ age", "sick ~ age + site", "--family", "logistic")
ALL_GAPS = "values are missing in 2 of 40 rows: 'age' has 2 (rows 4, 8); 'sick' has 1 (row 8)"


@pytest.mark.parametrize(
    "command",
    [("compare", *SICK), ("compare", *SICK, "--by", "site"), ("rank", *SICK), ("doctor", *SICK)],
    ids=["compare", "by", "rank", "doctor"],
)
def test_all_gaps_are_named_at_once(tmp_path, command):
    verb, *rest = command
    refused = run(verb, written(tmp_path, GAPS), *rest)
    said = words(refused.stderr)
    assert refused.exit_code == 2 and ALL_GAPS in said and "--drop-missing" in said


def test_rows_with_gaps_are_left_out_of_every_model(tmp_path):
    whole = written(tmp_path, GAPS.dropna())
    expected = answer(run("compare", whole, *SICK))
    for verb in ("compare", "rank"):
        shown = run(verb, written(tmp_path, GAPS), *SICK, "--drop-missing")
        assert shown.exit_code == 0, shown.output
        page = words(shown.stdout)
        assert "data.csv, 38 rows" in page and "2 of 40 rows are left out, of every model" in page
        assert expected in page or verb == "rank"
    by = run("compare", written(tmp_path, GAPS), "y ~ age", "y ~ 1", "--by", "site", "--drop-missing")
    assert by.exit_code == 0 and "2 of 40 rows are left out" in words(by.stdout)
    empty = written(tmp_path, TABLE.assign(site=TABLE["site"].where(TABLE.index > 0)))
    refused = run("compare", empty, "y ~ age", "y ~ 1", "--by", "site")
    assert refused.exit_code == 2 and "--by site: the column is empty in 1 of 40 rows" in words(refused.stderr)
    by = run("compare", empty, "y ~ age", "y ~ 1", "--by", "site", "--drop-missing")
    assert by.exit_code == 0 and "1 of 40 rows are left out, because site is empty" in words(by.stdout)


def test_gaps_in_python():
    import crossfade

    with pytest.raises(CrossfadeError, match="drop_missing=True"):
        crossfade.from_formulas(GAPS, "y ~ age", "y ~ 1")
    result = crossfade.compare(*crossfade.from_formulas(GAPS, "y ~ age", "y ~ 1", drop_missing=True))
    assert "2 of 40 rows are left out" in result.about["notes"][1] and "2 of 40 rows" in str(result)
    table = crossfade.compare_many("y ~ age", "y ~ 1", {"a": GAPS}, drop_missing=True, progress=False).table
    assert table["log_bayes_factor"].iloc[0] == result.log_bayes_factor.value
    with pytest.raises(CrossfadeError, match="every row has a missing value"):
        crossfade.from_formulas(GAPS.assign(age=np.nan), "y ~ age", "y ~ 1", drop_missing=True)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("yes", "no"), "response sick: yes = 1, no = 0"),
        (("TRUE", "FALSE"), "response sick: True = 1, False = 0"),
        (("true", "false"), "response sick: True = 1, False = 0"),
        (("Y", "N"), "response sick: Y = 1, N = 0"),
        (("absent", "present"), "response sick: present = 1, absent = 0"),
        (("a", "b"), "response sick: b = 1, a = 0 (in alphabetical order; recode the column to turn them round)"),
    ],
)
def test_two_labels_are_a_response_and_the_page_says_which_is_1(tmp_path, labels, said):
    ones = TABLE["sick"] == "yes"
    path = written(tmp_path, TABLE.assign(sick=np.where(ones, *labels)))
    shown = run("compare", path, *SICK)
    assert said in words(shown.stdout)
    numbers = ones if said.startswith(f"response sick: {labels[0]} ") or labels[0].lower() == "true" else ~ones
    path = written(tmp_path, TABLE.assign(sick=numbers.astype(int)))
    assert answer(shown) == answer(run("compare", path, *SICK))


def test_labels_elsewhere(tmp_path):
    path = written(tmp_path, TABLE.assign(three=np.arange(N) % 3).replace({"three": {0: "a", 1: "b", 2: "c"}}))
    refused = run("compare", path, "three ~ age", "three ~ 1", "--family", "logistic")
    assert refused.exit_code == 2 and "'three' is not numeric, its values are 'a', 'b', 'c'" in words(refused.stderr)
    refused = run("compare", path, "arm ~ age", "arm ~ 1")
    assert refused.exit_code == 2 and "or choose the logistic family" in words(refused.stderr)
    for family in ("gaussian", "logistic"):
        page = words(run("compare", path, "site ~ age", "site ~ 1", "--family", family).stdout)
        asked = "the response site is 0 or 1 in every row: was the logistic family meant?" in page
        assert asked == (family == "gaussian")
    path = written(tmp_path, TABLE.assign(site=TABLE["site"] == 1))
    page = words(run("compare", path, "site ~ age", "site ~ 1").stdout)
    assert "response site: True = 1, False = 0" in page and "was the logistic family meant?" in page


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["20,5", "31,0", "k.A.", "44,1"], "1 entry .* that cannot be read as a number, 'k.A.'"),
        (["1.214,67", "980,50", "1.001,00", "77,10"], "4 entries .* '1.214,67'"),
        (["12", "13", "fourteen", "15"], "1 entry .* 'fourteen'"),
    ],
)
def test_numbers_with_a_word_or_marks_among_them_are_no_factor(tmp_path, entries, message):
    decimal_commas = TABLE["y"].map(lambda value: f"{value:.3f}".replace(".", ","))
    table = pd.DataFrame({"y": decimal_commas[: len(entries)], "amount": entries})
    shown = run("compare", written(tmp_path, table, sep=";"), "y ~ 1", "y ~ amount")
    assert shown.exit_code == 2 and re.search(message, words(shown.output)), shown.output


def test_a_factor_stays_a_factor(tmp_path):
    table = TABLE.assign(arm=[("dose 1", "dose 2", "3 mg")[i % 3] for i in range(N)])
    assert run("compare", written(tmp_path, table), "y ~ 1", "y ~ arm").exit_code == 0


def test_what_newcomers_write(tmp_path):
    path = written(tmp_path)
    one = run("compare", path, "y ~ age")
    assert one.exit_code == 2 and "give a CSV file and two formulas, each in quotes" in words(one.output)
    family = run("compare", path, "sick ~ 1", "sick ~ age", "--family", "binomial")
    assert family.exit_code == 2 and "R's binomial is logistic here" in words(family.output)
    assert "pima.csv, 532 rows" in words(run("compare", "pima.csv", "y ~ 1", "y ~ age", "--family", "logistic").output)


def test_a_report_with_the_curve_of_a_prior(tmp_path):
    path, page = written(tmp_path), tmp_path / "page.html"
    shown = run("compare", path, "y ~ age", "y ~ age + site", "--sensitivity", "site", "--report", page)
    assert shown.exit_code == 0 and "The report is in" in shown.output, shown.output
    assert 'id="sensitivity"' in page.read_text(encoding="utf-8") and "about the computation" in page.read_text(
        encoding="utf-8"
    )
    assert run("compare", path, "y ~ age", "y ~ site", "--report", tmp_path / "page.pdf").exit_code == 2


def test_an_answer_that_a_prior_turns_round_says_so():
    from crossfade import compare, from_formulas
    from crossfade.app.effects import width_lines

    result = compare(*from_formulas(TABLE, "y ~ age", "y ~ age + site"))
    names, factor, _, error = result.about["widths"][0]
    other = result._replace(about={**result.about, "widths": [[names, factor, -result.raw_estimate.value, error]]})
    assert "changes sides" in width_lines(other)[0]
    same = result._replace(about={**result.about, "widths": [[names, factor, result.raw_estimate.value, error]]})
    assert "changes sides" not in width_lines(same)[0]
