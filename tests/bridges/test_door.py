"""Raw models of other libraries: opened by what they are, without importing what they do not need."""

import subprocess
import sys
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro
import pymc as pm
import pytest
from numpyro import distributions as dist
from numpyro.handlers import condition
from scipy import stats

from crossfade.density.joint import Joint, as_joint
from crossfade.density.precision import float64
from crossfade.types import CrossfadeError

Y = np.array([0.3, -0.2, 0.9])


def normal(y, sd=1.0):
    mu = numpyro.sample("mu", dist.Normal(0, sd))
    numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def in_pymc():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, 1, observed=Y)
    return model


class Mine(pm.Model):
    """A model class of the user's own, in a module of the user's own."""


def subclassed():
    with Mine() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, 1, observed=Y)
    return model


OPENED = {
    "a tuple": lambda: (normal, Y),
    "a tuple with all arguments": lambda: (normal, Y, 1.0),
    "a function that needs nothing": lambda: partial(normal, Y),
    "a handler": lambda: (condition(normal, {}), Y),
    "a pymc.Model": in_pymc,
    "a subclass of it": subclassed,
}


@pytest.mark.parametrize("case", OPENED)
def test_raw_models_are_the_same_joint(case):
    joint = as_joint(OPENED[case]())
    assert isinstance(joint, Joint) and joint.names == ("mu",)
    np.testing.assert_array_equal(joint.data, Y)
    with float64():
        found = float(eqx.filter_jit(joint.log_joint)({"mu": jnp.array(0.4)}))
    assert found == pytest.approx(stats.norm.logpdf(0.4) + stats.norm(0.4, 1).logpdf(Y).sum(), abs=1e-10)


def log_density(theta):
    return -(theta["mu"] ** 2)


REFUSED = {
    "without its data": (normal, r"M1: normal cannot be called with the 0 arguments given \(missing.*\(model, y\)"),
    "too many": ((normal, Y, 1.0, 2.0), "M1: normal cannot be called with the 3 arguments given .too many"),
    "a log density": (log_density, "M1: log_density cannot be called .*from_log_joint"),
    "no sites": (lambda: None, "M1: the model has neither a parameter nor data"),
    "no function": ((3, Y), r"M1 is a tuple: bring it with .*\(model, y\)"),
    "nothing": ((), "M1 is a tuple: bring it with"),
    "a list": ([normal, Y], "M1 is a list: bring it with"),
    "a class": (dict, "M1 is a type: bring it with"),
    "of pymc but no model": (pm.Normal, "M1: from_pymc needs a pymc.Model"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused_by_name(case):
    model, message = REFUSED[case]
    with pytest.raises(CrossfadeError, match=message):
        as_joint(model, "M1")


def test_no_bridge_is_crossed_for_models_of_ours():
    code = """
import sys
from numpyro import distributions as dist
from crossfade import Model
from crossfade.density.joint import as_joint
as_joint(Model({"mu": dist.Normal(0.0, 1.0)}, lambda p: -p["mu"] ** 2))
print([name for name in sys.modules if name.startswith(("crossfade.bridges", "pymc"))])
import numpyro
def model():
    numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0.0, 1.0)), 1.0), obs=0.3)
as_joint(model)
print([name for name in sys.modules if name.startswith("pymc")])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split("\n")[:2] == ["[]", "[]"]
