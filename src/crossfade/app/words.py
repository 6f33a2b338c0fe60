"""Numbers as people read them: as many digits as their error allows, odds, probabilities."""

from __future__ import annotations

import math
from unicodedata import category

from crossfade.types import Estimate


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
    favoured = "M2" if log_odds >= 0 else "M1"
    digits = abs(log_odds) / math.log(10)
    if not math.isfinite(digits):
        return f"{log_odds:f}"
    if digits >= 7:
        exponent = math.floor(digits)
        return f"{10 ** (digits - exponent):.1f} x 10^{exponent} : 1 for {favoured}"
    ratio = math.exp(abs(log_odds))
    return f"{ratio:,.{0 if ratio >= 100 else 1}f} : 1 for {favoured}"


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
