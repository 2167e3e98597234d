"""Schedules on a real node, on both databases: what fires, what is skipped, merged, queued, and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update

from orbit_sdk.values.instants import from_rfc3339, to_rfc3339
from orbit_server.clock import ManualClock, new_seed
from orbit_server.platform.credentials import Rights
from orbit_server.pulse.subscriptions.fanout import fan_out
from orbit_server.schedules.ends import ENDS
from orbit_server.schedules.sweeps import sweep_ended, sweep_schedules
from orbit_server.schedules.targets import Means
from orbit_server.storage.tables import audit, schedule_fires, schedule_versions, schedules, tasks
from tests.api.flows import publish
from tests.documents import document, end, timer
from tests.server import Api, node, until

SECOND = 1_000_000
MINUTE = 60 * SECOND
SLOW: dict[str, Any] = {"loop_ms": 60_000, "idle_loop_ms": 60_000}
SKIP = {"policy": "SKIP"}
ALLOW = {"policy": "ALLOW"}
NAP = document({"sleep": timer("done", seconds=3600), "done": end()}, id="test.nap")


@pytest.fixture
async def still(migrated_url: str) -> AsyncIterator[Api]:
    """A node whose loops have stopped: the test says when to look."""
    async with node(migrated_url, **SLOW) as api:
        await api.parts.loops.stop()
        yield api


def rate(every_s: int = 60) -> dict[str, Any]:
    return {"kind": "RATE", "every_s": every_s, "anchor": "2026-01-01T00:00:00Z"}


def catch_up(window_s: int = 86_400, count: int = 100, per_minute: int = 600) -> dict[str, Any]:
    bounds = {"window_s": window_s, "count": count, "per_minute": per_minute}
    return {"policy": "CATCH_UP", "catch_up": bounds}


def spec(**changes: Any) -> dict[str, Any]:
    target = {
        "kind": "TASK",
        "queue": "plans",
        "handler": "plan.run",
        "handler_version": 1,
        "parameters": {
            "day": {"$fire": "local_date"},
            "fire": {"$fire": "id"},
            "merged": {"$fire": "merged"},
        },
    }
    return {"timing": rate(), "misfire": SKIP, "overlap": ALLOW, "target": target, **changes}


async def make(api: Api, **changes: Any) -> str:
    reply = await api.post("/v1/schedules", {"name": "nightly", **spec(**changes)})
    schedule_id: str = reply.data["id"]
    return schedule_id


async def write(api: Api, *statements: Any) -> None:
    def run(conn: Connection) -> None:
        for statement in statements:
            conn.execute(statement)

    await api.parts.server.database.write(run)


async def read(api: Api, query: Any) -> list[Any]:
    return await api.parts.server.database.read(lambda conn: list(conn.execute(query)))


async def down(api: Api, schedule_id: str, us: int) -> None:
    """As if nobody had looked at the schedule for so long."""
    s, v = schedules.c, schedule_versions.c
    await write(
        api,
        update(schedules)
        .where(s.id == schedule_id)
        .values(accounted_to=s.accounted_to - us, due_at=s.accounted_to - us + 1),
        update(schedule_versions)
        .where(v.schedule_id == schedule_id)
        .values(effective_at=v.effective_at - us),
    )


def means(api: Api) -> Means:
    return Means(api.parts.server.weave, api.parts.server.limits.of_backlog)


async def turn(api: Api) -> None:
    """Run what is due, until nothing more is due at once."""
    server = api.parts.server
    for _ in range(50):
        at = await server.database.now()
        report = await sweep_schedules(server.database, means(api), lambda: new_seed(server.clock), at)
        assert report.failed == 0
        if not report.seen:
            return


async def settle(api: Api) -> None:
    """Tell schedules what has ended."""
    server = api.parts.server
    now = await server.database.now()
    await server.database.write(lambda conn: fan_out(conn, now, (ENDS,)))
    await sweep_ended(server.database, means(api), lambda: new_seed(server.clock))


async def fires(api: Api, schedule_id: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = (await api.get(f"/v1/schedules/{schedule_id}/fires", limit=100, **query, **cursor)).data
        found += page["items"]
        if "next_cursor" not in page:
            return found[::-1]
        cursor = {"cursor": page["next_cursor"]}


async def records(api: Api, schedule_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/v1/schedules/{schedule_id}/records", limit=100)).data[
        "items"
    ]
    return found


async def row(api: Api, schedule_id: str) -> Any:
    (found,) = await read(api, select(schedules).where(schedules.c.id == schedule_id))
    return found


def planned(low: int, high: int, every_s: int = 60) -> list[str]:
    """Instants of the rate in (low, high]."""
    anchor, step = from_rfc3339("2026-01-01T00:00:00Z"), every_s * SECOND
    first = anchor + ((low - anchor) // step + 1) * step
    return [to_rfc3339(at) for at in range(first, high + 1, step)]


async def test_every_planned_instant_of_a_short_absence_fires_once(still: Api) -> None:
    schedule_id = await make(still, timing=rate(5))
    before = (await row(still, schedule_id)).accounted_to
    await down(still, schedule_id, 50 * SECOND)
    await turn(still)
    after = (await row(still, schedule_id)).accounted_to
    found = await fires(still, schedule_id)
    assert [fire["planned_at"] for fire in found] == planned(before - 50 * SECOND, after, 5)
    assert {fire["state"] for fire in found} == {"STARTED"}
    task = (await still.get(f"/v1/tasks/{found[0]['target_id']}")).data
    assert task["parameters"]["fire"] == found[0]["id"]
    assert task["parameters"]["day"] == found[0]["planned_at"][:10]
    await turn(still)
    assert len(await fires(still, schedule_id)) == len(found)


@pytest.mark.parametrize("policy", ["SKIP", "COALESCE", "CATCH_UP"])
async def test_a_day_of_absence_is_accounted_for_instant_by_instant(still: Api, policy: str) -> None:
    misfire = catch_up(count=20) if policy == "CATCH_UP" else {"policy": policy}
    schedule_id = await make(still, misfire=misfire)
    before = (await row(still, schedule_id)).accounted_to
    await down(still, schedule_id, 24 * 60 * MINUTE)
    await turn(still)
    after = (await row(still, schedule_id)).accounted_to
    found, kept = await fires(still, schedule_id), await records(still, schedule_id)
    expected = planned(before - 24 * 60 * MINUTE, after)
    on_time = [fire for fire in found if fire["planned_at"] >= to_rfc3339(after - MINUTE)]
    late = [fire for fire in found if fire not in on_time]
    counted = sum(record["count"] for record in kept)
    if policy == "SKIP":
        assert not late
        assert [record["reason"] for record in kept] == ["MISFIRE_SKIPPED"]
        assert counted + len(on_time) == len(expected)
    elif policy == "COALESCE":
        (fire,) = late
        assert [record["reason"] for record in kept] == ["MISFIRE_MERGED"]
        assert (fire["merged"], fire["first_at"]) == (counted, expected[0])
        assert counted + len(on_time) == len(expected)
    else:
        assert [record["reason"] for record in kept] == ["CATCH_UP_COUNT"]
        assert len(late) == 20
        assert [fire["planned_at"] for fire in late] == expected[counted : counted + 20]
        assert counted + len(found) == len(expected)


async def test_catching_up_keeps_its_pace(still: Api) -> None:
    schedule_id = await make(still, misfire=catch_up(count=5, per_minute=1))
    await down(still, schedule_id, 60 * MINUTE)
    await turn(still)
    states = [fire["state"] for fire in await fires(still, schedule_id)][:5]
    assert states == ["STARTED", "WAITING", "WAITING", "WAITING", "WAITING"]
    fire_rows = schedule_fires.c
    await write(
        still,
        update(schedule_fires)
        .where(fire_rows.schedule_id == schedule_id, fire_rows.state == "WAITING")
        .values(start_at=fire_rows.start_at - 2 * MINUTE),
        update(schedules).where(schedules.c.id == schedule_id).values(due_at=1),
    )
    await turn(still)
    states = [fire["state"] for fire in await fires(still, schedule_id)][:5]
    assert states == ["STARTED", "STARTED", "STARTED", "WAITING", "WAITING"]


async def test_an_occurrence_is_skipped_while_an_earlier_one_runs(still: Api) -> None:
    schedule_id = await make(still, timing=rate(20), overlap=SKIP)
    await down(still, schedule_id, 59 * SECOND)
    await turn(still)
    found = await fires(still, schedule_id)
    assert [fire["state"] for fire in found] == ["STARTED"] + ["SKIPPED"] * (len(found) - 1)
    assert {fire.get("reason") for fire in found[1:]} == {"OVERLAP_SKIPPED"}
    await still.post(f"/v1/tasks/{found[0]['target_id']}/cancel", {"reason": "enough"})
    await settle(still)
    (first, *_) = await fires(still, schedule_id)
    assert (first["state"], first["outcome"]) == ("FINISHED", "CANCELLED")
    assert (await row(still, schedule_id)).unfinished == 0


async def test_occurrences_queue_up_to_their_bound_and_follow_one_another(still: Api) -> None:
    schedule_id = await make(still, timing=rate(10), overlap={"policy": "QUEUE", "backlog": 2})
    await down(still, schedule_id, 55 * SECOND)
    await turn(still)
    found = await fires(still, schedule_id)
    assert [fire["state"] for fire in found[:4]] == ["STARTED", "WAITING", "WAITING", "SKIPPED"]
    assert found[3]["reason"] == "OVERLAP_BACKLOG_FULL"
    for place in range(3):
        current = (await fires(still, schedule_id))[place]
        assert current["state"] == "STARTED"
        await still.post(f"/v1/tasks/{current['target_id']}/cancel", {"reason": "next"})
        await settle(still)
    stands = await row(still, schedule_id)
    assert (stands.unfinished, stands.waiting) == (0, 0)


async def test_the_version_in_force_plans_what_was_before_the_edit(still: Api) -> None:
    schedule_id = await make(still, timing=rate(60), misfire=catch_up(count=1_000))
    before = (await row(still, schedule_id)).accounted_to
    edited = {
        **spec(timing=rate(600), misfire=catch_up(count=1_000)),
        "expected_version": 1,
        "reason": "less",
    }
    reply = await still.post(f"/v1/schedules/{schedule_id}/edit", edited)
    assert reply.data["version"] == 2
    v = schedule_versions.c
    boundary = before - 30 * MINUTE
    await down(still, schedule_id, 60 * MINUTE)
    await write(
        still,
        update(schedule_versions)
        .where(v.schedule_id == schedule_id, v.version == 2)
        .values(effective_at=boundary),
    )
    await turn(still)
    after = (await row(still, schedule_id)).accounted_to
    found = await fires(still, schedule_id)
    old = [fire["planned_at"] for fire in found if fire["version"] == 1]
    new = [fire["planned_at"] for fire in found if fire["version"] == 2]
    assert old == planned(before - 60 * MINUTE, boundary - 1)
    assert new == planned(boundary - 1, after, 600)
    assert not await records(still, schedule_id)


async def test_an_edit_names_its_version_and_no_instant_of_the_past(still: Api) -> None:
    schedule_id = await make(still)
    path = f"/v1/schedules/{schedule_id}/edit"
    reply = await still.post(path, {**spec(), "expected_version": 7, "reason": "wrong"})
    assert (reply.code, reply.fields) == ("FAILED_PRECONDITION", ["expected_version"])
    past = {**spec(), "expected_version": 1, "reason": "late", "effective_at": "2020-01-01T00:00:00Z"}
    reply = await still.post(path, past)
    assert (reply.code, reply.fields) == ("INVALID_ARGUMENT", ["effective_at"])


async def test_what_is_planned_in_a_pause_is_not_due_and_is_recorded_as_one_range(still: Api) -> None:
    schedule_id = await make(still)
    await still.post(f"/v1/schedules/{schedule_id}/pause", {"reason": "holiday"})
    before = (await row(still, schedule_id)).accounted_to
    await down(still, schedule_id, 60 * MINUTE)
    await turn(still)
    assert not await fires(still, schedule_id)
    reply = await still.post(f"/v1/schedules/{schedule_id}/resume", {"reason": "back"})
    assert reply.data["state"] == "ACTIVE"
    after = (await row(still, schedule_id)).accounted_to
    (record,) = await records(still, schedule_id)
    expected = planned(before - 60 * MINUTE, after)
    assert (record["reason"], record["first_at"], record["last_at"], record["count"]) == (
        "PAUSED",
        expected[0],
        expected[-1],
        len(expected),
    )
    await turn(still)
    assert not await fires(still, schedule_id)
    actions = [
        each.action
        for each in await read(
            still, select(audit.c.action).where(audit.c.subject_kind == "schedule").order_by(audit.c.at)
        )
    ]
    assert actions == ["schedule.create", "schedule.pause", "schedule.resume"]


async def test_the_end_is_excluded_and_the_schedule_is_then_finished(still: Api) -> None:
    now = await still.parts.server.database.now()
    end_at = to_rfc3339((now // MINUTE + 2) * MINUTE)
    schedule_id = await make(still, end_at=end_at, misfire={"policy": "COALESCE"})
    detail = (await still.get(f"/v1/schedules/{schedule_id}")).data
    assert detail["next_at"] < end_at
    shift = 10 * MINUTE
    await down(still, schedule_id, shift)
    s = schedule_versions.c
    text = (await read(still, select(s.spec).where(s.schedule_id == schedule_id)))[0].spec
    earlier = text.replace(end_at, to_rfc3339(from_rfc3339(end_at) - shift))
    await write(still, update(schedule_versions).where(s.schedule_id == schedule_id).values(spec=earlier))
    await turn(still)
    assert (await row(still, schedule_id)).state == "FINISHED"
    assert all(
        fire["planned_at"] < to_rfc3339(from_rfc3339(end_at) - shift)
        for fire in await fires(still, schedule_id)
    )
    assert await fires(still, schedule_id)


async def test_a_workflow_is_started_in_the_version_that_is_current_at_the_fire(still: Api) -> None:
    target = {"kind": "WORKFLOW", "definition_id": "test.nap", "input": {}}
    schedule_id = await make(still, target=target, timing=rate(10))
    await down(still, schedule_id, 11 * SECOND)
    await turn(still)
    first = await fires(still, schedule_id)
    assert {fire["state"] for fire in first} == {"REFUSED"}
    assert "test.nap" in first[0]["note"]
    await publish(still, NAP)
    schedule_id = await make(still, target=target, timing=rate(10))
    await down(still, schedule_id, 11 * SECOND)
    await turn(still)
    second = (await fires(still, schedule_id))[0]
    assert second["target_version"] == 1
    workflow = (await still.get(f"/v1/workflows/{second['target_id']}")).data
    assert (workflow["definition_id"], workflow["definition_version"]) == ("test.nap", 1)


async def test_a_trigger_is_an_occurrence_of_its_own(still: Api) -> None:
    schedule_id = await make(still, overlap=SKIP)
    path = f"/v1/schedules/{schedule_id}/trigger"
    first = await still.post(path, {"reason": "now"}, key="once")
    again = await still.post(path, {"reason": "now"}, key="once")
    assert first.data == again.data
    assert first.data["state"] == "STARTED"
    refused = await still.post(path, {"reason": "and again"})
    assert refused.code == "FAILED_PRECONDITION"
    (fire,) = await fires(still, schedule_id)
    assert (fire["cause"], fire["id"]) == ("TRIGGER", first.data["fire_id"])


async def test_a_backfill_runs_what_did_not_run_and_nothing_twice(still: Api) -> None:
    schedule_id = await make(still)
    before = (await row(still, schedule_id)).accounted_to
    await down(still, schedule_id, 60 * MINUTE)
    await turn(still)
    known = [fire["planned_at"] for fire in await fires(still, schedule_id)]
    span = {"start_at": to_rfc3339(before - 10 * MINUTE), "end_at": to_rfc3339(before), "per_minute": 600}
    expected = planned(before - 10 * MINUTE - 1, before - 1)
    path = f"/v1/schedules/{schedule_id}/backfill"
    dry = (await still.post(path, {**span, "dry_run": True, "reason": "look"})).data
    runs = len(expected) - len(set(known) & set(expected))
    assert (dry["planned"], dry["runs"]) == (len(expected), runs)
    assert [fire["planned_at"] for fire in await fires(still, schedule_id)] == known
    await still.post(path, {**span, "reason": "do"})
    assert sorted(fire["planned_at"] for fire in await fires(still, schedule_id)) == sorted(
        {*known, *expected}
    )
    again = (await still.post(path, {**span, "reason": "twice"})).data
    assert (again["planned"], again["known"], again["runs"]) == (len(expected), len(expected), 0)


async def test_two_nodes_that_look_at_once_fire_each_instant_once(still: Api) -> None:
    server = still.parts.server
    ids = [await make(still, timing=rate(2)) for _ in range(5)]
    for schedule_id in ids:
        await down(still, schedule_id, 40 * SECOND)
    at = await server.database.now()
    await asyncio.gather(
        *(
            sweep_schedules(server.database, means(still), lambda: new_seed(server.clock), at)
            for _ in range(4)
        )
    )
    for schedule_id in ids:
        stamps = [fire["planned_at"] for fire in await fires(still, schedule_id)]
        assert len(stamps) == len(set(stamps)) >= 20
    made = await read(still, select(func.count()).select_from(tasks))
    started = await read(still, select(func.count()).where(schedule_fires.c.state == "STARTED"))
    assert made[0][0] == started[0][0]


async def test_the_loops_fire_by_themselves_and_settle_what_ended(migrated_url: str) -> None:
    async with node(migrated_url, loop_ms=50, idle_loop_ms=50) as api:
        schedule_id = await make(api, timing=rate(1), overlap={"policy": "QUEUE", "backlog": 5})

        async def fired() -> bool:
            return bool(await fires(api, schedule_id, state="STARTED"))

        await until(fired)
        (fire,) = await fires(api, schedule_id, state="STARTED")
        await api.post(f"/v1/tasks/{fire['target_id']}/cancel", {"reason": "on"})

        async def followed() -> bool:
            ended = await fires(api, schedule_id, state="FINISHED")
            return bool(ended) and bool(await fires(api, schedule_id, state="STARTED"))

        await until(followed)


async def test_a_damaged_schedule_stops_no_other(still: Api) -> None:
    broken, sound = await make(still, timing=rate(5)), await make(still, timing=rate(5))
    for schedule_id in (broken, sound):
        await down(still, schedule_id, 20 * SECOND)
    v = schedule_versions.c
    await write(still, update(schedule_versions).where(v.schedule_id == broken).values(spec="{}"))
    server = still.parts.server
    at = await server.database.now()
    report = await sweep_schedules(server.database, means(still), lambda: new_seed(server.clock), at)
    assert (report.seen, report.moved, report.failed) == (2, 1, 1)
    assert await fires(still, sound)


async def test_a_full_backlog_holds_a_fire_back_and_loses_none(still: Api) -> None:
    limits = {"backlog_max": 1, "reason": "small"}
    assert (await still.post("/v1/queues/plans/limits", limits)).status == 200
    await still.parts.server.limits.refresh(still.parts.server.database)
    schedule_id = await make(still, timing=rate(20))
    await down(still, schedule_id, 45 * SECOND)
    await turn(still)
    found = await fires(still, schedule_id)
    assert [fire["state"] for fire in found] == ["STARTED"] + ["WAITING"] * (len(found) - 1)
    assert len(found) >= 2
    assert {fire["reason"] for fire in found[1:]} == {"NO_CAPACITY"}
    await still.post(f"/v1/tasks/{found[0]['target_id']}/cancel", {"reason": "room"})
    f = schedule_fires.c
    await write(
        still,
        update(schedule_fires).where(f.state == "WAITING").values(start_at=1),
        update(schedules).where(schedules.c.id == schedule_id).values(due_at=1),
    )
    await turn(still)
    assert (await fires(still, schedule_id))[1]["state"] == "STARTED"


async def test_a_clock_that_is_set_back_fires_nothing_again(migrated_sqlite_url: str) -> None:
    clock = ManualClock(from_rfc3339("2026-05-04T10:00:00Z"))
    async with node(migrated_sqlite_url, clock=clock, **SLOW) as api:
        await api.parts.loops.stop()
        schedule_id = await make(api, timing=rate(5), misfire=catch_up())
        clock.advance(11 * SECOND)
        await turn(api)
        first = [fire["planned_at"] for fire in await fires(api, schedule_id)]
        assert [each[11:19] for each in first] == ["10:00:05", "10:00:10"]
        clock.step(-3_600 * SECOND)
        clock.advance(60 * SECOND)
        await turn(api)
        assert [fire["planned_at"] for fire in await fires(api, schedule_id)] == first
        clock.advance(3_545 * SECOND)
        await turn(api)
        after = [fire["planned_at"] for fire in await fires(api, schedule_id)]
        assert [each[11:19] for each in after] == ["10:00:05", "10:00:10", "10:00:15"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"timing": {"kind": "CRON", "cron": "61 * * * *"}}, "timing.cron.minute"),
        ({"timing": {"kind": "CRON", "cron": "0 0 30 2 *"}}, "timing.cron.day_of_month"),
        ({"timing": {"kind": "CRON", "cron": "0 2 * * *", "zone": "Europe/Berlin"}}, "timing.gap"),
        ({"timing": {"kind": "CRON", "cron": "0 2 * * *", "zone": "Nowhere"}}, "timing.zone"),
        ({"misfire": {"policy": "CATCH_UP"}}, "misfire.catch_up"),
        ({"overlap": {"policy": "QUEUE"}}, "overlap.backlog"),
        ({"start_at": "2027-01-01T00:00:00Z", "end_at": "2026-01-01T00:00:00Z"}, "end_at"),
        (
            {"target": {**spec()["target"], "parameters": {"a": {"b": {"$fire": "moon"}}}}},
            "target.parameters.a.b.$fire",
        ),
    ],
)
async def test_a_schedule_that_says_something_impossible_is_refused_by_name(
    edge: Api, changes: dict[str, Any], field: str
) -> None:
    reply = await edge.post("/v1/schedules", {"name": "bad", **spec(**changes)})
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")
    assert field in reply.fields


async def test_who_may_not_submit_may_not_schedule(edge: Api) -> None:
    mine = await edge.with_rights(Rights(("schedules:manage", "tasks:submit"), ("other",), (), ()))
    reply = await mine.post("/v1/schedules", {"name": "sly", **spec()})
    assert reply.code == "PERMISSION_DENIED"


async def test_the_same_creation_is_the_same_schedule(edge: Api) -> None:
    first = await edge.post("/v1/schedules", {"name": "once", **spec()}, key="same")
    again = await edge.post("/v1/schedules", {"name": "once", **spec()}, key="same")
    assert first.data == again.data
    other = await edge.post("/v1/schedules", {"name": "twice", **spec()}, key="same")
    assert other.code == "CONFLICT"
    assert [each["name"] for each in (await edge.get("/v1/schedules")).data["items"]] == ["once"]


async def test_a_stored_schedule_shows_what_comes_next(edge: Api) -> None:
    timing = {"kind": "CRON", "cron": "30 2 * * *", "zone": "Europe/Berlin", "gap": "SKIP", "repeat": "FIRST"}
    schedule_id = await make(edge, timing=timing)
    shown = (await edge.get(f"/v1/schedules/{schedule_id}/preview", count=3)).data
    assert len(shown["fires"]) == 3
    assert all(fire["local"][11:16] == "02:30" for fire in shown["fires"])
