"""What results, checkups and curves say, as sections of text; how they look is up to `terminal` and `html`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfade.app.effects import effect_lines, width_lines
from crossfade.app.words import SCALE, number, odds, probability, strength, with_error
from crossfade.types import DO_NOT_USE, TRUSTWORTHY, Estimate, Result

if TYPE_CHECKING:
    from crossfade.calibration import Calibration
    from crossfade.doctor import Checkup
    from crossfade.methods.sensitivity import Sensitivity

STRONG, FAINT, BAD = "strong", "faint", "bad"  # how a row may stand out
FAR_COARSER = 100  # times the answer's error: a number known so badly says nothing about the answer
TWO_SIDED = ("bar", "mbar")
COARSE_SLOPE = 0.3  # the error of a slope that tells 1 from 0 no longer
CHECKS = {
    "hysteresis": ("both ways", "differ by {} (0 is expected)"),
    "slope": ("which end", "slope {} (1 is expected)"),
}
PARETO_K = (
    "Pareto k: how heavy the tail of the weights is; from 0.7 on a number is not reliable, so compare anew there."
)
NO_NUMBER = "No number is shown, because it would mislead. Change what is said above, and compare again."


class Row(NamedTuple):
    """The cells, one of each column."""

    cells: tuple[str, ...]
    style: str = ""


class Section(NamedTuple):
    """A part of a page: a table, then sentences, then small print; each may be missing."""

    title: str = ""
    columns: tuple[str, ...] = ("", "")  # titles; as it is, of labels and what they say
    numbers: tuple[int, ...] = ()  # the columns that line up on the right
    rows: tuple[Row, ...] = ()
    lines: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""  # makes it a panel in the colour of this word


def page(result: Result) -> tuple[Section, ...]:
    """What was compared, how far to trust the answer, the answer, and what else was computed."""
    parts = [Section("Models", rows=_rows(_models(result))), _verdict(result)]
    if result.verdict != DO_NOT_USE:
        parts.append(
            Section("Answer", rows=_rows(_answer(result), strong=("log Bayes factor", "Bayes factor", "log evidence")))
        )
        # Where all checks are passed their numbers add nothing, and one of them 2 errors off would look like an alarm.
        if result.verdict != TRUSTWORTHY and (rows := _rows(_checks(result))):
            parts.append(Section("Checks", rows=rows))
        parts += _opinions(result)
    return (*parts, Section(note=_effort(result.about)))


def telling(estimate: Estimate, answer: Estimate) -> bool:
    """Whether a number is known well enough to be held beside the answer."""
    known = math.isfinite(estimate.value) and math.isfinite(estimate.error)
    return known and not estimate.error > FAR_COARSER * answer.error


def _rows(pairs: Iterable[tuple[str, str]], strong: tuple[str, ...] = ()) -> tuple[Row, ...]:
    return tuple(Row(pair, STRONG if pair[0] in strong else "") for pair in pairs)


def _verdict(result: Result) -> Section:
    # Only a run that went from one posterior straight to the other has seen them overlap.
    straight = result.legs and all(
        leg.sign > 0 and leg.forward.equilibrium and set(leg.forward.tau) == {0, 1} for leg in result.legs
    )
    overlap = ", the two posteriors overlap," if straight else ""
    passed = result.about.get("grounds") or f"The chains agree{overlap} and every check is passed."
    lines = result.reasons or (passed,)
    if result.verdict == DO_NOT_USE:
        lines = (*lines, NO_NUMBER)
    return Section(f"Verdict: {result.verdict}", lines=lines, verdict=result.verdict)


def _models(result: Result) -> Iterator[tuple[str, str]]:
    about, sharing = result.about, result.sharing
    yield from _told(about, "M1", "M2")
    both = ("shared", sharing.shared), ("only in M1", sharing.only_1), ("only in M2", sharing.only_2)
    for label, names in (("parameters", sharing.only_2),) if about.get("evidence") else both:
        yield label, ", ".join(names) or "nothing"
    yield from _list("not shared", sharing.apart)
    if sharing.tempered:
        yield "priors differ", f"of {', '.join(sharing.tempered)}, which both models have"
    yield from _told(about, "data", "scale")
    yield from _list("note", about.get("notes", ()))
    if priors := priors_line(about):
        yield "priors", priors


def priors_line(about: dict[str, Any]) -> str:
    """All priors in one line; of a parameter with two of them, both."""
    twice = {k: f"{first} in M1, {second} in M2" for k, (first, second) in about.get("tempered_priors", {}).items()}
    return str(about.get("prior") or "; ".join(f"{k} ~ {twice.get(k, v)}" for k, v in about.get("priors", {}).items()))


def _told(about: dict[str, Any], *labels: str) -> Iterator[tuple[str, str]]:
    return ((label, str(about[label])) for label in labels if label in about)


def _list(label: str, sentences: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for i, sentence in enumerate(sentences):
        yield "" if i else label, str(sentence)


def _answer(result: Result) -> Iterator[tuple[str, str]]:
    estimate, log_odds = result.log_bayes_factor, result.log_posterior_odds
    prior, alone = float(result.about.get("log_prior_odds", 0.0)), result.about.get("evidence")
    name, of = ("log evidence", "") if alone else ("log Bayes factor", " of M2 over M1")
    yield name, f"{with_error(estimate)}{of} ({_called(estimate.name)})"
    if estimate.error:
        low, high = (number(x, estimate.error) for x in estimate.interval())
        yield "95 % interval", f"{low} to {high}"
    yield "log10", number(estimate.value / math.log(10), estimate.error / math.log(10))
    if alone:
        return
    graded = f", {strength(estimate)} ({SCALE})" if math.isfinite(estimate.value) else ""
    yield "Bayes factor", f"{odds(estimate.value)}{graded}"
    if prior:
        yield "prior odds", f"{odds(prior)} (log {prior:g})"
        yield "posterior odds", odds(log_odds)
    assumed = "" if prior else ", if both were equally likely before"
    yield "p(M2 | data)", f"{probability(log_odds)}{assumed}"
    found = effect_lines(result)
    yield from _list("effect" if len(found) == 1 else "effects", found)
    yield from _list("other priors", width_lines(result))
    if graded:
        yield "to quote", result.sentence


def _checks(result: Result) -> Iterator[tuple[str, str]]:
    for name, (label, words) in CHECKS.items():
        check = result.checks.get(name)
        if check is None or (name == "hysteresis" and bounded(result)):
            continue
        # A slope is a pure number; a difference is measured against the answer's error.
        if check.error < COARSE_SLOPE if name == "slope" else telling(check, result.log_bayes_factor):
            yield label, words.format(with_error(check))


def bounded(result: Result) -> bool:
    """Whether the answer averages a bounded function of draws of both posteriors.

    Averages of one side have tails that the answer has not: beside it they would look like an alarm and be none.
    """
    return result.about.get("method") == "auto" and result.raw_estimate.name in TWO_SIDED


def _opinions(result: Result) -> list[Section]:
    """The same number by other estimators; how far they differ is shown where the answer is in doubt."""
    columns: tuple[str, ...] = ("", "log Bayes factor")
    if result.differences and result.verdict != TRUSTWORTHY:
        columns += ("minus the answer",)
    rows = []
    for name, estimate in worth_telling(result).items():
        gap = result.differences.get(name)
        cells = (_called(name), with_error(estimate), with_error(gap) if gap else "")
        rows.append(Row(cells[: len(columns)]))
    return [Section("Second opinions", columns, (1, 2), tuple(rows))] if rows else []


def worth_telling(result: Result) -> dict[str, Estimate]:
    """Second opinions that say something about the answer."""
    one_sided = ("stepping_stone",) if bounded(result) else ()
    answer = result.log_bayes_factor
    return {k: own for k, own in result.opinions.items() if telling(own, answer) and k not in one_sided}


def _called(estimator: str) -> str:
    return estimator.replace("_", " ")


def _effort(about: dict[str, Any]) -> str:
    parts = [str(about["method"])] if "method" in about else []
    if about.get("n_iter") and about.get("n_chains"):
        parts.append(f"{about['n_iter']:,} iterations x {about['n_chains']} chains")
    if about.get("path"):
        parts.append(str(about["path"]))
    if about.get("n_draws"):
        parts.append(f"{sum(about['n_draws'].values()):,} draws in all")
    parts += [f"seed {about['seed']}"] if "seed" in about else []
    parts += [f"{about['seconds']:.1f} s"] if "seconds" in about else []
    return ", ".join(parts)


def of_notes(notes: Iterable[str]) -> tuple[Section, ...]:
    """What was done to the data, where the page says nothing else of them."""
    return (Section("Data", rows=rows),) if (rows := _rows(_list("note", notes))) else ()


def of_checkup(checkup: Checkup) -> tuple[Section, ...]:
    """The doctor's findings, a row each, and the sum of them."""
    styles = {"fine": "", "BAD": BAD, "-": FAINT}
    rows = [Row((found.mark, found.model, found.name, found.message), styles[found.mark]) for found in checkup.findings]
    columns = ("", "model", "check", "finding")
    return Section(columns=columns, rows=tuple(rows)), Section(lines=(f"Findings: {checkup.summary}.",))


