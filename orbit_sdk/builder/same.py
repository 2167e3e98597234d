"""Arms that do the same: found by comparing what they left in the graph, their step keys aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orbit_sdk.builder.arms import End
from orbit_sdk.builder.graph import Draft
from orbit_sdk.builder.refs import Ref, ref_data
from orbit_sdk.builder.trace import Trace
from orbit_sdk.values.canonical import canonical_json

__all__ = ["warn_of_equal_arms"]

Span = tuple[int, int]
"""The nodes of an arm: from which to which draft of the trace."""


def warn_of_equal_arms(trace: Trace, fork: Draft, spans: Sequence[Span], ends: Sequence[End]) -> None:
    """Warn when two arms hold steps and do exactly the same."""
    seen: dict[str, int] = {}
    for number, ((start, stop), end) in enumerate(zip(spans, ends, strict=True), 1):
        if start == stop:
            continue
        first = seen.setdefault(_told(trace.drafts[start:stop], end), number)
        if first != number:
            trace.warn(
                "EQUAL_ARMS",
                fork,
                f"the arms {first} and {number} of {fork.key} do exactly the same",
                "drop one of them, or pass on what makes them differ",
            )
            return


def _told(drafts: Sequence[Draft], end: End) -> str:
    """The arm as a text in which its own steps are numbered."""
    own = {draft.key: f"#{number}" for number, draft in enumerate(drafts)}
    nodes: Any = [
        [
            draft.kind,
            _renamed(draft.body, own),
            [[name, own.get(target.key, "")] for name, target in draft.exits.items() if target.key in own],
            [[own.get(item.draft.key, "-"), item.exit, _renamed(value, own)] for item, value in draft.inputs],
        ]
        for draft in drafts
    ]
    return canonical_json({"nodes": nodes, "value": _value(end.value, own)})


def _value(value: object, own: Mapping[str, str]) -> Any:
    if isinstance(value, Ref):
        return _renamed(ref_data(value).expr, own)
    if isinstance(value, tuple):
        return [_value(one, own) for one in value]
    return repr(value)


def _renamed(value: Any, own: Mapping[str, str]) -> Any:
    """The same JSON, in which references to the arm's own steps carry their numbers."""
    if isinstance(value, dict):
        return {
            name: own.get(part, part) if name == "ref" and isinstance(part, str) else _renamed(part, own)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_renamed(one, own) for one in value]
    return value
