"""Which names of a function change after it is made, because a loop around it sets them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType

from orbit_sdk.builder.scan.sources import function_node, parents_of

__all__ = ["loop_names"]

_LOOPS = (ast.For, ast.AsyncFor)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def loop_names(code: CodeType) -> frozenset[str]:
    """Free names of the function that a loop around it sets."""
    node: ast.AST | None = function_node(code)
    if node is None:
        return frozenset()
    parents = parents_of(code)
    found: set[str] = set()
    while (node := parents.get(node)) is not None:
        if isinstance(node, _LOOPS):
            found.update(_names(node.target))
            for inner in node.body:
                found.update(_assigned(inner))
        elif isinstance(node, _COMPREHENSIONS):
            for part in node.generators:
                found.update(_names(part.target))
        elif isinstance(node, ast.While):
            for inner in node.body:
                found.update(_assigned(inner))
    return frozenset(found) & frozenset(code.co_freevars)


def _names(target: ast.AST) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id


def _assigned(statement: ast.AST) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
