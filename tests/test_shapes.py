"""Shapes in the types of records are those of what is in them."""

import re
from typing import Any

import jax
import jaxtyping
import numpy as np
import pandas
import pytest
from numpyro import distributions as dist

import crossfade
from crossfade.bridges.formula import Prior, designs, regressions
from crossfade.density.joint import as_joint
from crossfade.methods import fitted
from crossfade.methods.budget import Asked
from crossfade.methods.coupled import Side, around_mode, weighted
from crossfade.methods.pieces import adapted
from crossfade.ranking import rank
from crossfade.ranking.terms import from_many_formulas
from crossfade.sampling.tempering import advance, begin, tune

Y = np.array([0.3, -0.2, 0.9, 1.4, 0.1])
NAMES = {name: getattr(jaxtyping, name) for name in ("Float", "Bool", "Int")}
SHAPED = re.compile("|".join(rf"\b{name}\[" for name in NAMES))


def shaped_fields(record: Any) -> dict[str, str]:
    """Fields of a record whose types tell a shape; not those within dicts."""
    said = getattr(type(record), "__annotations__", {})
    texts = {name: getattr(own, "__forward_arg__", own) for name, own in said.items()}
    return {name: text for name, text in texts.items() if SHAPED.search(str(text)) and not text.startswith("dict")}


def wrong(record: Any) -> list[str]:
    """Fields of another shape than is said; axes of one name are equally long throughout a record."""
    found = []
    with jaxtyping.jaxtyped("context"):
        for name, text in shaped_fields(record).items():
            own = getattr(record, name)
            kind = eval(text, {"np": np, "Array": Any, **NAMES})
            parts = zip(own, kind.__args__, strict=True) if text.startswith("tuple[") else [(own, kind)]
            found += [f"{type(record).__name__}.{name}: {text}" for part, one in parts if not isinstance(part, one)]
    return found


def records(thing: Any, seen: set[int]) -> list[Any]:
    """All records with shapes that are reached from something."""
    if id(thing) in seen or isinstance(thing, str | bytes | np.ndarray):
        return []
    seen.add(id(thing))
    if isinstance(thing, tuple | list):
        inside = list(thing)
    elif isinstance(thing, dict):
        inside = list(thing.values())
    else:
        inside = list(getattr(thing, "__dict__", {}).values()) if type(thing).__module__.startswith("crossfade") else []
    own = [thing] if shaped_fields(thing) else []
    return own + [record for part in inside for record in records(part, seen)]


@pytest.fixture(scope="module")
def found():
    def model(**priors):
        return crossfade.Model(priors, lambda p: dist.Normal(sum(p.values()), 1.0).log_prob(Y).sum(), data=None)

    normal = dist.Normal(0.0, 1.0)
    joints = as_joint(model(a=normal)), as_joint(model(a=normal, b=dist.Normal(1.0, 0.5)))
    run = fitted.begin(joints, Asked(0.05, 60.0, None), 0, n_chains=4)
    while not run.finished:
        run = fitted.step(run)
    tempered = tune(begin(joints[1], jax.random.key(0), 4))
    passage = advance(tempered, 20)[1]
    table = pandas.DataFrame({"y": Y, "x": Y**2, "z": np.arange(5.0)})
    regression = regressions(designs(table, "y ~ x", family="gaussian", scaling="raw"), "gaussian", Prior())[0]
    ranking = rank(from_many_formulas(table, "y ~ x", "y ~ z", scaling="raw"), progress=False)
    result = crossfade.compare(*joints, method="MBAR", n_iter=200, n_chains=6, progress=False)
    side = Side(lambda u: -(u**2).sum(axis=1) / 2, around_mode(np.zeros(2), np.eye(2)))
    points = weighted(side, np.random.default_rng(0).uniform(size=(3, 5, 3)))
    pieces = adapted(side.log_density, np.random.default_rng(0).normal(size=(500, 2)), 0)
    return records([run, tempered, passage, regression, ranking, result.legs, points, pieces], set())


def test_shapes_are_as_the_types_say(found):
    kinds = {type(record).__name__ for record in found}
    assert kinds >= {"Draws", "Chains", "Rung", "Trace", "Tempered", "Passage", "Regression", "Ranking", "Weighted"}
    assert sorted({said for record in found for said in wrong(record)}) == []


def test_another_shape_is_noticed(found):
    """The twin: axes the wrong way round, or one axis of two lengths."""
    trace = next(record for record in found if type(record).__name__ == "Trace")
    assert wrong(trace._replace(log_ratio=trace.log_ratio.T)) and wrong(trace._replace(tau=trace.tau[:-1]))
