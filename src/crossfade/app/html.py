"""Pages in a notebook: one piece of HTML without scripts, style sheets or anything from elsewhere.

Colours of text are the notebook's own, so that the page can be read on light and on dark ground.
"""

from __future__ import annotations

from html import escape

from crossfade.app.page import BAD, FAINT, STRONG, Row, Section, page
from crossfade.types import DO_NOT_USE, TRUSTWORTHY, WEAK, Result

COLOURS = {TRUSTWORTHY: "#2e9e5b", WEAK: "#d99a00", DO_NOT_USE: "#e0433a"}
STYLES = {"": "", STRONG: "font-weight:bold;", FAINT: "opacity:0.6;", BAD: "font-weight:bold;"}
CELL = "padding:1px 14px 1px 0;border:none;background:none;vertical-align:top;"


def fragment(result: Result) -> str:
    """The page of a result."""
    return pieces(page(result))


def pieces(sections: tuple[Section, ...]) -> str:
    """Any page."""
    body = "".join(_panel(section) if section.verdict else _part(section) for section in sections)
    return f'<div style="max-width:60em;line-height:1.4">{body}</div>'


def _panel(section: Section) -> str:
    lines = "".join(f"<div>{escape(line)}</div>" for line in section.lines)
    colour = COLOURS[section.verdict]
    style = f"border-left:5px solid {colour};padding:2px 0 2px 10px;margin:8px 0"
    return f'<div style="{style}"><div><b>{escape(section.title)}</b></div>{lines}</div>'


def _part(section: Section) -> str:
    parts = []
    if section.title:
        parts.append(f'<div style="margin-top:8px"><b>{escape(section.title)}</b></div>')
    if section.rows:
        head = _row(Row(section.columns, FAINT), section) if any(section.columns) else ""
        body = head + "".join(_row(row, section) for row in section.rows)
        parts.append(f'<table style="border:none;border-collapse:collapse;margin:0">{body}</table>')
    parts += [f"<div>{escape(line)}</div>" for line in section.lines]
    parts += [f'<div style="opacity:0.6;margin-top:8px">{escape(section.note)}</div>'] if section.note else []
    return "".join(parts)


def _row(row: Row, section: Section) -> str:
    cells = []
    for i, (cell, _) in enumerate(zip(row.cells, section.columns, strict=True)):
        faint = "opacity:0.75;" if i == 0 and not row.style else ""
        align = "right" if i in section.numbers else "left"
        cells.append(f'<td style="{CELL}text-align:{align};{STYLES[row.style]}{faint}">{escape(cell)}</td>')
    return f'<tr style="background:none">{"".join(cells)}</tr>'
