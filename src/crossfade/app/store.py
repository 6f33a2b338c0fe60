"""Runs on disk: one netCDF file, an xarray DataTree, readable by anything that reads netCDF.

/            attributes: what and which version; `about`, `warnings`, `sharing`, `verdict`, `reasons`: JSON text
/estimates   value, error, dof, name of every estimate; `role` and `key` say which one it is
/leg_0 ...   attributes name, sign
/leg_0/forward, /leg_0/reverse   tau, log_ratio, acceptance; attribute equilibrium
/leg_0/forward/extra             what else was recorded
/posterior_1, /posterior_2       draws of M1 and M2 by parameter (chain, draw, ...), as ArviZ has them
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade import __version__
from crossfade.types import CrossfadeError, Estimate, Leg, Result, Sharing, Trace

if TYPE_CHECKING:
    import xarray

KIND = "crossfade run"
FORMAT = 2  # 1 had no verdict, no reasons and no posterior draws
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def save(result: Result, path: str | Path) -> None:
    """Write a run; the file appears complete or not at all."""
    path = Path(path)
    check_folder(path)
    tree = _to_tree(result)
    encoding = {"zlib": True, "fletcher32": True}
    packed = {
        node.path: {name: encoding for name, data in node.data_vars.items() if data.ndim > 1} for node in tree.subtree
    }
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        tree.to_netcdf(unfinished, engine="h5netcdf", encoding=packed)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(path: str | Path) -> Result:
    """Read a run that `save` wrote."""
    import xarray

    path = Path(path)
    if not path.is_file():
        raise CrossfadeError(f"there is no file {path}: give a run that was stored with --out")
    with path.open("rb") as file:
        if file.read(len(HDF5_SIGNATURE)) != HDF5_SIGNATURE:
            raise CrossfadeError(f"{path} is not a crossfade run (not a netCDF-4 file): give one stored with --out")
    try:
        with xarray.open_datatree(path, engine="h5netcdf", phony_dims="access") as tree:
            if tree.attrs.get("kind") != KIND:
                raise CrossfadeError(f"{path} is netCDF but not a crossfade run: give one stored with --out")
            if int(tree.attrs["format"]) > FORMAT:
                raise CrossfadeError(
                    f"{path} was written by crossfade {tree.attrs['crossfade_version']} in a newer format "
                    f"than this version, {__version__}, can read: upgrade crossfade"
                )
            result = _from_tree(tree)
            if _digest(result, int(tree.attrs["format"])) != tree.attrs["digest"]:
                raise ValueError("its contents do not match their digest")
            return result
    except CrossfadeError:
        raise
    except Exception as error:  # a damaged file can fail anywhere in three libraries, in any way
        raise CrossfadeError(f"{path} is damaged and cannot be read ({error}): run the comparison again") from error


def check_folder(path: Path) -> None:
    """Fail before a long run, not after it."""
    if path.is_dir():
        raise CrossfadeError(f"{path} is a folder: give the name of a file to write the run to")
    if not path.parent.is_dir():
        raise CrossfadeError(f"the folder {path.parent} does not exist: create it, or store the run elsewhere")
    if not os.access(path.parent, os.W_OK):
        raise CrossfadeError(f"the folder {path.parent} cannot be written to: store the run elsewhere")


def _to_tree(result: Result) -> xarray.DataTree:
    import xarray

    # JSON as variables, not attributes: HDF5 refuses attributes above 64 kB, and no run must be lost to that.
    texts = {"about": result.about, "warnings": result.warnings, "sharing": result.sharing._asdict()}
    texts |= {"verdict": result.verdict, "reasons": result.reasons}
    root = xarray.Dataset(
        {name: ((), json.dumps(value, default=_plain)) for name, value in texts.items()},
        attrs={"kind": KIND, "format": FORMAT, "crossfade_version": __version__, "digest": _digest(result)},
    )
    nodes: dict[str, Any] = {"/": root, "/estimates": _estimates(result)}
    nodes |= {f"/posterior_{k}": _posterior(draws) for k, draws in enumerate(result.posteriors, 1) if draws}
    for i, leg in enumerate(result.legs):
        nodes[f"/leg_{i}"] = xarray.Dataset(attrs={"name": leg.name, "sign": leg.sign})
        for direction, trace in (("forward", leg.forward), ("reverse", leg.reverse)):
            if trace is None:
                continue
            nodes[f"/leg_{i}/{direction}"] = xarray.Dataset(
                {
                    "tau": ("rung", trace.tau),
                    "log_ratio": (("chain", "rung", "draw"), trace.log_ratio),
                    "acceptance": (("chain", "rung"), trace.acceptance),
                },
                attrs={"equilibrium": int(trace.equilibrium)},
            )
            nodes[f"/leg_{i}/{direction}/extra"] = xarray.Dataset(
                {
                    name: (("chain", "rung", "draw", *(f"{name}_{j}" for j in range(value.ndim - 3))), value)
                    for name, value in trace.extra.items()
                }
            )
    return xarray.DataTree.from_dict(nodes)


def _digest(result: Result, format_: int = FORMAT) -> str:
    """SHA-256 of everything in a run: one flipped bit anywhere is noticed."""
    estimates = (result.log_bayes_factor, result.opinions, result.differences, result.hysteresis)
    sign = int if format_ == 1 else float
    legs = [(leg.name, sign(leg.sign)) for leg in result.legs]
    texts: tuple[Any, ...] = (result.about, result.warnings, result.sharing, estimates, legs)
    if format_ > 1:
        names = [list(draws) for draws in result.posteriors]
        texts += (result.verdict, result.reasons, names)
    digest = hashlib.sha256(json.dumps(texts, default=_plain, sort_keys=True).encode())
    for trace in (trace for leg in result.legs for trace in (leg.forward, leg.reverse) if trace is not None):
        arrays = [trace.tau, trace.log_ratio, trace.acceptance, *(trace.extra[name] for name in sorted(trace.extra))]
        for array in arrays:
            digest.update(f"{array.dtype}{array.shape}{trace.equilibrium}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    for draws in result.posteriors:
        for array in draws.values():
            digest.update(f"{np.shape(array)}".encode())
            digest.update(np.ascontiguousarray(array, np.float64).tobytes())
    return digest.hexdigest()


def _estimates(result: Result) -> xarray.Dataset:
    import xarray

    rows = [("log_bayes_factor", "", result.log_bayes_factor)]
    rows += [("opinion", key, estimate) for key, estimate in result.opinions.items()]
    rows += [("difference", key, estimate) for key, estimate in result.differences.items()]
    rows += [("hysteresis", "", result.hysteresis)] if result.hysteresis is not None else []
    roles, keys, estimates = zip(*rows, strict=True)
    columns = {"role": roles, "key": keys, "name": [e.name for e in estimates]}
    numbers = {field: [getattr(e, field) for e in estimates] for field in ("value", "error", "dof")}
    return xarray.Dataset(
        {
            **{field: ("estimate", np.array(column, dtype=object)) for field, column in columns.items()},
            **{field: ("estimate", np.array(column, dtype=float)) for field, column in numbers.items()},
        }
    )


def _posterior(draws: dict[str, np.ndarray]) -> xarray.Dataset:
    """Variables named like the parameters; a name that netCDF cannot have is kept as an attribute."""
    import xarray

    variables: dict[str, Any] = {}
    for i, (name, values) in enumerate(draws.items()):
        own = name if name not in ("", ".", "chain", "draw") and "/" not in name else f"parameter_{i}"
        while own in variables or (own != name and own in draws):
            own += "_"
        dims = ("chain", "draw", *(f"{own}_dim_{j}" for j in range(np.ndim(values) - 2)))
        variables[own] = (dims, np.asarray(values, np.float64), {"parameter": name})
    n_chains, n_draws = np.shape(next(iter(draws.values())))[:2]
    return xarray.Dataset(variables, coords={"chain": np.arange(n_chains), "draw": np.arange(n_draws)})


def _draws(tree: xarray.DataTree, group: str) -> dict[str, np.ndarray]:
    if group not in tree.children:
        return {}
    return {str(data.attrs["parameter"]): data.values for data in tree[group].data_vars.values()}


def _from_tree(tree: xarray.DataTree) -> Result:
    texts = {str(name): json.loads(str(data.values)) for name, data in tree.data_vars.items()}
    sharing = {field: tuple(names) for field, names in texts["sharing"].items()}
    table = tree["estimates"].to_dataset()
    roles = ("log_bayes_factor", "opinion", "difference", "hysteresis")
    by_role: dict[str, dict[str, Estimate]] = {role: {} for role in roles}
    for i in range(table.sizes["estimate"]):
        row = {field: table[field].values[i] for field in ("role", "key", "value", "error", "dof", "name")}
        estimate = Estimate(float(row["value"]), float(row["error"]), float(row["dof"]), str(row["name"]))
        by_role[str(row["role"])][str(row["key"])] = estimate
    legs = []
    for i in range(sum(name.startswith("leg_") for name in tree.children)):
        node = tree[f"leg_{i}"]
        reverse = _trace(node["reverse"]) if "reverse" in node.children else None
        legs.append(Leg(str(node.attrs["name"]), float(node.attrs["sign"]), _trace(node["forward"]), reverse))
    return Result(
        log_bayes_factor=by_role["log_bayes_factor"][""],
        opinions=by_role["opinion"],
        hysteresis=by_role["hysteresis"].get(""),
        warnings=tuple(texts["warnings"]),
        legs=tuple(legs),
        sharing=Sharing(**sharing),
        about=texts["about"],
        differences=by_role["difference"],
        verdict=texts.get("verdict", ""),
        reasons=tuple(texts.get("reasons", ())),
        posteriors=(_draws(tree, "posterior_1"), _draws(tree, "posterior_2")),
    )


def _trace(node: Any) -> Trace:
    extra = {str(name): node["extra"][name].values for name in node["extra"].data_vars}
    tau, log_ratio, acceptance = (node[name].values for name in ("tau", "log_ratio", "acceptance"))
    return Trace(tau, log_ratio, acceptance, bool(node.attrs["equilibrium"]), extra)


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays as JSON; anything else is refused rather than stored as what it is not."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot store {value!r} in a run's `about`: use numbers, text, lists and dictionaries")
