"""The worker socket with everything behind it: dispatcher, committer, database."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import orbit_sdk.handlers as orbit
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import encode
from orbit_sdk.worker import Worker
from orbit_server.gateway.rows import SessionRow, write_session
from orbit_server.platform.logs import JsonFormatter
from orbit_server.platform.permissions import Names
from orbit_server.pulse.keys.commands import Admit
from orbit_server.pulse.keys.lines import KeyLines
from orbit_server.pulse.keys.sweeps import sweep_keys
from orbit_server.pulse.sweeps import sweep_due
from orbit_server.pulse.tasks.commands import CancelTask
from orbit_server.pulse.tasks.keys.records import class_id_of, key_id_of
from orbit_server.pulse.tasks.lifecycle import Recovery as TaskRecovery
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.tables import sessions
from tests.storage.pulse.house import SPACE, House
from tests.storage.pulse.test_keys import Gate
from tests.worker.served import Served, claim, listed, principal, served


@pytest.fixture
async def house(database_url: str) -> AsyncIterator[Served]:
    async with served(database_url, PulseTimes()) as one:
        yield one


@pytest.fixture
async def quick(sqlite_url: str) -> AsyncIterator[Served]:
    """Small limits, so that they can be met."""
    settings: dict[str, Any] = {"silence_ms": 600, "hello_ms": 300, "send_ms": 300}
    async with served(sqlite_url, PulseTimes(), **settings) as one:
        yield one


async def session_rows(house: Served) -> list[Any]:
    return list(await house.database.read(lambda conn: conn.execute(select(sessions)).all()))


async def test_a_task_travels_to_a_worker_and_its_result_back(house: Served) -> None:
    async with house.connected() as worker:
        welcome = await worker.greet()
        assert (welcome.lease_ms, welcome.refused) == (30_000, [])
        number = await worker.ready(1)
        task_id = await house.submit(parameters={"n": 3})
        (offer,) = await worker.offers(1)
        assert (offer.task_id, offer.started, offer.ready) == (task_id, True, number)
        assert offer.parameters == {"n": 3}
        settled = await worker.result(offer, result={"ok": True})
        assert settled.answer == "ACCEPTED"
        assert (await house.task(task_id)).state is TaskState.SUCCEEDED
        again = await worker.result(offer, result={"ok": True})
        assert again.answer == "ACCEPTED"
        other = await worker.result(offer, result={"ok": False})
        assert other.answer == "EVIDENCE"


async def test_many_results_of_one_frame_are_answered_in_one_frame(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        await worker.ready(10)
        for n in range(10):
            await house.submit(parameters={"n": n})
        offers = await worker.offers(10)
        items = [
            wire.ResultItem(
                attempt_id=one.attempt_id, task_id=one.task_id, generation=one.generation, outcome="SUCCEEDED"
            )
            for one in offers
        ]
        await worker.say(wire.Result(items=items))
        settled = await worker.hear(wire.Settled)
        assert {item.answer for item in settled.items} == {"ACCEPTED"}
        assert len(settled.items) == 10


async def test_a_conservative_task_is_started_on_request_renewed_and_marked(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet(recovery="MARKED")
        await worker.ready(1)
        await house.submit(recovery=TaskRecovery.MARKED)
        (offer,) = await worker.offers(1)
        assert not offer.started
        await worker.say(wire.Start(number=50, items=[claim(offer)]))
        started = await worker.hear(wire.Started)
        assert (started.number, started.items[0].attempt_id) == (50, offer.attempt_id)
        await worker.say(wire.Renew(number=51, items=[claim(offer)]))
        renewed = await worker.hear(wire.Renewed)
        assert (renewed.number, renewed.items[0].lease_ms > 20_000) == (51, True)
        await worker.say(wire.Mark(items=[claim(offer)]))
        assert (await worker.hear(wire.Marked)).items[0].answer == "GRANTED"
        (attempt,) = await house.attempts(offer.task_id)
        assert attempt.marked_at is not None


async def test_attempts_of_others_are_lost_withdrawn_and_refused(house: Served) -> None:
    strange = wire.Claim(attempt_id="f" * 32, generation=1)
    async with house.connected() as worker:
        await worker.greet()
        await worker.say(wire.Renew(number=1, items=[strange]))
        assert (await worker.hear(wire.Lost)).items[0].attempt_id == "f" * 32
        await worker.say(wire.Start(number=2, items=[strange]))
        assert (await worker.hear(wire.Withdrawn)).items[0].attempt_id == "f" * 32
        await worker.say(wire.Mark(items=[strange]))
        assert (await worker.hear(wire.Marked)).items[0].answer == "LOST"
        item = wire.ResultItem(attempt_id="f" * 32, task_id="f" * 32, generation=1, outcome="SUCCEEDED")
        await worker.say(wire.Result(items=[item]))
        assert (await worker.hear(wire.Settled)).items[0].answer == "REFUSED"


async def test_a_result_of_another_namespace_is_as_good_as_absent(house: Served) -> None:
    async with house.connected() as worker, house.connected("stranger") as stranger:
        await worker.greet()
        await stranger.greet()
        await worker.ready(1)
        task_id = await house.submit()
        (offer,) = await worker.offers(1)
        assert (await stranger.result(offer)).answer == "REFUSED"
        assert (await house.task(task_id)).state is TaskState.RUNNING


async def test_a_queue_without_a_right_and_a_handler_with_other_types_are_refused_by_name(
    house: Served,
) -> None:
    async with house.connected() as first, house.connected() as second:
        await first.greet()
        strange = wire.HandlerOffer(name="work", version=1, recovery="IDEMPOTENT", digest="e" * 64)
        welcome = await second.greet(handlers=[strange], queues=["jobs", "secret"])
        assert [(item.kind, item.name) for item in welcome.refused] == [
            ("QUEUE", "secret"),
            ("HANDLER", "work@1"),
        ]
        stored = {row.id: row.refused for row in await session_rows(house)}
        assert list(json.loads(stored[welcome.session_id] or "")) == ["work@1"]
        await second.ready(5)
        await first.ready(1)
        await house.submit()
        assert len(await first.offers(1)) == 1


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong", 401), ("reader", 403)])
async def test_who_may_not_connect_is_told_by_status(house: Served, token: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with house.connected(token):
            pass
    assert refused.value.response.status_code == status


async def test_a_session_has_a_row_from_hello_to_its_end(house: Served) -> None:
    async with house.connected() as worker:
        welcome = await worker.greet(build="b7")
        (row,) = await session_rows(house)
        assert (row.id, row.worker, row.build, row.closed_at) == (welcome.session_id, "raw", "b7", None)
        assert json.loads(row.queues) == ["jobs"]
        assert list(json.loads(row.handlers)) == ["work@1"]
    await house.sessions_are(0)
    (row,) = await session_rows(house)
    assert row.closed_at is not None


async def test_a_session_whose_node_died_is_closed_by_any_other(house: Served) -> None:
    async with house.connected() as worker:
        welcome = await worker.greet()
        dead = SessionRow("9" * 32, "8" * 32, "7" * 32, "6" * 32, "5" * 32, "gone", "", "{}", "[]")
        await house.database.write(lambda conn: write_session(conn, dead, 1))
        await house.gateway.sweep()
        ends = {row.id: row.closed_at for row in await session_rows(house)}
        assert ends == {welcome.session_id: None, dead.id: 1}


async def test_a_close_returns_offers_and_leaves_what_runs_to_its_lease(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        await worker.ready(2)
        offered = await house.submit(recovery=TaskRecovery.CONSERVATIVE)
        running = await house.submit()
        await worker.offers(2)
    await house.sessions_are(0)
    assert (await house.task(offered)).state is TaskState.READY
    assert (await house.task(running)).state is TaskState.RUNNING


async def test_after_a_reconnect_attempts_go_on_under_the_new_session(house: Served) -> None:
    async with house.connected() as first:
        await first.greet()
        await first.ready(1)
        task_id = await house.submit()
        (offer,) = await first.offers(1)
        async with house.connected() as second:
            welcome = await second.greet(nonce=first.nonce, in_flight=[listed(offer)])
            assert [(item.attempt_id, item.answer) for item in welcome.in_flight] == [
                (offer.attempt_id, "CONTINUE")
            ]
            await first.ws.close()
            await house.sessions_are(1)
            await second.say(wire.Renew(number=1, items=[claim(offer)]))
            assert (await second.hear(wire.Renewed)).items[0].attempt_id == offer.attempt_id
            assert (await second.result(offer)).answer == "ACCEPTED"
    assert (await house.task(task_id)).state is TaskState.SUCCEEDED


async def test_a_reconnect_hears_what_is_settled_and_what_is_lost(house: Served) -> None:
    async with house.connected() as first:
        await first.greet()
        await first.ready(2)
        await house.submit()
        await house.submit()
        done, taken = await first.offers(2)
        await first.result(done)
        async with house.connected() as second:
            await second.greet(nonce="1" * 32)
            async with house.connected() as third:
                in_flight = [listed(done, "FINISHED"), listed(taken)]
                welcome = await third.greet(nonce="2" * 32, in_flight=in_flight)
                assert [item.answer for item in welcome.in_flight] == ["SETTLED", "STOP"]


async def test_a_push_that_never_reached_the_process_is_given_back_uncharged(house: Served) -> None:
    async with house.connected() as first:
        await first.greet()
        await first.ready(1)
        task_id = await house.submit()
        await first.offers(1)
        async with house.connected() as second:
            await second.greet(nonce=first.nonce)
            task = await house.task(task_id)
            assert (task.state, task.attempts_used) == (TaskState.READY, 0)


async def test_the_sweep_gives_back_what_was_claimed_and_never_pushed(house: Served) -> None:
    async with house.connected() as worker:
        welcome = await worker.greet()
        await worker.ready(1)
        task_id = await house.submit()
        await worker.offers(1)
        session = house.gateway.sessions[welcome.session_id]
        session.known.clear()  # as if the commit's outcome had been unknown and nothing was pushed
        assert await house.gateway.sweep() == 0
        assert await house.gateway.sweep() == 1
        assert (await house.task(task_id)).state is TaskState.READY


@pytest.mark.parametrize("how", ["pause", "cancel"])
async def test_a_worker_hears_of_a_withdrawn_offer_before_it_asks(house: Served, how: str) -> None:
    async with house.connected() as worker:
        await worker.greet()
        await worker.ready(1)
        task_id = await house.submit(recovery=TaskRecovery.CONSERVATIVE)
        (offer,) = await worker.offers(1)
        if how == "pause":
            await house.database.committer.submit(Gate([task_id], closed=True))
        else:
            await house.database.committer.submit(CancelTask(None, SPACE, task_id, house.by()))
        told = await worker.hear(wire.Withdrawn)
        assert (told.number, [one.attempt_id for one in told.items]) == (None, [offer.attempt_id])
        await worker.say(wire.Start(number=9, items=[claim(offer)]))
        assert (await worker.hear(wire.Withdrawn)).number == 9


async def test_a_worker_hears_of_what_another_server_withdrew_and_cancelled(mariadb_url: str) -> None:
    times = PulseTimes()
    async with (
        served(mariadb_url, times) as house,
        House(mariadb_url, times) as other,
        house.connected() as worker,
    ):
        await worker.greet()
        await worker.ready(2)
        withdrawn = await house.submit(recovery=TaskRecovery.CONSERVATIVE)
        (offer,) = await worker.offers(1)
        runs = await house.submit()
        (running,) = await worker.offers(1)
        for task_id in (withdrawn, runs):
            await other.database.committer.submit(CancelTask(None, SPACE, task_id, other.by()))
        await house.gateway.sweep()
        told = [await worker.hear(wire.Withdrawn, wire.Cancel) for _ in range(2)]
        found = {(one.type, one.items[0].attempt_id) for one in told}
        assert found == {("withdrawn", offer.attempt_id), ("cancel", running.attempt_id)}
        await house.gateway.sweep()
        assert (await worker.result(running, outcome="CANCELLED")).answer == "ACCEPTED"


async def test_who_stands_next_in_line_follows_in_the_transaction_that_frees_the_key(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        await worker.ready(9)
        tasks = [await house.submit(concurrency_key="acct:9") for _ in range(4)]
        (offer,) = await worker.offers(1)
        # The first end is seen by a sweep, which reads the line; those after it need none.
        await worker.result(offer)
        assert (await sweep_keys(house.database, await house.database.now(), house.lines)).moved == 1
        (offer,) = await worker.offers(1)
        assert offer.task_id == tasks[1]
        for task_id in tasks[2:]:
            item = wire.ResultItem(**claim(offer).model_dump(), task_id=offer.task_id, outcome="SUCCEEDED")
            await worker.say(wire.Result(items=[item]))
            (offer,) = await worker.offers(1)
            assert offer.task_id == task_id
            await house.sound()


async def test_an_old_line_and_one_whose_first_has_gone_admit_nobody_wrongly(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        await worker.ready(9)
        tasks = [await house.submit(concurrency_key="acct:9") for _ in range(3)]
        (offer,) = await worker.offers(1)
        key_id, class_id = key_id_of(SPACE, "jobs", "acct:9"), class_id_of(SPACE, "jobs", "acct")
        house.lines.read(key_id, [tasks[1]])
        await house.database.committer.submit(CancelTask(None, SPACE, tasks[1], house.by()))
        await worker.result(offer)
        assert (await house.task(tasks[2])).blocked
        await house.sound()
        assert await house.admit() == 1
        house.lines.read(key_id, tasks)
        now = house.clock.monotonic_us()
        old = KeyLines(lambda: now)
        old.read(key_id, tasks)
        now += 300_000
        assert old.next_of(key_id, class_id, lane="l") is None
        named = Admit(key_id, class_id, (tasks[0],), beside="l")
        assert house.lines.next_of(key_id, class_id, lane="l") == named


async def test_a_draining_worker_gets_nothing_more_but_may_report(house: Served) -> None:
    async with house.connected() as worker, house.connected() as other:
        await worker.greet()
        await other.greet()
        await worker.ready(5)
        await house.submit()
        (offer,) = await worker.offers(1)
        await worker.say(wire.Drain(reason="bye"))
        assert (await worker.result(offer)).answer == "ACCEPTED"
        await other.ready(5)
        await house.submit()
        assert len(await other.offers(1)) == 1


async def test_a_revoked_credential_ends_its_sessions(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        house.gateway.revoke(house.tokens["good"].credential_id)
        error = await worker.hear(wire.Error)
        assert (error.code, error.fatal) == ("UNAUTHENTICATED", True)
        assert (await worker.closed())[0] == 1008


async def test_a_leaving_server_says_so_and_closes_with_come_back_later(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        house.gateway.drain()
        assert (await worker.hear(wire.Drain)).type == "drain"
        with pytest.raises(InvalidStatus):
            async with house.connected():
                pass
        await house.gateway.close()
        assert (await worker.closed())[0] == 1012


async def test_a_silent_worker_and_one_that_never_greets_are_disconnected(quick: Served) -> None:
    async with quick.connected() as mute, quick.connected() as silent:
        await silent.greet()
        assert (await mute.closed()) == (1008, "silent for too long")
        assert (await silent.closed()) == (1008, "silent for too long")


async def test_a_worker_that_beats_is_not_silent(quick: Served) -> None:
    async with quick.connected() as worker:
        await worker.greet()
        for number in range(8):
            await worker.say(wire.Beat(number=number))
            assert (await worker.hear(wire.Beat)).number == number
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", 1002),
        (b"\x00", 1002),
        ('{"type": "result", "items": []}', 1002),
        ('{"type": "beat", "number": 1, "number": 1}', 1002),
        ("[" * 5_000, 1002),
        ('{"type": "ready", "number": 1, "slots": 1, "seen": 7}', 1002),
        ('"' + "x" * (wire.FRAME_BYTES_MAX + 10) + '"', 1009),
    ],
)
async def test_hostile_frames_end_the_session_and_nothing_else(house: Served, frame: Any, code: int) -> None:
    async with house.connected() as good, house.connected() as bad:
        await good.greet()
        await bad.greet()
        await bad.say(frame)
        assert (await bad.closed())[0] == code
        await good.say(wire.Beat(number=1))
        assert (await good.hear(wire.Beat)).number == 1


async def test_an_unknown_type_is_answered_with_a_reason(house: Served) -> None:
    async with house.connected() as worker:
        await worker.greet()
        await worker.say('{"type": "dance"}')
        error = await worker.hear(wire.Error)
        assert (error.about, error.fatal) == ("dance", False)
        await worker.say(wire.Beat(number=1))
        await worker.hear(wire.Beat)


async def test_handlers_that_do_not_stop_are_shown_with_their_worker(quick: Served) -> None:
    async with quick.connected() as worker:
        await worker.greet()
        for number, stuck in ((1, 2), (2, 0)):
            await worker.say(wire.Beat(number=number, stuck=stuck))
            await worker.hear(wire.Beat)
            await quick.gateway.sweep()
            assert [row.stuck for row in await session_rows(quick)] == [stuck]


async def test_a_slow_reader_is_cut_off_and_its_offers_return(quick: Served) -> None:
    async with quick.connected(buffer=4_096) as worker:
        await worker.greet()
        worker.ws.transport.pause_reading()
        await worker.ready(20)
        large = {"text": "x" * 200_000}
        ids = [await quick.submit(parameters=large, recovery=TaskRecovery.CONSERVATIVE) for _ in range(20)]
        await asyncio.wait_for(quick.sessions_are(0), 30)
        assert {(await quick.task(task_id)).state for task_id in ids} == {TaskState.READY}
        worker.ws.transport.resume_reading()
        assert (await asyncio.wait_for(worker.closed(), 10))[0] == 1006


@orbit.handler("work", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def work(ctx: TaskContext, n: int) -> dict[str, int]:
    return {"twice": 2 * n}


async def test_the_worker_of_the_sdk_does_a_hundred_tasks(house: Served) -> None:
    worker = Worker(house.http_url, "good", [work], slots=8)
    run = asyncio.ensure_future(worker.run(signals=False))
    ids = [await house.submit(parameters={"n": n}) for n in range(100)]
    for n, task_id in enumerate(ids):
        while (stored := await house.result(task_id)) is None:  # noqa: ASYNC110  # nothing tells of one task
            await asyncio.sleep(0.01)
        assert stored.result == f'{{"twice":{2 * n}}}'
    worker.stop()
    await run
    await house.sessions_are(0)
    assert {(await house.task(task_id)).attempts_used for task_id in ids} == {1}


@orbit.handler("tally", version=1, queue="jobs", recovery=Recovery.CONSERVATIVE)
def tally(ctx: TaskContext, n: int) -> int:
    RUNS.append(n)
    return n


@orbit.handler("marking", version=1, queue="jobs", recovery=Recovery.MARKED)
async def marking(ctx: TaskContext, n: int) -> int:
    await ctx.begin_effect()
    RUNS.append(1_000 + n)
    return n


RUNS: list[int] = []


async def test_connections_that_break_all_the_time_lose_nothing_and_repeat_nothing(house: Served) -> None:
    RUNS.clear()
    options: dict[str, Any] = {"slots": 4, "backoff_ms": 5, "backoff_max_ms": 20}
    worker = Worker(house.http_url, "good", [work, tally, marking], **options)
    run = asyncio.ensure_future(worker.run(signals=False))
    easy = [await house.submit(parameters={"n": n}) for n in range(60)]
    careful = [
        await house.submit(parameters={"n": n}, handler="tally", recovery=TaskRecovery.CONSERVATIVE)
        for n in range(60)
    ]
    careful += [
        await house.submit(parameters={"n": n}, handler="marking", recovery=TaskRecovery.MARKED)
        for n in range(40)
    ]
    left = {*easy, *careful}
    while left:
        for session in tuple(house.gateway.sessions.values()):
            session._socket.abort()
        await asyncio.sleep(0.05)
        await sweep_due(house.database, await house.database.now(), house.times)
        left = {one for one in left if (await house.task(one)).settled_at is None}
    worker.stop()
    await run
    assert {(await house.task(one)).state for one in (*easy, *careful)} == {TaskState.SUCCEEDED}
    assert sorted(RUNS) == [*range(60), *range(1_000, 1_040)]


async def test_a_frame_that_inflates_beyond_the_limit_is_refused(house: Served) -> None:
    headers = {"Authorization": "Bearer good"}
    async with connect(f"ws://{house.address}/v1/worker", additional_headers=headers) as ws:
        await ws.send("[" + "0," * 10_000_000 + "0]")
        await ws.wait_closed()
        assert ws.close_code == 1009


async def test_random_frames_end_sessions_and_never_the_server(house: Served) -> None:
    chance = random.Random(11)
    good = encode(wire.Renew(number=1, items=[wire.Claim(attempt_id="f" * 32, generation=1)]))
    for _ in range(60):
        async with house.connected() as worker:
            await worker.greet()
            for _ in range(chance.randrange(1, 6)):
                place = chance.randrange(len(good))
                frame = chance.choice(
                    [
                        good,
                        good[:place],
                        good[:place] + chr(chance.randrange(32, 0x2FF)) + good[place:],
                        good + good,
                    ]
                )
                with suppress(ConnectionClosed):
                    await worker.say(frame)
    async with house.connected() as worker:
        await worker.greet()
        await worker.say(wire.Beat(number=1))
        assert (await worker.hear(wire.Beat)).number == 1


@pytest.mark.parametrize("recovery", [TaskRecovery.IDEMPOTENT, TaskRecovery.CONSERVATIVE])
async def test_a_result_of_another_process_is_evidence_and_ends_nothing(
    house: Served, recovery: TaskRecovery
) -> None:
    async with house.connected() as worker, house.connected() as other:
        await worker.greet(recovery=recovery.value)
        await other.greet(queues=[])
        await worker.ready(1)
        task_id = await house.submit(recovery=recovery)
        (offer,) = await worker.offers(1)
        state = (await house.task(task_id)).state
        for outcome in ("SUCCEEDED", "HAND_BACK"):
            assert (await other.result(offer, outcome)).answer == "EVIDENCE"
            assert (await house.task(task_id)).state is state
        if state is TaskState.OFFERED:
            await worker.say(wire.Start(number=50, items=[claim(offer)]))
            await worker.hear(wire.Started)
        assert (await worker.result(offer)).answer == "ACCEPTED"


async def test_a_result_from_a_credential_without_a_right_to_the_queue_is_refused(house: Served) -> None:
    house.tokens["elsewhere"] = principal("elsewhere", consume=Names.of(["work"]))
    async with house.connected() as worker, house.connected("elsewhere") as other:
        await worker.greet()
        await other.greet(nonce=worker.nonce)
        await worker.ready(1)
        task_id = await house.submit()
        (offer,) = await worker.offers(1)
        assert (await other.result(offer)).answer == "REFUSED"
        assert (await house.task(task_id)).state is TaskState.RUNNING
        assert (await worker.result(offer)).answer == "ACCEPTED"
        assert (await other.result(offer, result=2)).answer == "REFUSED"


@orbit.handler("traced", version=1, queue="jobs", recovery=Recovery.CONSERVATIVE)
async def traced(ctx: TaskContext, pin: str) -> dict[str, str]:
    TRACES.append(dict(ctx.trace))
    if pin.endswith("fails"):
        raise ValueError("what it raises is the handler's own to say")
    return {"pin": pin}


TRACES: list[dict[str, str]] = []


async def test_a_handler_sees_the_trace_of_its_submitter_and_no_value_is_logged(
    house: Served, caplog: pytest.LogCaptureFixture
) -> None:
    TRACES.clear()
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    with caplog.at_level(logging.INFO):
        worker = Worker(house.http_url, "good", [traced], slots=2)
        run = asyncio.ensure_future(worker.run(signals=False))
        ids = [
            await house.submit(parameters={"pin": pin}, trace=trace, handler="traced")
            for pin in ("s3cret", "s3cret fails", 7)
        ]
        for task_id in ids:
            while (await house.task(task_id)).state not in ENDS:  # noqa: ASYNC110  # nothing tells of one task
                await asyncio.sleep(0.01)
        worker.stop()
        await run
    states = [(await house.task(task_id)).state for task_id in ids]
    assert states == [TaskState.SUCCEEDED, TaskState.NEEDS_REVIEW, TaskState.FAILED]
    assert [{"traceparent": trace}] * 2 == TRACES
    told = [JsonFormatter().format(record) for record in caplog.records]
    assert [line for line in told if "s3cret" in line] == []


ENDS = {TaskState.SUCCEEDED, TaskState.NEEDS_REVIEW, TaskState.FAILED}
