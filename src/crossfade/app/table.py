"""A result as a page of text: what was compared, the answer, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from crossfade.types import Estimate, Result

LABEL_WIDTH = 16
DIFFERENCE = "difference: from the answer, in standard errors of the difference."
HYSTERESIS = "hysteresis: the run from M1 to M2 minus that back, 0 but for chance if they were long enough."
ONE_WAY = "hysteresis: not known, because the run back was not finished."
BOTH_WAYS = "hysteresis: importance sampling from M1 to M2 minus that back, 0 but for chance."
NO_ANSWER = "do not use"
COLOURS = {"trustworthy": "green", "weak": "yellow", NO_ANSWER: "red"}


def console(*, stderr: bool = False) -> Console:
    """At most 100 columns, and no markup: names such as group[T.b] must come out as they are."""
    plain = Console(stderr=stderr, markup=False, highlight=False, soft_wrap=False)
    plain.width = min(plain.width, 100)
    return plain


def report(result: Result) -> RenderableType:
    """The whole page."""
    parts: list[RenderableType] = [_rule("Models"), _grid(_models(result)), Text()]
    if result.verdict:
        parts += [_verdict(result), Text()]
    if result.verdict != NO_ANSWER:
        parts += [_rule("Answer"), _grid(_answer(result)), Text()]
        if result.opinions or result.hysteresis is not None:
            lag = ONE_WAY if result.hysteresis is None else BOTH_WAYS if result.verdict else HYSTERESIS
            parts += [_rule("Second opinions"), _opinions(result), Text(f"{DIFFERENCE} {lag}", style="dim"), Text()]
    if result.warnings:
        warnings = "\n".join(f"- {warning}" for warning in result.warnings)
        title = Text("Warning: do not rely on this answer yet", style="bold red")
        parts += [Panel(Text(warnings), title=title, border_style="red", padding=(0, 1)), Text()]
    return Group(*parts, Text(_effort(result.about), style="dim"))


def _verdict(result: Result) -> Panel:
    """One word, and a sentence for every reason."""
    colour = COLOURS[result.verdict]
    lines = list(result.reasons) or ["Chains, overlap, both halves and both ways agree."]
    if result.verdict == NO_ANSWER:
        lines.append("There is no answer: the number that came out is not printed, because it would mislead.")
    title = Text(f"Verdict: {result.verdict}", style=f"bold {colour}")
    return Panel(Text("\n".join(lines)), title=title, title_align="left", border_style=colour, padding=(0, 1))


def _models(result: Result) -> Iterator[tuple[str, str]]:
    about, sharing = result.about, result.sharing
    for model in ("M1", "M2"):
        if model in about:
            yield model, str(about[model])
    for label, names in (
        ("shared", sharing.shared),
        ("only in M1", sharing.only_1),
        ("only in M2", sharing.only_2),
    ):
        yield label, ", ".join(names) or "nothing"
    if sharing.tempered:
        yield "tempered", ", ".join(sharing.tempered) + " (shared, but the priors differ)"
    for label in ("data", "scale"):
        if label in about:
            yield label, str(about[label])
    for note in about.get("notes", ()):
        yield "note", str(note)
    if priors := about.get("prior") or "; ".join(f"{k} ~ {v}" for k, v in about.get("priors", {}).items()):
        yield "priors", priors


def _answer(result: Result) -> Iterator[tuple[str, str]]:
    estimate = result.log_bayes_factor
    log_odds = result.log_posterior_odds
    prior = float(result.about.get("log_prior_odds", 0.0))
    yield "log Bayes factor", f"{with_error(estimate)} of M2 over M1 ({estimate.name.replace('_', ' ')})"
    low, high = (number(x, estimate.error) for x in estimate.interval())
    yield "95 % interval", f"{low} to {high}"
    yield "log10", number(estimate.value / math.log(10), estimate.error / math.log(10))
    yield "Bayes factor", odds(estimate.value)
    if prior:
        yield "prior odds", f"{odds(prior)} (log {prior:g})"
        yield "posterior odds", odds(log_odds)
    assumed = "" if prior else ", if both were equally likely before"
    yield "p(M2 | data)", f"{probability(log_odds)}{assumed}"


def _opinions(result: Result) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", min_width=LABEL_WIDTH, style="cyan", no_wrap=True)
    table.add_column("log Bayes factor", justify="right", no_wrap=True)
    table.add_column("difference", justify="right", no_wrap=True)
    for name, estimate in result.opinions.items():
        gap = result.differences.get(name)
        table.add_row(name.replace("_", " "), with_error(estimate), sigmas(gap) if gap else "")
    if (lag := result.hysteresis) is not None:
        table.add_row("hysteresis", with_error(lag), sigmas(lag))
    return table


def _effort(about: dict[str, Any]) -> str:
    parts = [str(about["method"])] if "method" in about else []
    if "n_iter" in about and "n_chains" in about:
        parts.append(f"{about['n_iter']:,} iterations x {about['n_chains']} chains")
    if about.get("path"):
        parts.append(str(about["path"]))
    if about.get("n_draws"):
        parts.append(f"{sum(about['n_draws'].values()):,} draws in all")
    parts += [f"seed {about['seed']}"] if "seed" in about else []
    parts += [f"{about['seconds']:.1f} s"] if "seconds" in about else []
    return ", ".join(parts)


def _rule(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style="dim", characters="-")


def _grid(rows: Iterator[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=LABEL_WIDTH, style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        style = "bold" if label in ("log Bayes factor", "Bayes factor") else ""
        grid.add_row(label, Text(value, style=style))
    return grid


def with_error(estimate: Estimate) -> str:
    """'8.8571 ± 0.0081': the error to two digits, the value to the same place."""
    return f"{number(estimate.value, estimate.error)} ± {number(estimate.error, estimate.error)}"


def number(value: float, error: float) -> str:
    """The value to the second digit of its error."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{value:.4f}"
    return f"{value:.{min(max(1 - math.floor(math.log10(error)), 0), 10)}f}"


def sigmas(gap: Estimate) -> str:
    """A difference in units of its own standard error."""
    return f"{gap.value / gap.error:+.1f} sigma" if gap.error > 0 else f"{gap.value:+.4f}"


def odds(log_odds: float) -> str:
    """'7,024 : 1 for M2'; powers of ten where a number would be too long to read."""
    favoured = "M2" if log_odds >= 0 else "M1"
    digits = abs(log_odds) / math.log(10)
    if digits >= 7:
        exponent = math.floor(digits)
        return f"{10 ** (digits - exponent):.1f} x 10^{exponent} : 1 for {favoured}"
    ratio = math.exp(abs(log_odds))
    return f"{ratio:,.{0 if ratio >= 100 else 1}f} : 1 for {favoured}"


def probability(log_odds: float) -> str:
    """p(M2 | data); close to 1 the distance to 1 is what matters."""
    digits = -abs(log_odds) / math.log(10)
    if digits > -4:
        return f"{1 / (1 + math.exp(-log_odds)):.4f}"
    exponent = math.floor(digits)
    rest = f"{10 ** (digits - exponent):.1f}e{exponent}"
    return rest if log_odds < 0 else f"1 - {rest}"
