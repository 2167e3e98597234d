"""`orbit export`: everything that is stored of a workflow, as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import wire
from orbit_sdk.errors import PermissionDenied

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit

__all__ = ["export"]

_PAGE = 100


@command("orbit export key:A-17 > A-17.jsonl", "orbit export 0198a6f2c1f07d0c8a4e5b6c7d8e9f00")
def export(workflow: WorkflowId, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Write everything that is stored of a workflow, one JSON object per line.

    `record` says what a line is: workflow, step, activation, round, task, attempt, signal, operation, event.

    What the credential may not read is named by a record `left_out`. Retention takes finished workflows
    away: what has to be kept for longer is exported before.
    """
    out = Output(json=json)
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        for record, value in _everything(client, found):
            out.event({"record": record, **value})
            if record == "left_out":
                out.note(f"{value['what']} left out: {value['reason']}", "yellow")


def _everything(client: Orbit, found: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "workflow", wire(client.workflows.get(found))
    for step in client.workflows.steps(found).items:
        yield "step", wire(step)
        if step.activation_no:
            for activation in client.workflows.activations(found, step.key):
                yield "activation", {"key": step.key, **wire(activation)}
            if step.round:
                for each in client.workflows.rounds(found, step.key):
                    yield "round", {"key": step.key, **wire(each)}
    for summary in client.tasks.list(workflow_id=found):
        yield "task", wire(client.tasks.get(summary.id))
        for attempt in client.tasks.attempts(summary.id):
            yield "attempt", {"task_id": summary.id, **wire(attempt)}
    for signal in client.workflows.signals(found):
        yield "signal", wire(client.workflows.signal_detail(found, signal.id))
    yield from _if_allowed("operation", "operations", lambda: client.workflows.operations(found))
    yield from _if_allowed("event", "events", lambda: _events(client, found))


def _if_allowed(
    record: str, what: str, read: Callable[[], Iterable[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        for value in read():
            yield record, wire(value)
    except PermissionDenied as error:
        yield "left_out", {"what": what, "reason": error.message}


def _events(client: Orbit, found: str) -> Iterator[Any]:
    cursor: str | None = None
    while True:
        page = client.list_workflow_events(found, limit=_PAGE, cursor=cursor)
        for summary in page.items:
            yield client.get_workflow_event(found, summary.id)
        cursor = page.next_cursor
        if cursor is None:
            return
