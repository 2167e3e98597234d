"""`orbit run`, `plan`, `publish --all`, `definition` and `versions`, against real servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orbit_sdk.cli.app import app
from tests.api.flows import ASKING, WORKING
from tests.server import ROOT, ServerProcess, server_process
from tests.unit.cli.apps import COUNT, PAYMENT, write

WAIT_S = 60
ORDER = json.dumps({"number": "A-1", "amount": 5})
SECOND = PAYMENT.replace('"order.pay", version=1', '"order.pay", version=2').replace(
    '"orders.payment", version=1', '"orders.payment", version=2'
)
"""Another version of the workflow, which needs another version of the handler."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("ORBIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, app=PAYMENT, count=COUNT)


@pytest.fixture
def server(
    folder: Path, migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServerProcess]:
    with server_process(migrated_sqlite_url, folder) as running:
        monkeypatch.setenv("ORBIT_URL", running.url)
        monkeypatch.setenv("ORBIT_TOKEN", running.token)
        yield running


def orbit(*arguments: str, code: int = 0) -> str:
    """What a command prints; in a process of its own where it imports an application."""
    if any(".py" in each for each in arguments):
        command = [sys.executable, "-m", "orbit_sdk.cli", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
        said = (done.returncode, done.stdout, done.stderr)
    else:
        result = CliRunner().invoke(app, arguments)
        said = (result.exit_code, result.stdout, result.stderr)
    assert said[0] == code, f"{arguments}: {said}"
    return said[1] + said[2] if code else said[1]


def as_json(*arguments: str, code: int = 0) -> Any:
    return json.loads(orbit(*arguments, "--json", code=code))


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on until the block ends."""
    command = [sys.executable, "-m", "orbit_sdk.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.terminate()
            running.wait(WAIT_S)


@contextmanager
def worker(target: str, build: str) -> Iterator[None]:
    """A worker process; it may still be connecting."""
    with process("worker", target, "--build", build, "--json"):
        yield


def connected(*builds: str) -> None:
    """Wait until workers of these builds are connected."""
    deadline = time.monotonic() + WAIT_S
    while {one["build"] for one in as_json("worker", "list")["items"]} != set(builds):
        assert time.monotonic() < deadline, "the workers did not connect"
        time.sleep(0.05)


def test_run_without_any_server_brings_one_and_leaves_nothing_behind(folder: Path) -> None:
    told = orbit("run", "count.py:length", "--input", '"hello"')
    assert "texts.length@draft" in told
    assert "output  5" in told
    assert not (folder / ".orbit" / "profile.json").exists()


def test_run_asks_which_of_several_workflows_is_meant(folder: Path) -> None:
    write(folder, both=PAYMENT + COUNT.partition("\n")[2])
    told = orbit("run", "both.py", "--json", code=2)
    assert "say which, as both.py:payment (payment, length)" in told


def test_an_interrupted_run_leaves_its_workflow_or_cancels_it(folder: Path) -> None:
    with process("dev", "--port", "0", "--json", "--ephemeral") as dev:
        assert dev.stdout is not None
        assert json.loads(dev.stdout.readline())["event"] == "ready"
        for option, end in ((), "WAITING"), (("--cancel-on-interrupt",), "CANCELLED"):
            with process("run", "app.py", "--input", ORDER, "--json", *option) as running:
                assert running.stdout is not None
                assert json.loads(running.stdout.readline())["draft"]["definition_id"] == "orders.payment"
                started = json.loads(running.stdout.readline())["started"]["id"]
                for line in running.stdout:
                    if json.loads(line).get("workflow", {}).get("state") == "WAITING":
                        break
                running.send_signal(signal.SIGINT)
                _, errors = running.communicate(timeout=WAIT_S)
                assert running.returncode == 1
                assert ("cancelling" if option else f"orbit watch {started}") in errors
            assert as_json("show", started)["state"] == end
        [draft] = as_json("definition", "drafts")["items"]
        assert draft["used"] is True
        assert draft["digest"][:12] in orbit("definition", "drafts", "orders.payment")


def test_a_plan_says_what_stands_in_the_way_and_publish_keeps_to_it(
    server: ServerProcess, folder: Path
) -> None:
    del server
    definitions = folder / "definitions"
    definitions.mkdir()
    (folder / "pyproject.toml").write_text('[tool.orbit]\npaths = ["definitions"]\n')
    (definitions / "ask.json").write_text(json.dumps(ASKING))
    (definitions / "work.json").write_text(json.dumps(WORKING))
    told = orbit("plan", code=1)
    assert "new       test.ask@1  (a new workflow)" in told
    assert "workers first  no worker offers risky@1" in told
    assert "nothing is published" in orbit("publish", "--all", "--require-workers", code=1)
    assert orbit("publish", "--all", "--require-workers", "--json", code=1).count("NO_WORKER") == 1
    assert as_json("definition", "list")["items"] == []
    (definitions / "work.json").unlink()
    assert "nothing stands in the way" in CliRunner().invoke(app, ["plan"]).stderr
    assert "published  test.ask version 1, current" in orbit(
        "publish", "--all", "--require-workers", "--current"
    )
    assert "same      test.ask@1" in orbit("plan", "definitions")
    (definitions / "ask.json").write_text(json.dumps({**ASKING, "title": "other"}))
    taken = "conflict  test.ask@1 is published with other content: set version=2"
    assert taken in orbit("plan", "definitions", code=1)
    narrower = {**ASKING, "version": 2, "input": {"type": "integer"}}
    (definitions / "ask.json").write_text(json.dumps(narrower))
    assert "new       test.ask@2  breaking against version 1, current" in orbit("plan")
    [found] = as_json("plan")["items"]
    assert (found["needs_workers"], found["verdict"]) == (False, "BREAKING")
    assert "give a target, or --all" in orbit("publish", "--json", code=2)


def test_old_versions_of_workflows_and_handlers_go_on_beside_new_ones(
    server: ServerProcess, folder: Path
) -> None:
    del server
    write(folder, second=SECOND)
    orbit("publish", "app.py", "--current")
    old = as_json("start", "orders.payment", "--input", ORDER, "--key", "old")
    orbit("publish", "second.py", "--current")
    new = as_json("start", "orders.payment", "--input", ORDER, "--key", "new")
    assert (old["definition_version"], new["definition_version"]) == (1, 2)
    refused = orbit("definition", "retire", "orders.payment@2", "--reason", "r", code=1)
    assert "is the current version" in refused
    assert "takes no new starts" in orbit("definition", "retire", "orders.payment@1", "--reason", "r")
    orbit("start", "orders.payment@1", "--input", ORDER, code=1)
    with worker("app.py", "b1"), worker("second.py", "b2"):
        connected("b1", "b2")
        found = as_json("versions")
        versions = {one["version"]: one for one in found["definitions"]}
        assert [versions[number]["open"] for number in (1, 2)] == ["1", "1"]
        handlers = {one["handler"]: one for one in found["handlers"]}
        assert (handlers["order.pay@1"]["builds"], handlers["order.pay@1"]["started_by"]) == (["b1"], [])
        assert handlers["order.pay@2"]["started_by"] == ["orders.payment@2"]
        for key in ("old", "new"):
            orbit("signal", f"key:{key}", "order.approval", '{"granted": true}')
            assert "SUCCEEDED" in orbit("watch", f"key:{key}")
        builds = {
            one["build"]
            for workflow in (old, new)
            for task in as_json("task", "list", "--workflow", workflow["id"])["items"]
            for one in as_json("task", "show", task["id"])["attempts"]
        }
        assert builds == {"b1", "b2"}
        told = orbit("versions", "orders.payment")
        assert "retired, nothing runs" in told
        assert "nothing: workers may drop it" in told
    assert "(NO WORKER)" in orbit("versions")
    back = as_json("definition", "current", "orders.payment@2", "--reason", "r")
    assert back["current"] is True
    assert "current" in orbit("definition", "list", "orders.payment")
    assert "there is no draft" in orbit("definition", "drafts") or as_json("definition", "drafts") == {
        "items": []
    }
