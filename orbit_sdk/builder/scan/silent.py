"""Misuses that a reference never hears of, because Python asks nobody: found in the function's source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from orbit_sdk.builder.scan.names import Names, own_nodes
from orbit_sdk.builder.scan.references import References
from orbit_sdk.handlers.problems import Place, Problem

__all__ = ["silent_misuses"]

_NOT_RUN = "nothing has run yet"
_CLASS_TESTS: tuple[object, ...] = (isinstance, type, callable)
_TOLD = frozenset({"print", "debug", "info", "warning", "error", "exception", "log"})
"""Calls that show a reference to the author: its repr is what they want."""


def silent_misuses(references: References, names: Names, file: str) -> list[Problem]:
    """All of them, in the order of the source."""
    found: list[tuple[int, int, Problem]] = []
    for one in names.everywhere():
        shown = set(_shown(one))
        for node in own_nodes(one.node):
            for look in _LOOKS:
                for code, what, instead in look(node, one, references):
                    if node in shown:
                        continue
                    line, column = _position(node)
                    place = Place(file, line, column + 1)
                    found.append((line, column, Problem(code, what, instead, place)))
    return [problem for _line, _column, problem in sorted(found, key=lambda item: item[:2])]


_Found = Iterator[tuple[str, str, str]]


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _shown(names: Names) -> Iterator[ast.AST]:
    """What stands in a message for the author: the text of an exception, of `print`, of a log line."""
    for node in own_nodes(names.node):
        told: ast.AST | None = None
        if isinstance(node, ast.Raise):
            told = node
        elif isinstance(node, ast.Assert):
            told = node.msg
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            told = node if name in _TOLD else None
        if told is not None:
            yield from (part for part in ast.walk(told) if isinstance(part, ast.FormattedValue))


def _identity(node: ast.AST, names: Names, references: References) -> _Found:
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    for number, operator in enumerate(node.ops):
        left, right = sides[number], sides[number + 1]
        if not isinstance(operator, ast.Is | ast.IsNot):
            continue
        if not (references.is_ref(left, names) or references.is_ref(right, names)):
            continue
        word = "is" if isinstance(operator, ast.Is) else "is not"
        null = any(isinstance(one, ast.Constant) and one.value is None for one in (left, right))
        yield (
            "IDENTITY",
            f"`{_text(left)} {word} {_text(right)}` compares objects: {_NOT_RUN}; every run gets one answer",
            "use orbit.is_null(ref) as a condition, or orbit.when_some(ref, lambda value: …)"
            if null
            else "write == and give it to orbit.branch, or use orbit.match",
        )


def _class_test(node: ast.AST, names: Names, references: References) -> _Found:
    if not isinstance(node, ast.Call) or not node.args:
        return
    meaning = references.meaning(node.func, names)
    if any(meaning is one for one in _CLASS_TESTS) and references.is_ref(node.args[0], names):
        yield (
            "CLASS_TEST",
            f"`{_text(node)}` asks for the class of a reference: {_NOT_RUN}",
            "use orbit.match on a field that tells the kinds apart",
        )


def _match_statement(node: ast.AST, names: Names, references: References) -> _Found:
    if isinstance(node, ast.Match) and references.is_ref(node.subject, names):
        yield (
            "MATCH_STATEMENT",
            f"a `match` statement looks at `{_text(node.subject)}`: {_NOT_RUN}, and all runs get one case",
            "use orbit.match(value, {case: lambda: …})",
        )


def _shown_text(node: ast.AST, names: Names, references: References) -> _Found:
    if not isinstance(node, ast.FormattedValue) or node.conversion not in (ord("r"), ord("a")):
        return
    if references.is_ref(node.value, names):
        yield (
            "TEXT",
            f"an f-string shows `{_text(node.value)}`: {_NOT_RUN}, so it never holds the value",
            'use orbit.text("…{}", ref) for keys; else compute it in a handler',
        )


def _except(node: ast.AST, names: Names, references: References) -> _Found:
    if isinstance(node, ast.Try | ast.TryStar):
        if not node.handlers or all(_raises(handler) for handler in node.handlers):
            return
        word, body = "`except`", node.body
    elif isinstance(node, ast.With) and any(_suppresses(item, names, references) for item in node.items):
        word, body = "`suppress`", node.body
    else:
        return
    call = _first_declared(body, names, references)
    if call is not None:
        yield (
            "EXCEPT",
            f"an {word} stands around `{_text(call)}`: {_NOT_RUN}, so no failure of a step ever reaches it",
            "use .options(on_failure=lambda failure: …), on_timeout= or on_failed=",
        )


def _raises(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def _suppresses(item: ast.withitem, names: Names, references: References) -> bool:
    if not isinstance(item.context_expr, ast.Call):
        return False
    meaning = references.meaning(item.context_expr.func, names)
    return getattr(meaning, "__qualname__", "") == "suppress"


def _first_declared(body: list[ast.stmt], names: Names, references: References) -> ast.Call | None:
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call) and references.declares(node, names):
            return node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return None


_LOOKS: tuple[Callable[[ast.AST, Names, References], _Found], ...] = (
    _identity,
    _class_test,
    _match_statement,
    _shown_text,
    _except,
)
