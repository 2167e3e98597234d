"""The client against a real server with a real worker: from a typed start to a typed result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

import orbit_sdk as orbit
from orbit_sdk.client import (
    ClientSettings,
    NeedsReview,
    NotFinished,
    Orbit,
    OrbitClient,
    Submission,
    WorkflowCancelled,
    WorkflowFailed,
)
from orbit_sdk.errors import (
    Conflict,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
)
from orbit_sdk.values.ids import derive_id
from orbit_sdk.worker import Worker
from orbit_server.platform.credentials import Rights
from tests.server import ServerProcess, server_process, until

FAST = ClientSettings(poll=5.0, retry_for=60.0, backoff=0.05, max_backoff=0.2)


class Order(BaseModel):
    number: str
    amount: int


class Approval(BaseModel):
    granted: bool


class Payment(BaseModel):
    receipt: str | None


APPROVAL = orbit.Signal("client.approval", Approval)


@orbit.handler(
    "client.pay", version=1, queue="client", recovery=orbit.Recovery.IDEMPOTENT, errors=("NO_FUNDS",)
)
async def pay(ctx: orbit.TaskContext, number: str, amount: int) -> Payment:
    if amount == 0:
        raise orbit.Final("NO_FUNDS")
    if amount < 0:
        raise orbit.NeedsPerson("look at it")
    return Payment(receipt=f"{number}/{amount}")


@orbit.workflow("client.payment", version=1, on_failure="FAIL")
def payment(order: Order) -> Payment:
    return pay(order.number, order.amount)


@orbit.workflow("client.approved", version=1)
def approved(order: Order) -> Payment:
    approval = APPROVAL.wait(
        match=order.number,
        timeout=timedelta(days=1),
        on_timeout=lambda: orbit.build(Approval, granted=False),
    )
    return orbit.branch(
        orbit.when(approval.granted, lambda: pay(order.number, order.amount)),
        orbit.otherwise(lambda: orbit.build(Payment, receipt=None)),
    )


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(sqlite_url, tmp_path, "--lease-ms", "2000") as running:
        yield running


@asynccontextmanager
async def working(server: ServerProcess) -> AsyncIterator[None]:
    worker = Worker(server.url, server.token, [pay], backoff_ms=20, backoff_max_ms=200, grace_ms=1_000)
    running = asyncio.create_task(worker.run(signals=False))
    try:
        yield
    finally:
        worker.stop()
        await running


@asynccontextmanager
async def connected(server: ServerProcess) -> AsyncIterator[OrbitClient]:
    async with OrbitClient(server.url, server.token, settings=FAST) as client:
        for one in (payment, approved):
            await client.definitions.publish(one.compile().definition.to_json(), current=True)
        yield client


async def test_a_typed_workflow_gives_its_typed_result(server: ServerProcess) -> None:
    async with connected(server) as client, working(server):
        handle = await client.start(payment, Order(number="A", amount=5), business_key="A", labels={"x": "y"})
        result: Payment = await handle.result(timeout=60)
        assert result == Payment(receipt="A/5")
        detail = await handle.get()
        assert detail.state == "SUCCEEDED"
        assert detail.labels == {"x": "y"}
        assert (await handle.steps()).items[0].state == "COMPLETED"
        step = await client.workflows.step(handle.id, "pay")
        assert step.result == {"receipt": "A/5"}
        assert [item.type async for item in handle.events()][-1] == "workflow.started"
        [task] = [item async for item in client.tasks.list(workflow_id=handle.id)]
        assert (await client.tasks.get(task.id)).result == {"receipt": "A/5"}
        assert [item.outcome async for item in client.tasks.attempts(task.id)] == ["SUCCEEDED"]


async def test_a_signal_finds_its_wait_and_a_handle_is_attached_by_business_key(
    server: ServerProcess,
) -> None:
    async with connected(server) as client, working(server):
        await client.start(approved, Order(number="B", amount=2), business_key="order-B", current=True)
        handle = await client.attach(approved, "order-B")
        with pytest.raises(NotFinished):
            await handle.result(timeout=0)
        sent = await handle.send(APPROVAL, Approval(granted=True), match="B", idempotency_key="mail-1")
        again = await handle.send(APPROVAL, Approval(granted=True), match="B", idempotency_key="mail-1")
        assert sent.state == "CONSUMED"
        assert again.id == sent.id
        with pytest.raises(Conflict):
            await handle.send(APPROVAL, Approval(granted=False), match="B", idempotency_key="mail-1")
        assert (await handle.result(timeout=60)).receipt == "B/2"
        assert [item.id async for item in client.workflows.signals(handle.id)] == [sent.id]
        assert (await client.attach(approved, handle.id)).id == handle.id
        with pytest.raises(NotFound, match="0 open"):
            await client.attach(approved, "order-B")


async def test_ends_without_an_output_are_told_apart(server: ServerProcess) -> None:
    async with connected(server) as client, working(server):
        failed = await client.start(payment, Order(number="C", amount=0))
        with pytest.raises(WorkflowFailed) as caught:
            await failed.result(timeout=60)
        assert caught.value.code == "NO_FUNDS"

        waiting = await client.start(approved, Order(number="D", amount=1))
        paused = await waiting.pause(reason="later")
        assert paused.workflow.paused
        assert not (await waiting.resume(reason="now")).workflow.paused
        await waiting.cancel(reason="withdrawn")
        with pytest.raises(WorkflowCancelled):
            await waiting.result(timeout=60)
        with pytest.raises(FailedPrecondition):
            await waiting.pause(reason="too late")

        reviewed = await client.start(payment, Order(number="E", amount=-1))
        with pytest.raises(NeedsReview):
            await reviewed.result(timeout=60, on_review="raise")
        [item] = [each async for each in client.reviews.list(kind="STEP")]
        assert item.workflow_id == reviewed.id
        decision = {
            "verdict": "SUCCEEDED",
            "expected_revision": str(item.revision),
            "reason": "seen",
            "basis": "PROVEN",
            "evidence": "journal 1",
            "result": {"receipt": "by hand"},
        }
        await client.reviews.resolve_step(reviewed.id, item.step_key or "", decision)
        assert (await reviewed.result(timeout=60)).receipt == "by hand"


async def test_a_repeated_start_is_the_first_one_and_another_meaning_is_a_conflict(
    server: ServerProcess,
) -> None:
    async with connected(server) as client:
        first = await client.start(approved, Order(number="F", amount=1), idempotency_key="once")
        again = await client.start(approved, Order(number="F", amount=1), idempotency_key="once")
        assert again.id == first.id
        with pytest.raises(Conflict):
            await client.start(approved, Order(number="F", amount=2), idempotency_key="once")


async def test_refusals_come_back_as_their_own_errors(server: ServerProcess) -> None:
    async with connected(server) as client:
        with pytest.raises(NotFound):
            await client.workflows.get("0" * 32)
        with pytest.raises(NotFound):
            await client.workflows.start("client.nothing", {}, version=1)
        with pytest.raises(InvalidArgument):
            await client.workflows.start("client.payment", {"number": 5}, version=1)
        changed = payment.compile().definition.to_json()
        with pytest.raises(Conflict):
            await client.definitions.publish({**changed, "title": "another"})
        checked = await client.definitions.check(payment.compile().definition.to_json())
        assert checked.ok
        made = await client.credentials.create("reader", ["workflows:read"])
        async with OrbitClient(server.url, made.token, settings=FAST) as reader:
            assert [item async for item in reader.workflows.list()] == []
            with pytest.raises(PermissionDenied):
                await reader.workflows.start("client.payment", {"number": "x", "amount": 1})
        await client.credentials.revoke(made.id, reason="over")
        async with OrbitClient(server.url, made.token, settings=FAST) as reader:
            with pytest.raises(Unauthenticated):
                await reader.workflows.get("0" * 32)


async def test_a_start_outlives_a_restart_of_the_server_and_happens_once(server: ServerProcess) -> None:
    async with connected(server) as client, working(server):
        waiting = await client.start(approved, Order(number="G", amount=3))
        result = asyncio.create_task(waiting.result(timeout=120))
        await asyncio.to_thread(server.kill)
        starting = asyncio.create_task(client.start(payment, Order(number="H", amount=4), business_key="H"))
        await asyncio.to_thread(server.restart)
        started = await starting
        assert (await started.result(timeout=120)).receipt == "H/4"
        assert len([item async for item in client.workflows.list(business_key="H")]) == 1
        await waiting.send(APPROVAL, Approval(granted=True), match="G")
        assert (await result).receipt == "G/3"


async def test_tasks_are_submitted_with_checked_parameters(server: ServerProcess) -> None:
    async with connected(server) as client, working(server):
        later = await client.submit(
            pay,
            {"number": "T", "amount": 1},
            delay=timedelta(hours=1),
            options=Submission(business_key="T", priority=7),
        )
        assert later.state == "SCHEDULED"
        assert (await client.tasks.cancel(later.id, reason="no")).state == "CANCELLED"
        with pytest.raises(InvalidArgument):
            await client.submit(pay, {"number": "T"})
        key = derive_id("test", "review")
        task = await client.submit(pay, {"number": "U", "amount": -1}, idempotency_key=key)
        assert (await client.submit(pay, {"number": "U", "amount": -1}, idempotency_key=key)).id == task.id

        async def in_review() -> bool:
            return (await client.tasks.get(task.id)).state == "NEEDS_REVIEW"

        await until(in_review)
        detail = await client.tasks.get(task.id)
        decision = {
            "verdict": "SUCCEEDED",
            "expected_revision": str(detail.revision),
            "reason": "seen",
            "basis": "PROVEN",
            "evidence": "journal 2",
            "result": {"receipt": "hand"},
        }
        assert (await client.tasks.resolve(task.id, decision)).state == "SUCCEEDED"


async def test_batches_answer_item_by_item(server: ServerProcess) -> None:
    async with connected(server) as client:
        good = {
            "definition_id": "client.approved",
            "input": {"number": "I", "amount": 1},
            "idempotency_key": "i",
        }
        bad = {"definition_id": "client.approved", "input": {}, "idempotency_key": "j"}
        found = await client.workflows.start_batch([good, bad, good])
        assert found.items[0].id is not None
        assert found.items[0].id == found.items[2].id
        assert found.items[1].error is not None
        assert found.items[1].error.code == "INVALID_ARGUMENT"
        task = {
            "queue": "client",
            "handler": "client.pay",
            "handler_version": 1,
            "parameters": {"number": "x", "amount": 1},
            "delay_ms": 3_600_000,
            "idempotency_key": "t",
        }
        submitted = await client.tasks.submit_batch([task, task])
        assert submitted.items[0].id == submitted.items[1].id


async def test_definitions_are_listed_and_the_current_one_can_be_moved(server: ServerProcess) -> None:
    async with connected(server) as client:
        document = payment.compile().definition.to_json()
        second = await client.definitions.publish({**document, "version": 2})
        assert not second.current
        moved = await client.definitions.set_current("client.payment", 2, reason="better")
        assert moved.current
        versions = [(item.version, item.current) async for item in client.definitions.list("client.payment")]
        assert versions == [(2, True), (1, False)]
        assert (await client.definitions.get("client.payment", 1)).definition == document


def test_the_sync_twin_does_the_same(server: ServerProcess) -> None:
    ended = threading.Event()

    async def work() -> None:
        async with working(server):
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        with Orbit(server.url, server.token, settings=FAST) as client:
            assert client.healthy()
            client.definitions.publish(approved.compile().definition.to_json(), current=True)
            handle = client.start(approved, Order(number="S", amount=6), business_key="S")
            handle.send(APPROVAL, Approval(granted=True), match="S")
            result: Payment = handle.result(timeout=60)
            assert result == Payment(receipt="S/6")
            assert [item.id for item in client.workflows.list(business_key="S")] == [handle.id]
            assert [item.type for item in handle.events()][-1] == "workflow.started"
            assert client.attach(approved, handle.id).id == handle.id
    finally:
        ended.set()
        thread.join()


async def test_signals_are_limited_to_the_rights_of_the_token(server: ServerProcess) -> None:
    async with connected(server) as client:
        handle = await client.start(approved, Order(number="K", amount=1))
        rights = Rights(("workflows:read", "workflows:signal"))
        made = await client.credentials.create(
            "narrow", rights.permissions, signal_definitions=["client.other"]
        )
        async with OrbitClient(server.url, made.token, settings=FAST) as narrow:
            with pytest.raises(NotFound):  # what is out of scope cannot be told from what is not there
                await narrow.workflows.signal(handle.id, "client.approval", "K", {"granted": True})
