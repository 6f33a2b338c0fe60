"""The terminal: pages in colour where there is any, at most 100 columns wide; and what every command does there."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, redirect_stdout
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from crossfade.app.page import BAD, FAINT, STRONG, Section, page
from crossfade.app.words import printable
from crossfade.types import DO_NOT_USE, TRUSTWORTHY, WEAK, Result

WIDEST = 100
LABEL_WIDTH = 16
STYLES = {"": "", STRONG: "bold", FAINT: "dim", BAD: "bold red"}
COLOURS = {TRUSTWORTHY: "green", WEAK: "yellow", DO_NOT_USE: "red"}


def console(*, stderr: bool = False, coloured: bool = True) -> Console:
    """No markup: names such as group[T.b] must come out as they are."""
    plain = Console(
        stderr=stderr, markup=False, highlight=False, force_jupyter=False, color_system="auto" if coloured else None
    )
    plain.width = min(plain.width, WIDEST)
    return plain


def aside() -> AbstractContextManager[Any]:
    """What a user's model prints goes to the standard error, since the standard output holds answers alone."""
    return redirect_stdout(sys.stderr)


def keep_compiled() -> None:
    """Keep compiled programs between runs, and for processes started by this one: compiling outlasts most runs."""
    import jax

    from crossfade.density.programs import WORTH_KEEPING, folder

    where = folder()
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and where is not None:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(where)
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = str(WORTH_KEEPING)
        jax.config.update("jax_compilation_cache_dir", str(where))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


def text(result: Result) -> str:
    """The page without colours: what `print(result)` gives."""
    return plain(*page(result))


def plain(*sections: Section) -> str:
    """Any page without colours."""
    return _written(sections, console(coloured=False)).rstrip("\n")


def show(*sections: Section) -> None:
    """Print a page."""
    out = console()
    out.file.write(_written(sections, out))


def _written(sections: tuple[Section, ...], out: Console) -> str:
    with out.capture() as written:
        for i, section in enumerate(sections):
            out.print(*([Text()] if i else []), _panel(section) if section.verdict else _part(section), sep="\n")
    # Tables fill their last column with blanks, which only get in the way of whoever copies the text.
    return "".join(f"{line.rstrip()}\n" for line in written.get().splitlines())


def _panel(section: Section) -> Panel:
    colour = COLOURS[section.verdict]
    body = Table.grid()
    for _ in section.lines[:2]:  # more than one have bullets
        body.add_column(overflow="fold")
    for line in section.lines:
        body.add_row(*(["- "] if len(section.lines) > 1 else []), _plain(line))
    title = _plain(section.title, f"bold {colour}")
    return Panel(body, title=title, title_align="left", border_style=colour, padding=(0, 1))


def _part(section: Section) -> Group:
    parts: list[RenderableType] = []
    if section.title:
        parts.append(Rule(_plain(section.title, "bold"), align="left", style="dim", characters="-"))
    if section.rows:
        parts.append(_table(section))
    parts += [_plain(line, "bold") for line in section.lines]
    parts += [_plain(section.note, "dim")] if section.note else []
    return Group(*parts)


def _table(section: Section) -> Table:
    titles = section.columns
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=any(titles))
    for i, title in enumerate(titles):
        table.add_column(
            _plain(title),
            justify="right" if i in section.numbers else "left",
            style="" if i else "cyan",
            min_width=LABEL_WIDTH if i == 0 and len(titles) < 4 else None,  # so that tables of one page line up
            no_wrap=i == 0 or i in section.numbers,
            overflow="fold",
        )
    for row in section.rows:
        table.add_row(*map(_plain, row.cells), style=STYLES[row.style])
    return table


def _plain(words: str, style: str = "") -> Text:
    """Nothing in the name of a column may steer the terminal."""
    return Text(printable(words), style=style)
