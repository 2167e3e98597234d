"""A probe: a task of evidence about another task in doubt. It runs once, has no effect, and decides nothing.

It either asks the verify handler of the task that it is about (`can_verify`), or runs a READ_ONLY handler.
However it ends, what was said is kept as evidence of that task, and the probe never needs a person itself.
"""

from __future__ import annotations

from typing import Final

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import Detail, FailedPrecondition
from orbit_sdk.values.canonical import canonical_json, digest_of_text
from orbit_server.pulse.tasks.decide.move import Body, Move, Note, close, to
from orbit_server.pulse.tasks.lifecycle import TERMINAL, ErrorCode, Said, TaskState
from orbit_server.pulse.tasks.records import Attempt, Task

_ANSWERS: Final = frozenset({Said.HAPPENED, Said.SUCCEEDED, Said.CANNOT_HAPPEN_ANY_MORE, Said.CANNOT_TELL})
_WITH_RESULT: Final = frozenset({Said.HAPPENED, Said.SUCCEEDED})


def refuse_verifying(task: Task, asked_generation: int) -> None:
    """Raises FailedPrecondition where there is nothing, or nobody, to ask about this task."""
    if not task.can_verify:
        reason = f"{task.handler}@{task.handler_version} has no verify handler: name a READ_ONLY handler"
        raise FailedPrecondition(reason, [Detail("handler", "is needed here")])
    if asked_generation == 0:
        raise FailedPrecondition("no attempt was started, so there is nothing to verify")


def refuse_open(task: Task) -> None:
    """Raises FailedPrecondition while the task still finds out the truth by itself."""
    if task.state is not TaskState.NEEDS_REVIEW and task.state not in TERMINAL:
        raise FailedPrecondition(f"the task is {task.state}: it is not in doubt")


def answered(task: Task, attempt: Attempt, said: tuple[Said, str | None, str | None, str], now: int) -> Move:
    """The end of a question to a verify handler; `said`: word, result, error and digest of the report."""
    word, result, error, digest = said
    closed = close(attempt, word, now, charged=False, error=error)
    notes = _notes(said)
    if word not in _ANSWERS:
        after = to(task, TaskState.FAILED, now, error_code=word.value)
        return Move(after, closed, Body(error=error, digest=digest), notes)
    if word not in _WITH_RESULT:
        result = canonical_json({"answer": word.value})
        digest = digest_of_text(result)
    after = to(task, TaskState.SUCCEEDED, now, error_code=None)
    return Move(after, closed, Body(result=result, digest=digest), notes)


def ran(task: Task, move: Move, said: tuple[Said, str | None, str | None, str], now: int) -> Move:
    """The end of a READ_ONLY run, as it would be of any task: but no person is asked about a probe."""
    after = move.task
    if after.state is TaskState.NEEDS_REVIEW:
        after = to(task, TaskState.FAILED, now, error_code=after.error_code)
    if after.state not in TERMINAL:
        return move
    _, _, error, digest = said
    body = Body(error=error, digest=digest) if move.body is None else move.body
    return altered(move, task=after, body=body, notes=_notes(said))


def _notes(said: tuple[Said, str | None, str | None, str]) -> tuple[Note, ...]:
    """What a worker said. Where only the server found that it is over, its state is told instead."""
    word, result, error, digest = said
    told = result or error
    return () if told is None else (Note(word.value, told, digest, contradiction=False),)


def unasked(task: Task, now: int) -> Move:
    """Nobody could be asked in time."""
    return Move(to(task, TaskState.FAILED, now, error_code=ErrorCode.EXPIRED))


def not_read_only(task: Task, now: int) -> Move:
    """The only worker there is declares that the handler may have an effect: a probe does not run it."""
    return Move(to(task, TaskState.CANCELLED, now, error_code=ErrorCode.NOT_READ_ONLY))
