"""The syntax tree of a function that was already compiled, with the lines of its own file."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType
from typing import TypeAlias

__all__ = ["FunctionNode", "function_node", "parents_of"]

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Index: TypeAlias = Mapping[tuple[str, int], list[FunctionNode]]


def function_node(code: CodeType) -> FunctionNode | None:
    """The node that a code object was compiled from; None when the source is not at hand, or is another."""
    found = _file(code)
    if found is None:
        return None
    nodes = found[0].get((code.co_name, code.co_firstlineno), [])
    if len(nodes) == 1:
        return nodes[0]
    inside = _span(code)
    return next((node for node in nodes if inside is not None and _holds(node, inside)), None)


def parents_of(code: CodeType) -> Mapping[ast.AST, ast.AST]:
    """For each node of the file, the one around it."""
    found = _file(code)
    return found[1] if found is not None else {}


def _file(code: CodeType) -> tuple[_Index, Mapping[ast.AST, ast.AST]] | None:
    name = code.co_filename
    if not name.startswith("<"):
        linecache.checkcache(name)
    text = "".join(linecache.getlines(name))
    return _read(name, text) if text else None


@lru_cache(maxsize=64)
def _read(_name: str, text: str) -> tuple[_Index, Mapping[ast.AST, ast.AST]] | None:
    """Functions by name and first line, and the parent of every node."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    index: dict[tuple[str, int], list[FunctionNode]] = {}
    parents: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            parents[child] = node
        if isinstance(node, ast.Lambda):
            index.setdefault(("<lambda>", node.lineno), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            index.setdefault((node.name, first), []).append(node)
    return index, parents


def _span(code: CodeType) -> tuple[int, int] | None:
    """The first position (line, column) that some instruction of the code has."""
    found = [
        (line, column)
        for line, _end, column, _last in code.co_positions()
        if line is not None and column is not None and (line, column) != (code.co_firstlineno, 0)
    ]
    return min(found) if found else None


def _holds(node: FunctionNode, position: tuple[int, int]) -> bool:
    body = node.body if isinstance(node, ast.Lambda) else node
    end = (body.end_lineno or body.lineno, body.end_col_offset or 0)
    return (body.lineno, body.col_offset) <= position < end
