"""Posterior draws as ArviZ takes them, whatever the parameters are called."""

import numpy as np
import pytest
import xarray

from crossfade.app.tree import dataset, variable_names
from crossfade.types import Estimate, Result, Sharing


def draws(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(len(shapes))
    return {name: rng.normal(size=(4, 50, *shape)) for name, shape in shapes.items()}


def result(first=None, second=None, **about) -> Result:
    none = Estimate(0.0, 1.0, 3.0)
    return Result(none, "weak", (), {}, {}, {}, (), Sharing((), (), ()), about, (first or {}, second or {}))


def test_both_posteriors_as_a_tree():
    first, second = draws(mu=(), beta=(2, 3)), draws(mu=())
    tree = result(first, second).posteriors
    assert isinstance(tree, xarray.DataTree) and list(tree.children) == ["M1", "M2"]
    assert tree["M1"].posterior["mu"].dims == ("chain", "draw")
    assert tree["M1"].posterior["beta"].dims == ("chain", "draw", "beta_dim_0", "beta_dim_1")
    np.testing.assert_array_equal(tree["M2"].posterior["mu"], second["mu"])


def test_a_model_without_draws_is_left_out():
    assert list(result({}, draws(mu=())).posteriors.children) == ["M2"]
    assert list(result().posteriors.children) == []


def test_arviz_takes_a_model():
    arviz = pytest.importorskip("arviz")
    tree = result(draws(mu=(), beta=(2,)), dims={"beta": ["term"]}, coords={"term": ["x", "z"]}).posteriors
    if hasattr(arviz, "InferenceData"):  # before version 1, which takes trees
        found = arviz.ess(arviz.InferenceData.from_datatree(tree["M1"]))
    else:
        found = arviz.ess(tree["M1"])
    assert 50 < float(found["beta"].sel(term="z")) < 1000


def test_dimensions_and_labels_are_those_given():
    dims = {"beta": ["term"], "effect": ["group", "term"], "loose": ["rows"], "mu": []}
    coords = {"term": ["x", "I(x / 2)", None], "group": [10, 20]}
    found = dataset(draws(mu=(), beta=(3,), effect=(2, 3), loose=(5,)), dims, coords)
    assert found["effect"].dims == ("chain", "draw", "group", "term")
    assert list(found["term"].values) == ["x", "I(x / 2)", "None"]
    assert list(found["group"].values) == [10, 20]
    assert found["loose"].dims == ("chain", "draw", "rows") and "rows" not in found.coords


@pytest.mark.parametrize(
    ("shape", "dims", "expected"),
    [
        ((3,), ["term", "group"], ("beta_dim_0",)),  # of another number of dimensions
        ((4,), ["term"], ("beta_dim_0",)),  # of another length
        ((2, 2), ["group", "group"], ("group", "beta_dim_1")),
        ((3,), ["chain"], ("beta_dim_0",)),
        ((3,), ["a/b"], ("beta_dim_0",)),
        ((3,), [""], ("beta_dim_0",)),
        ((3,), ["beta"], ("beta_dim_0",)),  # the parameter itself
        ((3,), ["mu"], ("beta_dim_0",)),  # another parameter
        ((6,), ["rows"], ("beta_dim_0",)),  # an earlier parameter has 5 of these
        ((5,), ["rows"], ("rows",)),
        ((3,), None, ("beta_dim_0",)),
    ],
)
def test_dimensions_that_do_not_fit_are_replaced(shape, dims, expected):
    own = draws(mu=(), loose=(5,), beta=shape)
    found = dataset(own, {"loose": ["rows"], "beta": dims}, {"term": ["x", "y", "z"], "group": [1, 2]})
    assert found["beta"].dims == ("chain", "draw", *expected)
    np.testing.assert_array_equal(found["beta"], own["beta"])


def test_names_that_a_variable_cannot_have():
    names = ["", ".", "..", "chain", "draw", "a/b", "/", "parameter_0", "<script>", "β", "x_dim_0", "x"]
    own = draws(**{name: (2,) for name in names})
    found = dataset(own, {name: ["chain"] for name in names}, {})
    assert [data.attrs["parameter"] for data in found.data_vars.values()] == names
    for name, variable in variable_names(names).items():
        np.testing.assert_array_equal(found[variable], own[name])
    assert variable_names(names)[""] == "parameter_0_" and variable_names(names)["β"] == "β"
    assert found["x"].dims == ("chain", "draw", "x_dim_0_")


def test_hostile_names_and_dimensions_go_to_disk_and_back(tmp_path):
    import crossfade

    names = ["", ".", "..", "chain", "a/b", "parameter_0", "<script>", "x_dim_0", "x", "estimate", "M1", "posterior"]
    own = draws(**{name: (2,) for name in names})
    dims = {name: [dim] for name, dim in zip(names, ["<b>", "g", "a/b", "draw", "g", "x", "", "g"], strict=False)}
    run = result(own, own, dims=dims, coords={"g": ["</td>", ""], "<b>": [1, 2]})
    run.save(tmp_path / "run.nc")
    back = crossfade.load(tmp_path / "run.nc")
    assert back.about == run.about and [list(side) for side in back.draws] == [names, names]
    for name in names:
        np.testing.assert_array_equal(back.draws[1][name], own[name])
    xarray.testing.assert_identical(back.posteriors, run.posteriors)
