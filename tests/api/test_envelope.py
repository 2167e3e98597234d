"""What every answer has in common, and what no request gets past."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orbit_sdk.errors import (
    Code,
    Conflict,
    Detail,
    FailedPrecondition,
    Gone,
    Internal,
    InvalidArgument,
    NotFound,
    OrbitError,
    PayloadTooLarge,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from orbit_sdk.values.ids import is_id
from orbit_server.api.app import OrbitApp
from orbit_server.api.call import Call
from orbit_server.api.errors import STATUS
from orbit_server.api.routes import Route
from orbit_server.api.table import ROUTES
from tests.api.flows import ASKING, TASK, start, submit
from tests.server import Api

JSON = {"Content-Type": "application/json", "Idempotency-Key": "k"}


def test_every_code_has_exactly_one_status() -> None:
    assert set(STATUS) == set(Code)


async def test_success_and_failure_have_their_envelopes(edge: Api) -> None:
    good = await edge.get("/v1/tasks")
    assert set(good.body) == {"request_id", "data"}
    bad = await edge.get("/v1/tasks/x")
    assert set(bad.body) == {"request_id", "error"}
    assert set(bad.body["error"]) == {"code", "message", "details"}
    assert is_id(good.body["request_id"])
    assert good.body["request_id"] != bad.body["request_id"]
    assert good.headers["Content-Type"] == "application/json"


ERRORS: list[tuple[OrbitError, int, str | None]] = [
    (InvalidArgument.at("a.b", "is wrong"), 400, None),
    (Unauthenticated("who?"), 401, None),
    (PermissionDenied("no"), 403, None),
    (NotFound("where?"), 404, None),
    (Conflict("other"), 409, None),
    (FailedPrecondition("late", [Detail("revision", "is 3")]), 409, None),
    (Gone("purged"), 410, None),
    (PayloadTooLarge("big"), 413, None),
    (ResourceExhausted("full"), 429, "1"),
    (ResourceExhausted("full", retry_after_ms=2_001), 429, "3"),
    (Unavailable("away"), 503, None),
    (Unavailable("away", retry_after_ms=1), 503, "1"),
    (Internal("bug"), 500, None),
]


@pytest.mark.parametrize(("error", "status", "wait"), ERRORS, ids=lambda value: str(value)[:12])
async def test_an_error_becomes_its_status_and_body(
    edge: Api, error: OrbitError, status: int, wait: str | None
) -> None:
    async def fail(_: Call) -> Any:
        raise error

    app = OrbitApp(edge.parts.server, (Route("GET", "/fail", None, None, fail, "fails"),))
    reply = await app.test_client().get("/fail")
    body = json.loads(await reply.get_data())
    assert reply.status_code == status
    wait_ms = body["error"].pop("retry_after_ms", None)
    assert (wait_ms is None) == (wait is None)
    assert wait_ms == error.retry_after_ms or error.retry_after_ms is None
    assert body["error"] == {
        "code": error.code.value,
        "message": error.message,
        "details": [{"field": one.field, "reason": one.reason} for one in error.details],
    }
    assert reply.headers.get("Retry-After") == wait
    assert reply.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)


async def test_a_bug_is_told_without_its_secrets(edge: Api) -> None:
    async def fail(_: Call) -> Any:
        raise ValueError("the secret")

    app = OrbitApp(edge.parts.server, (Route("GET", "/fail", None, None, fail, "fails"),))
    reply = await app.test_client().get("/fail")
    text = (await reply.get_data()).decode()
    assert reply.status_code == 500
    assert "INTERNAL" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/v2/tasks"), ("DELETE", "/v1/tasks"), ("PUT", "/v1/tasks"), ("GET", "/v1/tasks/"),
     ("GET", "/v1//tasks"), ("OPTIONS", "/v1/tasks"), ("POST", "/healthz")],
)  # fmt: skip
async def test_what_stands_in_no_row_does_not_exist(edge: Api, method: str, path: str) -> None:
    reply = await edge.send(method, path)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic abc", "Bearer nonsense", f"Bearer orbit_{'0' * 64}", "orbit_x"],
)
async def test_without_a_good_token_nothing_is_told(edge: Api, header: str | None) -> None:
    caller = Api(edge.parts, None)
    headers = {} if header is None else {"Authorization": header}
    reply = await caller.send("GET", "/v1/tasks/nonsense?x=1", headers=headers)
    assert (reply.status, reply.code) == (401, "UNAUTHENTICATED")
    assert reply.headers["WWW-Authenticate"] == "Bearer"


async def test_a_creating_request_needs_its_idempotency_key(edge: Api) -> None:
    for key in (None, "a b", "", "é", "x" * 201):
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        reply = await edge.send("POST", "/v1/tasks", data=json.dumps(TASK).encode(), headers=headers)
        assert (reply.code, reply.fields) == ("INVALID_ARGUMENT", ["Idempotency-Key"])
    assert (await edge.get("/v1/tasks")).data["items"] == []


async def test_a_batch_refuses_a_key_for_all_of_it(edge: Api) -> None:
    reply = await edge.post("/v1/tasks/batch", {"items": [{**TASK, "idempotency_key": "a"}]}, key="k")
    assert (reply.code, reply.fields) == ("INVALID_ARGUMENT", ["Idempotency-Key"])


def nested(depth: int) -> bytes:
    return (
        b'{"queue":"q","handler":"a","handler_version":1,"parameters":{"a":'
        + b"[" * depth
        + b"]" * depth
        + b"}}"
    )


def task(parameters: bytes) -> bytes:
    return b'{"queue":"q","handler":"a","handler_version":1,"parameters":{"a":' + parameters + b"}}"


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "not json": b"{",
    "no object": b"[]",
    "null": b"null",
    "text": b'"x"',
    "duplicate keys": b'{"queue":"q","queue":"r","handler":"a","handler_version":1}',
    "duplicate keys inside": task(b'{"b":1,"b":2}'),
    "NaN": task(b"NaN"),
    "Infinity": task(b"-Infinity"),
    "1e999": task(b"1e999"),
    "lone surrogate": task(b'"\\ud800"'),
    "lone surrogate key": task(b'{"\\udfff":1}'),
    "surrogate bytes": task(b'"\xed\xa0\x80"'),
    "depth 100000": nested(100_000),
    "depth 40": nested(40),
    "5000 digits": task(b"1" * 5000),
    "beyond 2^53": task(b"9007199254740993"),
    "NUL escape": task(b'"a\\u0000b"'),
    "NUL": task(b'"a\x00b"'),
    "bom": b"\xef\xbb\xbf" + task(b"1"),
    "latin-1": task(b'"\xe9"'),
    "utf-16": task(b"1").decode().encode("utf-16"),
    "trailing": task(b"1") + b"x",
    "unknown field": b'{"queue":"q","handler":"a","handler_version":1,"extra":1}',
    "missing field": b'{"queue":"q","handler":"a"}',
    "number as text": b'{"queue":"q","handler":"a","handler_version":"1"}',
    "true as number": b'{"queue":"q","handler":"a","handler_version":true}',
    "1.0 as integer": b'{"queue":"q","handler":"a","handler_version":1.0}',
    "long key": task(b'{"' + b"k" * 200 + b'":1}'),
    "huge exponent": task(b"1e-999999999"),
    "bad instant": b'{"queue":"q","handler":"a","handler_version":1,"run_at":"yesterday"}',
    "instant far away": (
        b'{"queue":"q","handler":"a","handler_version":1,"run_at":"0001-01-01T00:00:00+23:59"}'
    ),
    "both times": (
        b'{"queue":"q","handler":"a","handler_version":1,"run_at":"2030-01-01T00:00:00Z","delay_ms":5}'
    ),
    "control character key": b'{"queue":"q","handler":"a","handler_version":1,"business_key":"a\\u0001"}',
    "spaces around": b'{"queue":"q","handler":"a","handler_version":1,"business_key":" a"}',
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "huge exponent"])
async def test_a_hostile_body_is_refused_and_leaves_nothing(edge: Api, name: str) -> None:
    reply = await edge.send("POST", "/v1/tasks", data=HOSTILE[name], headers=JSON)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT"), reply.body
    assert reply.fields
    assert (await edge.get("/v1/tasks")).data["items"] == []


async def test_a_number_too_small_for_a_double_is_zero(edge: Api) -> None:
    assert (await edge.send("POST", "/v1/tasks", data=HOSTILE["huge exponent"], headers=JSON)).status == 200


async def test_a_value_may_be_as_deep_as_the_limit_wherever_it_stands(edge: Api) -> None:
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    assert (await edge.post("/v1/tasks", {**TASK, "parameters": {"a": deep}})).status == 200
    item = {**TASK, "parameters": {"a": deep}, "idempotency_key": "b"}
    batch = await edge.post("/v1/tasks/batch", {"items": [item]}, key=None)
    assert "id" in batch.data["items"][0]
    assert (await edge.post("/v1/tasks", {**TASK, "parameters": {"a": [deep]}})).code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
async def test_only_plain_json_is_read(edge: Api, headers: dict[str, str]) -> None:
    sent = {"Idempotency-Key": "k", **headers}
    reply = await edge.send("POST", "/v1/tasks", data=json.dumps(TASK).encode(), headers=sent)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")
    assert reply.fields in (["Content-Type"], ["Content-Encoding"])


async def test_bodies_have_a_size(edge: Api) -> None:
    big = json.dumps({**TASK, "parameters": {"a": "x" * 1_100_000}}).encode()
    reply = await edge.send("POST", "/v1/tasks", data=big, headers=JSON)
    assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
    wide = json.dumps({**TASK, "parameters": {"a": "x" * 300_000}}).encode()
    reply = await edge.send("POST", "/v1/tasks", data=wide, headers=JSON)
    assert (reply.status, reply.fields) == (413, ["parameters"])
    items = [{**TASK, "parameters": {"a": "x" * 200_000}, "idempotency_key": str(n)} for n in range(15)]
    assert (await edge.post("/v1/tasks/batch", {"items": items}, key=None)).status == 200
    items = [{**TASK, "parameters": {"a": "x" * 200_000}, "idempotency_key": str(n)} for n in range(25)]
    assert (await edge.post("/v1/tasks/batch", {"items": items}, key=None)).status == 413


@pytest.mark.parametrize(
    "body", [{}, {"items": []}, {"items": 1}, {"items": [1] * 1001}, {"items": [1], "x": 1}, []]
)
async def test_a_batch_has_the_shape_of_a_batch(edge: Api, body: Any) -> None:
    reply = await edge.post("/v1/tasks/batch", body, key=None)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")


async def test_items_of_a_batch_are_judged_one_by_one(edge: Api) -> None:
    items = [1, None, {**TASK, "idempotency_key": "a", "priority": 10}, {**TASK, "idempotency_key": "b"}]
    found = (await edge.post("/v1/tasks/batch", {"items": items}, key=None)).data["items"]
    assert [item.get("error", {}).get("code") for item in found] == ["INVALID_ARGUMENT"] * 3 + [None]
    assert found[2]["error"]["details"][0]["field"] == "items[2].priority"


PAGED = [route for route in ROUTES if any(parameter.name == "cursor" for parameter in route.query)]
DETAILS = [route for route in ROUTES if route.method == "GET" and not route.query and route.permission]


def at(route: Route) -> str:
    path = route.path
    named = {"definition_id": "a.b", "version": "1", "step_key": "a", "queue": "a", "subscription": "a"}
    named["digest"] = "0" * 64
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", named.get(name, "0" * 32))
    return path


@pytest.mark.parametrize("route", PAGED, ids=lambda route: route.path)
async def test_every_list_reads_its_parameters_strictly(edge: Api, route: Route) -> None:
    path = at(route)
    for bad in ("limit=0", "limit=101", "limit=5&limit=5", "unknown=1", "limit", "limit=%zz", "limit=%ff",
                "cursor=", "cursor=AAAA", "&", "=1", "LIMIT=1", "limit=1;x=1"):  # fmt: skip
        reply = await edge.send("GET", f"{path}?{bad}")
        assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT"), bad
        assert reply.fields, bad


@pytest.mark.parametrize("route", DETAILS, ids=lambda route: route.path)
async def test_no_detail_takes_a_parameter(edge: Api, route: Route) -> None:
    assert (await edge.send("GET", f"{at(route)}?limit=1")).fields == ["limit"]


async def test_head_is_get_without_a_body(edge: Api) -> None:
    client = edge.parts.app.test_client()
    reply = await client.head("/healthz")
    assert reply.status_code == 200
    assert await reply.get_data() == b""


async def test_more_requests_than_the_server_takes_are_told_to_come_back(edge: Api) -> None:
    edge.parts.server.health.requests = edge.parts.server.settings.requests_max
    try:
        reply = await edge.get("/v1/tasks")
        assert (reply.status, reply.code, reply.headers["Retry-After"]) == (429, "RESOURCE_EXHAUSTED", "1")
        assert (await edge.get("/healthz")).status == 200
    finally:
        edge.parts.server.health.requests = 0


async def test_a_caller_who_goes_away_does_not_stop_what_was_submitted(edge: Api) -> None:
    waiting = asyncio.create_task(edge.post("/v1/tasks", TASK, key="gone"))
    committer = edge.parts.server.database.committer
    posted = committer.post

    def post_and_cancel(*args: Any, **more: Any) -> Any:
        future = posted(*args, **more)
        waiting.cancel()
        return future

    object.__setattr__(committer, "post", post_and_cancel)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    object.__setattr__(committer, "post", posted)
    again = await edge.post("/v1/tasks", TASK, key="gone")
    assert again.status == 200
    assert len((await edge.get("/v1/tasks")).data["items"]) == 1


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"])
async def test_instants_of_every_year_are_taken_and_shown_again(edge: Api, at: str) -> None:
    task_id = await submit(edge, run_at=at)
    for path in ("/v1/tasks", f"/v1/tasks/{task_id}", f"/v1/tasks/{task_id}/why"):
        assert (await edge.get(path)).status == 200
    workflow_id = await start(edge, ASKING)
    signal = {"signal": "approval", "match": "other", "body": 1, "expires_at": at}
    assert (await edge.post(f"/v1/workflows/{workflow_id}/signals", signal)).status == 200
    assert (await edge.get(f"/v1/workflows/{workflow_id}/signals")).data["items"][0]["expires_at"] == at


async def test_a_credential_may_live_for_as_long_as_there_are_years(edge: Api) -> None:
    at = "9999-12-31T23:59:59.999999Z"
    made = await edge.post("/v1/credentials", {"name": "ever", "permissions": [], "expires_at": at})
    assert made.status == 200, made.body
    assert (await edge.get("/v1/credentials")).data["items"][0]["expires_at"] == at
