"""Runs on disk: one netCDF file, an xarray DataTree, readable by anything that reads netCDF.

/            attributes: what and which version; `about`, `verdict`, `reasons`, `sharing`: JSON text
/estimates   value, error, dof, name of every estimate; `role` and `key` say which one it is
/leg_0 ...   attributes name, sign
/leg_0/forward, /leg_0/reverse   tau, log_ratio, acceptance; attribute equilibrium
/leg_0/forward/extra             what else was recorded
/M1/posterior, /M2/posterior     draws by parameter (chain, draw, ...), as ArviZ has them

Format 1 had neither verdict nor draws; 2 had `warnings` beside the reasons, and the draws in /posterior_1 and _2.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfade import __version__
from crossfade.app.tree import GROUPS, datasets
from crossfade.files import appearing
from crossfade.types import DO_NOT_USE, TRUSTWORTHY, WEAK, CrossfadeError, Estimate, Leg, Result, Sharing, Trace

if TYPE_CHECKING:
    import xarray

KIND = "crossfade run"
FORMAT = 3
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
COLUMNS = {"role": str, "key": str, "value": float, "error": float, "dof": float, "name": str}  # of the estimates
TRACE = {"tau": ("rung",), "log_ratio": ("chain", "rung", "draw"), "acceptance": ("chain", "rung")}


def save(result: Result, path: str | Path) -> None:
    """Write a run; the file appears complete or not at all."""
    path = Path(path)
    check_folder(path)
    tree = _to_tree(result)
    encoding = {"zlib": True, "fletcher32": True}
    packed = {
        node.path: {name: encoding for name, data in node.data_vars.items() if data.ndim > 1} for node in tree.subtree
    }
    # in memory first: where the disk is full HDF5 cannot close its file, and may take the process with it
    data = tree.to_netcdf(engine="h5netcdf", encoding=packed)
    with appearing(path) as unfinished:
        unfinished.write_bytes(data)


def load(path: str | Path) -> Result:
    """The `Result` in a file that `Result.save` or `--out` wrote."""
    import xarray

    path = Path(path)
    if not path.is_file():
        raise CrossfadeError(f"there is no file {path}: give a run that was stored with --out or result.save")
    with path.open("rb") as file:
        if file.read(len(HDF5_SIGNATURE)) != HDF5_SIGNATURE:
            hint = (
                f"; a ranking is read by load_ranking and shown by crossfade report {path}"
                if path.suffix.lower() == ".json"
                else ""
            )
            raise CrossfadeError(
                f"{path} is not a crossfade run (not a netCDF-4 file): give one stored with --out{hint}"
            )
    try:
        with xarray.open_datatree(path, engine="h5netcdf", phony_dims="access") as tree:
            if tree.attrs.get("kind") != KIND:
                raise CrossfadeError(f"{path} is netCDF but not a crossfade run: give one stored with --out")
            if int(tree.attrs["format"]) > FORMAT:
                raise CrossfadeError(
                    f"{path} was written by crossfade {tree.attrs['crossfade_version']} in a newer format "
                    f"than this version, {__version__}, can read: upgrade crossfade"
                )
            result, said = _from_tree(tree)
            if _digest(result, said) != tree.attrs["digest"]:
                raise ValueError("its contents do not match their digest")
            return result
    except CrossfadeError:
        raise
    except Exception as error:  # a damaged file can fail anywhere in three libraries, in any way
        raise CrossfadeError(f"{path} is damaged and cannot be read ({error}): run the comparison again") from error


def write_text(path: Path, text: str) -> None:
    """A file of text; it appears complete or not at all."""
    check_folder(path)
    with appearing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


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
    texts = {name: getattr(result, name) for name in ("about", "verdict", "reasons")}
    texts["sharing"] = result.sharing._asdict()
    digest = _digest(result, _said(result))
    root = xarray.Dataset(
        {name: ((), json.dumps(value, default=_plain)) for name, value in texts.items()},
        attrs={"kind": KIND, "format": FORMAT, "crossfade_version": __version__, "digest": digest},
    )
    nodes: dict[str, Any] = {"/": root, "/estimates": _estimates(result), **datasets(result)}
    for i, leg in enumerate(result.legs):
        nodes[f"/leg_{i}"] = xarray.Dataset(attrs={"name": leg.name, "sign": leg.sign})
        for direction, trace in (("forward", leg.forward), ("reverse", leg.reverse)):
            if trace is not None:
                arrays = {name: (dims, getattr(trace, name)) for name, dims in TRACE.items()}
                extra = {
                    name: ((*TRACE["log_ratio"], *(f"{name}_{j}" for j in range(value.ndim - 3))), value)
                    for name, value in trace.extra.items()
                }
                own = xarray.Dataset(arrays, attrs={"equilibrium": int(trace.equilibrium)})
                nodes |= {f"/leg_{i}/{direction}": own, f"/leg_{i}/{direction}/extra": xarray.Dataset(extra)}
    return xarray.DataTree.from_dict(nodes)


def _said(result: Result) -> Any:
    """Everything in a run that is not an array of draws."""
    signs = [(leg.name, float(leg.sign)) for leg in result.legs]
    names = [list(draws) for draws in result.draws]
    estimates = (result.raw_estimate, result.opinions, result.differences, result.checks)
    return result.about, result.verdict, result.reasons, result.sharing, estimates, signs, names


def fingerprint(result: Result) -> str:
    """SHA-256 of everything in a run, as its file has it."""
    return _digest(result, _said(result))


def _digest(result: Result, said: Any) -> str:
    """SHA-256 of everything in a run: one flipped bit anywhere is noticed."""
    digest = hashlib.sha256(json.dumps(said, default=_plain, sort_keys=True).encode())
    for trace in (trace for leg in result.legs for trace in (leg.forward, leg.reverse) if trace is not None):
        for array in (*trace[:3], *(trace.extra[name] for name in sorted(trace.extra))):
            digest.update(f"{array.dtype}{array.shape}{trace.equilibrium}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    for draws in result.draws:
        for array in draws.values():
            digest.update(f"{np.shape(array)}".encode())
            digest.update(np.ascontiguousarray(array, np.float64).tobytes())
    return digest.hexdigest()


def _estimates(result: Result) -> xarray.Dataset:
    import xarray

    rows = [("raw_estimate", "", *result.raw_estimate)]
    for role, own in (("opinion", result.opinions), ("difference", result.differences), ("check", result.checks)):
        rows += [(role, key, *estimate) for key, estimate in own.items()]
    columns = zip(COLUMNS.items(), zip(*rows, strict=True), strict=True)
    return xarray.Dataset(
        {name: ("estimate", np.array(column, float if kind is float else object)) for (name, kind), column in columns}
    )


def _from_tree(tree: xarray.DataTree) -> tuple[Result, Any]:
    """A run, and all but its arrays in the order in which its format signs them."""
    format_ = int(tree.attrs["format"])
    texts = {str(name): json.loads(str(data.values)) for name, data in tree.data_vars.items()}
    roles: dict[str, dict[str, Estimate]] = {}
    table = tree["estimates"].to_dataset()
    columns = [map(kind, table[name].values) for name, kind in COLUMNS.items()]
    for role, key, *estimate in zip(*columns, strict=True):
        roles.setdefault(role, {})[key] = Estimate(*estimate)
    legs = []
    for i in range(sum(name.startswith("leg_") for name in tree.children)):
        node = tree[f"leg_{i}"]
        reverse = _trace(node["reverse"]) if "reverse" in node.children else None
        legs.append(Leg(str(node.attrs["name"]), float(node.attrs["sign"]), _trace(node["forward"]), reverse))
    groups = GROUPS if format_ > 2 else ("/posterior_1", "/posterior_2")
    found = [tree[group].data_vars.values() if group in tree.groups else () for group in groups]
    draws_1, draws_2 = ({str(data.attrs["parameter"]): data.values for data in own} for own in found)
    result = Result(
        raw_estimate=roles["raw_estimate" if format_ > 2 else "log_bayes_factor"][""],
        verdict=texts.get("verdict", ""),
        reasons=tuple(texts.get("reasons", ())),
        opinions=roles.get("opinion", {}),
        differences=roles.get("difference", {}),
        checks=roles.get("check", {}),
        legs=tuple(legs),
        sharing=Sharing(**{field: tuple(names) for field, names in texts["sharing"].items()}),
        about=texts["about"],
        draws=(draws_1, draws_2),
    )
    if format_ > 2:
        return result, _said(result)
    return _of_old(result, format_, tuple(texts["warnings"]), roles.get("hysteresis", {}).get(""))


def _of_old(result: Result, format_: int, warnings: tuple[str, ...], gap: Estimate | None) -> tuple[Result, Any]:
    """A run of format 1 or 2 as one of today, and what it signed."""
    estimates = (result.raw_estimate, result.opinions, result.differences, gap)
    signs = [(leg.name, int(leg.sign) if format_ == 1 else leg.sign) for leg in result.legs]
    said: tuple[Any, ...] = (result.about, warnings, result.sharing[:4], estimates, signs)
    if format_ == 2:
        said += (result.verdict, result.reasons, [list(draws) for draws in result.draws])
    verdict = result.verdict or (WEAK if warnings else TRUSTWORTHY)
    if np.isnan(result.raw_estimate.value):
        verdict = DO_NOT_USE
    checks = {} if gap is None else {"hysteresis": gap}
    return result._replace(verdict=verdict, reasons=result.reasons + warnings, checks=checks), said


def _trace(node: Any) -> Trace:
    extra = {str(name): node["extra"][name].values for name in node["extra"].data_vars}
    arrays = {name: node[name].values for name in TRACE}
    return Trace(**arrays, equilibrium=bool(node.attrs["equilibrium"]), extra=extra)


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays as JSON; anything else is refused rather than stored as what it is not."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot store {value!r} in a run's `about`: use numbers, text, lists and dictionaries")
