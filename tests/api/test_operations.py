"""Health, figures, logs, and what a server does when its database is away."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable

from orbit_server.platform.logs import JsonFormatter
from tests.api.flows import ASKING, TASK, approve, start, submit
from tests.api.test_tasks import put_in_review
from tests.databases import MariaDb
from tests.server import Api, node, until


async def test_a_server_is_ready_until_it_leaves(edge: Api) -> None:
    anyone = Api(edge.parts, None)
    assert (await anyone.get("/healthz")).data == {"status": "ok"}
    assert (await anyone.get("/readyz")).data["status"] == "ready"
    edge.parts.server.health.draining = True
    assert (await anyone.get("/readyz")).status == 503
    assert (await anyone.get("/healthz")).status == 200
    edge.parts.server.health.draining = False
    edge.parts.server.health.ready = False
    assert (await anyone.get("/readyz")).code == "UNAVAILABLE"


SAMPLE = re.compile(r'[a-z_:][a-z0-9_:]*(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? -?[0-9.e+-]+')


async def test_figures_are_in_the_format_of_prometheus(edge: Api) -> None:
    await submit(edge)
    await edge.get("/v1/tasks/nonsense")
    text = (await Api(edge.parts, None).get("/metrics")).body
    lines = text.splitlines()
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines), text
    assert 'orbit_http_requests_total{method="POST",route="/v1/tasks",status="200"} 1' in lines
    assert 'orbit_http_requests_total{method="GET",route="/v1/tasks/{task_id}",status="400"} 1' in lines
    assert "orbit_ready 1" in lines
    kinds = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(kinds) == len(set(kinds))
    assert sum(line.startswith("orbit_loop_runs_total") for line in lines) == len(list(edge.parts.loops))


FAMILIES = {
    "backlog by queue and state": "orbit_tasks",
    "age of the oldest due task": "orbit_oldest_ready_seconds",
    "when the backlog was read": "orbit_backlog_seen_timestamp_seconds",
    "dispatch delay": "orbit_dispatch_delay_seconds",
    "attempts": "orbit_claims_total",
    "lost leases": 'orbit_attempts_ended_total{outcome="LEASE_LOST"}',
    "retries": "orbit_task_retries_total",
    "reviews by class": "orbit_reviews",
    "permits in use": "orbit_permits_in_use",
    "permits at most": "orbit_permits_limit",
    "sessions": "orbit_worker_sessions",
    "committer": "orbit_storage_groups_total",
    "committer's queue": "orbit_storage_queued",
    "its phases": "orbit_storage_phase_seconds",
    "database errors": "orbit_storage_retries_total",
    "unknown commits": "orbit_storage_unknown_commits_total",
    "errors of loops": "orbit_loop_errors_total",
    "event-loop lag": "orbit_event_loop_lag_seconds",
    "invariant violations": "orbit_invariant_violations",
}


async def test_every_figure_that_operators_are_promised_stands_on_the_page(api: Api) -> None:
    await api.post("/v1/queues/jobs/limits", {"running_max": 7, "reason": "r"})
    await put_in_review(api, await submit(api))
    await submit(api)
    parts = api.parts
    parts.server.database.metrics.retries["1213"] += 1
    parts.dispatcher.figures.ended["LEASE_LOST"] += 1
    parts.dispatcher.figures.claims["RUN"] += 1
    await parts.loops["backlog"].loop.run_once(await parts.server.database.now())
    lines = (await Api(parts, None).get("/metrics")).body.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    missing = [what for what, name in FAMILIES.items() if not any(line.startswith(name) for line in samples)]
    assert not missing
    named = {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert {name.split("{")[0] for name in FAMILIES.values()} <= named


def test_a_log_line_is_one_json_object_with_ids_beside_the_message() -> None:
    record = logging.LogRecord("orbit", logging.INFO, __file__, 1, "task %s\nmoved", ("a",), None)
    record.task_id = "0" * 32
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert (found["message"], found["task_id"], found["level"]) == ("task a\nmoved", "0" * 32, "INFO")


async def test_the_token_never_stands_in_the_log(edge: Api, caplog: object, capsys: object) -> None:
    stream: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stream.append(JsonFormatter().format(record))

    root, handler = logging.getLogger(), Keep()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        await edge.post("/v1/tasks", {**TASK, "parameters": {"pin": "s3cret"}})
        await edge.send(
            "POST", "/v1/tasks", data=b'{"pin":"s3cret"', headers={"Content-Type": "application/json"}
        )
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert edge.token is not None
    assert not any(edge.token in line or "s3cret" in line for line in stream)


async def test_no_value_of_a_task_or_workflow_stands_in_the_log_of_a_server(edge: Api) -> None:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(JsonFormatter().format(record))

    root, handler, level = logging.getLogger(), Keep(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    marked = {"pin": "s3cret"}
    try:
        task_id = await submit(edge, parameters=marked)
        decision = {
            "expected_revision": await put_in_review(edge, task_id),
            "verdict": "SUCCEEDED",
            "result": marked,
            "reason": "r",
            "basis": "PROVEN",
            "evidence": "s3cret",
        }
        assert (await edge.post(f"/v1/tasks/{task_id}/review", decision)).status == 200
        assert (await edge.post(f"/v1/tasks/{task_id}/review", decision)).status == 409
        workflow_id = await start(edge, ASKING, business_key="b-1")
        assert (await approve(edge, workflow_id, "s3cret")).status == 200
        assert (await approve(edge, workflow_id, {"late": "s3cret"})).data["state"] == "REJECTED"
        assert (await edge.get(f"/v1/workflows/{workflow_id}", wait_ms=5_000)).data["state"] == "SUCCEEDED"
        assert (await edge.get(f"/v1/tasks/{task_id}")).data["result"] == marked
        logging.getLogger("orbit").warning("the log is kept")
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert any("the log is kept" in line for line in lines)
    assert not any("s3cret" in line for line in lines)


async def test_a_server_survives_its_database_being_away_and_goes_on_without_a_restart(
    new_mariadb: Callable[..., MariaDb],
) -> None:
    mariadb = new_mariadb()
    every = dict.fromkeys(("loop_ms", "idle_loop_ms", "purge_every_ms", "check_every_ms"), 50)
    async with node(mariadb.create_database(), **every) as api:
        workflow_id = await start(api, ASKING)
        runs = {runner.loop.name: runner for runner in api.parts.loops}
        await until(lambda: all(runner.figures.runs for runner in runs.values()))
        mariadb.stop()
        await until(lambda: all(runner.figures.errors for runner in runs.values()))
        reply = await api.get("/v1/tasks")
        assert (reply.status, reply.code) == (503, "UNAVAILABLE")
        assert (await Api(api.parts, None).get("/readyz")).status == 503
        assert (await Api(api.parts, None).get("/healthz")).status == 200
        before = {name: runner.figures.runs for name, runner in runs.items()}
        mariadb.start()
        await until(lambda: all(runner.figures.runs > before[name] for name, runner in runs.items()))
        assert (await until(lambda: _data(api, f"/v1/workflows/{workflow_id}")))["state"] == "WAITING"
        assert (await api.post("/v1/tasks", TASK)).status == 200
        assert (await Api(api.parts, None).get("/readyz")).status == 200


async def _data(api: Api, path: str) -> dict[str, str] | None:
    reply = await api.get(path)
    found: dict[str, str] | None = reply.data if reply.status == 200 else None
    return found
