"""What the command line is given: a CSV file and two formulas, or two models in Python files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

from crossfade.types import CrossfadeError


class Priors(NamedTuple):
    """The options about priors of formulas, as they were typed."""

    mean: list[str] | None
    precision: list[str] | None
    noise_shape: float
    noise_rate: float
    sd: float | None


class Pair(NamedTuple):
    """Two models, and what the page says about them."""

    m1: Any
    m2: Any
    about: dict[str, str]


def pair(what: list[str], family: str, scaling: str, priors: Priors) -> Pair:
    """DATA FORMULA1 FORMULA2, or FILE.py:NAME FILE.py:NAME."""
    if len(what) == 3:
        return _of_formulas(Path(what[0]), what[1], what[2], family, scaling, priors)
    if len(what) == 2:
        return Pair(load_model(what[0], "M1"), load_model(what[1], "M2"), {"M1": what[0], "M2": what[1]})
    raise CrossfadeError(
        f"{len(what)} arguments: give a CSV file and two formulas, or two models as models.py:m1 models.py:m2"
    )


def _of_formulas(data: Path, formula_1: str, formula_2: str, family: str, scaling: str, priors: Priors) -> Pair:
    from crossfade.app.read import read_csv
    from crossfade.bridges.formula import Prior, designs, models, statement

    means, precisions = by_name("--prior-mean", priors.mean), by_name("--prior-precision", priors.precision)
    prior = Prior(
        means.pop("", 0.0),
        means,
        precisions.pop("", 1.0),
        precisions,
        priors.noise_shape,
        priors.noise_rate,
        priors.sd,
    )
    table = read_csv(data)
    both = designs(table, formula_1, formula_2, family=family, scaling=scaling)
    about = {
        "M1": formula_1,
        "M2": formula_2,
        "data": f"{data.name}, {len(table)} rows, {family} family",
        "scale": both[0].scale,
        "prior": statement(prior, family),
    }
    m1, m2 = models(both, family, prior)
    return Pair(m1, m2, about)


def load_model(text: str, which: str) -> Any:
    """FILE.py:NAME as a model: ours, PyMC's, a NumPyro function, or a function that returns one of these."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise CrossfadeError(f"{which} is {text!r}: write it as FILE.py:NAME, e.g. models.py:m1")
    found = _attribute(Path(file), name, which)
    if (model := _as_model(found)) is not None:
        return model
    if not callable(found):
        raise CrossfadeError(f"{text} is a {type(found).__name__}: name a model, or a function that makes one")
    made, n_sites = _called(found, text)
    if n_sites == 0:
        if (model := _as_model(made)) is not None:
            return model
        raise CrossfadeError(f"{text}() gave a {type(made).__name__}: return a model, or write a NumPyro model")
    from crossfade.bridges.numpyro import from_numpyro

    return from_numpyro(found)


def _called(function: Any, text: str) -> tuple[Any, int]:
    """What a function without arguments returns, and how many NumPyro sites it has."""
    from numpyro.handlers import seed, trace

    returned: list[Any] = []

    def model() -> None:
        returned.append(function())

    try:
        sites = trace(seed(model, 0)).get_trace()
    except CrossfadeError:
        raise
    except Exception as error:
        raise CrossfadeError(f"{text}() failed: {type(error).__name__}: {error}") from error
    return returned[0], len(sites)


def _as_model(found: Any) -> Any:
    from crossfade.density.joint import Joint
    from crossfade.density.model import Model

    if isinstance(found, Model | Joint):
        return found
    if type(found).__module__.startswith("pymc."):
        from crossfade.bridges.pymc import from_pymc

        return from_pymc(found)
    return None


def _attribute(path: Path, name: str, which: str) -> Any:
    if not path.is_file():
        raise CrossfadeError(f"{which}: there is no file {path}")
    key = f"crossfade_models_{path.resolve().stem}_{abs(hash(path.resolve()))}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, path)
        if spec is None or spec.loader is None:
            raise CrossfadeError(f"{which}: {path} cannot be read as a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        sys.path.insert(0, str(path.resolve().parent))
        try:
            spec.loader.exec_module(module)
        except CrossfadeError:
            raise
        except Exception as error:
            del sys.modules[key]
            raise CrossfadeError(f"{path} failed when it was read: {type(error).__name__}: {error}") from error
        finally:
            sys.path.pop(0)
    if not hasattr(sys.modules[key], name):
        there = [own for own in vars(sys.modules[key]) if not own.startswith("_")]
        raise CrossfadeError(f"{which}: {path} has no {name!r}; it has {', '.join(there)}")
    return getattr(sys.modules[key], name)


def by_name(option: str, given: list[str] | None) -> dict[str, float]:
    """'2' and 'x=3' to {"": 2.0, "x": 3.0}."""
    values: dict[str, float] = {}
    for text in given or []:
        name, _, value = text.rpartition("=")
        try:
            values[name.strip()] = float(value)
        except ValueError:
            raise CrossfadeError(f"{option} takes a number or NAME=NUMBER, not {text!r}") from None
    return values


def sharing(given: list[str] | None) -> Any:
    """'--share a=b --share c' to {"a": "b", "c": "c"}; '--share none' shares nothing."""
    if not given:
        return None
    if given == ["none"]:
        return []
    pairs = (text.partition("=") for text in given)
    return {first.strip(): (second or first).strip() for first, _, second in pairs}
