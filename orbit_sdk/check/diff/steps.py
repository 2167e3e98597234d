"""What changed step by step: most of it concerns operators, some of it workers and senders of signals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orbit_sdk.check.diff.change import Change, Party, Verdict, change
from orbit_sdk.check.words import article, duration_text
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import Node, PollNode, TaskNode, WaitNode, exits

_CAREFUL, _SAFE = Verdict.CAREFUL, Verdict.SAFE

_SEEN = frozenset({"kind", "queue", "signal", "match", "handler", "timeout_ms", "early", "final_signal"})
"""Fields that have sentences of their own."""


def step_changes(before: Definition, after: Definition) -> Iterator[Change]:
    """Steps that came, went or are different."""
    if before.start != after.start:
        what = f"It starts at '{after.start}' instead of '{before.start}'."
        yield change(("start",), what, Party.OPERATORS, _SAFE)
    queues = _queues(before)
    for key in sorted({*before.nodes, *after.nodes}):
        old, new = before.nodes.get(key), after.nodes.get(key)
        path = ("nodes", key)
        if old is None and new is not None:
            yield change(path, f"Step '{key}' is new: {article(new.kind)}.", Party.OPERATORS, _SAFE)
        elif new is None and old is not None:
            yield change(path, f"Step '{key}' is gone.", Party.OPERATORS, _SAFE)
        elif old is not None and new is not None:
            yield from _step(key, old, new)
        if isinstance(new, TaskNode | PollNode) and (new.handler, new.queue) not in queues:
            what = f"A worker that offers {new.handler} must serve queue {new.queue}."
            yield change((*path, "queue"), what, Party.WORKERS, _CAREFUL)
            queues.add((new.handler, new.queue))


def _queues(definition: Definition) -> set[tuple[str, str]]:
    work = (node for node in definition.nodes.values() if isinstance(node, TaskNode | PollNode))
    return {(node.handler, node.queue) for node in work}


def _step(key: str, old: Node, new: Node) -> Iterator[Change]:
    if old.kind != new.kind:
        what = f"Step '{key}' is {article(new.kind)} instead of {article(old.kind)}."
        yield change(("nodes", key), what, Party.OPERATORS, _CAREFUL)
        return
    was, now = getattr(old, "handler", None), getattr(new, "handler", None)
    if was != now:
        what = f"Step '{key}' runs {now} instead of {was}."
        yield change(("nodes", key, "handler"), what, Party.OPERATORS, _SAFE)
    if isinstance(old, PollNode) and isinstance(new, PollNode) and old.final_signal != new.final_signal:
        what = f"The receipt that ends step '{key}' is another one, or has another key."
        yield change(("nodes", key, "final_signal"), what, Party.SENDERS, Verdict.BREAKING)
    if isinstance(old, WaitNode) and isinstance(new, WaitNode):
        yield from _wait(key, old, new)
    if exits(old) != exits(new):
        yield change(("nodes", key), f"Step '{key}' leads elsewhere.", Party.OPERATORS, _SAFE)
    targets = (
        {"next", "on_failure", "on_timeout", "on_failed", "otherwise"} if exits(old) != exits(new) else set()
    )
    left, right = _fields(old), _fields(new)
    for name in sorted({*left, *right}):
        if left.get(name) != right.get(name) and name not in _SEEN and name not in targets:
            yield _field(key, name, left.get(name), right.get(name))


def _fields(node: Node) -> dict[str, Any]:
    return node.model_dump(by_alias=True, exclude_unset=True)


def _wait(key: str, old: WaitNode, new: WaitNode) -> Iterator[Change]:
    if old.signal != new.signal:
        what = f"Step '{key}' waits for {new.signal} instead of {old.signal}."
        yield change(("nodes", key, "signal"), what, Party.SENDERS, Verdict.BREAKING)
    if old.match != new.match:
        what = f"{new.signal} for step '{key}' must carry another key."
        yield change(("nodes", key, "match"), what, Party.SENDERS, Verdict.BREAKING)
    if old.timeout_ms != new.timeout_ms:
        what = (
            f"Step '{key}' waits {duration_text(new.timeout_ms)} instead of {duration_text(old.timeout_ms)}."
        )
        verdict = _CAREFUL if new.timeout_ms < old.timeout_ms else _SAFE
        yield change(("nodes", key, "timeout_ms"), what, Party.SENDERS, verdict)
    if old.early != new.early:
        said = "counts" if new.early == "KEEP" else "does not count any more"
        what = f"A signal that comes before step '{key}' {said}."
        yield change(("nodes", key, "early"), what, Party.SENDERS, _CAREFUL)


def _field(key: str, name: str, old: Any, new: Any) -> Change:
    """Everything else: told with its values where they are short."""
    path = ("nodes", key, name)
    policy = name in ("on_failure", "on_timeout", "on_failed", "on_arm_failure")
    if all(value is None or isinstance(value, str | int) for value in (old, new)):
        what = f"{name} of '{key}' is {_said(name, new)} instead of {_said(name, old)}."
    else:
        what = f"{name} of '{key}' is another one."
    return change(path, what, Party.OPERATORS, _CAREFUL if policy else _SAFE)


def _said(name: str, value: Any) -> str:
    if value is None:
        return "not given"
    return duration_text(value) if name.endswith("_ms") else str(value)
