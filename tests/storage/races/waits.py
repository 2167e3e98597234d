"""Signals, time and what they end."""

from __future__ import annotations

from tests.documents import document, end, join, parallel, poll, ref, task, timer, wait
from tests.storage.races.race import Race, doing, prepared, steps
from tests.storage.races.scene import (
    answer_wait,
    begin,
    cancel,
    claim,
    consume,
    due,
    expire_signals,
    pause,
    report,
    resume,
    signal,
)

ASKING = document(
    {
        "ask": wait("said", on_timeout={"next": "late"}),
        "said": task("done", "safe"),
        "late": timer("done", seconds=3600),
        "done": end(),
    }
)
TWICE = document({"ask": wait("again"), "again": wait("done", early="KEEP"), "done": end()})
SLEEPING = document({"sleep": timer("work", seconds=3600), "work": task("done", "safe"), "done": end()})
EARLY = document({"sleep": timer("ask", seconds=3600), "ask": wait("done"), "done": end()})
MEETING = document(
    {
        "both": parallel("meet", left="ask", right="sleep"),
        "ask": wait("meet"),
        "sleep": timer("meet", seconds=3600),
        "meet": join("after"),
        "after": task("done", "safe"),
        "done": end(),
    }
)
POLLING = document(
    {"ask": poll("said", receipt=True, rounds=5), "said": task("done", "safe"), "done": end(ref("ask"))}
)
LAST = document({"work": task("done", "safe"), "done": end()})

ask_due = prepared(lambda case: case.due("ask"))
sleep_due = prepared(lambda case: case.due("sleep"))
query = report("ask", result={"state": "done"})
query_alone = report("ask", alone=True, result={"state": "done"})
over_since = prepared(
    # The result was stored in the very last instant; that instant is over.
    lambda case: case.set_step(
        "ask",
        "deadline_at = (SELECT settled_at FROM tasks WHERE tasks.id = steps.task_id),"
        " due_at = (SELECT settled_at FROM tasks WHERE tasks.id = steps.task_id)",
    )
)
pending = report("ask", result={"state": "pending"})
receipt = signal(name="receipt", body={"state": "done", "receipt": "r"})
poll_over = prepared(lambda case: case.set_step("ask", "due_at = 1, deadline_at = 1"))
asked = (claim("ask", one_step=True),)

