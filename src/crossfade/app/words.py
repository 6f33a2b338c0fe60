"""Numbers as people read them: as many digits as their error allows, odds, probabilities."""

from __future__ import annotations

import math
from unicodedata import category

from crossfade.types import DO_NOT_USE, TRUSTWORTHY, Estimate, Result

# Grades of evidence by H. Jeffreys, Theory of Probability (1961), appendix B: a step for every half power of ten.
GRADES = ("not worth more than a bare mention", "substantial", "strong", "very strong", "decisive")
HALF_TEN = math.log(10) / 2
SCALE = "Jeffreys 1961"


def with_error(estimate: Estimate) -> str:
    """'8.8571 ± 0.0081': the error to two digits, the value to the same place; '8.857108' if there is no error."""
    if estimate.error == 0:
        return f"{estimate.value:.6f}"
    return f"{number(estimate.value, estimate.error)} ± {number(estimate.error, estimate.error)}"


def number(value: float, error: float) -> str:
    """The value to the second digit of its error."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{value:.4f}"
    return f"{value:.{min(max(1 - math.floor(math.log10(error)), 0), 10)}f}"


def odds(log_odds: float) -> str:
    """'7,024 : 1 for M2'; powers of ten where a number would be too long to read."""
    return f"{ratio(log_odds)} : 1 for {favoured(log_odds)}" if math.isfinite(log_odds) else f"{log_odds:f}"


def favoured(log_odds: float) -> str:
    return "M2" if log_odds >= 0 else "M1"


def ratio(log_odds: float) -> str:
    """The larger over the smaller: '7,024', '13.8', '2.4 x 10^9'."""
    digits = abs(log_odds) / math.log(10)
    if digits >= 7:
        exponent = math.floor(digits)
        return f"{10 ** (digits - exponent):.1f} x 10^{exponent}"
    plain = math.exp(abs(log_odds))
    return f"{plain:,.{0 if plain >= 100 else 1}f}"


def strength(estimate: Estimate) -> str:
    """Jeffreys' word for a Bayes factor, or two words if the 95 % interval reaches over more than one of them."""
    low, high = estimate.interval() if estimate.error else (estimate.value, estimate.value)
    first, last = _grade(low), _grade(high)
    if low < 0 < high:
        if first == last == 0:
            return f"{GRADES[0]} for either model"
        return f"between {GRADES[first]} for M1 and {GRADES[last]} for M2"
    weaker, stronger = sorted((first, last))
    return GRADES[weaker] if weaker == stronger else f"between {GRADES[weaker]} and {GRADES[stronger]}"


def _grade(log_bayes_factor: float) -> int:
    return min(int(abs(log_bayes_factor) / HALF_TEN), len(GRADES) - 1)


def sentence(result: Result) -> str:
    """The answer in a sentence to paste; without a number where there is none to be used."""
    if result.verdict == DO_NOT_USE:
        return f"No Bayes factor can be given. {' '.join(result.reasons)}".strip()
    if result.about.get("evidence"):  # nothing is compared
        return f"The log evidence is {with_error(result.log_bayes_factor)}."
    estimate = result.log_bayes_factor
    first, second = (f"{which} ({result.about[which]})" if which in result.about else which for which in ("M1", "M2"))
    better, worse = (second, first) if favoured(estimate.value) == "M2" else (first, second)
    times = ratio(estimate.value)
    said = f"about as likely under {better} as" if times == "1.0" else f"{times} times more likely under {better} than"
    doubt = "" if result.verdict == TRUSTWORTHY else f" ({result.verdict})"
    value = with_error(estimate) if estimate.error else f"{estimate.value:.3f} (exact)"
    return f"The data are {said} under {worse}; log Bayes factor of M2 over M1: {value}{doubt}."


def probability(log_odds: float) -> str:
    """p(M2 | data); close to 1 the distance to 1 is what matters."""
    digits = -abs(log_odds) / math.log(10)
    if not -math.inf < digits <= -4:
        return f"{1 / (1 + math.exp(-log_odds)):.4f}" if math.isfinite(digits) else f"{log_odds > 0:.4f}"
    exponent = math.floor(digits)
    rest = f"{10 ** (digits - exponent):.1f}e{exponent}"
    return rest if log_odds < 0 else f"1 - {rest}"


def printable(words: str) -> str:
    """Without letters that steer a terminal or are not allowed in XML: a column of a file may be called anything."""
    return "".join("\ufffd" if category(letter) in ("Cc", "Cf", "Cs", "Cn") else letter for letter in words)
