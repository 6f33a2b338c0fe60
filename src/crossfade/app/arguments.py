"""What the command line is given: a CSV file and two formulas, or two models in Python files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfade.app.tables import Reading, read_table
from crossfade.app.terminal import aside
from crossfade.types import CrossfadeError

if TYPE_CHECKING:
    from crossfade.bridges.formula import Prior


def pair(
    what: list[str], family: str, scaling: str, priors: tuple[Any, ...], reading: Reading
) -> tuple[Any, Any, dict[str, Any]]:
    """DATA FORMULA1 FORMULA2, or FILE.py:NAME FILE.py:NAME, as two models and what the page says about them."""
    if len(what) == 2 and not Path(what[0]).is_file():
        return load_model(what[0], "M1"), load_model(what[1], "M2"), {"M1": what[0], "M2": what[1]}
    data, formula_1, formula_2, prior = formulas(what, *priors)
    from crossfade.bridges.formula import designs, regressions, statement

    table, notes = read_table(data, reading)
    asked: dict[str, Any] = {"family": family, "scaling": scaling, "drop_missing": reading.drop_missing}
    both = designs(table, formula_1, formula_2, **asked)
    about = {
        "M1": formula_1,
        "M2": formula_2,
        "data": f"{data.name}, {len(both[0].y)} rows, {family} family",
        "scale": both[0].scale,
        "family": family,
        "scaling": scaling,
        "levels": both[0].levels | both[1].levels,
        "prior": statement(prior, family),
    }
    first, second = (own._replace(notes=(*notes, *own.notes)) for own in regressions(both, family, prior))
    return first, second, about


def formulas(what: list[str], *priors: Any) -> tuple[Path, str, str, Prior]:
    """DATA FORMULA1 FORMULA2, and the priors of the options."""
    if len(what) != 3:
        raise CrossfadeError(
            f"{len(what)} argument{'s' * (len(what) > 1)}: give a CSV file and two formulas, each in quotes, or two "
            "models as models.py:m1 models.py:m2"
        )
    return Path(what[0]), what[1], what[2], prior_of_options(*priors)


def prior_of_options(
    mean: list[str] | None, precision: list[str] | None, noise_shape: float, noise_rate: float, sd: list[str] | None
) -> Prior:
    from crossfade.bridges.formula import Prior

    means, precisions = by_name("--prior-mean", mean), by_name("--prior-precision", precision)
    sds = by_name("--prior-sd", sd)
    default = sds.pop("", None)
    return Prior(means.pop("", 0.0), means, precisions.pop("", 1.0), precisions, noise_shape, noise_rate, default, sds)


def load_model(text: str, which: str) -> Any:
    """FILE.py:NAME as a model: ours, PyMC's, a NumPyro function, or a function that returns one of these."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise CrossfadeError(f"{which} is {text!r}: write it as FILE.py:NAME, e.g. models.py:m1")
    with aside():
        return _model(text, _attribute(Path(file), name, which))


def _model(text: str, found: Any) -> Any:
    if (model := _as_model(found)) is not None:
        return model
    if not callable(found):
        raise CrossfadeError(f"{text} is a {type(found).__name__}: name a model, or a function that makes one")
    from numpyro.handlers import seed, trace

    returned: list[Any] = []
    try:
        sites = trace(seed(lambda: returned.append(found()), 0)).get_trace()
    except CrossfadeError:
        raise
    except Exception as error:
        raise CrossfadeError(f"{text}() failed: {type(error).__name__}: {error}") from error
    if sites:
        from crossfade.bridges.numpyro import from_numpyro

        return from_numpyro(found)
    if (model := _as_model(returned[0])) is not None:
        return model
    raise CrossfadeError(f"{text}() gave a {type(returned[0]).__name__}: return a model, or write a NumPyro model")


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


def many_models(
    what: list[str],
    all_subsets: str | None,
    orders: str | None,
    family: str,
    scaling: str,
    priors: tuple[Any, ...],
    reading: Reading,
) -> tuple[Any, dict[str, str]]:
    """The models, and what the page says about them."""
    if what[0].rpartition(":")[0].endswith(".py"):
        if all_subsets is not None or orders is not None:
            raise CrossfadeError("--all-subsets and --orders are for formulas: give a CSV file")
        names = [text.rpartition(":")[2] for text in what]
        names = names if len(set(names)) == len(names) else what  # two files may call a model the same
        return {name: load_model(text, text) for name, text in zip(names, what, strict=True)}, {}
    from crossfade.ranking import terms

    data, *formulas = what
    settings: dict[str, Any] = {"family": family, "scaling": scaling, "prior": prior_of_options(*priors)}
    settings["drop_missing"] = reading.drop_missing
    table, notes = read_table(Path(data), reading)

    def told(models: Any) -> tuple[Any, dict[str, str]]:
        note = "; ".join([*notes, *filter(None, [models.said.get("note")])])
        about = {"data": f"{Path(data).name}, {models.said['rows']} rows, {family} family"}
        return models, about | ({"note": note} if note else {})

    if all_subsets is not None:
        if formulas or orders is not None:
            raise CrossfadeError("--all-subsets takes one formula and no others")
        return told(terms.all_subsets(table, all_subsets, **settings))
    if orders is not None:
        low, colon, high = orders.partition(":")
        if len(formulas) != 1 or not colon or not (low.isdigit() and high.isdigit()):
            raise CrossfadeError(f"--orders {orders}: give one formula like 'y ~ x', and orders like 1:10")
        return told(terms.orders(table, formulas[0], int(low), int(high), **settings))
    if len(formulas) < 2:
        raise CrossfadeError("give two formulas or more, or --all-subsets 'y ~ a + b', or --orders 1:10 with one")
    return told(terms.from_many_formulas(table, *formulas, **settings))
