"""Pause, resume and cancel, against each other and against what runs."""

from __future__ import annotations

from typing import Any

from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.weave.control.commands import Action
from tests.documents import document, end, task
from tests.storage.races.race import Race, doing, prepared, steps
from tests.storage.races.scene import (
    Case,
    begin,
    cancel,
    claim,
    consume,
    control,
    lease_end,
    mark,
    pause,
    report,
    resume,
    task_due,
)

WORKING = document({"work": task("next", "risky"), "next": task("done", "risky"), "done": end()})
SAFE = document({"work": task("next", "safe"), "next": task("done", "safe"), "done": end()})
ONE = document({"work": task("done", "safe"), "done": end()})
MARKED = document(
    {"work": task("done", "marked"), "done": end()},
    handlers={
        "marked@1": {"parameters": {}, "required": [], "result": {}, "recovery": "MARKED", "verify": False}
    },
)

CHECKED = document(
    {"work": task("done", "checked"), "done": end()},
    handlers={
        "checked@1": {
            "parameters": {},
            "required": [],
            "result": {},
            "recovery": "VERIFIABLE",
            "verify": True,
        }
    },
)
doubted = (
    claim(verifies=True),
    begin(),
    report(said=Said.EXCEPTION, code="X"),
    claim(verifies=True),
    begin(),
)
running = (claim(), begin())
lease_over = prepared(Case.lease_over)
busy: dict[str, Any] = {"said": Said.RETRYABLE, "code": "BUSY", "effect_unknown": False}
retry_due = prepared(lambda case: case.set_task("work", "due_at = 1"))


