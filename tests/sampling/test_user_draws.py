"""The user's own draws: read in every form, cut into pieces, and not believed where they are of something else."""

import jax.numpy as jnp
import lines
import numpy as np
import pytest
import xarray
from assertions import assert_estimate, rng
from numpyro import distributions as dist

from crossfade.api import compare
from crossfade.density.joint import as_joint
from crossfade.density.model import Model
from crossfade.sampling.user_draws import brought
from crossfade.types import CrossfadeError

NOT_OF_THIS = ("are not draws of its posterior", "does not tell which model a draw came from")


def wrong_draws(case, k):
    """Draws that are not of the posterior of model k, although they look as good."""
    random = rng(30 + k)
    right = lines.posterior(k, random)
    if case == "shifted":
        return {name: values + 3 * values.std() for name, values in right.items()}
    if case == "of the other model":
        other = lines.posterior(1 - k, random)
        return {name: other.get(name, random.normal(size=values.shape)) for name, values in right.items()}
    if case == "of other data":
        return lines.posterior(k, random, y=lines.Y + 1.0)
    return {name: random.normal(size=values.shape) for name, values in right.items()}


@pytest.mark.parametrize("library", lines.PAIRS)
def test_right_draws_are_trusted_and_right(library):
    draws = tuple(lines.posterior(k, rng(20 + k)) for k in (0, 1))
    result = compare(*lines.PAIRS[library](), draws=draws)
    assert result.verdict == "trustworthy", result.reasons
    assert_estimate(result.log_bayes_factor, lines.truth(), max_error=0.05)
    with pytest.raises(AssertionError):  # the wrong twin: a dropped constant
        assert_estimate(result.log_bayes_factor, lines.truth() + np.log(2), max_error=0.05)


CASES = ("shifted", "of the other model", "of other data", "of the prior")
FAR = (0, "of the prior")  # the ends do not overlap: rungs are put between, which takes a while


@pytest.mark.parametrize(
    ("k", "case"),
    [
        pytest.param(k, case, marks=pytest.mark.slow) if (k, case) == FAR else (k, case)
        for k in (0, 1)
        for case in CASES
    ],
)
@pytest.mark.parametrize("library", lines.PAIRS)
def test_draws_of_something_else_are_no_answer(library, k, case):
    draws = [lines.posterior(i, rng(20 + i)) for i in (0, 1)]
    draws[k] = wrong_draws(case, k)
    result = compare(*lines.PAIRS[library](), draws=tuple(draws))
    assert result.verdict == "do not use"
    assert any(words in reason for words in NOT_OF_THIS for reason in result.reasons), result.reasons
    assert any(f"M{k + 1}" in reason or "slope" in reason for reason in result.reasons)
    assert np.isnan(result.log_bayes_factor.value) and np.isfinite(result.raw_estimate.value)


@pytest.fixture(scope="module")
def joint():
    return as_joint(lines.in_numpyro()[1])


def test_arrays_datasets_and_trees_are_read_alike(joint):
    own = lines.posterior(1, rng(1), shape=(3, 200))
    dataset = xarray.Dataset({name: (("chain", "draw"), values) for name, values in own.items()})
    turned = dataset.transpose("draw", "chain")
    tree = xarray.DataTree.from_dict({"/posterior": dataset})
    found = [brought(joint, draws, 32, "M2") for draws in (own, dataset, turned, tree)]
    for draws in found[1:]:
        np.testing.assert_array_equal(draws.u, found[0].u)
    assert not found[0].can_grow
    np.testing.assert_array_equal(found[0].as_made, np.stack([own["mu"], own["b"]], axis=2))


@pytest.mark.parametrize(
    ("shape", "pieces"), [((4, 1000), (32, 125)), ((1, 400), (20, 20)), ((5, 90), (20, 22)), ((100, 50), (32, 150))]
)
def test_chains_are_cut_or_joined_to_pieces(joint, shape, pieces):
    draws = brought(joint, lines.posterior(1, rng(2), shape=shape), 32, "M2")
    assert draws.u.shape[:2] == pieces
    assert draws.slope.shape[2] == 2 and draws.slope_at.shape == draws.slope.shape


def test_what_cannot_be_read_is_said(joint):
    own = lines.posterior(1, rng(1), shape=(4, 100))
    for draws, message in (
        ({"mu": own["mu"]}, r"the draws for M2 have no 'b': they have \['mu'\]"),
        (own | {"b": own["b"][:, :, None]}, r"'b' for M2 have shape \(4, 100, 1\): give \[chain, draw\]"),
        (own | {"b": own["b"][:, :-1]}, "differ in number between parameters"),
        (own | {"b": np.full((4, 100), np.nan)}, r"'b' for M2 hold NaN \(chain 0, draw 0\)"),
        (own | {"b": np.full((4, 100), "a")}, "'b' for M2 are not numbers"),
        (7, "bring a posterior or a dict of arrays"),
        ({name: values[:2, :30] for name, values in own.items()}, "2 x 30 draws, too few"),
    ):
        with pytest.raises(CrossfadeError, match=message):
            brought(joint, draws, 32, "M2")
    with pytest.raises(CrossfadeError, match=r"have shape \(400,\).*mcmc.get_samples\(group_by_chain=True\)"):
        brought(joint, {name: values.ravel() for name, values in own.items()}, 32, "M2")
    scale = as_joint(Model({"s": dist.HalfNormal(1.0)}, lambda p: -p["s"]))
    with pytest.raises(CrossfadeError, match="'s' for M1 are not all inside the support"):
        brought(scale, {"s": -np.ones((4, 100))}, 32, "M1")
    cut = as_joint(Model({"x": dist.Normal(0.0, 1.0)}, lambda p: jnp.where(p["x"] > 0, 0.0, -jnp.inf)))
    with pytest.raises(CrossfadeError, match="not finite at some of its own draws: are they of this model"):
        brought(cut, {"x": rng(3).normal(size=(4, 100))}, 32, "M1")


def test_axes_the_wrong_way_round_are_noticed(joint):
    """By neighbours that go together: draws that are independent may come in any order."""
    own = lines.posterior(1, rng(1), shape=(300, 8))
    assert brought(joint, own, 32, "M2").n_chains == 32
    slow = {name: values + np.cumsum(rng(2).normal(size=(300, 8)), axis=0) / 40 for name, values in own.items()}
    with pytest.raises(CrossfadeError, match=r"300 chains with 8 draws each.*give \[chain, draw\], not \[draw"):
        brought(joint, slow, 32, "M2")
    brought(joint, {name: values.T for name, values in slow.items()}, 32, "M2")


def test_a_mode_that_the_draws_do_not_know_is_found():
    def folded(p):
        return dist.Normal(jnp.abs(p["mu"]), 1.0).log_prob(jnp.array([7.5, 8.2, 8.4])).sum()

    joint = as_joint(Model({"mu": dist.Normal(0.0, 5.0)}, folded))
    one = 8 + 0.57 * rng(4).normal(size=(4, 1000))
    assert brought(joint, {"mu": one}, 32, "M1").elsewhere.startswith("mu = -")
    both = one * np.array([1, -1, 1, -1])[:, None]
    assert brought(joint, {"mu": both}, 32, "M1").elsewhere == ""
