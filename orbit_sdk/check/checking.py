"""The one entry: all findings about a definition, in one go."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.check.diagnostics import Diagnostic, SideTable, order_of
from orbit_sdk.check.rule import Rule
from orbit_sdk.check.rules import ALWAYS, CONNECTED, NESTED, TYPED, graph, references
from orbit_sdk.check.view import View
from orbit_sdk.definition.models import Definition
from orbit_sdk.errors import Detail, InvalidArgument
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


def sound_view(definition: Definition, limits: Limits = DEFAULT_LIMITS) -> View:
    """The view of a definition whose references, graph and nesting are sound, whatever its types are.

    What is drawn or counted needs no more. Raises InvalidArgument with the faults otherwise.
    """
    view = View(definition, limits)
    found = _run((*references.RULES, graph.graph_cycle), view, None)
    if not any(diagnostic.is_error for diagnostic in found):
        found += _run((*CONNECTED, *NESTED), view, None)
    refused = refusal(sorted(found, key=order_of))
    if refused is not None:
        raise refused
    return view


_CONNECTED = frozenset(found.code for found in CONNECTED)


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those that forbid publication."""
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.is_error)


def refusal(diagnostics: Iterable[Diagnostic]) -> InvalidArgument | None:
    """The error that answers a publication with these findings; None when none of them is an error."""
    errors = list(errors_of(diagnostics))
    if not errors:
        return None
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    details = [Detail(each.json_path, f"{each.code}: {each.message} {each.help}") for each in errors]
    return InvalidArgument(f"the definition is not valid: {errors[0].message}{more}", details)


def _run(rules: Iterable[Rule[View]], view: View, side: SideTable | None) -> list[Diagnostic]:
    return [diagnostic for each in rules for diagnostic in each.run(view, side)]
