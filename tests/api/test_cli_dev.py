"""`orbit dev` and the commands that use a server, as real processes on an embedded database."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orbit_sdk.cli.app import app
from tests.unit.cli.apps import CHANGED, MISSPELT, PAYMENT, write

WAIT_S = 60
IN_PROCESS = frozenset(
    {"start", "watch", "list", "show", "signal", "pause", "resume", "cancel", "review", "task", "events"}
    | {"migrate", "credential"}
)
"""Commands that are quicker to try in this process: they import no application."""


@dataclass
class Shop:
    """A folder with an application, and the `orbit` command in it."""

    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "orbit_sdk.cli", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command says; in a process of its own where it imports the application."""
        if arguments[0] in IN_PROCESS:
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == code, f"{arguments}: {result.exit_code}\n{result.output}"
            return result.output if code else result.stdout
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr if code else done.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code))

    @contextmanager
    def dev(
        self, *arguments: str, lease: str = "2s"
    ) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
        """A running `orbit dev`, with what it said when it was ready."""
        options = ["dev", *arguments, "--port", "0", "--json", "--lease", lease]
        with subprocess.Popen(
            self.command(*options), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                ready = json.loads(process.stdout.readline())
                assert ready["event"] == "ready", ready
                yield process, ready
            finally:
                if process.poll() is None:
                    process.terminate()
                process.wait(WAIT_S)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ORBIT_")]:
        monkeypatch.delenv(name)
    return Shop(write(tmp_path, app=PAYMENT))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_workflow_runs_from_start_over_a_signal_to_its_end(shop: Shop) -> None:
    with shop.dev("app.py", "--workflow-audit-access") as (process, ready):
        assert [item["outcome"] for item in ready["workflows"]] == ["published"]
        assert ready["workflows"][0]["current"] is True
        order = json.dumps({"number": "A-1", "amount": 5})
        started = shop.json("start", "orders.payment", "--input", order, "--key", "A-1", "--label", "day=one")
        again = shop.run("list", "--key", "A-1")
        assert started["id"] in again
        assert "waits for order.approval" in shop.run("show", "key:A-1")
        sent = shop.json("signal", "key:A-1", "order.approval", '{"granted": true}')
        assert sent["state"] == "CONSUMED"
        assert "started" in shop.run("start", "orders.payment", "-i", order, "--key", "A-2")
        shop.run("signal", "key:A-2", "order.approval", '{"granted": false}', "--step", "approval")
        assert '{"receipt": null}' in shop.run("watch", "key:A-2")
        told = shop.run("watch", "key:A-1")
        assert "SUCCEEDED" in told
        assert '{"receipt": "A-1/5"}' in told
        assert shop.json("show", "key:A-1")["labels"] == {"day": "one"}
        assert shop.json("show", "key:A-1", "--step", "pay")["result"] == {"receipt": "A-1/5"}
        events = shop.json("events", "key:A-1")["items"]
        assert events[-1]["type"] == "workflow.started"
        assert shop.json("events", "key:A-1", events[-1]["id"])["payload"] is not None
        assert "workflow.step.changed" in shop.run("events", "key:A-1")
        assert '{"receipt": "A-1/5"}' in shop.run("show", "key:A-1", "--step", "pay")
        [task] = shop.json("task", "list", "--workflow", started["id"])["items"]
        assert "order.pay@1" in shop.run("task", "list")
        assert "SUCCEEDED" in shop.run("task", "show", task["id"])
        assert shop.run("review", "list", "--json") == '{\n  "items": []\n}\n'
        assert 'class="step tone-task is-good"' in shop.run("graph", "app.py", "--state", "key:A-1")
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert not any(alive(pid) for pid in ready["pids"].values())


def test_data_is_kept_and_a_changed_definition_is_shown_and_never_published_over(shop: Shop) -> None:
    with shop.dev("app.py") as (_, first):
        order = json.dumps({"number": "A-1", "amount": 5})
        started = shop.json("start", "orders.payment", "-i", order)
        same = shop.json("publish", "app.py")
        assert same["items"][0]["outcome"] == "published"
    write(shop.folder, app=CHANGED)
    with shop.dev("app.py") as (_, second):
        assert second["token"] == first["token"]
        [answer] = second["workflows"]
        assert answer["outcome"] == "changed"
        assert answer["changes"] == ["nodes.approval.timeout_ms"]
        assert "VERSION_TAKEN" in shop.run("check", "app.py", "--against", second["url"], code=1)
        assert "SAFE" in shop.run("diff", "app.py", "--against", second["url"])
        refused = shop.run("publish", "app.py", code=1)
        assert "nodes.approval.timeout_ms" in refused
        assert "version=2" in refused
        assert shop.json("show", started["id"])["state"] == "WAITING"
        cancelled = shop.json("cancel", started["id"], "--reason", "withdrawn")
        assert cancelled["workflow"]["state"] in ("CANCELLING", "CANCELLED")
        assert "CANCELLED" in shop.run("watch", started["id"], code=1)


def test_what_fails_or_is_paused_is_told_by_exit_code_and_state(shop: Shop) -> None:
    with shop.dev("app.py"):
        order = json.dumps({"number": "B", "amount": -1})
        started = shop.json("start", "orders.payment", "-i", order, "--key", "B", "--idempotency-key", "once")
        assert shop.json(
            "start", "orders.payment", "-i", order, "--key", "B", "--idempotency-key", "once"
        ) == {
            **started,
            "state": started["state"],
        }
        assert shop.json("pause", "key:B", "--reason", "later")["workflow"]["paused"] is True
        assert "paused" in shop.run("show", "key:B")
        assert "still WAITING" in shop.run("watch", "key:B", "--timeout", "0", code=1)
        assert shop.json("resume", "key:B", "--reason", "now")["workflow"]["paused"] is False
        assert "(paused)" in shop.run("pause", "key:B", "--reason", "again")
        assert "paused" not in shop.run("resume", "key:B", "--reason", "now")
        guess = shop.run("signal", "key:B", "order.nothing", "1", code=1)
        assert "it knows: order.approval" in guess
        shop.run("signal", "key:B", "order.approval", '{"granted": true}', "--match", "B")
        told = shop.run("watch", "key:B", "--json", code=1)
        last = json.loads(told.splitlines()[-1])
        assert last["workflow"]["state"] == "FAILED"
        missing = shop.run("show", "key:nothing", code=1)
        assert "NOT_FOUND" in missing
        wrong = shop.run("start", "orders.payment", "-i", '{"number": 5}', code=1)
        assert "INVALID_ARGUMENT" in wrong
        denied = shop.json("events", "key:B", code=1)
        assert denied["error"]["code"] == "PERMISSION_DENIED"


def test_what_waits_for_a_person_is_listed_and_decided(shop: Shop) -> None:
    with shop.dev("app.py"):
        order = json.dumps({"number": "R", "amount": 0})
        started = shop.json("start", "orders.payment", "-i", order, "--key", "R")
        shop.run("signal", "key:R", "order.approval", '{"granted": true}')
        told = shop.run("watch", "key:R", "--stop-on-review", code=1)
        assert "NEEDS_REVIEW" in told
        assert "orbit review list" in told
        [item] = shop.json("review", "list", "--kind", "step")["items"]
        assert (item["workflow_id"], item["step_key"]) == (started["id"], "pay")
        assert "pay" in shop.run("review", "list")
        words = ("review", "resolve", "key:R", "pay", "succeeded", "--result", '{"receipt": "none"}')
        because = ("--reason", "nothing owed", "--evidence", "ledger 1")
        stale = shop.run(*words, *because, "--revision", "0", code=1)
        assert "FAILED_PRECONDITION" in stale
        shop.run(*words, *because, "--basis", "proven")
        assert '{"receipt": "none"}' in shop.run("watch", "key:R")

        parameters = json.dumps({"number": "T", "amount": 0})
        task = shop.json(
            "task", "submit", "order.pay@1", "--queue", "payments", "-p", parameters, "--key", "T"
        )
        while not shop.json("review", "list", "--kind", "task")["items"]:
            pass
        decided = shop.json(
            "task", "resolve", task["id"], "cancelled", "--reason", "withdrawn", "--evidence", "none"
        )
        assert decided["state"] == "CANCELLED"


def test_plain_tasks_are_submitted_shown_and_cancelled(shop: Shop) -> None:
    with shop.dev("app.py"):
        parameters = json.dumps({"number": "T", "amount": 2})
        words = ("task", "submit", "order.pay@1", "--queue", "payments", "--parameters", parameters)
        made = shop.json(*words, "--delay", "1h", "--key", "T", "--priority", "7", "--attempts", "2")
        assert made["state"] == "SCHEDULED"
        assert "submitted" in shop.run(*words, "--delay", "1h")
        assert made["priority"] == 7
        assert made["attempts_max"] == 2
        assert "SCHEDULED" in shop.run("task", "show", "key:T")
        assert shop.json("task", "cancel", "key:T", "--reason", "no more")["state"] == "CANCELLED"
        assert shop.json("task", "list", "--state", "cancelled")["items"][0]["id"] == made["id"]


def test_a_worker_that_dies_is_started_again_and_the_work_goes_on(shop: Shop) -> None:
    with shop.dev("app.py") as (process, ready):
        os.kill(ready["pids"]["worker"], signal.SIGKILL)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "worker"
        order = json.dumps({"number": "C", "amount": 1})
        started = shop.json("start", "orders.payment", "-i", order)
        shop.run("signal", started["id"], "order.approval", '{"granted": true}')
        assert "SUCCEEDED" in shop.run("watch", started["id"])


def test_the_children_die_with_a_killed_parent_and_a_dead_server_ends_it(shop: Shop) -> None:
    with shop.dev("app.py") as (process, ready):
        process.kill()
        process.wait(WAIT_S)
        for pid in (ready["pids"]["server"], ready["pids"]["worker"]):
            subprocess.run(["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=WAIT_S, check=True)
    with shop.dev() as (process, ready):
        os.kill(ready["pids"]["server"], signal.SIGKILL)
        assert process.wait(WAIT_S) == 3
    assert "running in" in shop.run("list", code=3)


def test_nothing_ephemeral_is_kept(shop: Shop) -> None:
    with shop.dev("app.py", "--ephemeral") as (_, ready):
        database = Path(ready["database"])
        assert database.exists()
        assert shop.json("list")["items"] == []
    assert not database.exists()
    assert not (shop.folder / ".orbit" / "profile.json").exists()
    assert "no server is known here" in shop.run("list", code=2)


def test_a_second_run_in_the_same_folder_is_told_that_the_data_is_in_use(shop: Shop) -> None:
    with shop.dev():
        told = shop.run("dev", "--port", "0", code=3)
        assert "the server did not start" in told
        assert "in use by process" in told
        assert shop.json("list") == {"items": []}


def test_a_schema_that_no_migration_mends_is_refused_with_the_way_out(shop: Shop) -> None:
    (shop.folder / ".orbit").mkdir()
    file = shop.folder / ".orbit" / "orbit.db"
    where = ("--database", f"sqlite:///{file}")
    shop.run("migrate", *where)
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TABLE tasks")
    told = shop.run("migrate", *where, code=3)
    assert "cannot mend" in told
    assert "the table tasks is missing" in told
    told = shop.run("dev", "--port", "0", code=3)
    assert "orbit migrate" not in told
    assert f"{file}: move it away" in told


def test_findings_stop_it_before_anything_is_published(shop: Shop) -> None:
    write(shop.folder, app=MISSPELT)
    told = shop.run("dev", "app.py", "--port", "0", code=1)
    assert "error[NO_FIELD]" in told
    assert not (shop.folder / ".orbit" / "profile.json").exists()


def test_a_busy_port_names_its_holder_and_the_way_out(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        told = shop.run("dev", "app.py", "--port", str(port), code=3)
    assert f"process {os.getpid()}" in told
    assert f"--port {port + 1}" in told


def test_it_says_at_most_eight_lines_and_keeps_its_profile_private(shop: Shop) -> None:
    command = shop.command("dev", "app.py", "--port", "0")
    with subprocess.Popen(
        command, cwd=shop.folder, env=shop.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            line = process.stdout.readline()
            assert line, lines
            lines.append(line)
        process.terminate()
        assert process.wait(WAIT_S) == 0
    assert len(lines) <= 8
    assert any("http://127.0.0.1:" in line for line in lines)
    assert any("orbit start orders.payment --input" in line for line in lines)
    assert (shop.folder / ".orbit" / "profile.json").stat().st_mode & 0o777 == 0o600
    assert (shop.folder / ".orbit" / ".gitignore").read_text() == "*\n"


def test_a_server_and_a_worker_run_on_their_own_and_stop_in_good_order(shop: Shop) -> None:
    database = ("--database", f"sqlite:///{shop.folder / 'own.db'}")
    shop.run("migrate", *database)
    token = shop.json("credential", "create", "--name", "all", "--for", "everything", *database)["token"]

    def child(*arguments: str, **more: Any) -> subprocess.Popen[str]:
        environment = {**shop.environment, **more}
        return subprocess.Popen(
            shop.command(*arguments, "--json"),
            cwd=shop.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    with child("server", *database, "--port", "0") as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        with child("worker", "app.py", "--slots", "2", ORBIT_URL=url, ORBIT_TOKEN=token) as worker:
            assert worker.stdout is not None
            assert json.loads(worker.stdout.readline())["handlers"] == ["order.pay@1"]
            where = ("--url", url, "--token", token)
            published = shop.json("publish", "app.py", "--current", *where)
            assert published["items"][0]["current"] is True
            order = json.dumps({"number": "W", "amount": 3})
            words = ("start", "orders.payment@1", "-i", order, "--key", "W", "--watch", *where)
            with subprocess.Popen(
                shop.command(*words), cwd=shop.folder, env=shop.environment, stdout=subprocess.PIPE, text=True
            ) as started:
                assert started.stdout is not None
                while "WAITING_SIGNAL" not in started.stdout.readline():
                    assert started.poll() is None
                shop.run("signal", "key:W", "order.approval", '{"granted": true}', *where)
                assert '{"receipt": "W/3"}' in started.stdout.read()
                assert started.wait(WAIT_S) == 0
            worker.terminate()
            assert worker.wait(WAIT_S) == 0
        refused = shop.run("worker", "app.py", "--url", url, "--token", "orbit_nobody", code=1)
        assert "UNAUTHENTICATED" in refused
        server.terminate()
        assert server.wait(WAIT_S) == 0


def test_credentials_and_migrations_need_no_server(shop: Shop) -> None:
    database = f"sqlite:///{shop.folder / 'own.db'}"
    assert shop.json("migrate", "--database", database) == {"before": "empty", "after": "current"}
    assert "is current" in shop.run("migrate", "--database", database)
    made = shop.json("credential", "create", "--name", "w", "--for", "worker", "--database", database)
    assert made["token"].startswith("orbit_")
    assert made["permissions"] == ["workers:connect"]
    text = shop.run(
        "credential", "create", "--name", "c", "--permission", "workflows:read", "--database", database
    )
    assert text.strip().startswith("orbit_")
    words = ("credential", "create", "--name", "c", "--permission", "nonsense", "--database", database)
    assert "is not a permission" in shop.run(*words, code=1)
    refused = CliRunner().invoke(app, ["server", "--database", database, "--host", "0.0.0.0"])
    assert refused.exit_code == 1
    assert "without TLS" in refused.output
