"""Two engines simulate the clock: COPASI, with light in the rates, and libRoadRunner, with light held for 0.1 h.

python benchmarks/clock_engines.py [runs per condition]; needs libroadrunner, which the package does not.
Means and sds are compared with those of 400 runs of a third program (tests/experiments/circadian_moments.csv).
"""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import roadrunner

from crossfade.papers.circadian.design import CONDITIONS, TIMES, Condition, light, numbers
from crossfade.papers.circadian.generate import MRNA
from crossfade.papers.circadian.reactions import GENES, REACTIONS, SPECIES, expanded
from crossfade.papers.circadian.simulate import OMEGA, simulate, start_counts

STEP = 0.1  # hours
WHAT = [("wildtype", "LD12"), ("wildtype", "DD"), ("wildtype", "ko_TOC1"), ("mutant", "LD12"), ("mutant", "LL")]
MOMENTS = Path(__file__).parents[1] / "tests" / "experiments" / "circadian_moments.csv"
OPERATORS = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.Div: "divide", ast.Pow: "power"}


def mathml(node: ast.expr) -> str:
    """A rate in the language of SBML; species are amounts there and concentrations here."""
    if isinstance(node, ast.BinOp):
        return f"<apply><{OPERATORS[type(node.op)]}/>{mathml(node.left)}{mathml(node.right)}</apply>"
    if isinstance(node, ast.Constant):
        return f"<cn>{node.value}</cn>"
    assert isinstance(node, ast.Name)
    if node.id == "L":
        return "<ci>L</ci>"
    return f"<apply><divide/><ci>{node.id}</ci><cn>{OMEGA}</cn></apply>"


def sbml(values: Mapping[str, float]) -> str:
    """The clock as SBML text, the light a parameter that is set from outside."""
    species = "".join(
        f'<species id="{s}" compartment="cell" initialAmount="{n}" hasOnlySubstanceUnits="true" constant="false"'
        ' boundaryCondition="false"/>'
        for s, n in start_counts().items()
    )
    reactions = ""
    for name, (change, rate) in REACTIONS.items():
        tree = expanded(rate, values)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"L"} - set(change)
        modifiers = "".join(f'<modifierSpeciesReference species="{s}"/>' for s in sorted(names))
        sides = [
            "".join(
                f'<speciesReference species="{s}" stoichiometry="1" constant="true"/>' for s in change if change[s] == k
            )
            for k in (-1, 1)
        ]
        reactions += f'<reaction id="{name}" reversible="false" fast="false">'
        for tag, inside in (("Reactants", sides[0]), ("Products", sides[1]), ("Modifiers", modifiers)):
            reactions += f"<listOf{tag}>{inside}</listOf{tag}>" if inside else ""
        law = f"<apply><times/><cn>{OMEGA}</cn>{mathml(tree)}</apply>"
        reactions += (
            f'<kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">{law}</math></kineticLaw></reaction>'
        )
    return (
        '<?xml version="1.0"?><sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">'
        '<model id="P2010"><listOfCompartments><compartment id="cell" size="1" constant="true"/></listOfCompartments>'
        f"<listOfSpecies>{species}</listOfSpecies>"
        '<listOfParameters><parameter id="L" value="0" constant="false"/></listOfParameters>'
        f"<listOfReactions>{reactions}</listOfReactions></model></sbml>"
    )


def with_roadrunner(network: str, name: str, seeds: Sequence[int]) -> np.ndarray:
    """Counts [run, time, species], like `simulate`."""
    condition: Condition = CONDITIONS[name]
    engine = roadrunner.RoadRunner(sbml(numbers(network, condition)))
    engine.setIntegrator("gillespie")
    engine.getIntegrator().setValue("variable_step_size", False)
    # The light of each step is that of its middle; a step ends where a sample is taken or the entrainment ends.
    grid = np.union1d(np.arange(0, 144 + STEP / 2, STEP).round(9), [*TIMES.round(9), condition.until])
    samples = {float(t): i for i, t in enumerate(TIMES.round(9))}
    lights = [light(float(t), condition) for t in (grid[:-1] + grid[1:]) / 2]
    runs = np.zeros((len(seeds), len(TIMES), len(SPECIES)))
    for run, seed in enumerate(seeds):
        engine.resetAll()
        engine.getIntegrator().setValue("seed", int(seed))
        for begin, end, brightness in zip(grid[:-1], grid[1:], lights, strict=True):
            engine.setValue("L", brightness)
            engine.simulate(begin, end, 2)
            if end in samples:
                runs[run, samples[end]] = [engine.getValue(s) for s in SPECIES]
    return runs


def main() -> None:
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    reference = pd.read_csv(MOMENTS, comment="#")
    print(f"{n_runs} runs each; rms z of the means, mean ratio of the sds, seconds a trajectory")
    for k, (network, name) in enumerate(WHAT):
        rows = reference[(reference["network"] == network) & (reference["condition"] == name)]
        mean, sd = (rows[[f"{kind}_{gene}" for gene in GENES]].to_numpy() for kind in ("mean", "sd"))
        used, moments = sd > 1, []
        seeds = range(1 + 1000 * k, 1 + 1000 * k + n_runs)  # equal seeds would share their entrainment
        for engine, label in ((simulate, "COPASI"), (with_roadrunner, "libRoadRunner")):
            begin = time.perf_counter()
            mrna = engine(network, name, seeds)[:, :, MRNA]
            took = (time.perf_counter() - begin) / n_runs
            z = (mrna.mean(0) - mean)[used] / (sd[used] * np.sqrt(1 / n_runs + 1 / 400))
            ratio = (mrna.std(0, ddof=1)[used] / sd[used]).mean()
            moments.append(mrna.mean(0)[used])
            print(
                f"{network:9s} {name:8s} {label:14s} {np.sqrt((z**2).mean()):5.2f} {ratio:6.2f} {took:7.2f} s",
                flush=True,
            )
        z = (moments[0] - moments[1]) / (sd[used] * np.sqrt(2 / n_runs))
        print(f"{network:9s} {name:8s} one another    {np.sqrt((z**2).mean()):5.2f}", flush=True)


if __name__ == "__main__":
    main()
