"""Stochastic simulation of the clock with COPASI (extra `circadian`): the direct method, light in the rates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossfade.papers.circadian.design import CONDITIONS, TIMES, TWILIGHT, Condition, numbers
from crossfade.papers.circadian.reactions import REACTIONS, SPECIES, START, infix
from crossfade.types import CrossfadeError

OMEGA = 100  # molecules per unit of concentration, as in the published runs
MAX_STEPS = 10**9  # between two samples; five days are some 65 000 events, and COPASI stops at 10 000 unless told


def start_counts(omega: int = OMEGA) -> dict[str, int]:
    """Whole molecules at 0 h."""
    # Rounded first: 0.29 * 100 is 28.999999999999996.
    return {species: int(round(start * omega, 9)) for species, start in START.items()}


def _day(dusk: float) -> str:
    """`design.day` in the words of COPASI."""
    if dusk in (0, 24):
        return str(int(dusk == 24))
    tau, w = "({Time} - 24 * floor({Time} / 24))", TWILIGHT
    return f"0.5 * (1 + tanh({tau} / {w}) - tanh(({tau} - {dusk}) / {w}) + tanh(({tau} - 24) / {w}))"


def build(condition: Condition, values: Mapping[str, float], omega: int = OMEGA) -> Any:
    """The clock as a COPASI model: species are items in a volume of omega, so that the rates stay as written."""
    try:
        import basico
    except ImportError:
        raise CrossfadeError(
            "simulating the clock needs COPASI: install crossfade with the extra 'circadian'"
        ) from None

    model = basico.new_model(
        name="P2010", quantity_unit="#", volume_unit="1", time_unit="h", remove_user_defined_functions=True
    )
    basico.add_compartment("cell", initial_size=omega, model=model)
    switch = f"if({{Time}} < {condition.until}, {_day(12)}, {_day(condition.dusk)})"
    basico.add_parameter("L", type="assignment", expression=switch, model=model)
    for species, count in start_counts(omega).items():
        basico.add_species(species, compartment_name="cell", initial_concentration=count / omega, model=model)
    for name, (change, rate) in REACTIONS.items():
        law = infix(rate, values)
        used = [symbol for symbol in (*SPECIES, "L") if re.search(rf"\b{symbol}\b", law)]
        roles = {s: "substrate" if change.get(s, 0) < 0 else "modifier" for s in used} | {"L": "parameter"}
        roles = {symbol: roles[symbol] for symbol in used}
        sides = [" + ".join(s for s, k in change.items() if k == sign) for sign in (-1, 1)]
        modifiers = " ".join(symbol for symbol in used if roles[symbol] == "modifier")
        basico.add_function(name, law, type="irreversible", mapping=roles, model=model)
        scheme = " -> ".join(sides) + (f"; {modifiers}" if modifiers else "")
        basico.add_reaction(name, scheme, function=name, mapping={s: s for s in used}, model=model)
    return model


def simulate(
    network: str,
    condition: str | Condition,
    seeds: Sequence[int],
    *,
    omega: int = OMEGA,
    changed: Mapping[str, float] | None = None,
) -> np.ndarray:
    """Counts [run, time, species] of one trajectory per seed, from rest at 0 h to the 13 samples of the sixth day.

    `changed` overrides parameters, for what-if questions and wrong twins.
    """
    condition = CONDITIONS[condition] if isinstance(condition, str) else condition
    model = build(condition, numbers(network, condition) | dict(changed or {}), omega)
    import basico

    wanted = [f"{species}.ParticleNumber" for species in SPECIES]
    runs = []
    try:
        for seed in seeds:
            table = basico.run_time_course_with_output(
                wanted,
                values=TIMES.tolist(),
                start_time=0.0,
                method="directMethod",
                use_initial_values=True,
                update_model=False,
                use_seed=True,
                seed=int(seed),
                max_steps=MAX_STEPS,
                model=model,
            )
            counts = table.to_numpy(float)
            if counts.shape != (len(TIMES), len(SPECIES)) or not np.isfinite(counts).all():
                raise CrossfadeError(f"COPASI gave a table of {counts.shape} for seed {seed}: the run did not finish")
            runs.append(counts)
    finally:
        basico.remove_datamodel(model)
    return np.array(runs)
