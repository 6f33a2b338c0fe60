"""Results say what their models are called, where that tells them apart."""

import jax
import numpy as np
import numpyro
from numpyro import distributions as dist

import crossfade
from crossfade.app.words import sentence
from crossfade.data import load
from crossfade.density.joint import as_joint
from crossfade.density.regression import titles_of

Y = np.array([0.3, -0.2, 0.9])


def narrow(y, sd=1.0):
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, sd)), 1), obs=y)


def wide(y):
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Cauchy(0, 9)), 1), obs=y)


def test_formulas_of_python_are_named_on_the_page_and_in_the_sentence():
    result = crossfade.compare(*crossfade.from_formulas(load("radiata"), "y ~ x", "y ~ z"))
    assert (result.about["M1"], result.about["M2"]) == ("y ~ x", "y ~ z")
    assert "M1                y ~ x" in str(result)
    assert "more likely under M2 (y ~ z) than under M1 (y ~ x)" in sentence(result)


def test_functions_are_named_unless_they_are_the_same():
    first, second = crossfade.from_numpyro(narrow, Y), crossfade.from_numpyro(wide, Y)
    assert (first.title, second.title) == ("narrow", "wide")
    assert crossfade.from_numpyro(lambda y: narrow(y), Y).title == ""
    assert titles_of(first, second) == {"M1": "narrow", "M2": "wide"}
    assert titles_of(first, crossfade.from_numpyro(narrow, Y, sd=2.0)) == {}


def test_models_of_other_names_share_their_programs():
    """A title is no part of what is compiled."""
    with crossfade.float64():
        joints = [as_joint(crossfade.from_numpyro(narrow, Y).described((), title)) for title in ("a", "b")]
        first, second, other = (jax.tree.structure(own.density) for own in (*joints, as_joint((wide, Y))))
    assert first == second != other
