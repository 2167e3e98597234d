"""`orbit verify`, run against a database that a server has worked on, and on one that was damaged."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from typer.testing import CliRunner

from orbit_sdk.cli.app import app
from orbit_sdk.cli.output import ExitCode
from tests.api.flows import ASKING, approve, start
from tests.server import node


async def test_a_sound_database_is_found_sound_and_a_damaged_one_is_not(migrated_sqlite_url: str) -> None:
    async with node(migrated_sqlite_url) as api:
        workflow_id = await start(api, ASKING)
        await approve(api, workflow_id)
    orbit = CliRunner()
    sound = orbit.invoke(app, ["verify", "--database", migrated_sqlite_url])
    assert sound.exit_code == ExitCode.GOOD, sound.output
    assert sound.output.count(": none") == 10
    path = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as conn:
        conn.execute("UPDATE instances SET state = 'WAITING', ended_at = NULL")
    conn.close()
    damaged = orbit.invoke(app, ["verify", "--database", migrated_sqlite_url, "--json"])
    assert damaged.exit_code == ExitCode.REFUSED
    found = json.loads(damaged.output)["items"]
    assert workflow_id in {item["subject"] for item in found}
    assert "verify" in orbit.invoke(app, ["--help"]).output
    told = orbit.invoke(app, ["verify", "--database", migrated_sqlite_url])
    assert workflow_id in told.output
