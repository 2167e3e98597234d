"""Accepting a signal: stored, matched with the wait it serves, and followed, in one decision."""

from __future__ import annotations

from orbit_sdk.engine import poll
from orbit_sdk.engine.advance import run
from orbit_sdk.engine.commands import AcceptSignal
from orbit_sdk.engine.decision import Refusal
from orbit_sdk.engine.reports import apply_report
from orbit_sdk.engine.shape import Poll
from orbit_sdk.engine.signals import complete_wait, receive
from orbit_sdk.engine.state import Step
from orbit_sdk.engine.turn import Turn


def accept_signal(turn: Turn, command: AcceptSignal) -> Refusal | None:
    """What Pulse stored before this signal comes first; then the signal is judged."""
    for report in sorted(command.reports, key=lambda report: report.stored_at):
        apply_report(turn, report)
    run(turn)
    found = receive(turn, command)
    if isinstance(found, Refusal):
        return found
    if isinstance(found, Step):
        node = turn.node(found)
        signal = turn.pending[-1]
        if isinstance(node.spec, Poll):
            poll.take_receipt(turn, node, found, signal)
        else:
            complete_wait(turn, found, signal)
        run(turn)
    return None
