"""The rules looked at beside the work, a bite at a time."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import Connection, text

from orbit_server.storage.time_limit import TimeOver, time_limit
from orbit_server.verify.checker import Checker
from orbit_server.verify.rules import RULES
from tests.api.flows import ASKING, WORKING, start
from tests.server import node
from tests.storage.conftest import (  # noqa: F401  # fixtures
    migrated_file,
    migrated_mariadb_url,
    migrated_server,
    migrated_sqlite_url,
    migrated_url,
)

LONG = {
    "sqlite": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 90000000) "
    "SELECT SUM(i) FROM n",
    "mysql": "SELECT COUNT(DISTINCT CONCAT(a.id, b.id, c.id)) FROM information_schema.collations a, "
    "information_schema.collations b, information_schema.collations c",
}


async def whole_pass(checks: Checker, at: int = 1) -> None:
    before = checks.figures.passes
    while checks.figures.passes == before:
        await checks.bite(at)


async def test_every_rule_is_looked_at_and_a_sound_database_shows_nothing(
    migrated_url: str,  # noqa: F811
) -> None:
    async with node(migrated_url, check_every_ms=0) as api:
        await start(api, ASKING)
        await start(api, WORKING)
        checks = Checker(api.parts.server.database, 10_000)
        await whole_pass(checks, 7_000_000)
        assert checks.violations == {rule.number: 0 for rule in RULES}
        assert set(checks.figures.checked) == {rule.number for rule in RULES}
        assert checks.figures.finished_at == 7_000_000
        assert not checks.figures.skipped


async def test_a_violation_is_told_once_shown_while_it_stands_and_never_repaired(
    migrated_sqlite_url: str,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with node(migrated_sqlite_url, check_every_ms=10) as api:
        broken, sound = await start(api, ASKING), await start(api, ASKING)
        database = api.parts.server.database
        update = text("UPDATE instances SET state = 'RUNNING' WHERE id = :id")

        def damage(conn: Connection) -> None:
            conn.execute(update, {"id": broken})

        await database.write(damage)
        checks = Checker(database, 10_000)
        with caplog.at_level(logging.ERROR, "orbit_server.verify.checker"):
            await whole_pass(checks)
            await whole_pass(checks)
        assert checks.violations[8] == 1
        told = [record for record in caplog.records if record.name == "orbit_server.verify.checker"]
        mine = [vars(record) for record in told if broken in record.getMessage()]
        assert {(one["rule"], one["kind"], one["subject"]) for one in mine} == {(8, "workflow", broken)}
        assert not any(sound in record.getMessage() for record in told)
        shown = (await api.get("/v1/workflows", state="RUNNING")).data["items"]
        assert [one["id"] for one in shown] == [broken]
        page = (await api.send("GET", "/metrics")).body
        assert 'orbit_invariant_violations{rule="8"}' in page
        assert 'orbit_loop_runs_total{loop="checker"}' in page
        await database.write(
            lambda conn: conn.execute(text("UPDATE instances SET state = 'WAITING'")).close()
        )
        await whole_pass(checks)
        assert checks.violations[8] == 0


async def test_a_look_that_takes_too_long_is_given_up(migrated_url: str) -> None:  # noqa: F811
    async with node(migrated_url, check_every_ms=0) as api:
        assert "orbit_invariant" not in (await api.send("GET", "/metrics")).body
        database = api.parts.server.database

        def long(conn: Connection) -> None:
            with time_limit(conn, 0.05):
                conn.exec_driver_sql(LONG[conn.dialect.name]).all()

        def short(conn: Connection) -> int:
            with time_limit(conn, 10):
                return int(conn.execute(text("SELECT 1")).scalar_one())

        with pytest.raises(TimeOver):
            await database.read(long)
        assert await database.read(short) == 1
