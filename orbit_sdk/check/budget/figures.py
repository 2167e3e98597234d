"""The budget of one definition: every figure worked out, and written as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from orbit_sdk.check.budget.outage import shortest_outage_ms
from orbit_sdk.check.budget.totals import most
from orbit_sdk.check.checking import sound_view
from orbit_sdk.check.view import View
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import DelayNode, PollNode, TaskNode, UntilNode, WaitNode


@dataclass(frozen=True, slots=True)
class HandlerBudget:
    """What one instance asks of a handler at most.

    Args:
        calls: separate pieces of work: one per TASK, one per round of a POLL.
        attempts: how often it is run, all retries counted.
        rounds: rounds of POLLs.
        outage_ms: the shortest outage after which a person may be needed; None when that never happens.
    """

    calls: int
    attempts: int
    rounds: int
    outage_ms: int | None


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one definition.

    Args:
        longest_ms: from start to end at most, without the time that people take for reviews.
        human_wait_ms: the most that is waited for signals on the way.
        open_timers: steps that wait until an instant from data; their time is in no figure.
        handlers: by handler key.
    """

    id: str
    version: int
    longest_ms: int
    human_wait_ms: int
    open_timers: tuple[str, ...]
    handlers: dict[str, HandlerBudget]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "open_timers": list(self.open_timers)}


def budget_of(definition: Definition) -> Budget:
    """The budget of a definition with a sound structure; InvalidArgument with its faults otherwise."""
    view = sound_view(definition)
    nodes = definition.nodes
    return Budget(
        definition.id,
        definition.version,
        most(view, lambda key: _duration_ms(view, key), max),
        most(view, lambda key: _signal_wait_ms(view, key), max),
        tuple(sorted(key for key, node in nodes.items() if isinstance(node, UntilNode))),
        {handler: _handler_budget(view, handler) for handler in sorted(definition.handlers)},
    )


def _handler_budget(view: View, handler: str) -> HandlerBudget:
    users = {
        key: node
        for key, node in view.nodes.items()
        if isinstance(node, TaskNode | PollNode) and node.handler == handler
    }
    calls = {key: node.max_rounds if isinstance(node, PollNode) else 1 for key, node in users.items()}
    attempts = {key: calls[key] * node.retry.max_attempts for key, node in users.items()}
    rounds = {key: calls[key] for key, node in users.items() if isinstance(node, PollNode)}
    declared = view.definition.handlers[handler]
    outages = [shortest_outage_ms(node, declared) for node in users.values()]
    return HandlerBudget(
        most(view, lambda key: calls.get(key, 0), sum),
        most(view, lambda key: attempts.get(key, 0), sum),
        most(view, lambda key: rounds.get(key, 0), sum),
        min((outage for outage in outages if outage is not None), default=None),
    )


def _duration_ms(view: View, key: str) -> int:
    match view.nodes[key]:
        case TaskNode() as node:
            return node.total_timeout_ms
        case PollNode() as node:
            return node.within_ms
        case WaitNode() as node:
            return node.timeout_ms
        case DelayNode() as node:
            return node.delay_ms
        case _:
            return 0


def _signal_wait_ms(view: View, key: str) -> int:
    node = view.nodes[key]
    return node.timeout_ms if isinstance(node, WaitNode) else 0
