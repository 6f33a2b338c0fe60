"""Every sentence that can be a reason of a verdict, read from the source: `…` stands for what is filled in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "crossfade"
GAP = "…"
DOCTOR = SOURCE / "doctor"  # has findings of its own, which are no reasons of a verdict


def reasons() -> dict[str, str]:
    """The first sentence of each reason, and where it is made."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if DOCTOR not in path.parents:
            for line, text in _in_file(ast.parse(path.read_text(encoding="utf-8"))):
                found[first_sentence(text)] = f"{path.relative_to(SOURCE)}:{line}"
    return found


def first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


def _in_file(tree: ast.Module) -> Iterator[tuple[int, str]]:
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for function in functions.values():
        for node in ast.walk(function):
            for text in _given(node):
                for said in _texts(text, function, functions):
                    if said != GAP:  # an error's own message
                        yield node.lineno, said


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """What a call gives as a reason: the text of a Finding, what a result's reasons get, why there is no answer."""
    if not isinstance(node, ast.Call):
        return
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name == "Finding":
        yield node.args[1]
    elif name == "unanswered":
        yield node.args[2]
    elif name == "_replace":
        for keyword in node.keywords:
            if keyword.arg == "reasons" and isinstance(keyword.value, ast.Tuple):
                yield from (own for own in keyword.value.elts if not isinstance(own, ast.Starred))


def _texts(node: ast.expr, function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[str]:
    """All that an expression can say: names are followed to where they were last set, calls to what they return."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        texts = [""]
        for part in node.values:
            if isinstance(getattr(part, "value", None), ast.Attribute) and part.value.attr == "text":
                return []  # another finding, which was met where it was made
            whole = (
                isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.format_spec is None
            )
            own = _texts(part.value if whole else part, function, functions)
            texts = [before + after for before in texts for after in own]
        return texts
    if isinstance(node, ast.Name):
        return _last_set(node, function, functions) or [GAP]
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions:
        called = functions[node.func.id]
        returned = [own.value for own in ast.walk(called) if isinstance(own, ast.Return) and own.value is not None]
        return [text for own in returned for text in _texts(own, called, functions)]
    return [GAP]


def _last_set(name: ast.Name, function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[str]:
    before = [
        own
        for own in ast.walk(function)
        if isinstance(own, ast.Assign) and own.lineno < name.lineno and getattr(own.targets[0], "id", "") == name.id
    ]
    if not before:
        return []
    value = max(before, key=lambda own: own.lineno).value
    if not isinstance(value, ast.Constant | ast.JoinedStr):
        return []
    return _texts(value, function, functions)
