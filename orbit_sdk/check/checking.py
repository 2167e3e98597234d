"""The one entry: all findings about a definition, in one go."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.check.diagnostics import Diagnostic, SideTable, order_of
from orbit_sdk.check.rule import Rule
from orbit_sdk.check.rules import ALWAYS, CONNECTED, NESTED, TYPED, references
from orbit_sdk.check.view import View
from orbit_sdk.definition.models import Definition
from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits

_LEADING = frozenset(
    found.code for found in (references.start_missing, references.step_missing, references.join_missing)
)
"""Codes that make every statement about the graph as a whole meaningless."""

_NAMING = frozenset(found.code for found in references.RULES)


def check_definition(
    definition: Definition, limits: Limits = DEFAULT_LIMITS, side: SideTable | None = None
) -> tuple[Diagnostic, ...]:
    """Every finding, errors first, always in the same order.

    A server calls this with its own limits, a builder with the source places of what it wrote. Data flow,
    types and signals are judged only where references, graph and structure are sound, so that one fault is
    told once.
    """
    view = View(definition, limits)
    found = _run(ALWAYS, view, side)
    codes = {diagnostic.code for diagnostic in found}
    sound = not codes & _LEADING
    if sound:
        found += _run(CONNECTED, view, side)
    if sound and view.graph.is_acyclic:
        inside = _run(NESTED, view, side)
        found += inside
        sound = not inside and not any(diagnostic.code in _CONNECTED for diagnostic in found)
        if sound and not codes & _NAMING:
            found += _run(TYPED, view, side)
    return tuple(sorted(found, key=order_of))


_CONNECTED = frozenset(found.code for found in CONNECTED)


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those that forbid publication."""
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.is_error)


def _run(rules: Iterable[Rule[View]], view: View, side: SideTable | None) -> list[Diagnostic]:
    return [diagnostic for each in rules for diagnostic in each.run(view, side)]
