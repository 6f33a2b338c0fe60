"""The doctor's findings as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from crossfade.app.table import console

if TYPE_CHECKING:
    from crossfade.doctor import Checkup

STYLES = {"fine": "green", "BAD": "bold red", "-": "dim"}


def print_checkup(checkup: Checkup) -> None:
    console().print(page(checkup))


def page(checkup: Checkup) -> RenderableType:
    """A row per finding, and the sum of them."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in ("", "model", "check"):
        table.add_column(title, style="cyan", no_wrap=True)
    table.add_column("finding", overflow="fold", ratio=1)
    for found in checkup.findings:
        mark = Text(found.mark, style=STYLES[found.mark])
        table.add_row(mark, found.model, found.name, Text(found.message, style="" if found.ok else "bold"))
    summary = Text(f"Findings: {checkup.summary}.", style="green" if checkup.ok else "bold red")
    return Group(table, Text(), summary)
