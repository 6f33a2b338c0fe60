"""Who may import whom. Read off the syntax trees, so that imports inside functions count too."""

import ast
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "crossfade"

ENGINE = {"types", "density", "paths", "sampling", "analysis"}
MAY_IMPORT = {
    "": set(),  # the package itself resolves its public names when asked, by string
    "__main__": {"app"},
    "types": set(),
    "files": set(),
    "data": {"types"},
    "density": {"types"},
    "paths": {"types", "density"},
    "sampling": {"types", "files", "density", "paths"},
    "analysis": {"types"},
    "methods": ENGINE,
    "worlds": {"types", "density", "paths", "sampling", "data"},
    "bridges": {"types", "density", "worlds"},
    "runs": ENGINE | {"files"},
    "api": ENGINE | {"methods", "runs"},
    "many": {"types", "files", "methods", "runs", "bridges", "api"},
    "calibration": {"types", "methods", "runs", "bridges", "api", "many"},
    "ranking": ENGINE | {"methods", "runs", "bridges", "many"},
    "doctor": ENGINE | {"methods", "api"},
    "papers": ENGINE | {"data", "worlds", "methods", "runs", "api"},
    "app": ENGINE
    | {
        "files",
        "data",
        "worlds",
        "bridges",
        "methods",
        "runs",
        "api",
        "many",
        "calibration",
        "ranking",
        "doctor",
        "papers",
    },
}
JAX = {"jax", "jaxlib", "equinox", "numpyro", "blackjax", "optax"}
LONGEST = 300
# xarray finds these by name when a run is stored, and pip must know.
ENGINES = {"h5netcdf", "h5py"}
# Who may import what an extra brings. Doors to libraries of JAX are made of its modules; the others are light.
EXTRAS = {
    "pymc": {f"crossfade.bridges.{name}" for name in ("pymc", "pymc_words", "scales", "supports", "simulate")},
    "plot": {"crossfade.app.plots.style", "crossfade.papers.charts", "crossfade.papers.biopathway_figures"},
    "dask": {"crossfade.runs.workers"},
    "store": {"crossfade.runs.remote"},
    "circadian": {"crossfade.papers.circadian.simulate", "crossfade.papers.circadian.regression"},
}
IMPORT_NAMES = {"copasi_basico": "basico"}  # where a package is not called as it is imported
LIGHT_BRIDGES = {"crossfade.bridges", *(f"crossfade.bridges.{name}" for name in ("columns", "design", "formula"))}


def imports(path: Path, module: str) -> list[str]:
    """Full dotted names of all that a file imports, relative imports resolved."""
    found = []
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found += [f"{source}.{alias.name}" for alias in node.names]
    return found


def modules(package: Path) -> dict[str, Path]:
    """Every source file by its dotted name."""
    named = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def layer(dotted: str) -> str:
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


