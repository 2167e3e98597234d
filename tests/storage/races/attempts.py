"""Attempts: who may begin, whose word counts, and when a lease is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from orbit_server.pulse.tasks.decide.stop import Verdict
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from tests.documents import document, end
from tests.storage.races.orders import (
    cancel_task,
    new_task,
    resolve_task,
    retry_task,
    submit,
    tasks_made,
)
from tests.storage.races.race import Race, nothing, prepared
from tests.storage.races.scene import (
    Case,
    Command,
    begin,
    claim,
    give_back,
    lease_end,
    mark,
    reconnect,
    renew,
    report,
    task_deadline,
    task_due,
)

NONE = document({"done": end()})
"""For standalone tasks the definition does not matter."""


def standalone(
    *commands: Command, recovery: Recovery = Recovery.CONSERVATIVE, delay_ms: int = 0
) -> Callable[[Case], Awaitable[None]]:
    """A standalone task, then these commands about it."""

    async def prepare(case: Case) -> None:
        await new_task(case, recovery, delay_ms=delay_ms)
        for command in commands:
            await command(case, case.one)

    return prepare


safe = {"recovery": Recovery.IDEMPOTENT}
claimed, begun = claim("task"), begin("task")
started = (claimed, begun)
at_once = claim("task", one_step=True)
lease_over = prepared(lambda case: case.lease_over("task"))
lost = lease_end("task")
just_over = prepared(lambda case: case.lease_ended_just_now("task"))
succeeds, other_result = report("task"), report("task", result=2)
fails = report("task", said=Said.FINAL, code="NO")
unknown = report("task", said=Said.EXCEPTION, code="BOOM")
time_over = prepared(lambda case: case.set_task("task", "deadline_at = 1"))
is_due = prepared(lambda case: case.set_task("task", "due_at = 1"))


async def _revision(case: Case) -> None:
    found = await case.one.rows("SELECT revision FROM tasks WHERE id = :t", t=case.task)
    case.notes["revision"] = found[0][0]


seen = prepared(_revision)
reviewed = (*started, unknown, seen)
overdue = prepared(lambda case: case.set_task("task", "latest_start_at = 1, deadline_at = 1"))

RACES = (
    Race("two claims", NONE, standalone(), claimed, claimed, ("claimed", "nothing", "OFFERED")),
    Race(
        "two claims that start", NONE, standalone(**safe), at_once, at_once, ("claimed", "nothing", "RUNNING")
    ),
    Race(
        "two processes that want to start one offer",
        NONE,
        standalone(claimed),
        begun,
        begin("task", "other"),
        ("granted", "the offer belongs to another worker", "RUNNING"),
        ("granted", "the offer belongs to another worker", "RUNNING"),
    ),
    Race(
        "one process that asks to start twice",
        NONE,
        standalone(claimed),
        begun,
        begun,
        ("granted", "granted", "RUNNING"),
    ),
    Race(
        "a start and a session that closes",
        NONE,
        standalone(claimed),
        begun,
        give_back("task"),
        ("granted", "returned 0", "RUNNING"),
        ("the offer is closed", "returned 1", "READY"),
    ),
    Race(
        "a start and the end of its lease",
        NONE,
        standalone(claimed, lease_over),
        begun,
        lost,
        ("the lease has ended", "nothing", "READY"),
        ("the offer is closed", "moved", "READY"),
    ),
    Race(
        "a claim and the latest start",
        NONE,
        standalone(overdue),
        claimed,
        task_deadline("task"),
        ("nothing", "nothing", "EXPIRED"),
        ("nothing", "moved", "EXPIRED"),
    ),
    Race(
        "a start and the latest start",
        NONE,
        standalone(claimed, overdue),
        begun,
        task_deadline("task"),
        ("its time is over", "nothing", "EXPIRED"),
        ("its time is over", "nothing", "EXPIRED"),
    ),
    Race(
        "a result and the end of its lease",
        NONE,
        standalone(*started, lease_over),
        succeeds,
        lost,
        ("EVIDENCE", "nothing", "NEEDS_REVIEW+LATE_SUCCEEDED"),
        ("EVIDENCE", "moved", "NEEDS_REVIEW+LATE_SUCCEEDED"),
    ),
    Race(
        "a safe result and the end of its lease",
        NONE,
        standalone(at_once, lease_over, **safe),
        succeeds,
        lost,
        ("EVIDENCE", "nothing", "RETRY_WAIT+LATE_SUCCEEDED"),
        ("EVIDENCE", "moved", "RETRY_WAIT+LATE_SUCCEEDED"),
    ),
    Race(
        "a failure and the end of its lease",
        NONE,
        standalone(at_once, lease_over, **safe),
        fails,
        lost,
        ("EVIDENCE", "nothing", "RETRY_WAIT+LATE_FINAL"),
        ("EVIDENCE", "moved", "RETRY_WAIT+LATE_FINAL"),
    ),
    Race(
        "one result sent twice",
        NONE,
        standalone(*started),
        succeeds,
        succeeds,
        ("ACCEPTED", "ACCEPTED", "SUCCEEDED"),
    ),
    Race(
        "two results of one attempt",
        NONE,
        standalone(*started),
        succeeds,
        other_result,
        ("ACCEPTED", "EVIDENCE", "SUCCEEDED+LATE_SUCCEEDED"),
    ),
    Race(
        "a success and a failure of one attempt",
        NONE,
        standalone(*started),
        succeeds,
        fails,
        ("ACCEPTED", "EVIDENCE", "SUCCEEDED+LATE_FINAL"),
        ("EVIDENCE", "ACCEPTED", "FAILED+LATE_SUCCEEDED"),
    ),
    Race(
        "a renewal and the end of its lease",
        NONE,
        standalone(*started, lease_over),
        renew("task"),
        lost,
        ("lost", "moved", "NEEDS_REVIEW"),
        ("lost", "moved", "NEEDS_REVIEW"),
    ),
    Race(
        "a renewal and a result",
        NONE,
        standalone(*started),
        renew("task"),
        succeeds,
        ("renewed", "ACCEPTED", "SUCCEEDED"),
        ("lost", "ACCEPTED", "SUCCEEDED"),
    ),
    Race(
        "a renewal in the last moment and a loop that looks",
        NONE,
        standalone(*started, just_over),
        renew("task"),
        lost,
        ("renewed", "nothing", "RUNNING"),
        ("renewed", "nothing", "RUNNING"),
    ),
    Race(
        "a worker that is back and the end of its lease",
        NONE,
        standalone(*started, lease_over),
        reconnect("task"),
        lost,
        ("STOP", "moved", "NEEDS_REVIEW"),
        ("STOP", "moved", "NEEDS_REVIEW"),
    ),
    Race(
        "a worker that is back and its result",
        NONE,
        standalone(*started),
        reconnect("task"),
        succeeds,
        ("CONTINUE", "ACCEPTED", "SUCCEEDED"),
        ("SETTLED", "ACCEPTED", "SUCCEEDED"),
    ),
    Race(
        "a worker that is back and a start",
        NONE,
        standalone(claimed),
        reconnect("task"),
        begun,
        ("STOP", "the offer is closed", "READY"),
        ("CONTINUE", "granted", "RUNNING"),
    ),
    Race(
        "a lost attempt that succeeded and its successor that failed",
        NONE,
        standalone(at_once, lease_over, lost, is_due, task_due("task"), at_once, **safe),
        report("task", earlier=True),
        fails,
        ("EVIDENCE", "ACCEPTED", "NEEDS_REVIEW+LATE_SUCCEEDED"),
        ("EVIDENCE", "ACCEPTED", "FAILED+LATE_SUCCEEDED"),
    ),
    Race(
        "a lost attempt that succeeded and its successor that read in vain",
        NONE,
        standalone(at_once, lease_over, lost, is_due, task_due("task"), at_once, recovery=Recovery.READ_ONLY),
        report("task", earlier=True),
        fails,
        ("EVIDENCE", "ACCEPTED", "FAILED+LATE_SUCCEEDED"),
        ("EVIDENCE", "ACCEPTED", "FAILED+LATE_SUCCEEDED"),
    ),
    Race(
        "two marks of one attempt",
        NONE,
        standalone(*started, recovery=Recovery.MARKED),
        mark("task"),
        mark("task"),
        ("GRANTED", "GRANTED", "RUNNING"),
    ),
    Race(
        "two loops that see one lease",
        NONE,
        standalone(*started, lease_over),
        lost,
        lost,
        ("moved", "nothing", "NEEDS_REVIEW"),
    ),
    Race(
        "a mark and the end of its lease",
        NONE,
        standalone(*started, lease_over, recovery=Recovery.MARKED),
        mark("task"),
        lost,
        ("LOST", "moved", "RETRY_WAIT"),
        ("LOST", "moved", "RETRY_WAIT"),
    ),
    Race(
        "two loops that see one due task",
        NONE,
        standalone(is_due, delay_ms=3_600_000),
        task_due("task"),
        task_due("task"),
        ("moved", "nothing", "READY"),
    ),
    Race(
        "a cancel of a task and its claim",
        NONE,
        standalone(),
        cancel_task,
        claimed,
        ("CANCELLED", "nothing", "CANCELLED"),
        ("CANCELLED", "claimed", "CANCELLED"),
    ),
    Race(
        "a cancel of a task and its start",
        NONE,
        standalone(claimed),
        cancel_task,
        begun,
        ("CANCELLED", "the offer is closed", "CANCELLED"),
        ("CANCELLING", "granted", "CANCELLING"),
    ),
    Race(
        "a cancel of a task and its time",
        NONE,
        standalone(is_due, delay_ms=3_600_000),
        cancel_task,
        task_due("task"),
        ("CANCELLED", "nothing", "CANCELLED"),
        ("CANCELLED", "moved", "CANCELLED"),
    ),
    Race(
        "a cancel of a task and its result",
        NONE,
        standalone(*started),
        cancel_task,
        succeeds,
        ("CANCELLING", "ACCEPTED", "SUCCEEDED"),
        ("SUCCEEDED", "ACCEPTED", "SUCCEEDED"),
    ),
    Race(
        "a cancel of a task and its unknown end",
        NONE,
        standalone(*started),
        cancel_task,
        unknown,
        ("CANCELLING", "ACCEPTED", "NEEDS_REVIEW"),
        ("NEEDS_REVIEW", "ACCEPTED", "NEEDS_REVIEW"),
    ),
    Race(
        "a cancel of a task and the end of its lease",
        NONE,
        standalone(*started, lease_over),
        cancel_task,
        lost,
        ("CANCELLING", "moved", "NEEDS_REVIEW"),
        ("NEEDS_REVIEW", "moved", "NEEDS_REVIEW"),
    ),
    Race(
        "two decisions about a task",
        NONE,
        standalone(*reviewed),
        resolve_task(Verdict.SUCCEEDED),
        resolve_task(Verdict.FAILED),
        ("SUCCEEDED", "FAILED_PRECONDITION", "SUCCEEDED"),
        ("FAILED_PRECONDITION", "FAILED", "FAILED"),
    ),
    Race(
        "a decision about a task and its late success",
        NONE,
        standalone(*reviewed),
        resolve_task(Verdict.FAILED),
        succeeds,
        ("FAILED", "EVIDENCE", "FAILED+LATE_SUCCEEDED"),
        ("FAILED", "EVIDENCE", "FAILED+LATE_SUCCEEDED"),
    ),
    Race(
        "a decision about a task and its cancel",
        NONE,
        standalone(*reviewed),
        resolve_task(Verdict.FAILED),
        cancel_task,
        ("FAILED", "FAILED", "FAILED"),
        ("FAILED_PRECONDITION", "NEEDS_REVIEW", "NEEDS_REVIEW"),
    ),
    Race(
        "two retries of a task",
        NONE,
        standalone(*reviewed),
        retry_task,
        retry_task,
        ("retried", "FAILED_PRECONDITION", "FAILED"),
    ),
    Race(
        "a retry of a task and a decision about it",
        NONE,
        standalone(*reviewed),
        retry_task,
        resolve_task(Verdict.SUCCEEDED),
        ("retried", "FAILED_PRECONDITION", "FAILED"),
        ("FAILED_PRECONDITION", "SUCCEEDED", "SUCCEEDED"),
    ),
    Race(
        "a retry of a task and its late success",
        NONE,
        standalone(*reviewed),
        retry_task,
        succeeds,
        ("retried", "EVIDENCE", "FAILED+LATE_SUCCEEDED"),
        ("retried", "EVIDENCE", "FAILED+LATE_SUCCEEDED"),
    ),
    Race(
        "one task submitted twice",
        NONE,
        nothing,
        submit("k"),
        submit("k"),
        ("accepted", "accepted", "1 task(s)"),
        end=tasks_made,
    ),
    Race(
        "one key for two tasks",
        NONE,
        nothing,
        submit("k", 1),
        submit("k", 2),
        ("accepted", "CONFLICT", "1 task(s)"),
        end=tasks_made,
    ),
)
