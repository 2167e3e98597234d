"""Schedules and subscriptions through the client, the command line, a real server and a real worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import orbit_sdk as orbit
from orbit_sdk.cli.app import app
from orbit_sdk.client import ClientSettings, Orbit, OrbitClient
from orbit_sdk.errors import FailedPrecondition
from orbit_sdk.worker import Worker
from tests.server import ServerProcess, server_process

SETTINGS = ClientSettings(retry_for=60.0, backoff=0.05, max_backoff=0.2)
SPEC: dict[str, Any] = {
    "timing": {"kind": "RATE", "every_s": 1, "anchor": "2026-01-01T00:00:00Z"},
    "misfire": {"policy": "COALESCE"},
    "overlap": {"policy": "ALLOW"},
    "target": {
        "kind": "TASK",
        "queue": "reports",
        "handler": "reports.count",
        "handler_version": 1,
        "recovery": "IDEMPOTENT",
        "parameters": {"planned": {"$fire": "planned_at"}},
    },
}


@orbit.handler("reports.count", version=1, queue="reports", recovery=orbit.Recovery.IDEMPOTENT)
async def count(ctx: orbit.TaskContext, planned: str) -> str:
    return planned


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(f"sqlite:///{tmp_path / 'orbit.db'}", tmp_path) as found:
        yield found


async def test_what_a_schedule_starts_comes_back_as_results(server: ServerProcess) -> None:
    worker = Worker(server.url, server.token, [count])
    running = asyncio.create_task(worker.run())
    try:
        async with OrbitClient(server.url, server.token, settings=SETTINGS) as client:
            await client.subscriptions.create(
                "results", when_full="DROP_OLDEST", filter={"kinds": ["TASK"], "states": ["SUCCEEDED"]}
            )
            made = await client.schedules.create("every second", SPEC)
            seen: list[str] = []
            async for delivery in client.subscriptions.read("results"):
                task = await client.tasks.get(delivery.event.task_id or "")
                assert task.parameters == {"planned": delivery.event.result}
                seen.append(str(delivery.event.result))
                if len(seen) == 3:
                    break
            assert seen == sorted(set(seen))
            fires = {fire.planned_at async for fire in client.schedules.fires(made.id)}
            assert {datetime.fromisoformat(each) for each in seen} <= fires
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def test_a_body_that_raises_leaves_its_event_to_come_again(server: ServerProcess) -> None:
    task = {"queue": "reports", "handler": "reports.count", "handler_version": 1}
    with Orbit(server.url, server.token, settings=SETTINGS) as client:
        client.subscriptions.create("all", when_full="DROP_NEWEST", visibility_ms=1_000)
        made = [client.tasks.submit({**task, "parameters": {"planned": str(each)}}).id for each in range(3)]
        first = client.subscriptions.pull("all", limit=1, wait=20.0)
        assert len(first.items) == 1
        assert client.subscriptions.acknowledge("all", [first.items[0].id]) == 1

        seen: list[str] = []

        def work() -> None:
            for delivery in client.subscriptions.read("all"):
                seen.append(delivery.event.task_id or "")
                if len(seen) == 2:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            work()
        while len(again := client.subscriptions.pull("all", wait=20.0).items) == 0:
            pass
        assert seen == made[1:]
        assert [each.event.task_id for each in again][-1] == made[2]
        assert again[-1].deliveries == 2


def test_schedules_and_subscriptions_on_the_command_line(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORBIT_URL", server.url)
    monkeypatch.setenv("ORBIT_TOKEN", server.token)

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, result.output
        return result.output

    file = tmp_path / "nightly.json"
    spec = {**SPEC, "timing": {**SPEC["timing"], "every_s": 3600}}
    file.write_text(json.dumps(spec))
    made = json.loads(run("schedule", "create", "nightly", "--spec", f"@{file}", "--json"))["id"]
    assert "nightly" in run("schedule", "list")
    assert json.loads(run("schedule", "list", "--json"))["items"][0]["id"] == made
    assert "every_s" in run("schedule", "show", made)
    assert len(json.loads(run("schedule", "show", made, "--json"))["preview"]["fires"]) == 5
    shown = json.loads(run("schedule", "preview", "--schedule", made, "--json", "-n", "2"))
    assert len(shown["fires"]) == 2
    file.write_text(json.dumps({**spec, "overlap": {"policy": "SKIP"}}))
    assert "version 2" in run("schedule", "edit", made, "--spec", f"@{file}", "--reason", "one at a time")
    assert "STARTED" in run("schedule", "trigger", made, "--reason", "now")
    run("schedule", "trigger", made, "--reason", "again", code=1)
    assert "TRIGGER" in run("schedule", "fires", made)
    assert "PAUSED" in run("schedule", "pause", made, "--reason", "holiday")
    assert "ACTIVE" in run("schedule", "resume", made, "--reason", "back")
    run("schedule", "records", made)
    span = ("2026-05-01T00:00:00Z", "2026-05-01T03:00:00Z")
    words = ("--dry-run", "--reason", "disk full")
    assert "3 of 3 planned instants would run" in run("schedule", "backfill", made, *span, *words)
    run("schedule", "backfill", made, "yesterday", "today", "--reason", "x", code=2)

    wanted = '{"kinds": ["TASK"]}'
    run("subscription", "create", "jobs", "--when-full", "drop_oldest", "--filter", wanted)
    with Orbit(server.url, server.token, settings=SETTINGS) as client:
        client.subscriptions.create("probe", when_full="DROP_OLDEST")
        client.tasks.submit({"queue": "reports", "handler": "reports.count", "handler_version": 1})
        assert client.subscriptions.pull("probe", wait=20.0).items
        with pytest.raises(FailedPrecondition):
            client.schedules.edit(made, spec, expected_version=1, reason="stale")
    assert "task.submitted" in run("subscription", "tail", "jobs", "--once")
    assert "jobs" in run("subscription", "list")
    assert "DROP_OLDEST" in run("subscription", "show", "jobs")
    assert "ended" in run("subscription", "end", "jobs", "--reason", "done")