def violations(package: Path) -> list[str]:
    """Every breach of the import rule, every cycle, every file that has grown too long."""
    named = modules(package)
    graph: dict[str, set[str]] = {}
    found = []
    for module, path in named.items():
        mine = layer(module)
        if mine not in MAY_IMPORT:
            found.append(f"{module}: no rule says what {mine} may import")
            continue
        if (n_lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST:
            found.append(f"{module}: {n_lines} lines")
        graph[module] = set()
        for target in imports(path, module):
            top = target.split(".")[0]
            if mine == "analysis" and top in JAX:
                found.append(f"{module}: imports {target}, but analysis is NumPy only")
            if top != "crossfade" or target == "crossfade.__version__":
                continue
            other = layer(target)
            if other not in MAY_IMPORT or (other != mine and other not in MAY_IMPORT[mine]):
                found.append(f"{module}: may not import {target}")
            # `from crossfade.a import b` is module a.b if there is one, else module a.
            graph[module].add(target if target in named else target.rpartition(".")[0])
    try:
        TopologicalSorter({a: b - {a} for a, b in graph.items()}).prepare()
    except CycleError as error:
        found.append(f"cycle: {' -> '.join(error.args[1])}")
    return found


def test_the_import_rule_holds():
    assert violations(PACKAGE) == []


def test_every_rule_is_about_something():
    assert {layer(module) for module in modules(PACKAGE)} == set(MAY_IMPORT)


WRONG = {
    "types imports sampling": ({"types.py": "from crossfade.sampling import path"}, "may not import"),
    "sampling imports analysis": ({"sampling/a.py": "import crossfade.analysis.moments"}, "may not import"),
    "hidden in a function": (
        {"sampling/a.py": "def f():\n    from crossfade.api import compare\n    return compare"},
        "may not import crossfade.api.compare",
    ),
    "relative": (
        {"analysis/a.py": "from ..sampling import ladder"},
        "may not import crossfade.sampling.ladder",
    ),
    "through the front door": ({"worlds/a.py": "from crossfade import compare"}, "may not import"),
    "analysis imports jax": ({"analysis/a.py": "import jax.numpy as jnp"}, "NumPy only"),
    "the questions import worlds": ({"api.py": "from crossfade.worlds.linear import model"}, "may not import"),
    "paths import sampling": ({"paths/a.py": "from crossfade.sampling import hmc"}, "may not import"),
    "a density imports paths": ({"density/a.py": "from crossfade.paths import link"}, "may not import"),
    "a method imports the questions": ({"methods/a.py": "from crossfade.api import compare"}, "may not import"),
    "somebody imports app": ({"api.py": "from crossfade.app import table"}, "may not import"),
    "a folder without a rule": ({"utils/a.py": ""}, "no rule"),
    "a long file": ({"analysis/a.py": "x = 1\n" * (LONGEST + 1)}, "301 lines"),
    "a cycle": (
        {"worlds/a.py": "from crossfade.worlds.b import f", "worlds/b.py": "from crossfade.worlds import a"},
        "cycle",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_tree_is_caught(case, tmp_path):
    files, message = WRONG[case]
    for name, text in files.items():
        path = tmp_path / "crossfade" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert any(message in found for found in violations(tmp_path / "crossfade"))


def test_a_right_tree_passes(tmp_path):
    (tmp_path / "crossfade" / "app").mkdir(parents=True)
    (tmp_path / "crossfade" / "types.py").write_text("import numpy\n")
    (tmp_path / "crossfade" / "app" / "a.py").write_text("from crossfade import __version__, types\n")
    assert violations(tmp_path / "crossfade") == []


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_analysis_and_the_command_line_start_without_jax():
    analysis = [module for module in modules(PACKAGE) if layer(module) == "analysis"]
    light = ["crossfade", "crossfade.types", "crossfade.data", *analysis]
    light += [module for module in modules(PACKAGE) if layer(module) == "app" or module in LIGHT_BRIDGES]
    code = f"import sys, importlib\nfor m in {light!r}: importlib.import_module(m)\nprint('jax' in sys.modules)"
    assert run_python(code).strip() == "False"
    assert run_python("import sys, crossfade.paths.path\nprint('jax' in sys.modules)").strip() == "True"


def test_public_names_resolve():
    import crossfade

    assert all(getattr(crossfade, name) is not None for name in dir(crossfade))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = crossfade.nonsense


def names_of(requirements: list[str]) -> set[str]:
    names = (requirement.split(">=")[0].strip().replace("-", "_") for requirement in requirements)
    return {IMPORT_NAMES.get(name, name) for name in names}


def foreign(module: str) -> set[str]:
    used = {name.split(".")[0] for name in imports(modules(PACKAGE)[module], module)}
    return used - sys.stdlib_module_names - {"crossfade"}


def test_dependencies_are_those_that_are_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {extra: names_of(project["optional-dependencies"][extra]) for extra in EXTRAS}
    used, used_by_extra = set(), {extra: set() for extra in EXTRAS}
    for module in modules(PACKAGE):
        mine = foreign(module)
        for extra, doors in EXTRAS.items():
            if module in doors:
                used_by_extra[extra] |= mine & extras[extra]
                mine -= extras[extra]
        used |= mine
    assert names_of(project["dependencies"]) == used | ENGINES
    assert used_by_extra == extras


def test_what_an_extra_brings_is_imported_when_its_door_is_used():
    code = (
        "import sys, crossfade.bridges.pymc, crossfade.bridges.supports, crossfade.app.plots\n"
        "print({'pymc', 'pytensor', 'matplotlib'} & set(sys.modules))"
    )
    assert run_python(code).strip() == "set()"
