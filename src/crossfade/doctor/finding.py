"""What a check found, in a sentence that names the culprit and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

BOTH = "both"
UNCHECKED = "not checked"  # how a message begins that says neither good nor bad
LONGEST = 300  # characters of an error of the user's function that are repeated


class Finding(NamedTuple):
    """One check of one model ("M1" or "M2"), or of the two together ("both")."""

    name: str
    model: str
    ok: bool
    message: str

    @property
    def mark(self) -> str:
        """One word; a dash for what is not known."""
        if not self.ok:
            return "BAD"
        return "-" if self.message.startswith(UNCHECKED) else "fine"


class Checkup(NamedTuple):
    """All findings, in the order in which they were made: `ok` if none is bad; `print` shows them."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)

    @property
    def summary(self) -> str:
        marks = [finding.mark for finding in self.findings]
        counts = {"bad": marks.count("BAD"), "fine": marks.count("fine"), "not checked": marks.count("-")}
        return ", ".join(f"{n} {words}" for words, n in counts.items() if n)

    def __str__(self) -> str:
        rows = [(found.mark, found.model, found.name, found.message) for found in self.findings]
        wide = [max(len(row[i]) for row in rows) if rows else 0 for i in range(3)]
        lines = ["  ".join([*(row[i].ljust(wide[i]) for i in range(3)), row[3]]) for row in rows]
        return "\n".join([*lines, self.summary])


def guarded(name: str, model: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings; whatever the user's functions raise is one of them."""
    try:
        return look()
    except Exception as error:
        return [Finding(name, model, False, f"failed: {reason(error)}")]


def reason(error: Exception) -> str:
    """The error in a line. One that came through a compiled program is buried in that program's own words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    buried = [line for line in lines if "CrossfadeError: " in line]
    if buried:
        found = buried[-1].split("CrossfadeError: ")[-1]
    else:
        found = lines[0] if type(error).__name__ == "CrossfadeError" else f"{type(error).__name__}: {lines[0]}"
    return found if len(found) <= LONGEST else found[:LONGEST] + " ..."
