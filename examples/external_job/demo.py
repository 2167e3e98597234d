"""`make demo`: the whole of Orbit in half a minute, on real parts.

Starts a development server on embedded SQLite, a worker and the external channel, each its own process;
publishes the workflow, starts one instance, approves it, kills the worker in the middle of the one call
that must not happen twice, and shows how Orbit finds out what became of it. Stops everything it started.

    KEEP=1   leave everything running at the end, and say where
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from examples.external_job.flow import REVIEW, Job, Outcome, Review, external_job
from orbit_sdk.client import Handle, OrbitClient
from orbit_sdk.errors import OrbitError
from orbit_sdk.protocol.workflows import EventSummary, Step

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEASE = "5s"
PATIENCE_SECONDS = 90.0


class DemoFailed(Exception):
    """The demo did not go as it must; the message says where."""


@dataclass
class Stage:
    """What the demo started, and how it talks."""

    folder: Path
    began: float = field(default_factory=time.monotonic)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    colours: bool = field(default_factory=sys.stdout.isatty)
    look_around: str = ""

    def say(self, text: str, style: str = "0") -> None:
        shown = f"\x1b[{style}m{text}\x1b[0m" if self.colours and style != "0" else text
        print(f"{time.monotonic() - self.began:6.1f}s  {shown}", flush=True)

    def headline(self, text: str) -> None:
        self.say(text, "1;36")

    def start(
        self, name: str, *command: str, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A child whose output goes to a log file of its own."""
        log = (self.folder / f"{name}.log").open("ab")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **(env or {})}
        with log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.processes[name] = process
        return process

    def kill(self, name: str) -> None:
        """SIGKILL: the process gets no chance to say goodbye."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End what was started, by pid: politely, then not."""
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes.values()):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def log_of(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def until(what: str, stage: Stage, ready: Any, watched: str) -> Any:
    """Wait for `ready()` to give something; fail with the log of the process it depends on."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < limit:
        found = await ready()
        if found:
            return found
        process = stage.processes.get(watched)
        if process is None or process.poll() is not None:
            raise DemoFailed(f"{watched} ended before {what}:\n{stage.log_of(watched)}")
        await asyncio.sleep(0.1)
    raise DemoFailed(f"{what} did not happen in {PATIENCE_SECONDS:.0f} s:\n{stage.log_of(watched)}")


async def start_server(stage: Stage) -> tuple[str, str]:
    """`orbit dev`: a server on embedded SQLite whose token may also read the audit timeline."""
    stage.start(
        "server",
        *(sys.executable, "-m", "orbit_sdk.cli", "dev", "--port", str(free_port())),
        *("--workflow-audit-access", "--lease", LEASE),
    )
    profile = stage.folder / ".orbit" / "profile.json"

    async def ready() -> Any:
        if not profile.exists():
            return None
        found = json.loads(profile.read_text())
        try:
            async with httpx.AsyncClient() as http:
                answer = await http.get(f"{found['url']}/readyz")
        except httpx.TransportError:
            return None
        return (found["url"], found["token"]) if answer.status_code == httpx.codes.OK else None

    url, token = await until("the server is ready", stage, ready, "server")
    return url, token


async def start_channel(stage: Stage, env: Mapping[str, str]) -> None:
    """The other end; it answers before anybody calls it."""
    port = env["CHANNEL_URL"].rpartition(":")[2]
    stage.start(
        "channel",
        *(sys.executable, str(HERE / "channel.py")),
        env={**env, "CHANNEL_PORT": port, "CHANNEL_HOLD_FIRST": "60", "CHANNEL_WORK_SECONDS": "12"},
    )

    async def ready() -> bool:
        try:
            async with httpx.AsyncClient() as http:
                return (await http.get(f"{env['CHANNEL_URL']}/journal")).is_success
        except httpx.TransportError:
            return False

    await until("the channel is ready", stage, ready, "channel")


def start_worker(stage: Stage, name: str, env: Mapping[str, str]) -> None:
    stage.start(
        name,
        *(sys.executable, "-m", "orbit_sdk.cli", "worker", str(HERE / "flow.py"), "--name", name),
        env=env,
    )


class Timeline:
    """Prints the events of one instance as they are stored, oldest first."""

    def __init__(self, stage: Stage, handle: Handle[Outcome]) -> None:
        self._stage = stage
        self._handle = handle
        self._seen: set[str] = set()

    async def show(self) -> None:
        fresh = [event async for event in self._handle.events() if event.id not in self._seen]
        for event in reversed(fresh):
            self._seen.add(event.id)
            self._stage.say(f"   {_words(event)}", "2")


def _words(event: EventSummary) -> str:
    subject = event.step_key or event.state_scope.lower()
    return f"{event.type.removeprefix('workflow.'):16} {subject:16} {event.state}"


async def step_of(handle: Handle[Outcome], key: str) -> Step | None:
    return next((step for step in (await handle.steps()).items if step.key == key), None)


async def play(stage: Stage) -> None:
    """The whole play, act by act."""
    stage.headline("Starting a server on embedded SQLite (leases of 5 s), the channel, and a worker")
    url, token = await start_server(stage)
    env = {"ORBIT_URL": url, "ORBIT_TOKEN": token, "CHANNEL_URL": f"http://127.0.0.1:{free_port()}"}
    await start_channel(stage, env)
    start_worker(stage, "worker-1", env)
    async with OrbitClient(url, token) as client, httpx.AsyncClient(base_url=env["CHANNEL_URL"]) as channel:
        compiled = external_job.compile()
        await client.definitions.publish(compiled.definition.to_json(), current=True)
        stage.say(f"published demo.external_job version 1, digest {compiled.digest[:12]}…")
        job = Job(job_id="job-2026-001", source="orders.csv", requested_by="ada")
        handle = await client.start(external_job, job, business_key=job.job_id, idempotency_key="demo")
        stage.say(f"started {handle.id}")
        timeline = Timeline(stage, handle)
        await approve(stage, handle, timeline)
        await kill_in_the_middle(stage, handle, timeline, channel, env)
        await finish(stage, client, handle, timeline, channel)
        stage.look_around = f"ORBIT_URL={url} ORBIT_TOKEN={token} .venv/bin/orbit show {handle.id}"


async def approve(stage: Stage, handle: Handle[Outcome], timeline: Timeline) -> None:
    async def waits() -> bool:
        await timeline.show()
        step = await step_of(handle, "review")
        return step is not None and step.state == "WAITING_SIGNAL"

    await until("the review waits", stage, waits, "worker-1")
    stage.headline(
        "The job waits for a person. Giving the approval (a signal; sending it twice is one signal)"
    )
    for _ in range(2):
        await handle.send(
            REVIEW,
            Review(approved=True, comment="looks right"),
            match="job-2026-001",
            idempotency_key="approval-1",
        )


async def kill_in_the_middle(
    stage: Stage,
    handle: Handle[Outcome],
    timeline: Timeline,
    channel: httpx.AsyncClient,
    env: Mapping[str, str],
) -> None:
    async def accepted() -> bool:
        await timeline.show()
        try:
            return bool((await channel.get("/journal")).json()["effects"])
        except httpx.TransportError:
            return False

    await until("the channel accepts the job", stage, accepted, "worker-1")
    stage.headline(
        "The channel has taken the job, the worker waits for its answer: killing the worker (SIGKILL)"
    )
    stage.kill("worker-1")
    stage.say("nobody knows now whether the submission happened: not failed, *unknown*")
    start_worker(stage, "worker-2", env)

    async def verifying() -> bool:
        await timeline.show()
        step = await step_of(handle, "submit")
        return step is not None and (step.task_state == "VERIFYING" or step.state == "COMPLETED")

    await until("the lost lease is noticed", stage, verifying, "worker-2")
    stage.headline("The lease ended. The step is not repeated: its verify handler asks the channel")


async def finish(
    stage: Stage,
    client: OrbitClient,
    handle: Handle[Outcome],
    timeline: Timeline,
    channel: httpx.AsyncClient,
) -> None:
    async def submitted() -> bool:
        await timeline.show()
        step = await step_of(handle, "submit")
        return step is not None and step.state == "COMPLETED"

    await until("the submission is settled", stage, submitted, "worker-2")
    submit = await step_of(handle, "submit")
    assert submit is not None, "it was seen a moment ago"
    assert submit.task_id is not None, "a TASK has a task"
    attempts = [attempt async for attempt in client.tasks.attempts(submit.task_id)]
    for attempt in reversed(attempts):
        stage.say(
            f"   attempt {attempt.attempt_no} ({attempt.kind}, {attempt.worker}): {attempt.outcome}", "2"
        )

    async def ended() -> bool:
        await timeline.show()
        return (await handle.get()).ended_at is not None

    await until("the workflow ends", stage, ended, "worker-2")
    outcome = await handle.result(timeout=10)
    journal = (await channel.get("/journal")).json()
    effects = sum(journal["effects"].values())
    if effects != 1:
        raise DemoFailed(f"the channel took the job {effects} times")
    stage.headline(f"SUCCEEDED: {outcome.model_dump_json()}")
    stage.say("the channel took the job exactly once, although the worker died in the middle of the call")


def main() -> int:
    keep = os.environ.get("KEEP", "") not in ("", "0")
    stage = Stage(Path(tempfile.mkdtemp(prefix="orbit-demo-")))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = True
    try:
        asyncio.run(play(stage))
        failed = False
        if keep:
            pids = ", ".join(f"{name} {process.pid}" for name, process in stage.processes.items())
            stage.say(f"look around: {stage.look_around}")
            stage.say(f"left running: {pids}; data and logs in {stage.folder}; stop with: kill <pid>")
        else:
            stage.say(
                "where to look next: `make demo KEEP=1` leaves it running; "
                "write your own: docs/tutorial/first-workflow.md"
            )
        return 0
    except (DemoFailed, OrbitError) as error:
        stage.say(f"the demo failed: {error}", "1;31")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if failed or not keep:
            stage.stop()
            if failed:
                stage.say(f"logs are kept in {stage.folder}")
            else:
                shutil.rmtree(stage.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
