from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from orbit_sdk.errors import Conflict, InvalidArgument, OrbitError, ResourceExhausted
from orbit_server.clock import ManualClock
from orbit_server.weave.control.commands import Action
from orbit_server.weave.signals import queries
from orbit_server.weave.state.running import Weave
from orbit_server.weave.state.signals import SignalRow
from tests.documents import document, end, join, parallel, task, timer, wait
from tests.storage.trouble import Script, sqlite_error
from tests.storage.weave.paper import Paper, succeeds

HOUR_US = 3_600_000_000


def one_wait(**more: Any) -> dict[str, Any]:
    return document(
        {
            "ask": wait("done", on_timeout={"next": "rest"}, **more),
            "rest": timer("late", seconds=3600),
            "late": end({"const": "nobody answered"}),
            "done": end({"ref": "ask"}),
        }
    )


async def signals_of(paper: Paper, instance: str) -> list[SignalRow]:
    return await paper.database.read(lambda conn: queries.page(conn, instance, None, None, 10))


async def late(paper: Paper, instance: str) -> None:
    """As if the wait's hour were over."""
    await paper.set(
        "UPDATE steps SET due_at = 1, deadline_at = 1 WHERE instance_id = :i AND step_key = 'ask'", i=instance
    )


async def test_a_signal_after_the_time_out_was_taken_is_stored_as_expired(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.publish(one_wait())
        instance = await paper.start({})
        await late(paper, instance)
        await paper.sweep()
        assert (await paper.steps(instance))["ask"].state == "FAILED"
        shown = await paper.signal(instance, key="s1")
        assert (shown["state"], shown["disposition"]) == ("EXPIRED", "WAIT_TIMED_OUT")
        assert await paper.signal(instance, key="s1") == shown
        assert (await paper.show(instance)).row.pending_signals == 0


async def test_a_signal_is_late_whether_or_not_anybody_looked_at_the_clock(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.publish(one_wait())
        instance = await paper.start({})
        await late(paper, instance)
        assert (await paper.signal(instance))["state"] == "EXPIRED"


async def test_a_signal_between_two_stages_is_early_for_the_second_one(migrated_url: str) -> None:
    flow = document(
        {
            "ask": wait("done", on_timeout={"next": "remind"}),
            "remind": timer("again", seconds=3600),
            "again": wait("done2", early="KEEP"),
            "done": end(),
            "done2": end({"ref": "again"}),
        }
    )
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        await late(paper, instance)
        await paper.sweep()
        assert (await paper.signal(instance, body="early"))["state"] == "PENDING"
        addressed = await paper.signal(instance, body="too late", step_key="ask")
        assert addressed["state"] == "EXPIRED"
        await paper.set("UPDATE steps SET due_at = 1 WHERE instance_id = :i AND live = 1", i=instance)
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == "early"


async def test_the_limit_itself_is_on_time_and_the_next_microsecond_is_not(migrated_sqlite_url: str) -> None:
    clock = ManualClock()
    async with Paper(migrated_sqlite_url, clock=clock) as paper:
        await paper.publish(one_wait())
        before, at, after, swept = [await paper.start({}) for _ in range(4)]
        clock.advance(HOUR_US - 1)
        assert (await paper.signal(before))["state"] == "CONSUMED"
        clock.advance(1)
        await paper.sweep()
        assert (await paper.steps(swept))["ask"].state == "WAITING_SIGNAL", "the last instant still counts"
        assert (await paper.signal(at))["state"] == "CONSUMED"
        clock.advance(1)
        assert (await paper.signal(after))["state"] == "EXPIRED"
        await paper.sweep()
        assert (await paper.steps(swept))["ask"].reason == "TIMED_OUT"


async def test_the_order_of_keys_makes_no_other_signal(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.publish(one_wait())
        instance = await paper.start({})
        first = await paper.signal(instance, body={"a": 1, "b": [1.0]}, key="s1")
        again = await paper.signal(instance, body={"b": [1], "a": 1}, key="s1")
        assert again["id"] == first["id"]
        found = await signals_of(paper, instance)
        assert [row.id for row in found] == [first["id"]]


async def test_of_two_signals_at_once_each_wait_takes_one(migrated_url: str) -> None:
    flow = document(
        {
            "first": wait("second"),
            "second": wait("done", early="KEEP"),
            "done": end({"array": [{"ref": "first"}, {"ref": "second"}]}),
        }
    )
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        for _ in range(10):
            instance = await paper.start({})
            await asyncio.gather(paper.signal(instance, body=1), paper.signal(instance, body=2))
            ended = await paper.until(instance, "SUCCEEDED")
            assert sorted(orjson.loads(ended.output)) == [1, 2]
            found = await signals_of(paper, instance)
            assert len({row.consumed_wait_id for row in found}) == 2


async def test_a_signal_that_races_the_end_is_consumed_or_rejected(migrated_url: str) -> None:
    flow = document({"work": task("done", "safe"), "done": end()})
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        worker = paper.worker()
        await paper.publish(flow)
        worker.holding = True
        for _ in range(10):
            instance = await paper.start({})
            (offer,) = await paper.held(worker)
            await asyncio.gather(worker.play(offer), paper.signal(instance))
            await paper.until(instance, "SUCCEEDED")
            (row,) = await signals_of(paper, instance)
            assert (row.state, row.disposition) == ("REJECTED", "INSTANCE_FINISHED")
            ends = await paper.rows(
                "SELECT COUNT(*) FROM events WHERE workflow_id = :i AND state = 'SUCCEEDED'", i=instance
            )
            assert ends[0][0] == 1


async def test_a_signal_whose_own_time_is_over_serves_nobody_and_a_sweep_says_so(migrated_url: str) -> None:
    flow = document({"sleep": timer("ask", seconds=3600), "ask": wait("done"), "done": end()})
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        now = await paper.database.now()
        await paper.signal(instance, key="short", expires_at=now + HOUR_US)
        await paper.signal(instance, key="long", body=2, match="other", expires_at=now + 2 * HOUR_US)
        assert (await paper.signal(instance, key="over", expires_at=now - 1))["state"] == "EXPIRED"
        await paper.set("UPDATE signals SET expires_at = 5 WHERE state = 'PENDING' AND match_key = '\"m\"'")
        await paper.sweep()
        found = await signals_of(paper, instance)
        assert sorted((row.state.value, row.disposition) for row in found) == [
            ("EXPIRED", "EXPIRED"),
            ("EXPIRED", "EXPIRED"),
            ("PENDING", None),
        ]
        assert (await paper.show(instance)).row.pending_signals == 1
        await paper.set("UPDATE signals SET expires_at = 5 WHERE state = 'PENDING'")
        await paper.set("UPDATE steps SET due_at = 1 WHERE instance_id = :i", i=instance)
        await paper.sweep()
        assert (await paper.steps(instance))["ask"].state == "WAITING_SIGNAL"


async def test_more_signals_than_a_workflow_may_keep_are_refused_and_not_stored(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        paper.weave = Weave(paper.weave.catalog, paper.weave.limits.__class__(pending_signals=2))
        await paper.publish(one_wait())
        instance = await paper.start({})
        for number in range(2):
            await paper.signal(instance, match=f"other-{number}")
        with pytest.raises(ResourceExhausted):
            await paper.signal(instance, match="one-more", key="k")
        assert (await paper.show(instance)).row.pending_signals == 2
        assert (await paper.signal(instance))["state"] == "CONSUMED", (
            "a signal that serves a wait needs no room"
        )


async def test_wrong_signals_are_refused_with_the_place(migrated_url: str) -> None:
    flow = one_wait()
    flow["signals"] = {"approval": {"body": {"type": "string"}}}
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        with pytest.raises(InvalidArgument) as wrong:
            await paper.signal(instance, body=5)
        assert wrong.value.details[0].field == "body"
        with pytest.raises(InvalidArgument, match="step"):
            await paper.signal(instance, body="x", step_key="nowhere")
        assert (await paper.signal(instance, body="x", key="k"))["state"] == "CONSUMED"
        with pytest.raises(Conflict):
            await paper.signal(instance, body="y", key="k")


async def test_a_signal_for_a_stage_that_is_paused_is_consumed_once(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.publish(one_wait())
        instance = await paper.start({})
        await paper.control(instance, Action.PAUSE)
        first = await paper.signal(instance, body="yes", key="s1")
        shown = await paper.settled(instance)
        assert (shown.row.paused, shown.row.ended_at) == (True, None)
        await paper.control(instance, Action.RESUME)
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == "yes"
        assert (await paper.signal(instance, body="yes", key="s1"))["id"] == first["id"]
        rows = await paper.rows("SELECT COUNT(*) FROM signals WHERE instance_id = :i", i=instance)
        assert rows[0][0] == 1


async def _many(paper: Paper, count: int) -> str:
    """A workflow with so many unmatched signals, one step before its end."""
    await paper.publish(document({"ask": wait("done"), "done": end()}))
    instance = await paper.start({})
    for start in range(0, count, 128):
        await asyncio.gather(
            *(paper.signal(instance, match=f"other-{n}") for n in range(start, min(count, start + 128)))
        )
    return instance


@pytest.mark.parametrize("place", ["UPDATE signals", "INSERT INTO events"])
async def test_the_end_rejects_all_signals_or_none(migrated_url: str, place: str) -> None:
    script = Script()
    async with Paper(migrated_url, faults=script) as paper:
        instance = await _many(paper, 1024)
        script.at_text.append((place, ValueError("put in by a test")))
        with pytest.raises(OrbitError):
            await paper.signal(instance, key="last")
        assert (await paper.show(instance)).row.state == "WAITING"
        script.at_text.clear()
        states = await paper.rows("SELECT state, COUNT(*) FROM signals GROUP BY state")
        assert [tuple(row) for row in states] == [("PENDING", 1024)]
        assert (await paper.signal(instance, key="last"))["state"] == "CONSUMED"
        states = await paper.rows("SELECT state, COUNT(*) FROM signals GROUP BY state ORDER BY state")
        assert [tuple(row) for row in states] == [("CONSUMED", 1), ("REJECTED", 1024)]
        events = await paper.rows(
            "SELECT COUNT(*), COUNT(DISTINCT signal_id) FROM events WHERE type = 'workflow.signal.changed'"
        )
        assert tuple(events[0]) == (1025, 1025)


async def test_a_fault_that_passes_repeats_the_rejection_and_writes_each_event_once(
    migrated_sqlite_url: str,
) -> None:
    script = Script()
    async with Paper(migrated_sqlite_url, faults=script) as paper:
        instance = await _many(paper, 100)
        script.at_text.append(("INSERT INTO events", sqlite_error(5)))
        assert (await paper.signal(instance))["state"] == "CONSUMED"
        assert not script.at_text
        events = await paper.rows(
            "SELECT COUNT(*), COUNT(DISTINCT signal_id) FROM events WHERE type = 'workflow.signal.changed'"
        )
        assert tuple(events[0]) == (101, 101)


async def test_a_signal_before_its_wait_is_consumed_in_the_transaction_that_opens_it(
    migrated_url: str,
) -> None:
    flow = document(
        {
            "both": parallel("meet", left="slow", right="ask"),
            "slow": task("meet", "safe"),
            "ask": wait("meet"),
            "meet": join("second"),
            "second": wait("done", match="n"),
            "done": end({"ref": "second"}),
        }
    )
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        for number in range(12):
            await paper.signal(instance, match="n", body=number)
        await paper.signal(instance)
        paper.worker()
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == 0, "the oldest one serves, however many there are"
