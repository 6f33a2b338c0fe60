"""Pages of the manual as what they are made of: blocks that run, files, and what is printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import command_line

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
PRINTS = "prints"  # the title of a block that shows what the block above it prints
SECONDS = re.compile(r"\b\d+(\.\d+)? s\b")


class Block(NamedTuple):
    """A fenced block: its language, its title, and what is in it."""

    language: str
    title: str
    text: str
    line: int  # of the page, at which its text begins


def blocks(page: Path) -> list[Block]:
    found = []
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        title = re.search(r'title="([^"]*)"', match["rest"])
        text = re.sub(f"^{match['indent']}", "", match["text"], flags=re.M)
        line = match.string.count("\n", 0, match.start("text"))
        found.append(Block(match["language"], title[1] if title else "", text, line))
    return found


def run(page: Path, folder: Path) -> dict:
    """Every block of a page, one after the other, in a folder that holds the data sets; its names afterwards."""
    for table in (ROOT / "src" / "crossfade" / "data").glob("*.csv"):
        shutil.copy(table, folder)
    names: dict = {"__name__": page.stem}
    printed = ""
    for block in blocks(page):
        if block.language == "python" and block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")  # a file that later commands read
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            printed = out.getvalue()
        elif block.language == "sh":
            printed = "\n".join(map(_run, commands(block.text)))
        elif block.title == PRINTS:
            _check_printed(block.text, printed)
    return names


def commands(text: str) -> list[list[str]]:
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def _run(words: list[str]) -> str:
    assert words[0] == "crossfade", f"{words[0]} is not run here: mark the block as text"
    ran = command_line.run(*words[1:])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    assert ran.exit_code == 0, f"{shlex.join(words)}: exit code {ran.exit_code}\n{ran.output}"
    return ran.output


def _check_printed(shown: str, printed: str) -> None:
    """Every line that a page shows is printed, in this order; `...` stands for what is left out."""
    rest = plain(printed)
    for line in map(plain, shown.splitlines()):
        if line != "...":
            assert line in rest, f"the page shows {line!r}, and what is printed is\n{printed}"
            rest = rest[rest.index(line) + len(line) :]


def plain(text: str) -> str:
    """Without what differs between machines: line breaks of the page, and seconds."""
    return SECONDS.sub("s", " ".join(text.split()))