def of_sensitivity(sensitivity: Sensitivity) -> tuple[Section, ...]:
    """The log Bayes factor by a prior's scale, and in a sentence what the rows say."""
    rows = []
    for factor, words, value, error, k, reliable in sensitivity.table():
        answer, tail = with_error(Estimate(value, error, 1.0)), f"{k:.2f}" if math.isfinite(k) else "-"
        cells = (f"x {factor:.3g}", words, answer, tail, "" if reliable else "not reliable")
        rows.append(Row(cells, STRONG if factor == 1 else "" if reliable else FAINT))
    columns = ("scale", "prior", "log Bayes factor", "Pareto k", "")
    table = Section(f"Prior of {sensitivity.name}", columns, (0, 2, 3), tuple(rows))
    return table, Section(lines=(_conclusion(sensitivity),), note=PARETO_K)


def _conclusion(sensitivity: Sensitivity) -> str:
    """Whether the answer depends on the prior, as far as the draws can tell."""
    fine = sensitivity.factors[sensitivity.reliable]
    if not len(fine):
        return "None of these scales can be reached from the draws at hand."
    reach = f"from x {fine[0]:.3g} to x {fine[-1]:.3g}"
    if sensitivity.flips:
        where = " and ".join(f"x {flip:.3g}" for flip in sensitivity.flips)
        return f"The answer changes sides at {where}: it depends on the prior of {sensitivity.name}."
    estimates = [e for e, reliable in zip(sensitivity.estimates, sensitivity.reliable, strict=True) if reliable]
    values = [estimate.value for estimate in estimates]
    if min(values) < 0 < max(values):
        return f"The answer changes sides within a part {reach} that is not reliable."
    if len(values) == 1:
        return f"Reliable at x {fine[0]:.3g} alone."
    span = f"{reach} (a log Bayes factor of {min(values):.2f} to {max(values):.2f})"
    if any(low < 0 < high for low, high in (estimate.interval() for estimate in estimates)):
        return f"The answer does not change sides {span}, but 0 is within the error of some."
    return f"The same model is favoured {span}."


