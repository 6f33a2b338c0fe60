"""The P2010 clock of Arabidopsis as one table: 19 species, 90 parameters, 40 reactions with their rates.

Pokhilko et al. (2010), Mol Syst Biol 6:416, BioModels BIOMD0000000273; as a jump process, Guerriero et al. (2012).
The rates are written here and nowhere else: `rates` makes a Python function of them, `infix` a text for other engines.
Concentrations in, concentration per hour out; L is the light, D = 1 - L, tx_g switches the transcription of gene g.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

# Start of the stochastic runs of Aderhold et al. (2014); the entrainment makes it irrelevant.
START: dict[str, float] = {
    "LHY_m": 1, "LHY_p": 0.416, "LHY_pm": 0.054,
    "TOC1_m": 0.054, "TOC1_p": 0.393, "TOC1_pm": 0.393,
    "Y_m": 0.093, "Y_p": 0.1, "P": 0.825,
    "PRR9_m": 0.35, "PRR9_p": 0.056, "PRR7_m": 0.056, "PRR7_p": 0.019,
    "NI_m": 0.044, "NI_p": 0.044, "GI_m": 0.119, "GI_p": 0.119,
    "ZTL": 0.323, "GI_ZTL": 0.323,
}  # fmt: skip
SPECIES = tuple(START)
# BioModels has other values for six species, and the published figures of the differential equation start there.
PUBLISHED_START: dict[str, float] = START | {
    "TOC1_m": 0.25, "TOC1_pm": 0.24, "PRR7_m": 0.075, "NI_m": 0.0065, "GI_p": 0.0238, "GI_ZTL": 0.0774
}  # fmt: skip
GENES = ("GI", "LHY", "NI", "PRR7", "PRR9", "TOC1", "Y")
SWITCHES = {f"tx_{gene}": 1.0 for gene in GENES}

# n transcription, q the same by light, g thresholds, hill_* their exponents, m decay, p translation and conversion.
PARAMETERS: dict[str, float] = {
    "n0": 0.4, "n1": 1.8, "n2": 0.7, "n3": 0.06, "n4": 0, "n5": 3.4, "n6": 1.25, "n7": 0.2, "n8": 0.42, "n9": 0.26,
    "n10": 0.18, "n11": 0.71, "n12": 2.3,
    "g1": 0.1, "g2": 0.28, "g3": 0.4, "g4": 0.91, "g5": 0.3, "g6": 0.3, "g7": 0.18, "g8": 0.14, "g9": 0.3, "g10": 0.7,
    "g11": 0.7, "g12": 0.5, "g13": 0.6, "g14": 0.17, "g15": 0.4, "g16": 0.2,
    "m1": 0.54, "m2": 0.24, "m3": 0.2, "m4": 0.2, "m5": 0.3, "m6": 0.25, "m7": 0.5, "m8": 0.1, "m9": 1, "m10": 0.3,
    "m11": 1, "m12": 1, "m13": 0.32, "m14": 0.28, "m15": 0.31, "m16": 0.5, "m17": 0.3, "m18": 1, "m19": 0.2, "m20": 1.2,
    "m21": 0.2, "m22": 2, "m23": 1, "m24": 0.405, "m25": 0.28, "m26": 0.14,
    "p1": 0.4, "p2": 0.27, "p3": 0.1, "p4": 0.268, "p5": 1, "p6": 0.44, "p7": 0.3, "p8": 0.7, "p9": 0.4, "p10": 0.36,
    "p11": 0.23, "p12": 30, "p13": 0.4, "p14": 0.45, "p15": 0.05,
    "q1": 0.8, "q2": 0.5, "q3": 2.9, "q4": 0.6,
    "hill_a": 2, "hill_b": 3, "hill_c": 3, "hill_d": 2.5, "hill_e": 2, "hill_f": 3, "hill_g": 2, "hill_h": 2,
    "hill_i": 3, "hill_j": 3, "hill_k": 3, "hill_l": 2, "hill_m": 2, "hill_n": 1, "hill_o": 2, "hill_s": 3,
}  # fmt: skip
STOCHASTIC: dict[str, float] = PARAMETERS | {"p6": 0.436}  # the value of the published stochastic runs


class Reaction(NamedTuple):
    """What one event changes, and how often it happens."""

    change: dict[str, int]
    rate: str  # over species, parameters, switches, L and D; act and inh are the Hill functions below


def act(x: float, k: float, h: float) -> float:
    """Activation: x^h / (x^h + k^h)."""
    return x**h / (x**h + k**h)


def inh(x: float, k: float, h: float) -> float:
    """Inhibition: 1 - act."""
    return k**h / (x**h + k**h)


def _up(species: str, rate: str) -> Reaction:
    return Reaction({species: 1}, rate)


def _down(species: str, rate: str) -> Reaction:
    return Reaction({species: -1}, rate)


REACTIONS: dict[str, Reaction] = {
    "LHY_transcription": _up(
        "LHY_m", "tx_LHY * (n0*L + q1*L*P + n1*act(TOC1_pm, g2, hill_b)) * inh(PRR9_p + PRR7_p + NI_p, g1, hill_a)"
    ),
    "LHY_mRNA_decay": _down("LHY_m", "(m1*L + m2*D) * LHY_m"),
    "LHY_translation": _up("LHY_p", "(p1*L + p2*D) * LHY_m"),
    "LHY_decay": _down("LHY_p", "m3 * LHY_p"),
    "LHY_modification": Reaction({"LHY_p": -1, "LHY_pm": 1}, "p3 * act(LHY_p, g3, hill_c)"),
    "LHY_modified_decay": _down("LHY_pm", "m4 * LHY_pm"),
    "TOC1_transcription": _up("TOC1_m", "tx_TOC1 * (n2*act(Y_p, g4, hill_d) + n3) * inh(LHY_p, g5, hill_e)"),
    "TOC1_mRNA_decay": _down("TOC1_m", "m5 * TOC1_m"),
    "TOC1_translation": _up("TOC1_p", "p4 * TOC1_m"),
    "TOC1_decay_by_ZTL": _down("TOC1_p", "(m6*L + m7*D) * TOC1_p * (p5*ZTL + GI_ZTL)"),
    "TOC1_decay": _down("TOC1_p", "m8 * TOC1_p"),
    "TOC1_modification": _up("TOC1_pm", "p15 * act(TOC1_p, g6, hill_f)"),  # TOC1_p is not used up, as published
    "TOC1_modified_decay": _down("TOC1_pm", "(m25*L + m26*D) * TOC1_pm"),
    "Y_transcription": _up(
        "Y_m", "tx_Y * (q2*L*P + (n5*L + n6*D) * inh(TOC1_p, g7, hill_s) * inh(LHY_p, g16, hill_g))"
    ),
    "Y_mRNA_decay": _down("Y_m", "m9 * Y_m"),
    "Y_translation": _up("Y_p", "p6 * Y_m"),
    "Y_decay": _down("Y_p", "m10 * Y_p"),
    "P_production": _up("P", "p7 * D * (1 - P)"),
    "P_decay": _down("P", "m11 * L * P"),
    "PRR9_transcription": _up(
        "PRR9_m", "tx_PRR9 * (q3*L*P + (n4*L + n7*act(LHY_p, g9, hill_i)) * inh(TOC1_p, g8, hill_h))"
    ),
    "PRR9_mRNA_decay": _down("PRR9_m", "m12 * PRR9_m"),
    "PRR9_translation": _up("PRR9_p", "p8 * PRR9_m"),
    "PRR9_decay": _down("PRR9_p", "(m13*L + m22*D) * PRR9_p"),
    "PRR7_transcription": _up(
        "PRR7_m", "tx_PRR7 * (n8*act(LHY_p + LHY_pm, g10, hill_j) + n9*act(PRR9_p, g11, hill_k))"
    ),
    "PRR7_mRNA_decay": _down("PRR7_m", "m14 * PRR7_m"),
    "PRR7_translation": _up("PRR7_p", "p9 * PRR7_m"),
    "PRR7_decay": _down("PRR7_p", "(m15*L + m23*D) * PRR7_p"),
    "NI_transcription": _up("NI_m", "tx_NI * (n10*act(LHY_pm, g12, hill_l) + n11*act(PRR7_p, g13, hill_m))"),
    "NI_mRNA_decay": _down("NI_m", "m16 * NI_m"),
    "NI_translation": _up("NI_p", "p10 * NI_m"),
    "NI_decay": _down("NI_p", "(m17*L + m24*D) * NI_p"),
    "GI_transcription": _up("GI_m", "tx_GI * (q4*L*P + n12*L * inh(TOC1_p, g14, hill_n) * inh(LHY_p, g15, hill_o))"),
    "GI_mRNA_decay": _down("GI_m", "m18 * GI_m"),
    "GI_translation": _up("GI_p", "p11 * GI_m"),
    "GI_decay": _down("GI_p", "m19 * GI_p"),
    "ZTL_production": _up("ZTL", "p14"),
    "ZTL_decay": _down("ZTL", "m20 * ZTL"),
    "GI_ZTL_binding": Reaction({"GI_p": -1, "ZTL": -1, "GI_ZTL": 1}, "p12 * L * GI_p * ZTL"),
    "GI_ZTL_release": Reaction({"GI_p": 1, "ZTL": 1, "GI_ZTL": -1}, "p13 * D * GI_ZTL"),
    "GI_ZTL_decay": _down("GI_ZTL", "m21 * GI_ZTL"),
}
CHANGES = np.array([[r.change.get(s, 0) for r in REACTIONS.values()] for s in SPECIES])  # [species, reaction]

Rates = Callable[[np.ndarray, float], np.ndarray]


class _Expand(ast.NodeTransformer):
    """Put numbers for names and powers for Hill functions."""

    def __init__(self, numbers: Mapping[str, float]):
        self.numbers = numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.numbers[node.id]) if node.id in self.numbers else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = ast.unparse(node.func)
        x, k, h = (ast.unparse(self.visit(argument)) for argument in node.args)
        top = {"act": f"({x})**{h}", "inh": f"{k}**{h}"}[name]
        return ast.parse(f"({top} / (({x})**{h} + {k}**{h}))", mode="eval").body


def expanded(rate: str, numbers: Mapping[str, float]) -> ast.expr:
    """The rate over species and L alone, as a syntax tree of + - * / and **."""
    whole = _Expand(numbers).visit(ast.parse(rate, mode="eval")).body
    dark = {"D": ast.parse("1 - L", mode="eval").body}

    class Dark(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return dark.get(node.id, node)

    return Dark().visit(whole)


def infix(rate: str, numbers: Mapping[str, float]) -> str:
    """The expanded rate as text, powers as ^."""
    return ast.unparse(expanded(rate, numbers)).replace("**", "^")


def rates(numbers: Mapping[str, float]) -> Rates:
    """A function of a state [species] and the light that gives the 40 rates."""
    body = ", ".join(ast.unparse(expanded(reaction.rate, numbers)) for reaction in REACTIONS.values())
    scope: dict[str, Callable[..., list[float]]] = {}
    exec(f"def all_rates({', '.join(SPECIES)}, L):\n    return [{body}]", scope)
    return lambda x, light: np.array(scope["all_rates"](*x, light))
