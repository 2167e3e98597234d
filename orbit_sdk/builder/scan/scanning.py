"""One look at one workflow function: by its source, or by its bytecode where there is none."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from orbit_sdk.builder.scan.bytecode import silent_in_bytecode
from orbit_sdk.builder.scan.names import names_of, uses_of
from orbit_sdk.builder.scan.references import References, Words
from orbit_sdk.builder.scan.silent import silent_misuses
from orbit_sdk.builder.scan.sources import function_node
from orbit_sdk.handlers.problems import Problem, shorten

__all__ = ["scan"]


def scan(function: Any, words: Words) -> list[Problem]:
    """Every silent misuse in a workflow function and the functions in it, in the order of the source."""
    if not isinstance(function, FunctionType):
        return []
    node = function_node(function.__code__)
    if node is None:
        return silent_in_bytecode(function.__code__, function.__code__.co_varnames[0])
    names = names_of(node)
    references = References(words, node, _outside_of(function), uses_of(names))
    return silent_misuses(references, names, shorten(function.__code__.co_filename))


def _outside_of(function: FunctionType) -> dict[str, Any]:
    """What the global and free names of a function mean now."""
    cells: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    return {**function.__globals__, **cells}