RACES = (
    Race(
        "a signal and the time-out of its wait",
        ASKING,
        steps(ask_due),
        signal(),
        due("ask"),
        ("CONSUMED", "nothing", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
        ("EXPIRED", "moved", "WAITING ask=FAILED late=WAITING_TIME signals=EXPIRED"),
    ),
    Race(
        "a signal and the end of its time",
        ASKING,
        steps(poll_over),
        signal(),
        due("ask"),
        ("EXPIRED", "moved", "WAITING ask=FAILED late=WAITING_TIME signals=EXPIRED"),
        ("EXPIRED", "moved", "WAITING ask=FAILED late=WAITING_TIME signals=EXPIRED"),
    ),
    Race(
        "a signal and a cancel",
        ASKING,
        steps(),
        signal(),
        cancel,
        ("CONSUMED", "version 2", "CANCELLED ask=COMPLETED said=STOPPED(CANCELLED) signals=CONSUMED"),
        ("REJECTED", "version 2", "CANCELLED ask=STOPPED signals=REJECTED"),
    ),
    Race(
        "a signal and a pause",
        ASKING,
        steps(),
        signal(),
        pause,
        ("CONSUMED", "version 2", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
        ("CONSUMED", "version 2", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
        after=doing(resume),
    ),
    Race(
        "a signal and a resume",
        ASKING,
        steps(pause),
        signal(),
        resume,
        ("CONSUMED", "version 3", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
        ("CONSUMED", "version 3", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
    ),
    Race(
        "two signals for two waits",
        TWICE,
        steps(),
        signal(body=1),
        signal(body=2),
        ("CONSUMED", "CONSUMED", "SUCCEEDED ask=COMPLETED again=COMPLETED signals=CONSUMED+CONSUMED"),
    ),
    Race(
        "two signals for one wait",
        ASKING,
        steps(),
        signal(body=1),
        signal(body=2),
        ("CONSUMED", "PENDING", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED+PENDING"),
    ),
    Race(
        "two answers to one wait",
        ASKING,
        steps(),
        answer_wait,
        answer_wait,
        (
            "CONSUMED",
            "FAILED_PRECONDITION",
            "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED",
        ),
    ),
    Race(
        "an answer to a wait and its time-out",
        ASKING,
        steps(ask_due),
        answer_wait,
        due("ask"),
        ("CONSUMED", "nothing", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
        ("FAILED_PRECONDITION", "moved", "WAITING ask=FAILED late=WAITING_TIME"),
    ),
    Race(
        "one signal sent twice",
        ASKING,
        steps(),
        signal("k"),
        signal("k"),
        ("CONSUMED", "CONSUMED", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
    ),
    Race(
        "one key for two signals",
        ASKING,
        steps(),
        signal("k", 1),
        signal("k", 2),
        ("CONSUMED", "CONFLICT", "RUNNING ask=COMPLETED said=WAITING_TASK(READY) signals=CONSUMED"),
    ),
    Race(
        "a signal and the last result",
        LAST,
        steps(claim(one_step=True)),
        signal(),
        report(),
        ("PENDING", "ACCEPTED", "SUCCEEDED work=COMPLETED(SUCCEEDED) signals=REJECTED"),
        ("REJECTED", "ACCEPTED", "SUCCEEDED work=COMPLETED(SUCCEEDED) signals=REJECTED"),
    ),
    Race(
        "a signal and the wait it is for",
        EARLY,
        steps(sleep_due),
        signal(),
        due("sleep"),
        ("PENDING", "moved", "SUCCEEDED sleep=COMPLETED ask=COMPLETED signals=CONSUMED"),
        ("CONSUMED", "moved", "SUCCEEDED sleep=COMPLETED ask=COMPLETED signals=CONSUMED"),
    ),
    Race(
        "the end of a signal and the wait it was for",
        EARLY,
        steps(
            signal(),
            sleep_due,
            prepared(
                lambda case: case.one.set(
                    "UPDATE signals SET expires_at = 5 WHERE instance_id = :i", i=case.instance
                )
            ),
        ),
        expire_signals,
        due("sleep"),
        ("moved", "moved", "WAITING sleep=COMPLETED ask=WAITING_SIGNAL signals=EXPIRED"),
        ("nothing", "moved", "WAITING sleep=COMPLETED ask=WAITING_SIGNAL signals=EXPIRED"),
    ),
    Race(
        "the time-out of a wait and a cancel",
        ASKING,
        steps(ask_due),
        due("ask"),
        cancel,
        ("moved", "version 2", "CANCELLED ask=FAILED late=STOPPED"),
        ("nothing", "version 2", "CANCELLED ask=STOPPED"),
    ),
    Race(
        "the time-out of a wait and a pause",
        ASKING,
        steps(ask_due),
        due("ask"),
        pause,
        ("moved", "version 2", "WAITING ask=FAILED late=WAITING_TIME"),
        ("moved", "version 2", "WAITING ask=FAILED late=WAITING_TIME"),
        after=doing(resume, due("ask")),
    ),
    Race(
        "two loops that see one time-out",
        ASKING,
        steps(ask_due),
        due("ask"),
        due("ask"),
        ("moved", "nothing", "WAITING ask=FAILED late=WAITING_TIME"),
    ),
    Race(
        "two loops that see one timer",
        SLEEPING,
        steps(sleep_due),
        due("sleep"),
        due("sleep"),
        ("moved", "nothing", "RUNNING sleep=COMPLETED work=WAITING_TASK(READY)"),
    ),
    Race(
        "a timer and a cancel",
        SLEEPING,
        steps(sleep_due),
        due("sleep"),
        cancel,
        ("moved", "version 2", "CANCELLED sleep=COMPLETED work=STOPPED(CANCELLED)"),
        ("nothing", "version 2", "CANCELLED sleep=STOPPED"),
    ),
    Race(
        "a timer and a pause",
        SLEEPING,
        steps(sleep_due),
        due("sleep"),
        pause,
        ("moved", "version 2", "RUNNING sleep=COMPLETED work=WAITING_TASK(READY)"),
        ("moved", "version 2", "RUNNING sleep=COMPLETED work=WAITING_TASK(READY)"),
        after=doing(resume, due("sleep")),
    ),
    Race(
        "a timer and a resume",
        SLEEPING,
        steps(sleep_due, pause),
        due("sleep"),
        resume,
        ("moved", "version 3", "RUNNING sleep=COMPLETED work=WAITING_TASK(READY)"),
        ("nothing", "version 3", "RUNNING sleep=COMPLETED work=WAITING_TASK(READY)"),
        after=doing(due("sleep")),
    ),
    Race(
        "a timer and a signal that meet",
        MEETING,
        steps(sleep_due),
        due("sleep"),
        signal(),
        (
            "moved",
            "CONSUMED",
            "RUNNING ask=COMPLETED meet=COMPLETED sleep=COMPLETED after=WAITING_TASK(READY) signals=CONSUMED",
        ),
        (
            "moved",
            "CONSUMED",
            "RUNNING ask=COMPLETED meet=COMPLETED sleep=COMPLETED after=WAITING_TASK(READY) signals=CONSUMED",
        ),
    ),
    Race(
        "a query and the receipt",
        POLLING,
        steps(*asked),
        query,
        receipt,
        ("ACCEPTED", "PENDING", "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=PENDING"),
        (
            "ACCEPTED",
            "CONSUMED",
            "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=CONSUMED",
        ),
    ),
    Race(
        "a query that is stored and the receipt",
        POLLING,
        steps(*asked, query_alone),
        consume("ask"),
        receipt,
        ("applied", "PENDING", "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=PENDING"),
        ("nothing", "PENDING", "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=PENDING"),
    ),
    Race(
        "a pending query and the receipt",
        POLLING,
        steps(*asked),
        pending,
        receipt,
        (
            "ACCEPTED",
            "CONSUMED",
            "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=CONSUMED",
        ),
        (
            "ACCEPTED",
            "CONSUMED",
            "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=CONSUMED",
        ),
    ),
    Race(
        "a query and the deadline of its poll",
        POLLING,
        steps(*asked, poll_over),
        query,
        due("ask"),
        ("ACCEPTED", "nothing", "NEEDS_REVIEW ask=NEEDS_REVIEW(SUCCEEDED)"),
        ("ACCEPTED", "moved", "NEEDS_REVIEW ask=NEEDS_REVIEW(SUCCEEDED)"),
    ),
    Race(
        "a query that was stored in time and the deadline of its poll",
        POLLING,
        steps(*asked, query_alone, over_since),
        consume("ask"),
        due("ask"),
        ("applied", "nothing", "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY)"),
        ("nothing", "moved", "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY)"),
    ),
    Race(
        "a receipt and the deadline of its poll",
        POLLING,
        steps(*asked, pending, poll_over),
        receipt,
        due("ask"),
        ("EXPIRED", "moved", "NEEDS_REVIEW ask=NEEDS_REVIEW(SUCCEEDED) signals=EXPIRED"),
        ("EXPIRED", "moved", "NEEDS_REVIEW ask=NEEDS_REVIEW(SUCCEEDED) signals=EXPIRED"),
    ),
    Race(
        "two loops that see one round",
        POLLING,
        steps(*asked, pending, ask_due),
        due("ask"),
        due("ask"),
        ("moved", "nothing", "RUNNING ask=WAITING_TASK(SUCCEEDED+READY)"),
    ),
    Race(
        "a round and a cancel",
        POLLING,
        steps(*asked, pending, ask_due),
        due("ask"),
        cancel,
        ("moved", "version 2", "CANCELLED ask=STOPPED(SUCCEEDED+CANCELLED)"),
        ("nothing", "version 2", "CANCELLED ask=STOPPED(SUCCEEDED)"),
    ),
    Race(
        "a round and a pause",
        POLLING,
        steps(*asked, pending, ask_due),
        due("ask"),
        pause,
        ("moved", "version 2", "RUNNING ask=WAITING_TASK(SUCCEEDED+READY)"),
        ("moved", "version 2", "RUNNING ask=WAITING_TASK(SUCCEEDED+READY)"),
        after=doing(resume, due("ask")),
    ),
    Race(
        "a round and the receipt",
        POLLING,
        steps(*asked, pending, ask_due),
        due("ask"),
        receipt,
        (
            "moved",
            "CONSUMED",
            "RUNNING ask=COMPLETED(SUCCEEDED+CANCELLED) said=WAITING_TASK(READY) signals=CONSUMED",
        ),
        ("nothing", "CONSUMED", "RUNNING ask=COMPLETED(SUCCEEDED) said=WAITING_TASK(READY) signals=CONSUMED"),
    ),
    Race(
        "the claim of a round and the receipt",
        POLLING,
        steps(),
        claim("ask"),
        receipt,
        ("claimed", "CONSUMED", "RUNNING ask=COMPLETED(CANCELLED) said=WAITING_TASK(READY) signals=CONSUMED"),
        ("nothing", "CONSUMED", "RUNNING ask=COMPLETED(CANCELLED) said=WAITING_TASK(READY) signals=CONSUMED"),
    ),
    Race(
        "the start of a round and the receipt",
        POLLING,
        steps(claim("ask")),
        begin("ask"),
        receipt,
        ("granted", "CONSUMED", "RUNNING ask=COMPLETED(RUNNING) said=WAITING_TASK(READY) signals=CONSUMED"),
        (
            "the offer is closed",
            "CONSUMED",
            "RUNNING ask=COMPLETED(CANCELLED) said=WAITING_TASK(READY) signals=CONSUMED",
        ),
    ),
)
