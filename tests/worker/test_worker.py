"""The worker against a server of paper, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from pydantic import BaseModel

import orbit_sdk.handlers as orbit
from orbit_sdk.errors import InvalidArgument, PermissionDenied, Unauthenticated
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.protocol import worker as wire
from orbit_sdk.worker import Worker
from tests.worker.paper_server import TOKEN, PaperServer, paper_server


class Sum(BaseModel):
    total: int


class Gate:
    """Lets a test say when a handler goes on, from any thread."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go_on = threading.Event()

    async def wait_entered(self) -> None:
        await asyncio.to_thread(self.entered.wait, 20)


GATES: dict[str, Gate] = {}
SEEN: list[Any] = []


@orbit.handler("t.add", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def add(ctx: TaskContext, a: int, b: int = 1) -> Sum:
    return Sum(total=a + b)


@orbit.handler("t.add_slowly", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
def add_slowly(ctx: TaskContext, a: int) -> Sum:
    return Sum(total=a)


@orbit.handler("t.held", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
def held(ctx: TaskContext, gate: str) -> str:
    GATES[gate].entered.set()
    GATES[gate].go_on.wait(20)
    return "cancelled" if ctx.cancelled else "stopping" if ctx.stopping else "ran"


@orbit.handler("t.blocks_loop", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def blocks_loop(ctx: TaskContext, seconds: float) -> str:
    time.sleep(seconds)  # noqa: ASYNC251  # the mistake itself
    return "ran"


@orbit.handler("t.waits", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def waits(ctx: TaskContext) -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        SEEN.append(ctx.cancelled)
        raise
    return "never"


@orbit.handler("t.raises", version=1, queue="jobs", errors=("NO_FUNDS",))
def raises(ctx: TaskContext, what: str) -> None:
    errors: dict[str, BaseException] = {
        "final": orbit.Final("NO_FUNDS", "empty"),
        "retry": orbit.Retryable("later"),
        "person": orbit.NeedsPerson("look"),
        "verify": orbit.NeedsVerification("who knows"),
        "back": orbit.HandBack(),
        "cancelled": orbit.Cancelled("stopped"),
        "bug": ZeroDivisionError("oops \ud800"),
    }
    raise errors[what]


@orbit.handler("t.wrong", version=1, queue="jobs")
def wrong(ctx: TaskContext, size: int) -> str:
    return "x" * size if size else 7  # type: ignore[return-value]


@orbit.handler("t.marked", version=1, queue="jobs", recovery=Recovery.MARKED)
async def marked(ctx: TaskContext) -> str:
    await ctx.begin_effect()
    return "done"


@orbit.handler("t.marked_thread", version=1, queue="jobs", recovery=Recovery.MARKED)
def marked_thread(ctx: TaskContext) -> str:
    ctx.begin_effect_blocking()
    ctx.heartbeat({"rows": 3})
    return "done"


@orbit.handler("t.asked", version=1, queue="jobs", recovery=Recovery.VERIFIABLE)
def asked(ctx: TaskContext, answer: str) -> Sum:
    return Sum(total=1)


@asked.verify
async def did_it(ctx: TaskContext, answer: str) -> orbit.Verdict[Sum]:
    match answer:
        case "yes":
            return orbit.Happened(Sum(total=1))
        case "no":
            return orbit.CannotHappenAnyMore()
        case "boom":
            raise ValueError("cannot ask")
        case _:
            return orbit.CannotTell()


ALL = [add, add_slowly, held, blocks_loop, waits, raises, wrong, marked, marked_thread, asked]


@pytest_asyncio.fixture
async def paper() -> AsyncIterator[PaperServer]:
    async with paper_server() as server:
        yield server


@asynccontextmanager
async def working(paper: PaperServer, **options: Any) -> AsyncIterator[Worker]:
    options = {"slots": 4, "grace_ms": 10_000, "backoff_ms": 20, "backoff_max_ms": 50, **options}
    worker = Worker(paper.url, TOKEN, ALL, **options)
    run = asyncio.ensure_future(worker.run(signals=False))
    try:
        yield worker
    finally:
        for gate in GATES.values():
            gate.go_on.set()
        worker.halt()
        await run


def gate(name: str) -> Gate:
    GATES[name] = Gate()
    return GATES[name]


async def test_a_started_offer_runs_at_once_and_its_result_is_settled(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.add", {"a": 2, "b": 3})
        result = await paper.result(attempt)
        assert (result.outcome, result.result) == ("SUCCEEDED", {"total": 5})
        assert not any(isinstance(frame, wire.Start) for frame in session.frames)


async def test_a_two_step_offer_is_asked_for_before_it_runs(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.add_slowly", {"a": 2}, started=False)
        assert (await paper.result(attempt)).result == {"total": 2}
        assert any(isinstance(frame, wire.Start) for frame in session.frames)


async def test_a_withdrawn_offer_never_runs_and_frees_its_slot(paper: PaperServer) -> None:
    paper.starts = False
    async with working(paper, slots=1):
        session = await paper.session()
        first = await session.offer("t.add", {"a": 2}, started=False)
        second = await session.offer("t.add", {"a": 3})
        await paper.result(second)
        assert paper.results[first] == []


async def test_many_attempts_run_at_the_same_time(paper: PaperServer) -> None:
    gates = [gate(f"many{n}") for n in range(4)]
    async with working(paper):
        session = await paper.session()
        attempts = [await session.offer("t.held", {"gate": f"many{n}"}) for n in range(4)]
        for one in gates:
            await one.wait_entered()
        for one in gates:
            one.go_on.set()
        assert {(await paper.result(attempt)).result for attempt in attempts} == {"ran"}


@pytest.mark.parametrize("handler", ["t.held", "t.blocks_loop"])
async def test_a_handler_that_blocks_keeps_its_lease(paper: PaperServer, handler: str) -> None:
    paper.lease_ms = 1_500
    gate("lease")
    workers: list[Worker] = []
    async with asyncio.timeout(60):

        def work() -> None:
            async def main() -> None:
                worker = Worker(paper.url, TOKEN, ALL, slots=4)
                workers.append(worker)
                await worker.run(signals=False)

            asyncio.run(main())

        # The worker has its own loop here, as in life: a handler that blocks it must not block the server.
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        session = await paper.session()
        parameters = {"gate": "lease"} if handler == "t.held" else {"seconds": 3.0}
        attempt = await session.offer(handler, parameters)
        await paper.until(lambda: paper.renewed[attempt] >= 3)
        GATES["lease"].go_on.set()
        assert (await paper.result(attempt)).result == "ran"
        workers[0].stop()
        await asyncio.to_thread(thread.join, 20)


async def test_a_second_offer_of_an_attempt_is_dropped(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        await session.room(2)
        item = session.item("t.add", {"a": 2})
        await session.send(wire.Offer(items=[item, item]))
        await paper.result(item.attempt_id)
        await session.room(2)
        await session.send(wire.Offer(items=[item]))
        last = await session.offer("t.add", {"a": 9})
        await paper.result(last)
        assert len(paper.results[item.attempt_id]) == 1


async def test_a_push_that_answers_no_known_ready_is_discarded(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.add", {"a": 2}, ready=9_999)
        assert (await paper.result(attempt)).outcome == "DISCARDED"


async def test_a_result_that_was_not_settled_is_sent_again_after_the_connection_broke(
    paper: PaperServer,
) -> None:
    paper.settles = False
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.add", {"a": 2})
        await paper.result(attempt)
        paper.settles = True
        session.abort()
        second = await paper.session(1)
        assert [item.attempt_id for item in second.hello.in_flight] == [attempt]
        assert second.hello.in_flight[0].state == "FINISHED"
        first, again = await paper.result(attempt, times=2), paper.results[attempt][0]
        assert first == again


async def test_an_attempt_may_finish_while_the_worker_is_disconnected(paper: PaperServer) -> None:
    held_up = gate("offline")
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.held", {"gate": "offline"})
        await held_up.wait_entered()
        session.abort()
        held_up.go_on.set()
        assert (await paper.result(attempt)).result == "ran"


async def test_a_running_attempt_is_reconciled_and_goes_on(paper: PaperServer) -> None:
    held_up = gate("continue")
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.held", {"gate": "continue"})
        await held_up.wait_entered()
        session.abort()
        second = await paper.session(1)
        assert [(item.attempt_id, item.state) for item in second.hello.in_flight] == [(attempt, "RUNNING")]
        held_up.go_on.set()
        assert (await paper.result(attempt)).result == "ran"


async def test_an_attempt_that_is_no_longer_ours_is_stopped(paper: PaperServer) -> None:
    SEEN.clear()
    async with working(paper, slots=1):
        session = await paper.session()
        attempt = await session.offer("t.waits")
        paper.reconcile[attempt] = "STOP"
        session.abort()
        second = await paper.session(1)
        await second.room(1)
        assert SEEN == [True]
        assert paper.results[attempt] == []


async def test_a_lease_that_nobody_renews_stops_the_handler(paper: PaperServer) -> None:
    SEEN.clear()
    paper.lease_ms = 300
    paper.renews = False
    async with working(paper, slots=1):
        session = await paper.session()
        await session.offer("t.waits")
        await session.until(lambda me: me.link.credit.room() == 0)
        await session.room(1)
        assert SEEN == [True]


async def test_a_cancel_is_told_to_the_handler(paper: PaperServer) -> None:
    held_up = gate("cancel")
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.held", {"gate": "cancel"})
        await held_up.wait_entered()
        await session.send(wire.Cancel(items=[wire.Gone(attempt_id=attempt, reason="asked")]))
        beats = len(session.frames)
        other = await session.offer("t.add", {"a": 1})
        await paper.result(other)
        held_up.go_on.set()
        assert (await paper.result(attempt)).result == "cancelled"
        assert len(session.frames) > beats


@pytest.mark.parametrize(
    ("what", "outcome", "effect", "code"),
    [
        ("final", "FINAL", "UNKNOWN", "NO_FUNDS"),
        ("retry", "RETRYABLE", "UNKNOWN", None),
        ("person", "NEEDS_PERSON", "UNKNOWN", None),
        ("verify", "NEEDS_VERIFICATION", "UNKNOWN", None),
        ("back", "HAND_BACK", "NONE", None),
        ("cancelled", "CANCELLED", "UNKNOWN", None),
        ("bug", "EXCEPTION", "UNKNOWN", None),
    ],
)
async def test_what_a_handler_raises_becomes_its_outcome(
    paper: PaperServer, what: str, outcome: str, effect: str, code: str | None
) -> None:
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer("t.raises", {"what": what}))
        assert (result.outcome, result.effect, result.code) == (outcome, effect, code)


async def test_parameters_that_do_not_fit_are_a_definite_failure(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer("t.add", {"a": "two"}))
        assert (result.outcome, result.code, result.effect) == ("FINAL", "INVALID_PARAMETERS", "NONE")
        assert "a" in (result.message or "")


@pytest.mark.parametrize("size", [0, 300_000])
async def test_a_result_of_the_wrong_type_or_size_is_reported_as_such(paper: PaperServer, size: int) -> None:
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer("t.wrong", {"size": size}))
        assert result.outcome == "INVALID_RESULT"
        assert result.result is None
        assert result.digest is not None
        assert len(result.details["beginning"]) <= 4_000


@pytest.mark.parametrize("handler", ["t.marked", "t.marked_thread"])
@pytest.mark.parametrize(
    ("answer", "outcome"), [("GRANTED", "SUCCEEDED"), ("CANCELLED", "CANCELLED"), ("LOST", "EXCEPTION")]
)
async def test_an_effect_begins_only_after_its_mark_is_stored(
    paper: PaperServer, handler: str, answer: str, outcome: str
) -> None:
    paper.marks = answer
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer(handler))
        assert result.outcome == outcome
        assert sum(isinstance(frame, wire.Mark) for frame in session.frames) == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("yes", "HAPPENED"),
        ("no", "CANNOT_HAPPEN_ANY_MORE"),
        ("maybe", "CANNOT_TELL"),
        ("boom", "CANNOT_TELL"),
    ],
)
async def test_a_verify_offer_asks_the_verify_function(paper: PaperServer, answer: str, outcome: str) -> None:
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("t.asked", {"answer": answer}, kind="VERIFY", asked_generation=3)
        result = await paper.result(attempt)
        assert (result.outcome, result.asked_generation) == (outcome, 3)


async def test_an_offer_of_an_unknown_handler_is_handed_back(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        assert (await paper.result(await session.offer("t.nobody"))).outcome == "HAND_BACK"


async def test_a_draining_worker_takes_nothing_new_and_waits_for_what_runs(paper: PaperServer) -> None:
    held_up = gate("drain")
    worker = Worker(paper.url, TOKEN, ALL, grace_ms=20_000)
    run = asyncio.ensure_future(worker.run(signals=False))
    session = await paper.session()
    attempt = await session.offer("t.held", {"gate": "drain"})
    await held_up.wait_entered()
    worker.stop()
    await session.until(lambda me: me.link.state == "draining")
    assert session.link.credit.room() == 0
    held_up.go_on.set()
    assert (await paper.result(attempt)).result == "stopping"
    await run
    await session.closed.wait()


async def test_grace_that_runs_out_leaves_the_rest_to_its_lease(paper: PaperServer) -> None:
    held_up = gate("grace")
    worker = Worker(paper.url, TOKEN, ALL, grace_ms=100)
    run = asyncio.ensure_future(worker.run(signals=False))
    session = await paper.session()
    attempt = await session.offer("t.held", {"gate": "grace"})
    await held_up.wait_entered()
    worker.stop()
    await run
    assert paper.results[attempt] == []
    held_up.go_on.set()


async def test_a_bad_token_ends_the_worker_with_a_clear_error(paper: PaperServer) -> None:
    with pytest.raises(Unauthenticated, match="does not accept this token"):
        await Worker(paper.url, "wrong", ALL).run(signals=False)


async def test_refused_handlers_are_named(paper: PaperServer, caplog: pytest.LogCaptureFixture) -> None:
    paper.refused = [wire.Refused(kind="HANDLER", name="t.add@1", reason="another digest")]
    with caplog.at_level(logging.ERROR, "orbit.worker"):
        async with working(paper):
            session = await paper.session()
            await paper.result(await session.offer("t.add_slowly", {"a": 1}))
    assert "refused handler t.add@1: another digest" in caplog.text


async def test_a_worker_that_may_serve_no_queue_ends_with_the_reason(paper: PaperServer) -> None:
    paper.refused = [wire.Refused(kind="QUEUE", name="jobs", reason="no right to consume it")]
    with pytest.raises(PermissionDenied, match="jobs: no right to consume it"):
        await Worker(paper.url, TOKEN, ALL).run(signals=False)


async def test_progress_and_log_reach_where_they_should(
    paper: PaperServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(paper, progress_every_ms=0):
        session = await paper.session()
        await paper.result(await session.offer("t.marked_thread"))
        # Progress of an attempt that has ended is not sent: its result says more.
        assert all(
            isinstance(item.value, dict)
            for f in session.frames
            if isinstance(f, wire.Progress)
            for item in f.items
        )


def test_a_worker_without_handlers_or_with_a_strange_address_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="nothing to run"):
        Worker("http://127.0.0.1:1", TOKEN, [])
    with pytest.raises(InvalidArgument, match="url"):
        Worker("ftp://127.0.0.1", TOKEN, ALL)
    with pytest.raises(InvalidArgument, match="slots"):
        Worker("http://127.0.0.1:1", TOKEN, ALL, slots=0)
