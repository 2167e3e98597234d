"""Subscriptions on a real node, on both databases: nothing is lost, what was acknowledged stays away."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from orbit_server.platform.credentials import Rights
from orbit_server.pulse.subscriptions.fanout import fan_out as give_out
from orbit_server.storage.tables import deliveries, events, readers, subscriptions
from tests.api.flows import submit
from tests.server import Api, node, until

SLOW: dict[str, Any] = {"loop_ms": 60_000, "idle_loop_ms": 60_000}
QUICK: dict[str, Any] = {"loop_ms": 50, "idle_loop_ms": 50}
PATH = "/v1/subscriptions"


async def subscribe(api: Api, name: str = "results", **more: Any) -> Any:
    reply = await api.post(PATH, {"name": name, "when_full": "DROP_OLDEST", **more}, key=None)
    assert reply.status == 200, reply.body
    return reply.data


async def pull(api: Api, name: str = "results", **more: Any) -> list[dict[str, Any]]:
    reply = await api.post(f"{PATH}/{name}/pull", more, key=None)
    assert reply.status == 200, reply.body
    found: list[dict[str, Any]] = reply.data["items"]
    return found


async def acknowledge(api: Api, items: list[dict[str, Any]], name: str = "results") -> int:
    reply = await api.post(f"{PATH}/{name}/acknowledge", {"ids": [each["id"] for each in items]}, key=None)
    count: int = reply.data["acknowledged"]
    return count


async def fan_out(api: Api) -> None:
    """Let the loop look, and wait until every event was given out."""
    api.parts.loops["fanout"].wake()

    async def done() -> bool:
        api.parts.loops["fanout"].wake()
        return not await read(api, select(events.c.id).where(events.c.fanned_out == 0).limit(1))

    await until(done)


async def read(api: Api, query: Any) -> list[Any]:
    return await api.parts.server.database.read(lambda conn: list(conn.execute(query)))


async def write(api: Api, statement: Any) -> None:
    def run(conn: Connection) -> None:
        conn.execute(statement)

    await api.parts.server.database.write(run)


def task_ids(items: list[dict[str, Any]]) -> list[str]:
    return [each["event"]["task_id"] for each in items]


async def test_an_event_comes_until_it_is_acknowledged(api: Api) -> None:
    await subscribe(api)
    made = [await submit(api) for _ in range(3)]
    await fan_out(api)
    first = await pull(api)
    assert task_ids(first) == made
    assert {each["deliveries"] for each in first} == {1}
    assert await pull(api) == []
    assert await acknowledge(api, first[:1]) == 1
    await write(api, update(deliveries).values(visible_at=1))
    again = await pull(api)
    assert sorted(task_ids(again)) == sorted(made[1:])
    assert {each["deliveries"] for each in again} == {2}
    assert await acknowledge(api, [*first, *again]) == 2
    assert await acknowledge(api, first) == 0
    await write(api, update(deliveries).values(visible_at=1))
    assert await pull(api) == []
    shown = (await api.get(f"{PATH}/results")).data
    assert (shown["backlog"], shown["added"], shown["acknowledged"], shown["redelivered"]) == (
        "0",
        "3",
        "3",
        "2",
    )


async def test_what_was_stored_around_the_creation_is_not_lost(api: Api) -> None:
    await subscribe(api, "first")
    made: list[str] = []

    async def work() -> None:
        for _ in range(20):
            made.append(await submit(api))  # noqa: PERF401  # seen while it grows

    worker = asyncio.create_task(work())
    await subscribe(api, "second")
    after = len(made)
    await worker
    await fan_out(api)
    assert sorted(task_ids(await pull(api, "first"))) == sorted(made)
    assert set(made[after + 1 :]) <= set(task_ids(await pull(api, "second")))


async def test_a_filter_picks_by_kind_state_queue_and_handler(api: Api) -> None:
    await subscribe(api, "ended", filter={"kinds": ["TASK"], "states": ["CANCELLED"], "queues": ["jobs"]})
    await subscribe(api, "other", filter={"queues": ["elsewhere"]})
    await subscribe(api, "handled", filter={"handlers": ["safe"], "types": ["task.submitted"]})
    task_id = await submit(api)
    await api.post(f"/v1/tasks/{task_id}/cancel", {"reason": "no"})
    await fan_out(api)
    (event,) = await pull(api, "ended")
    assert (event["event"]["state"], event["event"]["task_id"]) == ("CANCELLED", task_id)
    assert event["event"]["error"]["code"] == "CANCELLED"
    assert await pull(api, "other") == []
    assert [each["event"]["type"] for each in await pull(api, "handled")] == ["task.submitted"]


async def test_a_reader_that_waits_is_told_at_once(migrated_url: str) -> None:
    async with node(migrated_url, **QUICK) as api:
        await subscribe(api)
        waiting = asyncio.create_task(pull(api, wait_ms=20_000))
        task_id = await submit(api)
        assert task_ids(await waiting) == [task_id]


@pytest.mark.parametrize("when_full", ["DROP_OLDEST", "DROP_NEWEST"])
async def test_a_full_backlog_gives_up_what_was_said_and_counts_it(api: Api, when_full: str) -> None:
    await subscribe(api, when_full=when_full, backlog_max=2)
    made = []
    for _ in range(5):
        made.append(await submit(api))
        await fan_out(api)
    kept = made[-2:] if when_full == "DROP_OLDEST" else made[:2]
    items = await pull(api)
    assert task_ids(items) == kept
    shown = (await api.get(f"{PATH}/results")).data
    assert (shown["backlog"], shown["dropped"]) == ("2", "3")
    assert shown["dropped_first_at"] <= shown["dropped_last_at"]
    assert await acknowledge(api, items) == 2
    assert (await api.get(f"{PATH}/results")).data["backlog"] == "0"


async def test_a_burst_larger_than_the_backlog_keeps_its_newest(api: Api) -> None:
    await subscribe(api, backlog_max=3)
    await api.parts.loops.stop()
    made = [await submit(api) for _ in range(8)]
    api.parts.loops.start()
    await fan_out(api)
    assert task_ids(await pull(api)) == made[-3:]
    shown = (await api.get(f"{PATH}/results")).data
    assert (shown["backlog"], shown["dropped"]) == ("3", "5")


async def test_what_is_too_old_expires_and_is_counted(migrated_url: str) -> None:
    async with node(migrated_url, **QUICK) as api:
        await subscribe(api)
        await submit(api)
        await fan_out(api)
        await write(api, update(deliveries).values(added_at=1))

        async def expired() -> bool:
            return bool((await api.get(f"{PATH}/results")).data["expired"] == "1")

        await until(expired)
        assert await pull(api) == []


async def test_nodes_that_give_out_at_once_add_each_event_once(api: Api) -> None:
    await api.parts.loops.stop()
    await subscribe(api)
    made = [await submit(api) for _ in range(60)]
    database = api.parts.server.database
    heard: list[str] = []

    async def give(lane: str) -> None:
        for _ in range(10):
            now = await database.now()
            await database.write(partial(give_out, now=now, bite=7), lane=lane)

    async def hear() -> None:
        while len(heard) < len(made):
            items = await pull(api, limit=10)
            heard.extend(task_ids(items))
            if items:
                await acknowledge(api, items)

    async with asyncio.timeout(60):
        await asyncio.gather(hear(), *(give(f"lane {each}") for each in range(4)))
    assert sorted(heard) == sorted(made)
    assert await pull(api) == []
    shown = (await api.get(f"{PATH}/results")).data
    assert (shown["added"], shown["acknowledged"], shown["backlog"]) == ("60", "60", "0")


async def test_a_damaged_row_holds_up_nobody(api: Api) -> None:
    broken = await subscribe(api, "broken")
    await subscribe(api, "sound")
    task_id = await submit(api)
    await write(api, update(subscriptions).where(subscriptions.c.id == broken["id"]).values(filter="["))
    await write(api, update(events).where(events.c.task_id == task_id).values(payload="{"))
    await fan_out(api)
    (delivery,) = await pull(api, "sound")
    assert (delivery["event"]["task_id"], delivery["event"]["payload"]) == (task_id, {})


async def test_the_lag_of_a_reader_is_a_figure_for_alarms(edge: Api) -> None:
    await subscribe(edge)
    await submit(edge)
    await fan_out(edge)
    edge.parts.loops["subscriptions"].wake()

    async def shown() -> bool:
        return 'subscription="results"} 1' in str((await edge.get("/metrics")).body)

    await until(shown)
    page = str((await edge.get("/metrics")).body)
    assert "orbit_subscription_oldest_seconds" in page
    assert "orbit_events_given_out_total" in page


async def test_an_ended_subscription_is_gone_with_its_backlog(migrated_url: str) -> None:
    async with node(migrated_url, **QUICK) as api:
        first = await subscribe(api)
        await submit(api)
        await fan_out(api)
        ended = await api.post(f"{PATH}/results/end", {"reason": "gone"}, key=None)
        assert ended.data == {"name": "results", "ended": True}
        assert (await api.get(f"{PATH}/results")).code == "NOT_FOUND"

        async def purged() -> bool:
            left = await read(api, select(subscriptions.c.id).union(select(readers.c.id)))
            return not left and not await read(api, select(deliveries.c.id))

        await until(purged)
        assert (await subscribe(api))["id"] != first["id"]
        assert await pull(api) == []


async def test_the_same_subscription_is_one_and_another_under_its_name_is_refused(edge: Api) -> None:
    first = await subscribe(edge)
    assert (await subscribe(edge))["id"] == first["id"]
    reply = await edge.post(PATH, {"name": "results", "when_full": "DROP_NEWEST"}, key=None)
    assert (reply.status, reply.code) == (409, "CONFLICT")
    assert [each["name"] for each in (await edge.get(PATH)).data["items"]] == ["results"]


async def test_readers_see_only_queues_that_they_have_a_right_on(edge: Api) -> None:
    rights = Rights(("subscriptions:manage", "subscriptions:consume"), ("jobs",), (), ())
    limited = await edge.with_rights(rights)
    everything = {"name": "all", "when_full": "DROP_OLDEST"}
    assert (await limited.post(PATH, everything, key=None)).code == "PERMISSION_DENIED"
    assert (await limited.post(PATH, {**everything, "filter": {"queues": ["jobs"]}}, key=None)).status == 200
    await subscribe(edge)
    assert (await limited.post(f"{PATH}/results/pull", {}, key=None)).code == "PERMISSION_DENIED"


async def test_nobody_acknowledges_or_ends_what_they_may_not_read(edge: Api) -> None:
    await subscribe(edge)
    await submit(edge)
    await fan_out(edge)
    items = await pull(edge)
    limited = await edge.with_rights(
        Rights(("subscriptions:manage", "subscriptions:consume"), ("other",), (), ())
    )
    ids = {"ids": [each["id"] for each in items]}
    refused = await limited.post(f"{PATH}/results/acknowledge", ids, key=None)
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    refused = await limited.post(f"{PATH}/results/end", {"reason": "not mine"}, key=None)
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    assert await acknowledge(edge, items) == len(items) == 1


async def test_a_damaged_subscription_can_be_ended(edge: Api) -> None:
    broken = await subscribe(edge)
    await write(edge, update(subscriptions).where(subscriptions.c.id == broken["id"]).values(filter="["))
    assert (await edge.post(f"{PATH}/results/end", {"reason": "damaged"}, key=None)).status == 200


async def test_values_are_for_those_who_may_read_payloads(edge: Api) -> None:
    await subscribe(edge)
    task_id = await submit(edge)
    await edge.post(f"/v1/tasks/{task_id}/cancel", {"reason": "no"})
    await fan_out(edge)
    blind = await edge.with_rights(Rights(("subscriptions:consume",), ("*",), ("*",), ()))
    items = await pull(blind)
    assert items
    assert all("error" not in each["event"] and "result" not in each["event"] for each in items)
