"""Tasks in any state, made by the real decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbit_server.pulse.tasks.decide.finish import Ground, Report, finish
from orbit_server.pulse.tasks.decide.move import Move
from orbit_server.pulse.tasks.decide.policy import RetryPolicy
from orbit_server.pulse.tasks.decide.start import Claimant, claim, start
from orbit_server.pulse.tasks.decide.submit import NewTask, submit
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.times import PulseTimes

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
TIMES = PulseTimes()
POLICY = RetryPolicy(1_000, 200, 600_000, 0)
SESSION = "5" * 32
NONCE = "7" * 32
ASKER = (SESSION, NONCE)


def new(**changes: Any) -> NewTask:
    values: dict[str, Any] = {
        "id": "a" * 32,
        "namespace_id": "1" * 32,
        "queue": "jobs",
        "handler": "work",
        "handler_version": 1,
        "parameters": "{}",
        "parameters_digest": "d",
        "effect_key": "e",
        "recovery": Recovery.CONSERVATIVE,
        "policy": POLICY,
    }
    return NewTask(**(values | changes))


def ready(**changes: Any) -> Task:
    return submit(new(**changes), NOW)[0]


def who(**changes: Any) -> Claimant:
    values: dict[str, Any] = {
        "session_id": SESSION,
        "namespace_id": "1" * 32,
        "nonce": NONCE,
        "worker": "w",
        "build": "b",
        "recovery": Recovery.READ_ONLY,
        "can_verify": False,
    }
    return Claimant(**(values | changes))


def attempt_id(generation: int) -> str:
    return f"{generation:032x}"


def claimed(task: Task, *, now: int = NOW, **claimant: Any) -> tuple[Task, Attempt]:
    earlier = claimant.pop("earlier", ())
    move = claim(task, earlier, who(**claimant), attempt_id(task.generation + 1), now, TIMES)
    assert move is not None
    assert move.attempt is not None
    return move.task, move.attempt


def running(*, now: int = NOW, **changes: Any) -> tuple[Task, Attempt]:
    """A task whose first attempt was started in two steps."""
    return begun(ready(**changes), now=now)


def begun(task: Task, *, now: int = NOW, **claimant: Any) -> tuple[Task, Attempt]:
    task, attempt = claimed(task, now=now, **claimant)
    move, answer = start(task, attempt, ASKER, now, TIMES)
    assert move is not None, answer
    assert move.attempt is not None
    return move.task, move.attempt


def ground(now: int = NOW) -> Ground:
    return Ground(now, POLICY, TIMES)


def ends(task: Task, attempt: Attempt, word: Said, *, now: int = NOW, **report: Any) -> Move:
    error = None if word in (Said.SUCCEEDED, Said.HAPPENED) else f'{{"code":"{word}"}}'
    result = "{}" if error is None else None
    values: dict[str, Any] = {"result": result, "error": error, "digest": f"digest of {word}"}
    return finish(task, attempt, Report(word, **(values | report)), ground(now))


def marked(attempt: Attempt, now: int = NOW) -> Attempt:
    return replace(attempt, marked_at=now)
