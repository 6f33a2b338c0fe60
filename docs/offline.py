"""Looks at a built manual: no page may load anything from the network.

Run with: .venv/bin/python docs/offline.py site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

FOREIGN = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
# attributes of which a browser loads the target by itself; a link is followed only by a person
LOADED = {"src", "srcset", "poster", "data"}
LOADED_LINKS = {"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "icon", "manifest"}


class Loads(HTMLParser):
    """The addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found += [value for name, value in given.items() if name in LOADED]
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.found.append(given.get("href", ""))


def foreign(site: Path) -> list[str]:
    """What pages and style sheets load from elsewhere."""
    found = []
    for page in sorted(site.rglob("*.html")):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        found += [f"{page}: {address}" for address in loads.found if FOREIGN.match(address)]
    for sheet in sorted(site.rglob("*.css")):
        addresses = re.findall(r"url\(\s*['\"]?([^'\")]+)", sheet.read_text(encoding="utf-8"))
        imports = re.findall(r"@import\s+['\"]([^'\"]+)", sheet.read_text(encoding="utf-8"))
        found += [f"{sheet}: {address}" for address in addresses + imports if FOREIGN.match(address)]
    return found


def main() -> None:
    site = Path(sys.argv[1])
    if not (site / "index.html").exists():
        sys.exit(f"{site} holds no manual: run make docs")
    if found := foreign(site):
        sys.exit("pages load from the network:\n" + "\n".join(found))
    print(f"{len(list(site.rglob('*.html')))} pages in {site}, nothing loaded from the network")


if __name__ == "__main__":
    main()
