"""`orbit queue`, `orbit why` and `orbit worker list/block` against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orbit_sdk.cli.app import app
from tests.server import ServerProcess, server_process

Run = Callable[..., Any]


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(sqlite_url, tmp_path) as running:
        yield running


@pytest.fixture
def orbit(server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`orbit("queue", "list")`: what it prints; it has to end well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORBIT_URL", server.url)
    monkeypatch.setenv("ORBIT_TOKEN", server.token)
    runner = CliRunner()

    def run(*arguments: str, code: int = 0) -> str:
        result = runner.invoke(app, list(arguments))
        assert result.exit_code == code, result.output
        return str(result.output)

    return run


def test_a_queue_is_limited_paused_and_explained(orbit: Run) -> None:
    submitted = json.loads(orbit("task", "submit", "pay@3", "--queue", "payments", "--json"))
    assert "payments" in orbit("queue", "list")
    limited = orbit("queue", "limit", "payments", "--running", "20", "--rate", "5/1s", "--reason", "r")
    assert "0 of 20" in limited
    assert "5 per 1000 ms, 5 at once" in limited
    kept = json.loads(orbit("queue", "limit", "payments", "--rate", "none", "--reason", "r", "--json"))
    assert kept["running_max"] == 20
    assert kept.get("rate") is None
    orbit("queue", "keys", "payments", "account", "2", "--reason", "r")
    orbit("queue", "weight", "payments", "shop", "3", "--reason", "r")
    orbit("queue", "limit", "--namespace", "--backlog", "9", "--reason", "r")
    orbit("queue", "limit", "--running", "1", "--reason", "r", code=2)
    assert "paused" in orbit("queue", "pause", "payments", "--reason", "the bank is down")
    shown = orbit("queue", "show", "payments")
    assert "the bank is down" in shown
    assert "class account: 2 of each key at a time" in shown
    said = orbit("why", submitted["id"])
    assert "queue payments is paused by" in said
    assert "no connected worker takes from queue payments" in said
    assert "open" in orbit("queue", "resume", "payments", "--reason", "the bank is back")
    found = json.loads(orbit("why", submitted["id"], "--json"))
    assert [one["code"] for one in found["conditions"]] == ["NO_WORKER"]


def test_workers_are_listed_and_builds_blocked(orbit: Run) -> None:
    assert "no worker is connected" in orbit("worker", "list")
    assert "gets no work any more" in orbit("worker", "block", "b7", "--reason", "loses receipts")
    assert "gets work again" in orbit("worker", "unblock", "b7", "--reason", "fixed")
    assert "list" in orbit("worker", "--help")
    orbit("worker", "nowhere.py", code=2)


def test_tasks_and_workflows_are_listed_and_counted_by_what_they_are(orbit: Run) -> None:
    for number in range(3):
        label = f"region={'eu' if number else 'us'}"
        orbit("task", "submit", "pay@3", "--queue", "payments", "--label", label, "--key", f"A-{number}")
    told = json.loads(orbit("task", "list", "--group-by", "label:region", "--json"))
    assert told["groups"] == [{"count": 2, "key": "eu"}, {"count": 1, "key": "us"}]
    assert orbit("task", "list", "--count", "--state", "ready", "--since", "1h").strip() == "3"
    listed = orbit("task", "list", "--label", "region=us")
    assert "A-0" in listed
    assert "A-1" not in listed
    assert json.loads(orbit("list", "--count", "--group-by", "state", "--json"))["total"] == 0
    assert "READY" in orbit("task", "list", "--group-by", "state")
    assert "--since" in orbit("list", "--since", "yesterday", code=2)
