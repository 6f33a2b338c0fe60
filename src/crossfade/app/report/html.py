"""Sections of a page, pictures and the frame around them as HTML. All that comes from outside is escaped here."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from pathlib import Path
from typing import Any

from crossfade.app.page import Row, Section
from crossfade.app.words import printable
from crossfade.types import DO_NOT_USE, TRUSTWORTHY, WEAK

HERE = Path(__file__).parent
CLASSES = {TRUSTWORTHY: "trustworthy", WEAK: "weak", DO_NOT_USE: "do-not-use"}
MARKS = {TRUSTWORTHY: "✓", WEAK: "!", DO_NOT_USE: "✕"}  # so that a verdict is seen without its colour


def text(words: str) -> str:
    """Words from anywhere, harmless between tags and in attributes."""
    return escape(printable(words), quote=True)


def section(own: Section) -> str:
    """A part of the page as the terminal shows it."""
    if own.verdict:
        return panel(own)
    parts = [f"<h2>{text(own.title)}</h2>"] if own.title else []
    parts += [table(own)] if own.rows else []
    parts += [f"<p>{text(line)}</p>" for line in own.lines]
    parts += [f'<p class="note">{text(own.note)}</p>'] if own.note else []
    return f"<section>{''.join(parts)}</section>" if parts else ""


def panel(own: Section) -> str:
    """A verdict: its word, and every reason with what to do about it."""
    items = "".join(f"<li>{text(line)}</li>" for line in own.lines)
    mark = f'<span class="mark" aria-hidden="true">{MARKS[own.verdict]}</span>'
    head = f"<h2>{mark} {text(own.title)}</h2>"
    return f'<section class="verdict {CLASSES[own.verdict]}">{head}<ul>{items}</ul></section>'


def table(own: Section) -> str:
    titles = "".join(_head(title, i in own.numbers) for i, title in enumerate(own.columns))
    head = f"<thead><tr>{titles}</tr></thead>" if any(own.columns) else ""
    body = "".join(_row(row, own) for row in own.rows)
    kind = {2: ' class="pairs"', 3: ""}.get(len(own.columns), ' class="wide"')
    inside = f"<table{kind}>{head}<tbody>{body}</tbody></table>"
    return f'<div class="scroll" role="group" tabindex="0" aria-label="{text(own.title or "Table")}">{inside}</div>'


def _head(title: str, right: bool) -> str:
    align = ' class="n"' if right else ""
    return f'<th scope="col"{align}>{text(title)}</th>' if title else f"<td{align}></td>"


def _row(row: Row, own: Section) -> str:
    cells = []
    for i, (cell, _) in enumerate(zip(row.cells, own.columns, strict=True)):
        align = ' class="n"' if i in own.numbers else ""
        tag = 'th scope="row"' if i == 0 and cell else "td"
        cells.append(f"<{tag}{align}>{text(cell)}</{tag[:2]}>")
    style = f' class="{row.style}"' if row.style else ""
    return f"<tr{style}>{''.join(cells)}</tr>"


def folded(title: str, *parts: str) -> str:
    """Out of sight until somebody asks."""
    inside = "".join(parts)
    return f"<details><summary>{text(title)}</summary>{inside}</details>" if inside else ""


def picture(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>"


def data(name: str, content: Any) -> str:
    """Data for the script of the page: JSON in which nothing can end the element that holds it."""
    written = json.dumps(content, allow_nan=False)
    for letter in "<>&\u2028\u2029":
        written = written.replace(letter, f"\\u{ord(letter):04x}")
    return f'<script type="application/json" id="{name}">{written}</script>'


def document(title: str, *parts: str) -> str:
    """The whole page. Its policy lets no request out, and no script run but the one written here."""
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{known}'"
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title><style>{style}</style></head><body><main>",
            *(part for part in parts if part),
            '</main><div id="pointed" hidden></div>',
            f"<script>{script}</script></body></html>",
        ]
    )