RACES = (
    Race(
        "a pause and a claim",
        WORKING,
        steps(),
        pause,
        claim(),
        ("version 2", "nothing", "RUNNING paused work=WAITING_TASK(READY)"),
        ("version 2", "claimed", "RUNNING paused work=WAITING_TASK(READY)"),
    ),
    Race(
        "a pause and a claim that starts",
        SAFE,
        steps(),
        pause,
        claim(one_step=True),
        ("version 2", "nothing", "RUNNING paused work=WAITING_TASK(READY)"),
        ("version 2", "claimed", "RUNNING paused work=WAITING_TASK(RUNNING)"),
    ),
    Race(
        "a pause and a start",
        WORKING,
        steps(claim()),
        pause,
        begin(),
        ("version 2", "the offer is closed", "RUNNING paused work=WAITING_TASK(READY)"),
        ("version 2", "granted", "RUNNING paused work=WAITING_TASK(RUNNING)"),
    ),
    Race(
        "a pause and a result",
        SAFE,
        steps(claim(one_step=True)),
        pause,
        report(),
        ("version 2", "ACCEPTED", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
        ("version 2", "ACCEPTED", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
        after=doing(resume),
    ),
    Race(
        "a pause and a retry",
        SAFE,
        steps(claim(one_step=True), report(**busy), retry_due),
        pause,
        task_due(),
        ("version 2", "moved", "RUNNING paused work=WAITING_TASK(READY)"),
        ("version 2", "moved", "RUNNING paused work=WAITING_TASK(READY)"),
        after=doing(claim()),
    ),
    Race(
        "a pause and the end of a lease",
        SAFE,
        steps(claim(one_step=True), lease_over),
        pause,
        lease_end(),
        ("version 2", "moved", "RUNNING paused work=WAITING_TASK(READY)"),
        ("version 2", "moved", "RUNNING paused work=WAITING_TASK(READY)"),
        after=doing(retry_due, task_due(), claim()),
    ),
    Race(
        "a resume and a late result",
        SAFE,
        steps(claim(one_step=True), pause),
        resume,
        report(),
        ("version 3", "ACCEPTED", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
        ("version 3", "ACCEPTED", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
    ),
    Race(
        "a resume and the result that was stored",
        SAFE,
        steps(claim(one_step=True), pause, report(alone=True)),
        resume,
        consume(),
        ("version 3", "nothing", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
        ("version 3", "applied", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
    ),
    Race(
        "a resume and a claim",
        SAFE,
        steps(pause),
        resume,
        claim(),
        ("version 3", "claimed", "RUNNING work=WAITING_TASK(OFFERED)"),
        ("version 3", "nothing", "RUNNING work=WAITING_TASK(READY)"),
    ),
    Race(
        "two pauses that expect one version",
        WORKING,
        steps(),
        control(Action.PAUSE, 1),
        control(Action.PAUSE, 1),
        ("version 2", "FAILED_PRECONDITION", "RUNNING paused work=WAITING_TASK(READY)"),
    ),
    Race(
        "one pause sent twice",
        WORKING,
        steps(),
        control(Action.PAUSE, 1, "k"),
        control(Action.PAUSE, 1, "k"),
        ("version 2", "version 2", "RUNNING paused work=WAITING_TASK(READY)"),
    ),
    Race(
        "a pause and a cancel that expect one version",
        WORKING,
        steps(),
        control(Action.PAUSE, 1),
        control(Action.CANCEL, 1),
        ("version 2", "FAILED_PRECONDITION", "RUNNING paused work=WAITING_TASK(READY)"),
        ("FAILED_PRECONDITION", "version 2", "CANCELLED work=STOPPED(CANCELLED)"),
    ),
    Race(
        "a pause and a cancel",
        WORKING,
        steps(*running),
        pause,
        cancel,
        ("version 2", "version 3", "CANCELLING paused work=WAITING_TASK(CANCELLING)"),
    ),
    Race(
        "two resumes",
        WORKING,
        steps(pause),
        resume,
        resume,
        ("version 3", "FAILED_PRECONDITION", "RUNNING work=WAITING_TASK(READY)"),
    ),
    Race(
        "a pause and a resume",
        WORKING,
        steps(pause),
        pause,
        resume,
        ("FAILED_PRECONDITION", "version 3", "RUNNING work=WAITING_TASK(READY)"),
        ("version 4", "version 3", "RUNNING paused work=WAITING_TASK(READY)"),
    ),
    Race(
        "a resume and a cancel",
        WORKING,
        steps(pause),
        resume,
        cancel,
        ("version 3", "version 4", "CANCELLED work=STOPPED(CANCELLED)"),
    ),
    Race(
        "two cancels",
        WORKING,
        steps(*running),
        cancel,
        cancel,
        ("version 2", "FAILED_PRECONDITION", "CANCELLING work=WAITING_TASK(CANCELLING)"),
    ),
    Race(
        "a cancel and a claim",
        WORKING,
        steps(),
        cancel,
        claim(),
        ("version 2", "nothing", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "claimed", "CANCELLED work=STOPPED(CANCELLED)"),
    ),
    Race(
        "a cancel and a claim that starts",
        SAFE,
        steps(),
        cancel,
        claim(one_step=True),
        ("version 2", "nothing", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "claimed", "CANCELLING work=WAITING_TASK(CANCELLING)"),
    ),
    Race(
        "a cancel and a start",
        WORKING,
        steps(claim()),
        cancel,
        begin(),
        ("version 2", "the offer is closed", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "granted", "CANCELLING work=WAITING_TASK(CANCELLING)"),
    ),
    Race(
        "a cancel and a result",
        WORKING,
        steps(*running),
        cancel,
        report(),
        ("version 2", "ACCEPTED", "CANCELLED work=COMPLETED(SUCCEEDED)"),
        ("version 2", "ACCEPTED", "CANCELLED work=COMPLETED(SUCCEEDED) next=STOPPED(CANCELLED)"),
    ),
    Race(
        "a cancel and the last result",
        ONE,
        steps(claim(one_step=True)),
        cancel,
        report(),
        ("version 2", "ACCEPTED", "CANCELLED work=COMPLETED(SUCCEEDED)"),
        ("FAILED_PRECONDITION", "ACCEPTED", "SUCCEEDED work=COMPLETED(SUCCEEDED)"),
    ),
    Race(
        "a cancel and an unknown end",
        WORKING,
        steps(*running),
        cancel,
        report(said=Said.EXCEPTION, code="X"),
        ("version 2", "ACCEPTED", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
        ("version 2", "ACCEPTED", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
    ),
    Race(
        "a cancel and the end of a lease",
        WORKING,
        steps(*running, lease_over),
        cancel,
        lease_end(),
        ("version 2", "moved", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
        ("version 2", "moved", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
    ),
    Race(
        "a cancel and a stop",
        WORKING,
        steps(*running),
        cancel,
        report(said=Said.CANCELLED, code="S"),
        ("version 2", "ACCEPTED", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "ACCEPTED", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
    ),
    Race(
        "a cancel and what is handed back",
        WORKING,
        steps(*running),
        cancel,
        report(said=Said.HAND_BACK, code="H"),
        ("version 2", "ACCEPTED", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "ACCEPTED", "CANCELLED work=STOPPED(CANCELLED)"),
    ),
    Race(
        "a cancel and the answer of a verification",
        CHECKED,
        steps(*doubted),
        cancel,
        report(said=Said.CANNOT_HAPPEN_ANY_MORE),
        ("version 2", "ACCEPTED", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "ACCEPTED", "CANCELLED work=STOPPED(CANCELLED)"),
    ),
    Race(
        "a cancel and a verified success",
        CHECKED,
        steps(*doubted),
        cancel,
        report(said=Said.HAPPENED),
        ("version 2", "ACCEPTED", "CANCELLED work=COMPLETED(SUCCEEDED)"),
        ("FAILED_PRECONDITION", "ACCEPTED", "SUCCEEDED work=COMPLETED(SUCCEEDED)"),
    ),
    Race(
        "a cancel and a review that is stored",
        WORKING,
        steps(*running, report(said=Said.EXCEPTION, code="X", alone=True)),
        cancel,
        consume(),
        ("version 2", "nothing", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
        ("version 2", "applied", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
    ),
    Race(
        "a cancel and a mark",
        MARKED,
        steps(claim(), begin()),
        cancel,
        mark(),
        ("version 2", "CANCELLED", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "GRANTED", "NEEDS_REVIEW work=NEEDS_REVIEW(NEEDS_REVIEW)"),
        after=doing(lease_over, lease_end()),
    ),
    Race(
        "a cancel and a retry",
        SAFE,
        steps(claim(one_step=True), report(**busy), retry_due),
        cancel,
        task_due(),
        ("version 2", "nothing", "CANCELLED work=STOPPED(CANCELLED)"),
        ("version 2", "moved", "CANCELLED work=STOPPED(CANCELLED)"),
    ),
)
