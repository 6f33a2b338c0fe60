"""Formulas to models: the scales, the priors, and a clear refusal for every table that cannot be used."""

import numpy as np
import pandas as pd
import pytest

from crossfade.bridges.columns import powers_in
from crossfade.bridges.design import designs
from crossfade.bridges.formula import Prior, from_formulas, regressions, statement
from crossfade.data import load
from crossfade.types import CrossfadeError


def table(n: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    columns = {name: rng.normal(5, 2, n) for name in ("y", "x1", "x2")}
    whole = {"binary": np.arange(n) % 2, "count": np.arange(n) // 2}
    return pd.DataFrame({**columns, **whole, "group": ["a", "b", "c"] * (n // 3)})


def both(formula_1, formula_2, *, data=None, family="gaussian", scaling="standardise"):
    return designs(table() if data is None else data, formula_1, formula_2, family=family, scaling=scaling)


def test_names_are_those_of_the_columns():
    one, two = both("y ~ x1", "y ~ np.log(x2**2) + group")
    assert one.names == ("Intercept", "x1")
    assert two.names == ("Intercept", "np.log(x2 ** 2)", "group[T.b]", "group[T.c]")


def test_a_product_has_one_name_whichever_way_it_is_written():
    one, two = both("y ~ x1:group + x1", "y ~ x1 + group:x1 + x2")
    assert set(two.names) - set(one.names) == {"x2"}
    assert one.terms.keys() | {"x2"} == two.terms.keys()
    for name in one.names:
        np.testing.assert_array_equal(
            one.columns[:, one.names.index(name)], two.columns[:, two.names.index(name)], err_msg=name
        )


def test_standardise_uses_n_minus_1_and_spares_the_intercept():
    one, two = both("y ~ x1", "y ~ x1 + x2")
    for design in (one, two):
        assert np.all(design.columns[:, 0] == 1)
        np.testing.assert_allclose(design.columns[:, 1:].mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(design.columns[:, 1:].std(axis=0, ddof=1), 1)
        assert design.y.mean() == pytest.approx(0, abs=1e-12) and design.y.std(ddof=1) == pytest.approx(1)
        assert "response and covariates standardised" in design.scale
    np.testing.assert_array_equal(one.columns[:, 1], two.columns[:, 1])


@pytest.mark.parametrize(("family", "response"), [("logistic", "binary"), ("poisson", "count")])
def test_only_a_gaussian_response_is_scaled(family, response):
    one, _ = both(f"{response} ~ x1", f"{response} ~ x2", family=family)
    np.testing.assert_array_equal(one.y, table()[response])
    np.testing.assert_allclose(one.columns[:, 1].std(ddof=1), 1)
    assert one.scale.startswith("covariates standardised")


def test_centre_leaves_response_and_spread_alone():
    one, _ = both("y ~ x1", "y ~ x2", scaling="centre")
    np.testing.assert_array_equal(one.y, table()["y"])
    np.testing.assert_allclose(one.columns[:, 1], table()["x1"] - table()["x1"].mean())


def test_raw_changes_nothing():
    one, _ = both("y ~ x1", "y ~ x2", scaling="raw")
    np.testing.assert_array_equal(one.columns[:, 1], table()["x1"])
    np.testing.assert_array_equal(one.y, table()["y"])


@pytest.mark.parametrize("scaling", ["standardise", "centre"])
def test_nothing_is_centred_unless_both_have_an_intercept(scaling):
    one, two = both("y ~ x1", "y ~ 0 + x1 + x2", scaling=scaling)
    sd = table()["x1"].std() if scaling == "standardise" else 1.0
    np.testing.assert_allclose(one.columns[:, 1], table()["x1"] / sd)
    np.testing.assert_allclose(two.columns[:, 0], table()["x1"] / sd)
    assert "not centred, because not all formulas have an intercept" in one.scale


def broken(**changes):
    data = table()
    for name, (row, value) in changes.items():
        data[name] = data[name].astype(object if isinstance(value, str) else float)
        data.loc[row, name] = value
    return data


REFUSED = {
    "missing column": (
        ("y ~ x1", "y ~ x1 + agee", {}),
        r"no column 'agee' in the table: its columns are y, x1, x2, binary, count, group",
    ),
    "missing column inside a function": (
        ("y ~ x1", "y ~ poly(agee, 2)", {}),
        r"formula 2 cannot be evaluated.*no column or function 'agee'.*columns are y, x1",
    ),
    "missing function": (("y ~ x1", "y ~ foo(x2)", {}), r"there is no column 'foo' in the table"),
    "missing value": (
        ("y ~ x1", "y ~ x1 + x2", {"data": broken(x2=([1, 4], np.nan))}),
        r"missing in 2 of \d+ rows: 'x2' has 2 \(rows 2, 5\)\. Leave .*--drop-missing.*drop_missing=True",
    ),
    "missing response": (
        ("y ~ x1", "y ~ x2", {"data": broken(y=(0, np.nan))}),
        r"missing in 1 of \d+ rows: 'y' has 1 \(row 1\)",
    ),
    "infinite value": (
        ("y ~ x1", "y ~ x2", {"data": broken(x1=(2, np.inf))}),
        r"column 'x1' has 1 infinite value \(row 3\)",
    ),
    "log of a negative number": (
        ("y ~ x1", "y ~ np.log(x2)", {"data": broken(x2=(2, -1.0))}),
        r"formula 2: 'np.log\(x2\)' has 1 entry \(row 3\) without a finite value",
    ),
    "spoilt number": (
        ("y ~ x1", "y ~ x2", {"data": broken(x2=(3, "4,5"))}),
        r"column 'x2' has 1 entry \(row 4\) that cannot be read as a number, '4,5'",
    ),
    "response not 0/1": (
        ("binary ~ x1", "binary ~ x2", {"data": broken(binary=(3, 2.0)), "family": "logistic"}),
        r"'binary' must be 0 or 1 in the logistic family, but its values are 0, 1, 2: recode",
    ),
    "computed response not 0/1": (
        ("I(binary + 1) ~ x1", "I(binary + 1) ~ x2", {"family": "logistic"}),
        r"must be 0 or 1 in the logistic family, but its values are 1, 2",
    ),
    "negative count": (
        ("count ~ x1", "count ~ x2", {"data": broken(count=(3, -1.0)), "family": "poisson"}),
        r"'count' must be whole numbers of at least 0 in the poisson family, but it has 1 other value \(row 4\), -1:",
    ),
    "broken count": (
        ("count ~ x1", "count ~ x2", {"data": broken(count=([0, 3], 2.5)), "family": "poisson"}),
        r"'count' must be whole numbers.* 2 other values \(rows 1, 4\), 2.5: give counts, or use the gaussian family",
    ),
    "computed response not a count": (
        ("np.log1p(count) ~ x1", "np.log1p(count) ~ x2", {"family": "poisson"}),
        r"response 'np.log1p\(count\)' must be whole numbers",
    ),
    "text response": (
        ("group ~ x1", "group ~ x2", {"family": "logistic"}),
        r"response 'group' is not numeric, its values are 'a', 'b', 'c': recode it as numbers \(as 0 and 1",
    ),
    "constant response": (
        ("y ~ x1", "y ~ x2", {"data": table().assign(y=3.0)}),
        r"response 'y' is 3 in every row",
    ),
    "constant covariate": (
        ("y ~ x1", "y ~ x2", {"data": table().assign(x2=7.0)}),
        r"formula 2: the covariate 'x2' is constant \(7 in every row\): leave it out",
    ),
    "collinear": (
        ("y ~ x1", "y ~ x1 + x2 + x3", {"data": table().assign(x3=table()["x1"] - 2 * table()["x2"] + 5)}),
        r"formula 2 is collinear: 'x3' is a linear combination of 'x1', 'x2'; leave one",
    ),
    "collinear twin": (
        ("y ~ x1 + twin", "y ~ x2", {"data": table().assign(twin=3 * table()["x1"] + 1)}),
        r"formula 1 is collinear: 'twin' is a linear combination of 'x1'; leave",
    ),
    "different responses": (
        ("y ~ x1", "np.log(y**2) ~ x1", {}),
        r"different responses, 'y' and 'np.log\(y \*\* 2\)': .* give all formulas one response",
    ),
    "no response": (("x1", "y ~ x1", {}), r"formula 1, 'x1', has no response: write it like 'y ~ x1 \+ x2'"),
    "two responses": (("y + x2 ~ x1", "y ~ x1", {}), r"formula 1.* has more than one response"),
    "bad syntax": (
        ("y ~ x1", "y ~ x1 +", {}),
        r"formula 2, 'y ~ x1 \+', cannot be read \(.*\+.*\): write it like",
    ),
    "identical": (
        ("y ~ x1 + x2", "y ~ x2 + x1", {}),
        r"both formulas have the same columns \(Intercept, x1, x2\)",
    ),
    "identical products": (
        ("y ~ x1*x2", "y ~ x2*x1", {}),
        r"both formulas have the same columns \(Intercept, x1, x2, x1:x2\)",
    ),
    "random effects": (("y ~ x1", "y ~ x1 + (1|group)", {}), r"random effects are not for formulas"),
    "power in brackets": (("y ~ x1", "y ~ I(x1^2)", {}), r"write I\(x\*\*2\) for the square of x"),
    "several words misspelt": (
        ("y ~ x1", "y ~ body mas", {"data": table().assign(**{"body mass": table()["x2"]})}),
        r"did you mean 'body mass'\?; the columns are ",
    ),
    "dots misspelt": (
        ("y ~ x1", "y ~ body.mas", {"data": table().assign(**{"body.mass": table()["x2"]})}),
        r"there is no column .* \(did you mean 'body.mass'\?\)",
    ),
    "brackets in a name": (
        ("y ~ x1", "y ~ x2 (z)", {"data": table().assign(**{"x2 (z)": table()["x2"]})}),
        r"write 'x2 \(z\)' in backticks",
    ),
    "family in capitals": (("y ~ x1", "y ~ x2", {"family": "Logistic"}), r"\(Logistic is logistic here\)"),
    "square that is none": (("y ~ x1", "y ~ x1**2", {}), r"the square of x is written I\(x\*\*2\)"),
    "no columns": (("y ~ 0", "y ~ x1", {}), r"formula 1 has no column"),
    "empty table": (("y ~ x1", "y ~ x2", {"data": table().iloc[:0]}), r"the table has no rows"),
    "few rows": (
        ("y ~ x1", "y ~ x1 + x2 + group", {"data": table().iloc[:3]}),
        r"formula 2 has 5 columns but the table only 3 rows: it needs at least 5",
    ),
    "duplicate column": (
        ("y ~ x1", "y ~ x2", {"data": table().rename(columns={"x2": "x1"}).assign(x2=table()["x2"])}),
        r"more than one column 'x1'",
    ),
    "unknown family": (
        ("y ~ x1", "y ~ x2", {"family": "probit"}),
        r"unknown family 'probit': choose one of gaussian, logistic, poisson",
    ),
    "unknown scaling": (
        ("y ~ x1", "y ~ x2", {"scaling": "zscore"}),
        r"unknown scaling 'zscore': choose one of standardise, centre, raw",
    ),
    "column called variance": (
        ("y ~ x1", "y ~ variance", {"data": table().assign(variance=table()["x2"])}),
        r"may not be called 'variance'.*rename the column",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_reason(case):
    (formula_1, formula_2, options), message = REFUSED[case]
    with pytest.raises(CrossfadeError, match=message):
        both(formula_1, formula_2, **options)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_a_column_called_variance_is_fine_without_noise(family):
    data = table().assign(variance=table()["x2"])
    assert "variance" in both("binary ~ x1", "binary ~ variance", data=data, family=family)[1].names


def test_factors_and_nearly_collinear_powers_are_not_refused():
    years = load("radiocarbon")
    powers = " + ".join(f"I(rc_age**{k})" for k in range(1, 6))
    assert len(both("cal_age ~ rc_age", f"cal_age ~ {powers}", data=years)[1].names) == 6
    assert both("y ~ x1", "y ~ x1 + group")[1].names[-1] == "group[T.c]"


@pytest.mark.parametrize(
    ("family", "prior", "message"),
    [
        (
            "gaussian",
            Prior(means={"x9": 1.0}),
            r"name 'x9', which no formula has: choose from \['Intercept', 'x1', 'x2'\]",
        ),
        ("gaussian", Prior(precisions={"x9": 1.0}), r"prior precisions name 'x9'"),
        ("gaussian", Prior(precision=0.0), r"prior precision is 0.0: it must be a positive number"),
        ("gaussian", Prior(precisions={"x1": -1.0}), r"prior precision of x1 is -1.0"),
        ("gaussian", Prior(noise_rate=float("nan")), r"prior noise_rate is nan"),
        ("gaussian", Prior(mean=float("inf")), r"prior mean is inf: it must be a finite number"),
        ("gaussian", Prior(sd=3.0), r"gaussian family has no prior sd: give --prior-precision"),
        ("logistic", Prior(precision=2.0), r"logistic family has no prior precision: give --prior-sd"),
        ("poisson", Prior(noise_shape=2.0), r"poisson family has no prior noise_shape: leave it out"),
        ("poisson", Prior(sd=0.0), r"prior sd is 0.0: it must be a positive number"),
        ("poisson", Prior(means={"x9": 1.0}), r"prior means name 'x9', which no formula has"),
        ("gaussian", Prior(sds={"x1": 1.0}), r"gaussian family has no prior sds: give --prior-precision"),
        ("logistic", Prior(sds={"x1": 0.0}), r"prior sd of x1 is 0.0: it must be a positive number"),
        ("logistic", Prior(sds={"x": 1.0}), r"prior sds name 'x', which no formula has"),
    ],
)
def test_bad_priors_are_refused(family, prior, message):
    response = "y" if family == "gaussian" else "binary"
    with pytest.raises(CrossfadeError, match=message):
        regressions(both(f"{response} ~ x1", f"{response} ~ x2", family=family), family, prior)


def test_statement():
    assert statement(Prior(), "gaussian") == "coefficients ~ N(0, variance/1); 1/variance ~ Gamma(0.1, rate 0.1)"
    assert statement(Prior(), "logistic") == "coefficients ~ N(0, sd 10)"
    assert statement(Prior(), "poisson") == "coefficients ~ N(0, sd 2.5)"
    changed = Prior(means={"Intercept": 3.0}, sd=1.5)
    assert statement(changed, "poisson") == "coefficients ~ N(0, sd 1.5), but Intercept ~ N(3, sd 1.5)"
    assert statement(Prior(means={"x": 185}, precisions={"x": 6, "z": 2}), "gaussian").startswith(
        "coefficients ~ N(0, variance/1), but x ~ N(185, variance/6), z ~ N(0, variance/2); 1/variance"
    )


def test_priors_by_name_and_by_factor():
    design = both("binary ~ x1 + group", "binary ~ x1*group", family="logistic")
    own, with_products = regressions(design, "logistic", Prior(sd=3.0, sds={"group": 0.5, "x1": 1.0}))
    assert dict(zip(own.names, own.precision**-0.5, strict=True)) == pytest.approx(
        {"Intercept": 3.0, "group[T.b]": 0.5, "group[T.c]": 0.5, "x1": 1.0}
    )
    spread = dict(zip(with_products.names, with_products.precision**-0.5, strict=True))
    assert spread["x1:group[T.b]"] == pytest.approx(3.0) and spread["group[T.b]"] == pytest.approx(0.5)
    said = statement(Prior(sd=3.0, sds={"x1": 1.0}), "logistic")
    assert said == "coefficients ~ N(0, sd 3), but x1 ~ N(0, sd 1)"


def test_radiata_by_formula_has_the_exact_evidence():
    from crossfade.worlds.linear import log_evidence

    prior = Prior(
        means={"Intercept": 3000, "x": 185, "z": 185},
        precisions={"Intercept": 0.06, "x": 6, "z": 6},
        noise_shape=3,
        noise_rate=2 * 300**2,
    )
    m1, m2 = from_formulas(load("radiata"), "y ~ x", "y ~ z", prior=prior, scaling="centre")
    assert log_evidence(m1) == pytest.approx(-310.5072656, abs=1e-6)
    assert log_evidence(m2) == pytest.approx(-301.6501578, abs=1e-6)


def test_radiocarbon_by_formula_has_the_exact_evidence():
    from crossfade.worlds.linear import log_evidence

    years = load("radiocarbon")
    scaled = (years - years.mean()) / years.std()
    powers = " + ".join(f"I(rc_age**{k})" for k in range(1, 5))
    m1, m2 = from_formulas(scaled, "cal_age ~ rc_age", f"cal_age ~ {powers}", scaling="raw")
    assert log_evidence(m1) == pytest.approx(346.309874, abs=1e-5)
    assert log_evidence(m2) == pytest.approx(410.105366, abs=1e-5)


def test_pima_by_formula_has_the_right_log_joint():
    """log N(y | Bernoulli) + log prior at one point, by hand."""
    from scipy.stats import norm

    from crossfade import float64

    data = load("pima")
    m1, m2 = from_formulas(data, "y ~ npreg + glu", "y ~ npreg + glu + age", family="logistic")
    assert m1.names == ("Intercept", "npreg", "glu") and m2.names == (*m1.names, "age")
    theta = {"Intercept": -0.7, "npreg": 0.3, "glu": 1.1}
    scaled = (data[["npreg", "glu"]] - data[["npreg", "glu"]].mean()) / data[["npreg", "glu"]].std()
    eta = -0.7 + 0.3 * scaled["npreg"] + 1.1 * scaled["glu"]
    truth = np.sum(data["y"] * eta - np.log1p(np.exp(eta))) + norm(0, 10).logpdf(list(theta.values())).sum()
    with float64():
        assert float(m1.log_joint(theta)) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(("prior", "sd"), [(Prior(), 2.5), (Prior(sd=1.5), 1.5)])
def test_counts_by_formula_have_the_right_log_joint(prior, sd):
    """log Poisson + log prior at one point, by SciPy; the prior is the one that is stated."""
    from scipy.stats import norm, poisson

    from crossfade import float64

    data = table()
    m1, m2 = from_formulas(data, "count ~ x1", "count ~ x1 + group", family="poisson", prior=prior)
    assert m1.names == ("Intercept", "x1") and m2.names == (*m1.names, "group[T.b]", "group[T.c]")
    theta = {"Intercept": 0.9, "x1": -0.3}
    rate = np.exp(0.9 - 0.3 * (data["x1"] - data["x1"].mean()) / data["x1"].std())
    truth = poisson(rate).logpmf(data["count"]).sum() + norm(0, sd).logpdf(list(theta.values())).sum()
    with float64():
        assert float(m1.log_joint(theta)) == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize(
    ("formula", "powers"),
    [
        ("y ~ x1 + x2^2", ["x2^2"]),
        ("y ~ x1 + x2 ** 3", ["x2 ** 3"]),
        ("y ~ `body mass`^2", ["`body mass`^2"]),
        ("y ~ (x1 + x2)^2", []),
        ("y ~ I(x1**2) + np.exp(x2**2)", []),
        ("y ~ poly(x1, 2)", []),
    ],
)
def test_powers_that_are_none_are_noted(formula, powers):
    assert powers_in(formula) == powers


def test_a_power_that_is_none_is_said_with_the_answer():
    found = designs(table(), "y ~ x1", "y ~ x1 + x2^2", family="gaussian", scaling="standardise")
    assert any("x2^2 in formula 2 means x2; the power is written I(x2**2)" in note for note in found[0].notes)
    assert not designs(table(), "y ~ x1", "y ~ x1 + I(x2**2)", family="gaussian", scaling="standardise")[0].notes


def test_the_prior_of_a_difference_between_groups_is_said():
    note = "levels of a factor are standardised too: a difference from the first level has a prior 1.9 times as wide"
    two = table(12).assign(group=["a", "b"] * 6)
    said = designs(two, "y ~ x1", "y ~ x1 + group", family="gaussian", scaling="standardise")
    assert note in said[0].notes  # 1/sd of six and six, with n - 1
    assert not designs(two, "y ~ x1", "y ~ x1 + group", family="gaussian", scaling="raw")[0].notes
