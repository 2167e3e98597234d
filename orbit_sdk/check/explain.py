"""Every setting of a step as it counts, and where its value comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orbit_sdk.check.words import duration_text
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import (
    DelayNode,
    Goto,
    Node,
    ParallelNode,
    PollNode,
    TaskNode,
    WaitNode,
    WorkNode,
)
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.limits import DEFAULT_LIMITS

_WRITTEN = "written in the workflow"
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """`origin` is in words: a default, what it is worked out from, or that it was written."""

    name: str
    value: str
    origin: str


def explain_step(
    definition: Definition, key: str, on_failure: str = DEFAULTS.on_failure
) -> tuple[Setting, ...]:
    """The settings of one step; KeyError when there is no such step.

    `on_failure` is what the workflow says for all its steps, where that is known.
    """
    return tuple(_settings(definition, definition.nodes[key], on_failure))


def _settings(definition: Definition, node: Node, on_failure: str) -> Iterator[Setting]:
    match node:
        case TaskNode():
            yield from _work(definition, node, _attempts(definition, node))
            yield _duration("total_timeout", node.total_timeout_ms, DEFAULTS.total_timeout_ms)
            yield _exit("on_failure", node.on_failure, on_failure)
        case PollNode():
            yield from _work(definition, node, _attempts_of_poll(node))
            yield Setting("every", duration_text(node.every_ms), _WRITTEN)
            yield Setting("within", duration_text(node.within_ms), _WRITTEN)
            fitting = max(1, min(node.within_ms // node.every_ms, DEFAULT_LIMITS.rounds))
            worked_out = f"within / every, at most {DEFAULT_LIMITS.rounds}"
            yield Setting("max_rounds", str(node.max_rounds), _from(node.max_rounds == fitting, worked_out))
            yield Setting("on_exhausted", node.on_exhausted, "always")
            if node.on_failed is not None:
                yield _exit("on_failed", node.on_failed)
        case WaitNode():
            yield Setting("timeout", duration_text(node.timeout_ms), _WRITTEN)
            yield _exit("on_timeout", node.on_timeout)
            yield Setting("early", node.early, _from(node.early == DEFAULTS.early, _DEFAULT))
        case DelayNode():
            yield Setting("delay", duration_text(node.delay_ms), _WRITTEN)
        case ParallelNode():
            said = _from(node.on_arm_failure == DEFAULTS.on_arm_failure, _DEFAULT)
            yield Setting("on_arm_failure", node.on_arm_failure, said)
        case _:
            return


def _work(definition: Definition, node: WorkNode, attempts: tuple[int, str]) -> Iterator[Setting]:
    declared = definition.handlers[node.handler]
    yield Setting("handler", node.handler, "the handler that is called")
    yield Setting("recovery", declared.recovery, "the handler")
    yield Setting("queue", node.queue, "the handler")
    yield _duration("attempt_timeout", node.attempt_timeout_ms, DEFAULTS.attempt_timeout_ms)
    if node.start_within_ms is None:
        yield Setting("start_within", "not limited", _DEFAULT)
    else:
        yield Setting("start_within", duration_text(node.start_within_ms), _WRITTEN)
    yield Setting("priority", str(node.priority), _from(node.priority == DEFAULTS.priority, _DEFAULT))
    retry, (usual, why) = node.retry, attempts
    yield Setting("retry.attempts", str(retry.max_attempts), _from(retry.max_attempts == usual, why))
    yield _duration("retry.backoff", retry.backoff_ms, DEFAULTS.backoff_ms)
    factor = _from(retry.factor_percent == DEFAULTS.backoff_factor_percent, _DEFAULT)
    yield Setting("retry.factor", f"{retry.factor_percent / 100:g}", factor)
    yield _duration("retry.max_backoff", retry.max_backoff_ms, DEFAULTS.max_backoff_ms)
    jitter = _from(retry.jitter_percent == DEFAULTS.jitter_percent, _DEFAULT)
    yield Setting("retry.jitter_percent", str(retry.jitter_percent), jitter)
    for name in ("concurrency_key", "fairness_key"):
        given = getattr(node, name) is not None
        yield Setting(name, "given" if given else "none", _from(not given, _DEFAULT))


def _attempts(definition: Definition, node: TaskNode) -> tuple[int, str]:
    if definition.handlers[node.handler].recovery == "READ_ONLY":
        return DEFAULTS.attempts_read_only, "default of READ_ONLY handlers"
    return DEFAULTS.attempts, _DEFAULT


def _attempts_of_poll(node: PollNode) -> tuple[int, str]:
    usual = DEFAULT_LIMITS.attempts_over_rounds // node.max_rounds
    if usual < DEFAULTS.attempts_read_only:
        return max(1, usual), f"{DEFAULT_LIMITS.attempts_over_rounds} / max_rounds"
    return DEFAULTS.attempts_read_only, "default of polls"


def _exit(name: str, target: str | Goto, usual: str | None = None) -> Setting:
    """`usual` is what counts where the step says nothing; None: it has to say something."""
    if isinstance(target, Goto):
        return Setting(name, f"goes on at '{target.next}'", _WRITTEN)
    origin = _DEFAULT if usual == DEFAULTS.on_failure else "on_failure of the workflow"
    return Setting(name, target, _from(target == usual, origin))


def _duration(name: str, value: int, usual: int) -> Setting:
    return Setting(name, duration_text(value), _from(value == usual, _DEFAULT))


def _from(is_usual: bool, usual: str) -> str:
    return usual if is_usual else _WRITTEN
