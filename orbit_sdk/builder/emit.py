"""From a finished trace to the document: unused MERGEs dropped, exits named, source places beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orbit_sdk.builder.graph import Draft, OpenExit
from orbit_sdk.builder.trace import Trace
from orbit_sdk.check.diagnostics import Place
from orbit_sdk.handlers.problems import function_place
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.paths import PathPart, field_path

__all__ = ["WHOLE", "document_parts", "read_by", "source_places"]

WHOLE = field_path(())
"""The document itself."""

_FAILURE_EXITS = ("on_failure", "on_timeout", "on_failed")


def document_parts(trace: Trace) -> dict[str, Json]:
    """`types`, `handlers`, `signals`, `start` and `nodes` of the definition."""
    _drop_unused_merges(trace)
    nodes: dict[str, Json] = {draft.key: _node(draft) for draft in trace.drafts}
    return {
        "types": dict(trace.book.types),
        "handlers": {key: _handler(trace, key) for key in trace.handlers},
        "signals": {name: {"body": body} for name, body in trace.signals.items()},
        "start": trace.entry.exits["next"].key,
        "nodes": nodes,
    }


def source_places(trace: Trace, function: object) -> dict[str, Place]:
    """Where each part of the document was written, by JSON path."""
    side: dict[str, Place] = {}
    whole = function_place(function)
    if whole is not None:
        side[WHOLE] = whole
    for draft in trace.drafts:
        if draft.place is not None:
            side[field_path(("nodes", draft.key))] = draft.place
        for number, place in enumerate(draft.case_places):
            last = "otherwise" in draft.exits and number == len(draft.case_places) - 1
            path: tuple[PathPart, ...] = (
                ("nodes", draft.key, "otherwise") if last else ("nodes", draft.key, "cases", number)
            )
            if place is not None:
                side[field_path(path)] = place
    for key, handler in trace.handlers.items():
        place = function_place(handler.__wrapped__)
        if place is not None:
            side[field_path(("handlers", key))] = place
    return side


def _handler(trace: Trace, key: str) -> dict[str, Json]:
    handler = trace.handlers[key]
    parameters, result = trace.handler_schemas[key]
    required: list[Json] = sorted(
        (item.name for item in handler.signature.parameters if item.required), key=str
    )
    declared: dict[str, Json] = {
        "parameters": dict(parameters),
        "required": required,
        "result": result,
        "recovery": handler.recovery.value,
        "verify": handler.can_verify,
    }
    if handler.errors:
        codes: list[Json] = sorted(handler.errors, key=str)
        declared["errors"] = codes
    return declared


def _node(draft: Draft) -> dict[str, Any]:
    node: dict[str, Any] = {"kind": draft.kind, **draft.body}
    if "cases" in node:
        node["cases"] = [dict(case) for case in node["cases"]]
    if draft.kind == "MERGE":
        node["inputs"] = [
            {"from": item.draft.key, "exit": item.exit, "value": value} for item, value in draft.inputs
        ]
    if draft.kind == "PARALLEL":
        assert draft.join is not None
        node["join"] = draft.join.key
        node["arms"] = {}
    for name, target in draft.exits.items():
        if name in _FAILURE_EXITS:
            node[name] = {"next": target.key}
        elif name.startswith("cases."):
            node["cases"][int(name.partition(".")[2])]["next"] = target.key
        elif name.startswith("arms."):
            node["arms"][target.key] = target.key
        else:
            node[name] = target.key
    return node


def _drop_unused_merges(trace: Trace) -> None:
    """A MERGE whose value nobody reads is no node: its edges meet on what follows it."""
    for merge in reversed([draft for draft in trace.drafts if draft.kind == "MERGE"]):
        if any(merge.key in read_by(draft) for draft in trace.drafts if draft is not merge):
            continue
        trace.drafts.remove(merge)
        target = merge.exits["next"]
        for draft in [trace.entry, *trace.drafts]:
            for name, leads_to in draft.exits.items():
                if leads_to is merge:
                    draft.exits[name] = target
        if target.kind == "MERGE":
            target.inputs = list(_instead_of(merge, target))


def _instead_of(merge: Draft, target: Draft) -> Iterator[tuple[OpenExit, dict[str, Json]]]:
    """The inputs of `target` when the edges of a dropped MERGE reach it themselves."""
    for item, value in target.inputs:
        if item.draft is merge:
            for before, _ in merge.inputs:
                yield before, value
        else:
            yield item, value


def read_by(draft: Draft) -> set[str]:
    """The steps whose facts a node reads."""
    found: set[str] = set()
    waiting: list[Any] = [draft.body, *(value for _, value in draft.inputs)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(ref := value.get("ref"), str):
                found.add(ref)
            waiting.extend(part for name, part in value.items() if name != "const")
        elif isinstance(value, list):
            waiting.extend(value)
    return found