def of_calibration(found: Calibration) -> tuple[Section, ...]:
    """Whether probabilities mean what they say, bin by bin, and what data of this size can show."""
    bins = [
        Row((f"{low:g} to {high:g}", f"{n}", f"{p:.3f}", f"{made:.3f} ± {sd:.3f}"))
        for low, high, n, p, made, sd in found.bins.itertuples(index=False)
    ]
    columns = ("p(M2 | data)", "data sets", "mean of it", "share made by M2")
    designs = [
        Row((f"{made}, {strength} : 1", f"{right:.0%}", f"{wrong:.1%}"))
        for made, strength, right, wrong in found.design.itertuples(index=False)
    ]
    word = "calibrated" if found.calibrated else "not calibrated"
    off = found.offset
    lines = [
        f"On {len(found.made_by_2)} data sets the probabilities are {word}: a disagreement as large as this has a "
        f"chance of {found.chance:.2g}.",
        f"The log Bayes factors are too large by {with_error(off)} on average (0 is expected)."
        if math.isfinite(off.value)
        else "All data sets tell the models apart, so that nothing can be said about small errors.",
    ]
    if not found.calibrated:
        lines.append(
            "Look for a constant that is missing in a log density, for a prior that is not the one data were made "
            "with, and for answers that are not trustworthy."
        )
    if found.n_without_answer:
        lines.append(f"{found.n_without_answer} data sets had no answer and are left out; see .rows.")
    verdict = TRUSTWORTHY if found.calibrated else DO_NOT_USE
    return (
        Section(f"Calibration: {word}", lines=tuple(lines), verdict=verdict),
        Section("Probabilities", columns, (1, 2, 3), tuple(bins)),
        Section("Data made by, Bayes factor", ("", "for it", "against it"), (1, 2), tuple(designs)),
    )
