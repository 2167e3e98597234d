"""Figures: product limits, which a server may have lowered, and figures that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.diagnostics import Path, Severity
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.definition.nodes import DelayNode, PollNode, TaskNode, WaitNode


@rule(
    "TOO_MANY_NODES",
    remedy="Split the workflow: let a handler start the second one and wait for its signal.",
)
def too_many_nodes(view: View) -> Iterator[Finding]:
    """The definition has more nodes than the limit."""
    if len(view.nodes) > view.limits.nodes:
        yield Finding(
            ("nodes",), f"There are {len(view.nodes)} nodes; the limit is {view.limits.nodes} nodes."
        )


@rule(
    "DOCUMENT_TOO_LARGE",
    remedy="Move large constants into what a handler reads, or split the workflow.",
)
def document_too_large(view: View) -> Iterator[Finding]:
    """The document is larger than the limit."""
    # The canonical form spells numbers differently, never twice as long; making it is slow.
    roughly = len(view.definition.model_dump_json(by_alias=True, exclude_unset=True).encode())
    if 2 * roughly <= view.limits.document_bytes:
        return
    size = len(view.definition.canonical())
    if size > view.limits.document_bytes:
        yield Finding((), f"The document has {size} bytes; the limit is {view.limits.document_bytes} bytes.")


@rule(
    "TOO_MANY_ARMS",
    remedy="Let one handler do the work of several arms, or nest PARALLELs.",
)
def too_many_arms(view: View) -> Iterator[Finding]:
    """A PARALLEL has more arms than the limit."""
    for key, node in view.parallels.items():
        if len(node.arms) > view.limits.arms:
            yield Finding(
                ("nodes", key, "arms"),
                f"PARALLEL '{key}' has {len(node.arms)} arms; the limit is {view.limits.arms} arms.",
            )


@rule(
    "NESTED_TOO_DEEP",
    remedy="Put the inner arms' work one after the other, or into one handler.",
)
def nested_too_deep(view: View) -> Iterator[Finding]:
    """PARALLELs are nested deeper than the limit."""
    if not view.graph.is_acyclic:
        return
    for key in view.parallels:
        depth = len(view.regions.of.get(key, ())) + 1
        if depth == view.limits.nesting + 1:
            yield Finding(
                ("nodes", key),
                f"PARALLEL '{key}' has nesting depth {depth}; the limit is {view.limits.nesting}.",
            )


@rule(
    "TOO_MANY_ATTEMPTS",
    remedy="Lower `retry.max_attempts`.",
)
def too_many_attempts(view: View) -> Iterator[Finding]:
    """A step may be tried more often than the limit."""
    for key, node in view.nodes.items():
        if isinstance(node, TaskNode | PollNode) and node.retry.max_attempts > view.limits.attempts:
            yield Finding(
                ("nodes", key, "retry", "max_attempts"),
                f"'{key}' allows max_attempts {node.retry.max_attempts}; "
                f"the limit is {view.limits.attempts}.",
            )


@rule(
    "TOO_MANY_ROUNDS",
    remedy="Lower `max_rounds` and ask less often.",
)
def too_many_rounds(view: View) -> Iterator[Finding]:
    """A POLL may ask more rounds than the limit."""
    for key, node in view.nodes.items():
        if isinstance(node, PollNode) and node.max_rounds > view.limits.rounds:
            yield Finding(
                ("nodes", key, "max_rounds"),
                f"'{key}' allows max_rounds {node.max_rounds}; the limit is {view.limits.rounds}.",
            )


@rule(
    "TOO_MANY_QUESTIONS",
    remedy="Lower `max_rounds` or `retry.max_attempts`.",
)
def too_many_questions(view: View) -> Iterator[Finding]:
    """The rounds of a POLL times the attempts of each are more than the limit."""
    most = view.limits.attempts_over_rounds
    for key, node in view.nodes.items():
        if isinstance(node, PollNode) and node.max_rounds * node.retry.max_attempts > most:
            total = node.max_rounds * node.retry.max_attempts
            yield Finding(
                ("nodes", key, "max_rounds"),
                f"'{key}' allows max_rounds × max_attempts = {total}; the limit is {most}.",
                related=((("nodes", key, "retry", "max_attempts"), "attempts of each round"),),
            )


@rule(
    "TIME_TOO_LONG",
    remedy="Shorten the time.",
)
def time_too_long(view: View) -> Iterator[Finding]:
    """A wait, a poll, a timer or a task may take longer than the limit."""
    for path, duration, limit in _times(view):
        if duration > limit:
            yield Finding(path, f"{path[-1]} of '{path[1]}' is {duration} ms; the limit is {limit} ms.")


def _times(view: View) -> Iterator[tuple[Path, int, int]]:
    limits = view.limits
    for key, node in view.nodes.items():
        match node:
            case TaskNode():
                yield ("nodes", key, "total_timeout_ms"), node.total_timeout_ms, limits.total_ms
            case WaitNode():
                yield ("nodes", key, "timeout_ms"), node.timeout_ms, limits.wait_ms
            case PollNode():
                yield ("nodes", key, "within_ms"), node.within_ms, limits.poll_ms
            case DelayNode():
                yield ("nodes", key, "delay_ms"), node.delay_ms, limits.wait_ms
            case _:
                continue


@rule(
    "ATTEMPT_OUTLASTS_TOTAL",
    remedy="Lower `attempt_timeout_ms` or raise the step's total time.",
)
def attempt_outlasts_total(view: View) -> Iterator[Finding]:
    """One attempt may take longer than the whole step."""
    for key, node in view.nodes.items():
        if not isinstance(node, TaskNode | PollNode):
            continue
        total, name = _total(node)
        if node.attempt_timeout_ms > total:
            yield Finding(
                ("nodes", key, "attempt_timeout_ms"),
                f"attempt_timeout_ms of '{key}' is {node.attempt_timeout_ms}, longer than {name} {total}.",
            )


@rule(
    "START_OUTLASTS_TOTAL",
    remedy="Lower `start_within_ms` or raise the step's total time.",
)
def start_outlasts_total(view: View) -> Iterator[Finding]:
    """A step may start later than its total time allows it to run."""
    for key, node in view.nodes.items():
        if not isinstance(node, TaskNode | PollNode):
            continue
        total, name = _total(node)
        if node.start_within_ms is not None and node.start_within_ms > total:
            yield Finding(
                ("nodes", key, "start_within_ms"),
                f"start_within_ms of '{key}' is {node.start_within_ms}, longer than {name} {total}.",
            )


def _total(node: TaskNode | PollNode) -> tuple[int, str]:
    if isinstance(node, TaskNode):
        return node.total_timeout_ms, "total_timeout_ms"
    return node.within_ms, "within_ms"


@rule(
    "POLL_INTERVAL_TOO_LONG",
    remedy="Lower `every_ms` or raise `within_ms`.",
)
def poll_interval_too_long(view: View) -> Iterator[Finding]:
    """A POLL waits longer between two rounds than it may take altogether."""
    for key, node in view.nodes.items():
        if isinstance(node, PollNode) and node.every_ms > node.within_ms:
            yield Finding(
                ("nodes", key, "every_ms"),
                f"every_ms of '{key}' is {node.every_ms}, longer than within_ms {node.within_ms}.",
            )


@rule(
    "POLL_ROUNDS_UNEVEN",
    severity=Severity.WARNING,
    remedy="Bring `max_rounds` close to `within_ms` / `every_ms`, so that one limit clearly ends the POLL.",
)
def poll_rounds_uneven(view: View) -> Iterator[Finding]:
    """The rounds of a POLL and the rounds that fit into its time differ by more than a factor of two."""
    for key, node in view.nodes.items():
        if not isinstance(node, PollNode) or node.every_ms > node.within_ms:
            continue
        more = node.max_rounds * node.every_ms > 2 * node.within_ms
        less = 2 * node.max_rounds * node.every_ms < node.within_ms
        if more or less:
            fitting = node.within_ms // node.every_ms
            yield Finding(
                ("nodes", key, "max_rounds"),
                f"max_rounds of '{key}' is {node.max_rounds}, but about {fitting} rounds fit into within_ms.",
            )


RULES = (
    too_many_nodes,
    document_too_large,
    too_many_arms,
    nested_too_deep,
    too_many_attempts,
    too_many_rounds,
    too_many_questions,
    time_too_long,
    attempt_outlasts_total,
    start_outlasts_total,
    poll_interval_too_long,
    poll_rounds_uneven,
)
