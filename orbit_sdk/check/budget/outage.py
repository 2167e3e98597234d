"""How long a handler must be out of order before a person is asked."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.definition.models import HandlerDecl
from orbit_sdk.definition.nodes import PollNode, Retry, TaskNode, WorkNode
from orbit_sdk.values.defaults import DEFAULTS


def shortest_outage_ms(node: WorkNode, handler: HandlerDecl) -> int | None:
    """The shortest outage after which this step may need a person; None when it never does.

    During an outage every attempt fails at once, with whatever effect its recovery level allows for. 0 means
    that a single attempt with an unknown effect is enough.
    """
    return min(_outages(node, handler), default=None)


def _outages(node: WorkNode, handler: HandlerDecl) -> Iterator[int]:
    asks = isinstance(node, PollNode) or node.on_failure == "REVIEW"
    if asks:
        if node.start_within_ms is not None:
            yield node.start_within_ms
        yield min(pauses_ms(node.retry), _total_ms(node))
    match handler.recovery:
        case "READ_ONLY":
            return
        case "IDEMPOTENT":  # a last attempt that may have had an effect leaves the outcome unknown
            yield min(pauses_ms(node.retry), _total_ms(node))
        case "VERIFIABLE" if handler.verify:
            yield DEFAULTS.verify_within_ms
        case _:
            yield 0


def pauses_ms(retry: Retry) -> int:
    """The shortest time between the first attempt and the end of the last, each failing at once."""
    total = 0
    pause = retry.backoff_ms
    for _ in range(retry.max_attempts - 1):
        total += min(pause, retry.max_backoff_ms) * (100 - retry.jitter_percent) // 100
        pause = min(pause * retry.factor_percent // 100, retry.max_backoff_ms)
    return total


def _total_ms(node: WorkNode) -> int:
    return node.total_timeout_ms if isinstance(node, TaskNode) else node.within_ms
