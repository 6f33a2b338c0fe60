"""How an answer was computed, in sentences for a methods section, and the sources of exactly that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade.app.report.bibliography import bibtex
from crossfade.types import Result

if TYPE_CHECKING:
    from crossfade.ranking.record import Ranking

CLOSED, POINTS = "closed form", "importance sampling"
PIECES = "mixtures fitted"  # in the words on a path by tempering
# What each estimator is, and whose.
ESTIMATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "trapezoid": ("the trapezoid rule of thermodynamic integration", ("friel2008",)),
    "corrected_trapezoid": ("the corrected trapezoid rule of thermodynamic integration", ("friel2014",)),
    "controlled": ("thermodynamic integration with control variates", ("oates2016",)),
    "stepping_stone": ("stepping-stone sampling", ("xie2011",)),
    "bar": ("Bennett's acceptance ratio", ("bennett1976",)),
    "mbar": ("the multistate Bennett acceptance ratio (MBAR)", ("shirts2008",)),
    "jarzynski": ("annealed importance sampling", ("neal2001", "jarzynski1997")),
    "crooks": ("Bennett's acceptance ratio of the works of sweeps both ways", ("crooks2000", "shirts2003")),
    POINTS: ("importance sampling from Student t densities with common random numbers", ("kloek1978",)),
}
MOVES = {"HMC": ("Hamiltonian Monte Carlo", "neal2011"), "Gibbs": ("Gibbs sampling", "gelfand1990")}
MOVES |= {name: ("Metropolis steps", "metropolis1953") for name in ("Metropolis", "Leap")}


class Told(NamedTuple):
    """Sentences, and the keys of the sources that they rest on."""

    sentences: tuple[str, ...]
    sources: tuple[str, ...]


def of_result(result: Result) -> Told:
    about = result.about
    if about.get("route") == CLOSED:
        return _closed()
    if about.get("route") == POINTS:
        return _points()
    return _by_default(result) if about.get("method") == "auto" else _by_table(result)


def of_ranking(ranking: Ranking) -> Told:
    route = ranking.about.get("route")
    if route == CLOSED:
        return _closed()
    if route == POINTS:
        return _points()
    brought = ranking.about.get("brought", ())
    own = [name for name in ranking.names if name not in brought]
    said, sources = _chains(bool(own), bool(brought))
    pairs = (
        "Relative evidences of pairs of models were read from their draws by the multistate Bennett acceptance ratio "
        "(MBAR), with linking densities fitted to the draws for what only one of the two has; the ranking follows the "
        "pairs with the smallest errors."
    )
    return Told((*said, pairs), ("grzegorczyk2017", "shirts2008", *sources))


def of_sensitivity() -> Told:
    sentence = (
        "The answer under other scales of a prior was computed from the same draws, weighted by the ratio of the new "
        "prior to the old one; where the tail of the weights is heavy (Pareto k of 0.7 or more) it is not relied on."
    )
    return Told((sentence,), ("vehtari2024",))


def _closed() -> Told:
    said = "All priors are conjugate, so that the evidence of each model has a closed form; nothing was sampled."
    return Told((said,), ("raiffa1961",))


def _points() -> Told:
    sentences = (
        "Evidences were computed by importance sampling from Student t densities around the mode of each posterior, "
        "with common random numbers for the coefficients that models share; standard errors are jackknifed over "
        "independent sets of points.",
        "The tails of the weights were checked by the shape of a generalised Pareto distribution fitted to them.",
    )
    return Told(sentences, ("kloek1978", "vehtari2024"))


def _chains(own: bool, brought: bool) -> Told:
    said, sources = [], []
    if own:
        said.append(
            "Posteriors were sampled by independent chains of Hamiltonian Monte Carlo, with trajectory lengths chosen "
            "by the criterion of ChEES, from starting points all over the prior."
        )
        sources += ["neal2011", "hoffman2021"]
    if brought:
        said.append("Draws of posteriors were brought along." if not own else "Some draws were brought along.")
    said.append("Agreement of the chains was checked by rank-normalised split R-hat and effective sample sizes.")
    return Told(tuple(said), (*sources, "vehtari2021"))


def _by_default(result: Result) -> Told:
    name = result.raw_estimate.name
    if any(leg.sign < 0 for leg in result.legs):
        return _tempered(result)
    brought = result.about.get("brought", ())
    chains = _chains(len(brought) < len([own for own in result.draws if own]), bool(brought))
    # Small smooth models end in importance sampling, after a first answer by MBAR.
    words, sources = ESTIMATORS.get("mbar" if name == POINTS else name, (name, ()))
    said = [
        "What only one model has was completed by linking densities fitted to draws of the other half of the chains, "
        f"and the log Bayes factor was read from draws along the direct path between the two posteriors by {words}.",
        "Standard errors are jackknifed over chains, with the fits made anew.",
    ]
    sources = ("grzegorczyk2017", *sources, *chains.sources)
    if name == POINTS:
        by, more = ESTIMATORS[POINTS]
        said.append(
            f"The final answer is by {by}, fitted to the same draws; its weights were checked by their Pareto k."
        )
        sources += (*more, "vehtari2024")
    return Told((*chains.sentences, *said), sources)


def _tempered(result: Result) -> Told:
    words, sources = ESTIMATORS.get(result.raw_estimate.name, (result.raw_estimate.name, ()))
    mixed = " from mixtures fitted to the pieces that it found" if PIECES in str(result.about.get("path")) else ""
    said = (
        "The evidence of each model was computed from its prior to its posterior by non-reversible parallel tempering "
        f"with Hamiltonian Monte Carlo at every rung, and read by {words}{mixed}."
    )
    return Told((said,), ("syed2022", *sources, "neal2011"))


def _by_table(result: Result) -> Told:
    about, name = result.about, result.raw_estimate.name
    words, sources = ESTIMATORS.get(name, (name, ()))
    straight = all(leg.sign > 0 for leg in result.legs)
    sweeps = any(not leg.forward.equilibrium for leg in result.legs)
    moves = [MOVES[move] for move in about.get("kernels", ()) if move in MOVES]
    by = " and ".join(dict.fromkeys(move for move, _ in moves)) or "Markov chains"
    route = "straight from M1 to M2" if straight else "from the prior to the posterior of each model"
    how = "tau moved at every iteration" if sweeps else "with draws in equilibrium at every rung"
    said = [f"Chains went {route}, {how} ({about.get('method', 'a path')}), by {by}; the answer was read by {words}."]
    said.append("Standard errors are jackknifed over chains.")
    keys = ["grzegorczyk2017"] if straight or (sweeps and name == "trapezoid") else []
    if not (sweeps and name == "trapezoid"):  # the sum over a sweep is the first source's own
        keys += sources
    keys += [key for _, key in moves]
    if not sweeps:
        said.append("Agreement of the chains was checked by R-hat at every rung.")
        keys.append("vehtari2021")
    return Told(tuple(said), tuple(keys))


def cite(told: Told) -> str:
    """BibTeX of crossfade and of the sources, each once."""
    return bibtex(list(dict.fromkeys(("crossfade", *told.sources))))


def cite_result(result: Result) -> str:
    return cite(of_result(result))


def cite_ranking(ranking: Any) -> str:
    return cite(of_ranking(ranking))
