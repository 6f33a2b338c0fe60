"""Data that a model makes up: parameters from its prior, responses from its likelihood, and the model of those."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from crossfade.bridges.door import is_pymc
from crossfade.density.precision import in_float64
from crossfade.density.regression import Regression, regression_of
from crossfade.types import CrossfadeError

Data = dict[str, np.ndarray]  # responses by the name of their variable
HELP = "give both models as functions of the data, and simulate="


class Simulator(NamedTuple):
    """How to make up data of a model, and the model of other data of the same shape."""

    shapes: dict[str, tuple[int, ...]]  # of the responses
    draw: Callable[[int], Data]  # from a seed
    given: Callable[[Data], Any]


def simulator(model: Any, which: str) -> Simulator:
    """Of a NumPyro function (or a tuple of one and its arguments), a pm.Model, or a regression."""
    if (regression := regression_of(model)) is not None:
        return _of_regression(regression)
    if is_pymc(model):
        return _of_pymc(model)
    function, *args = model if isinstance(model, tuple) and model else (model,)
    if callable(function) and not isinstance(function, type):
        return _of_numpyro(function, args)
    raise CrossfadeError(
        f"{which} is a {type(model).__name__}, which cannot make up data: give a NumPyro function (with its arguments, "
        "as a tuple), a pm.Model, a formula's model, or functions of the data and simulate="
    )


@in_float64
def _of_numpyro(function: Callable[..., Any], args: list[Any]) -> Simulator:
    import jax
    from numpyro.handlers import seed, trace

    from crossfade.bridges.numpyro import from_numpyro

    @in_float64
    def sites(key: int, fn: Callable[..., Any]) -> dict[str, Any]:
        return dict(trace(seed(fn, jax.random.key(key))).get_trace(*args))

    observed = {
        name: site for name, site in sites(0, function).items() if site["type"] == "sample" and site["is_observed"]
    }
    for name, site in observed.items():
        if type(site["fn"]).__name__ == "Unit":
            raise CrossfadeError(f"numpyro.factor {name!r} has no distribution to make up data from: {HELP}")

    def draw(key: int) -> Data:
        made = sites(key, _replaced(function, _forgotten))
        return {name: np.asarray(made[name]["value"]) for name in observed}

    def given(data: Data) -> Any:
        def other(site: dict[str, Any]) -> None:
            site["value"] = data[site["name"]]

        return from_numpyro(_replaced(function, other), *args)

    return Simulator({name: np.shape(site["value"]) for name, site in observed.items()}, draw, given)


def _replaced(function: Callable[..., Any], change: Callable[[dict[str, Any]], None]) -> Callable[..., Any]:
    """The model with its observed sites changed."""
    from numpyro.primitives import Messenger

    class Replaced(Messenger):
        def process_message(self, msg: dict[str, Any]) -> None:
            if msg["type"] == "sample" and msg["is_observed"]:
                change(msg)

    return Replaced(function)


def _forgotten(site: dict[str, Any]) -> None:
    """Without its value; a distribution of one datum that was given many is that of as many."""
    shape = np.shape(site["value"])
    batch = shape[: len(shape) - site["fn"].event_dim]
    if site["fn"].batch_shape != batch:
        site["fn"] = site["fn"].expand(batch)
    site["is_observed"], site["value"] = False, None


def _of_pymc(model: Any) -> Simulator:
    import pymc
    import pytensor.tensor as pt

    from crossfade.bridges.pymc import from_pymc

    if model.potentials:
        raise CrossfadeError(f"pm.Potential has no distribution to make up data from: {HELP}")
    variables = {rv.name: rv for rv in model.observed_RVs}
    shapes = {name: tuple(np.shape(model.rvs_to_values[rv].eval())) for name, rv in variables.items()}

    def draw(key: int) -> Data:
        return dict(zip(variables, pymc.draw(list(variables.values()), random_seed=key), strict=True))

    @contextmanager
    def observing(data: Data) -> Any:
        before = {rv: model.rvs_to_values[rv] for rv in variables.values()}
        try:
            for name, rv in variables.items():
                model.rvs_to_values[rv] = pt.as_tensor(np.asarray(data[name]).astype(before[rv].dtype))
            yield
        finally:
            model.rvs_to_values.update(before)

    def given(data: Data) -> Any:
        with observing(data):
            return from_pymc(model)

    return Simulator(shapes, draw, given)


def _of_regression(model: Regression) -> Simulator:
    def draw(key: int) -> Data:
        return {"y": model.simulate(np.random.default_rng(key))}

    def given(data: Data) -> Regression:
        return model._replace(y=data["y"])

    return Simulator({"y": model.y.shape}, draw, given)
