"""Models as other libraries write them, told apart by what they are: no bridge is crossed before it is needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from crossfade.density.joint import Joint
from crossfade.density.model import Model
from crossfade.density.regression import Regression
from crossfade.types import CrossfadeError


def opened(model: Any, which: str) -> Model | Joint | None:
    """A pm.Model, a NumPyro function (or a tuple of one and its arguments), a regression: as ours, or None."""
    if isinstance(model, Regression):
        from crossfade.bridges.formula import as_model

        return as_model(model)
    try:
        if is_pymc(model):
            from crossfade.bridges.pymc import from_pymc

            return from_pymc(model)
        function, *args = model if isinstance(model, tuple) and model else (model,)
        if not callable(function) or isinstance(function, type):
            return None
        _check_call(function, args)
        from crossfade.bridges.numpyro import from_numpyro

        return from_numpyro(function, *args)
    except CrossfadeError as error:
        raise CrossfadeError(f"{which}: {error}") from error


def is_pymc(model: Any) -> bool:
    """A pm.Model, without importing PyMC to see."""
    return any(kind.__module__.split(".")[0] == "pymc" for kind in type(model).__mro__)


def _check_call(function: Callable[..., Any], args: list[Any]) -> None:
    """A function of something else, a log density for one, is found out before it is run."""
    try:
        inspect.signature(function).bind(*args)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise CrossfadeError(
            f"{name} cannot be called with the {len(args)} argument{'s' * (len(args) != 1)} given ({error}): write a "
            "NumPyro model and its arguments as a tuple, (model, y); bring a log density with from_log_joint"
        ) from None
    except ValueError:  # it has no signature that Python can tell
        return


def called(function: Callable[..., Any], data: Any) -> Any:
    """A model of one data set: a NumPyro function with its arguments, or what a function makes of them."""
    args, kwargs = ((), data) if isinstance(data, dict) else (data if isinstance(data, tuple) else (data,), {})
    from numpyro.handlers import block, seed

    from crossfade.bridges.numpyro import from_numpyro

    with block(), seed(rng_seed=0):
        made = function(*args, **kwargs)
    if isinstance(made, Model | Joint | Regression) or is_pymc(made):
        return made
    return from_numpyro(function, *args, **kwargs)
