"""The doctor's findings as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crossfade.app.page import BAD, FAINT, Column, Row, Section

if TYPE_CHECKING:
    from crossfade.doctor import Checkup

STYLES = {"fine": "", "BAD": BAD, "-": FAINT}


def page(checkup: Checkup) -> tuple[Section, ...]:
    """A row per finding, and the sum of them."""
    rows = [Row((found.mark, found.model, found.name, found.message), STYLES[found.mark]) for found in checkup.findings]
    columns = tuple(Column(title) for title in ("", "model", "check", "finding"))
    return Section(columns=columns, rows=tuple(rows)), Section(lines=(f"Findings: {checkup.summary}.",))
