"""Draws of both posteriors as ArviZ has them, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade.types import Posterior, Result

if TYPE_CHECKING:
    import xarray

GROUPS = ("/M1/posterior", "/M2/posterior")
AXES = ("chain", "draw")


def posteriors(result: Result) -> xarray.DataTree:
    """`["M1"]` and `["M2"]`, each with a group `posterior`; a model without draws is left out."""
    import xarray

    return xarray.DataTree.from_dict(datasets(result))


def datasets(result: Result) -> dict[str, xarray.Dataset]:
    """The draws of each model that has any, by group."""
    dims, coords = result.about.get("dims") or {}, result.about.get("coords") or {}
    return {group: dataset(draws, dims, coords) for group, draws in zip(GROUPS, result.draws, strict=True) if draws}


def dataset(draws: Posterior, dims: dict[str, Sequence[str]], coords: dict[str, Sequence[Any]]) -> xarray.Dataset:
    """Variables named like the parameters, whose names are also kept as attributes: netCDF cannot have them all."""
    import xarray

    names = variable_names(draws)
    labels: dict[str, Any] = {
        axis: np.arange(n) for axis, n in zip(AXES, np.shape(next(iter(draws.values()))), strict=False)
    }
    sizes: dict[str, int] = {}
    variables = {}
    for name, values in draws.items():
        given = dims.get(name) or ()
        own: list[str] = []
        for j, size in enumerate(np.shape(values)[2:]):
            dim = str(given[j]) if len(given) == np.ndim(values) - 2 else ""
            known = len(coords[dim]) if dim in coords else sizes.get(dim, size)
            if not _allowed(dim) or dim in names.values() or dim in own or known != size:
                dim = _unused(f"{names[name]}_dim_{j}", {*names.values(), *sizes, *coords})
            elif dim in coords:
                labels[dim] = _labels(coords[dim])
            sizes[dim] = size
            own.append(dim)
        variables[names[name]] = ((*AXES, *own), np.asarray(values, np.float64), {"parameter": name})
    return xarray.Dataset(variables, coords=labels)


def variable_names(parameters: Iterable[str]) -> dict[str, str]:
    """Of each parameter its own name, where a variable can have it."""
    parameters = list(parameters)
    names = {name: name for name in parameters if _allowed(name)}
    for i, name in enumerate(parameters):
        if name not in names:
            names[name] = _unused(f"parameter_{i}", {*parameters, *names.values()})
    return {name: names[name] for name in parameters}


def _allowed(name: str) -> bool:
    return name not in ("", ".", "..", *AXES) and "/" not in name


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _labels(given: Sequence[Any]) -> np.ndarray:
    """Numbers or text; anything else, which netCDF cannot have, as text."""
    if all(isinstance(label, int | float) for label in given):
        return np.array(given)
    return np.array([str(label) for label in given], dtype=object)
