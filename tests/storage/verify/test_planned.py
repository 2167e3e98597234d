"""What schedules owe, looked for in a real database: honest accounts pass, planted faults are found."""

# ruff: noqa: E501  # a planted statement is one line

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from sqlalchemy import create_engine, select, text, update

from orbit_server.storage.tables import schedule_fires, schedules
from orbit_server.verify import RULES, snapshot, violations
from tests.api.test_schedules import MINUTE, SECOND, SKIP, SLOW, catch_up, down, make, rate, spec, turn, write
from tests.databases import sqlite_url
from tests.server import Api, node
from tests.storage.verify.test_rules import copied

(RULE,) = [rule for rule in RULES if rule.number == 10]
ABSENCE: Final = 60 * MINUTE + 7 * SECOND


async def absent(api: Api, schedule_id: str) -> None:
    """As if it had been made an hour ago and nobody had looked since."""
    await down(api, schedule_id, ABSENCE)
    s = schedules.c
    await write(api, update(schedules).where(s.id == schedule_id).values(created_at=s.created_at - ABSENCE))


async def order(api: Api, schedule_id: str, action: str, **body: Any) -> None:
    reply = await api.post(f"/v1/schedules/{schedule_id}/{action}", {"reason": "a test", **body})
    assert reply.status == 200, reply.body


async def play(url: str) -> dict[str, Any]:
    """Every way in which a planned instant ends, and the ids of the schedules."""
    async with node(url, **SLOW) as api:
        await api.parts.loops.stop()
        ids = {
            "skip": await make(api, timing=rate(7), misfire=SKIP),
            "coalesce": await make(api, timing=rate(7), misfire={"policy": "COALESCE"}),
            "catch_up": await make(api, timing=rate(7), misfire=catch_up(600, 20)),
            "overlap": await make(api, timing=rate(7), overlap={"policy": "SKIP"}),
            "cron": await make(api, timing={"kind": "CRON", "cron": "*/3 * * * *"}, misfire=SKIP),
            "paused": await make(api, timing=rate(7)),
        }
        for schedule_id in ids.values():
            await absent(api, schedule_id)
        await order(api, ids["paused"], "pause")
        await order(api, ids["paused"], "resume")
        await order(api, ids["skip"], "edit", **spec(timing=rate(11), misfire=SKIP), expected_version=1)
        await turn(api)
        await order(api, ids["skip"], "trigger")
        rows = await api.parts.server.database.read(
            lambda conn: conn.execute(
                select(schedules.c.created_at, schedules.c.accounted_to).where(
                    schedules.c.id == ids["catch_up"]
                )
            ).one()
        )
        fires = schedule_fires.c
        at = await api.parts.server.database.read(
            lambda conn: conn.execute(
                select(fires.planned_at).where(fires.schedule_id == ids["catch_up"]).limit(1)
            ).scalar_one()
        )
        return {**ids, "other": "f" * 32, "made_at": rows.created_at, "fired_at": at}


@pytest.fixture(scope="module", params=["sqlite", "mariadb"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, Any]]]:
    if request.param == "sqlite":
        url = sqlite_url(tmp_path_factory.mktemp("planned"))
        yield url, asyncio.run(play(url))
        return
    server = request.getfixturevalue("mariadb")
    url = server.create_database()
    yield url, asyncio.run(play(url))
    server.drop_database(url)


def test_honest_accounts_of_schedules_break_no_rule(scene: tuple[str, dict[str, Any]]) -> None:
    with snapshot(scene[0]) as conn:
        assert violations(conn) == []
        kept = {row[0] for row in conn.execute(text("SELECT reason FROM schedule_records"))}
        assert {"MISFIRE_SKIPPED", "MISFIRE_MERGED", "CATCH_UP_COUNT", "CATCH_UP_WINDOW", "PAUSED"} <= kept


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        (
            "has 2 occurrences for",
            copied("schedule_fires", "schedule_id = :catch_up AND planned_at = :fired_at", id=":other"),
        ),
        (
            "has an occurrence and a record for",
            "UPDATE schedule_records SET last_at = :fired_at WHERE schedule_id = :catch_up AND reason = 'CATCH_UP_COUNT'",
        ),
        (
            "has two records for",
            "UPDATE schedule_records SET first_at = :made_at WHERE schedule_id = :catch_up",
        ),
        (
            "are accounted for",
            "DELETE FROM schedule_fires WHERE schedule_id = :catch_up AND planned_at = :fired_at",
        ),
        ("; 0 are accounted for", "DELETE FROM schedule_records WHERE schedule_id = :paused"),
        ("are accounted for", "UPDATE schedule_records SET `count` = `count` - 1 WHERE schedule_id = :skip"),
        ("by version 1", "UPDATE schedule_records SET version = 2 WHERE schedule_id = :skip"),
        (
            "are accounted for",
            "UPDATE schedules SET accounted_to = accounted_to + 3600000000 WHERE id = :cron",
        ),
        ("that cannot be read", "UPDATE schedule_versions SET spec = '{}' WHERE schedule_id = :cron"),
    ],
)
def test_a_planted_fault_of_a_schedule_is_found(
    scene: tuple[str, dict[str, Any]], message: str, statement: str
) -> None:
    url, ids = scene
    engine = create_engine(url.replace("mysql://", "mysql+pymysql://"))
    try:
        with engine.connect() as conn, conn.begin() as transaction:
            assert conn.execute(text(statement), ids).rowcount > 0
            found = [str(one) for one in RULE.violations(conn)]
            transaction.rollback()
    finally:
        engine.dispose()
    assert any(message in one for one in found), found
    assert all(one.startswith("rule 10: schedule ") for one in found)
