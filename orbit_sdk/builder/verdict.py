"""The offline check at the end of every compile: the same code that guards publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orbit_sdk.builder.emit import read_by
from orbit_sdk.builder.graph import Draft
from orbit_sdk.builder.trace import Trace
from orbit_sdk.check import check_definition
from orbit_sdk.check.diagnostics import Diagnostic, Place, Severity
from orbit_sdk.definition.models import Definition
from orbit_sdk.handlers.problems import BuildError, Problem
from orbit_sdk.handlers.recovery import Recovery
from orbit_sdk.values.paths import field_path

__all__ = ["judge", "own_warnings"]


def judge(definition: Definition, side: Mapping[str, Place]) -> tuple[Diagnostic, ...]:
    """The warnings of the check. Raises BuildError with its errors."""
    found = tuple(check_definition(definition, side=side))
    errors = [one for one in found if one.is_error]
    if errors:
        raise BuildError([Problem(one.code, one.message, one.help, one.place, one.related) for one in errors])
    return found


def own_warnings(trace: Trace) -> Iterator[Diagnostic]:
    """What only the builder knows: arms that are equal, answers that nobody can reach."""
    for code, draft, found, instead in trace.warnings:
        yield _warning(code, draft, found, instead)
    read = {key for draft in trace.drafts for key in read_by(draft)}
    for draft in trace.drafts:
        if draft.kind != "TASK" or draft.key in read:
            continue
        handler = draft.body["handler"]
        gives_nothing = trace.handler_schemas[handler][1] == {"type": "null"}
        if trace.handlers[handler].recovery is Recovery.READ_ONLY and not gives_nothing:
            found = f"{draft.key} only asks, and nothing uses its answer"
            yield _warning(
                "UNUSED_RESULT", draft, found, "use the result, return it from its arm, or drop the step"
            )


def _warning(code: str, draft: Draft, found: str, instead: str) -> Diagnostic:
    path = field_path(("nodes", draft.key))
    return Diagnostic(code, Severity.WARNING, draft.key, path, found, instead, place=draft.place)
