"""A figure as SVG inside a page: no ids but those that are used, nothing from elsewhere, words under the pointer."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as Tree

from crossfade.app.plots.style import STRIP, TIP, as_svg

URL = re.compile(r"url\(#([^)]+)\)")
DROPPED = {"metadata", "style"}  # who made it and when; a style sheet that would hold for the whole page


def inline(figure: Any, prefix: str, label: str) -> str:
    """The figure as one <svg> element; `prefix` begins all its ids, so that two of them may be on one page."""
    root = Tree.fromstring(as_svg(figure, prefix))
    used = {name for node in root.iter() for name in _references(node)}
    _clean(root, prefix, used)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.set("role", "group")
    root.set("aria-label", label)
    first = True
    for node in root.iter():
        if (words := node.attrib.pop("data-tip", None)) is not None:
            # One stop of the tab key for each picture; the arrow keys go from there.
            node.attrib |= {"role": "img", "aria-label": words, "tabindex": "0" if first else "-1"}
            title = Tree.Element("title")
            title.text = words
            node.insert(0, title)
            first = False
    return Tree.tostring(root, encoding="unicode", short_empty_elements=False)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _references(node: Any) -> list[str]:
    found = [name for value in node.attrib.values() for name in URL.findall(value)]
    return found + [v[1:] for k, v in node.attrib.items() if _local(k) == "href" and v.startswith("#")]


def _clean(node: Any, prefix: str, used: set[str]) -> None:
    """Without name spaces, which a page does not need, and with ids of its own."""
    node.tag = _local(node.tag)
    given = {_local(name): value for name, value in node.attrib.items()}
    own: dict[str, str] = {}
    for name, value in given.items():
        if name == "id":
            if value.startswith((TIP, STRIP)):
                own["data-tip"] = value.removeprefix(TIP).removeprefix(STRIP)
                own["class"] = "tip" if value.startswith(TIP) else "tip strip"
            elif value in used:
                own["id"] = prefix + value
        elif name == "href" and value.startswith("#"):
            own["href"] = f"#{prefix}{value[1:]}"
        else:
            own[name] = URL.sub(rf"url(#{prefix}\1)", value)
    node.attrib.clear()
    node.attrib.update(own)
    for child in list(node):
        if _local(child.tag) in DROPPED:
            node.remove(child)
        else:
            _clean(child, prefix, used)
