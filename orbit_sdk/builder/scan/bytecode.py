"""The same silent misuses in a function whose source is not at hand: read from its bytecode.

Only what is asked of the input itself, or of its fields, is recognised.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType

from orbit_sdk.handlers.problems import Place, Problem

__all__ = ["silent_in_bytecode"]

_LOADS = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_CLASSDEREF")
_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_FAST_MAYBE_NULL")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_NULL_JUMPS = ("POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")
_NOISE = ("CACHE", "EXTENDED_ARG", "NOP", "RESUME", "COPY", "PRECALL", "NOT_TAKEN", "KW_NAMES")
_FORMATTED = 0x03
_AS_REPR = (2, 3)


def silent_in_bytecode(code: CodeType, name: str) -> list[Problem]:
    """Identity, `match` patterns and `!r` on the input, in the function and those in it."""
    found: list[Problem] = []
    steps = [
        step for step in dis.get_instructions(code) if step.opname.partition("_FORWARD")[0] not in _NOISE
    ]
    if any(step.opname in _STORES and step.argval == name for step in steps):
        return []  # the name means something else later
    for number, step in enumerate(steps):
        told = _misuse(step, steps[:number], name)
        if told is not None:
            found.append(Problem(*told, _place(code, step)))
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and name not in constant.co_varnames:
            found.extend(silent_in_bytecode(constant, name))
    return found


def _misuse(
    step: dis.Instruction, before: Sequence[dis.Instruction], name: str
) -> tuple[str, str, str] | None:
    kind = step.opname.replace("_FORWARD", "").replace("_BACKWARD", "")
    if kind in _NULL_JUMPS and _is_input(before, name):
        return (
            "IDENTITY",
            f"a part of {name!r} is compared with None by `is`: nothing has run yet",
            "use orbit.is_null(ref), or orbit.when_some(ref, lambda value: …)",
        )
    if kind == "IS_OP" and (_is_input(before, name) or _is_input(_without_last(before), name)):
        return (
            "IDENTITY",
            f"a part of {name!r} is compared by `is`: nothing has run yet",
            "write == and give it to orbit.branch, or use orbit.match or orbit.is_null",
        )
    if kind in ("MATCH_MAPPING", "MATCH_SEQUENCE") and _is_input(before, name):
        return (
            "MATCH_STATEMENT",
            f"a `match` statement looks at a part of {name!r}: nothing has run yet",
            "use orbit.match(value, {case: lambda: …})",
        )
    shown = (kind == "FORMAT_VALUE" and ((step.arg or 0) & _FORMATTED) in _AS_REPR) or (
        kind == "CONVERT_VALUE" and step.arg in _AS_REPR
    )
    if shown and _is_input(before, name):
        return (
            "TEXT",
            f"an f-string shows a part of {name!r}: nothing has run yet",
            'use orbit.text("…{}", ref) for keys; else compute it in a handler',
        )
    return None


def _without_last(before: Sequence[dis.Instruction]) -> Sequence[dis.Instruction]:
    """What came before the name or constant (and its attributes) that was loaded last."""
    position = len(before) - 1
    while position >= 0 and before[position].opname in _ATTRIBUTES:
        position -= 1
    return before[: max(position, 0)]


def _is_input(before: Sequence[dis.Instruction], name: str) -> bool:
    """Whether the value made last is the input, or a field of a field of it."""
    position = len(before) - 1
    while position >= 0 and before[position].opname in _ATTRIBUTES:
        position -= 1
    return position >= 0 and before[position].opname in _LOADS and before[position].argval == name


def _place(code: CodeType, step: dis.Instruction) -> Place:
    line, column = code.co_firstlineno, 0
    if step.positions is not None and step.positions.lineno is not None:
        line, column = step.positions.lineno, step.positions.col_offset or 0
    return Place(code.co_filename, line, column + 1)
