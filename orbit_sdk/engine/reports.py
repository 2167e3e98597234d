"""Consuming what Pulse stored about a task: the inbox side of a workflow."""

from __future__ import annotations

from orbit_sdk.engine.commands import TaskReport
from orbit_sdk.engine.poll import apply_to_poll
from orbit_sdk.engine.shape import Poll
from orbit_sdk.engine.tasks import apply_to_task, take_report
from orbit_sdk.engine.turn import Turn


def apply_report(turn: Turn, report: TaskReport) -> bool:
    """Applies a report once; false when it is stale (and then nothing changed)."""
    step = turn.find(report.activation_id)
    if step is None:
        return False
    booked = take_report(turn, step, report)
    if booked is None:
        return False
    if isinstance(turn.node(step).spec, Poll):
        apply_to_poll(turn, booked, report)
    else:
        apply_to_task(turn, booked, report)
    return True
