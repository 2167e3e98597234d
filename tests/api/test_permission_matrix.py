"""Every kind of credential against every route, on what is one's own, on what is another's, and on nothing.

`test_permissions` opens each route by its own permission; here all the other cells are walked through. A
route or a parameter that is not declared fails: see `ABSENT` and `MAKES_ITSELF`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from orbit_server.api.routes import Route
from orbit_server.platform.permissions import PERMISSIONS
from orbit_server.storage.tables import credentials
from tests.api.test_permissions import BESIDE, BODIES, CLOSED, call, one_of_each
from tests.server import EVERYTHING, Api

ABSENT: Final = {
    "workflow_id": "0" * 32,
    "task_id": "0" * 32,
    "event_id": "0" * 32,
    "signal_id": "0" * 32,
    "wait_id": "0" * 32,
    "credential_id": "0" * 32,
    "schedule_id": "0" * 32,
    "bulk_id": "0" * 32,
    "definition_id": "test.nothing",
    "digest": "1" * 64,
    "version": "9",
    "step_key": "nothing",
    "queue": "nothing",
    "subscription": "nothing",
}
"""How each parameter of a path names what does not exist."""

MAKES_ITSELF: Final = {
    "/v1/queues/{queue}",
    "/v1/queues/{queue}/pause",
    "/v1/queues/{queue}/resume",
    "/v1/queues/{queue}/limits",
    "/v1/queues/{queue}/key-classes",
    "/v1/queues/{queue}/weights",
}
"""A queue exists by being named: these answer for any name, in the caller's own namespace."""


def named(route: Route, names: dict[str, str]) -> str:
    return route.path.format(**names)


def about_something(route: Route) -> bool:
    return "{" in route.path


async def test_nobody_passes_without_a_token_that_is_valid_now(edge: Api) -> None:
    names = await one_of_each(edge)
    gone = await edge.with_rights()
    own = (await gone.get("/v1/credentials")).data["items"]
    (mine,) = [one["id"] for one in own if one["name"] == "other"]
    over = await edge.with_rights()
    (late,) = [
        one["id"]
        for one in (await edge.get("/v1/credentials")).data["items"]
        if one["name"] == "other" and one["id"] != mine
    ]

    def expire(conn: Any) -> None:
        conn.execute(credentials.update().where(credentials.c.id == late).values(expires_at=1))

    await edge.post(f"/v1/credentials/{mine}/revoke", {"reason": "r"})
    await edge.parts.server.database.write(expire)
    nobody, wrong = Api(edge.parts, None), Api(edge.parts, "orbit_" + "x" * 40)
    for route in CLOSED:
        for caller in (nobody, wrong, gone, over):
            reply = await call(caller, route, named(route, names))
            assert (reply.status, reply.code) == (401, "UNAUTHENTICATED"), route


async def test_a_single_permission_opens_its_own_routes_and_no_other(edge: Api) -> None:
    names = await one_of_each(edge)
    for permission in sorted(PERMISSIONS):
        caller = await edge.with_rights(replace(EVERYTHING, permissions=(permission,)))
        for route in CLOSED:
            if permission in (route.permission, route.instead):
                continue
            reply = await call(caller, route, named(route, names))
            assert (reply.status, reply.code) == (403, "PERMISSION_DENIED"), (permission, route)


async def test_what_does_not_exist_is_not_found_whoever_asks(edge: Api) -> None:
    """Each parameter of a path in turn names nothing, the others name what exists."""
    wrong: list[str] = []
    names = await one_of_each(edge)
    for route in CLOSED:
        for name in [key for key in names if "{" + key + "}" in route.path]:
            if route.path in MAKES_ITSELF:
                continue
            reply = await call(edge, route, named(route, names | {name: ABSENT[name]}))
            if reply.status != 404:
                wrong.append(f"{route.method} {route.path} without {name}: {reply.status}")
    assert not wrong, wrong


async def test_what_is_of_another_namespace_is_as_good_as_absent(edge: Api) -> None:
    """With every permission of its own namespace a stranger is told the same as about what never was, and
    lists show nothing of it.
    """
    names = await one_of_each(edge)
    wrong: list[str] = []
    stranger = await edge.with_rights(namespace="elsewhere")
    unguessable = [value for value in names.values() if len(value) == 32 and value.isalnum()]
    # What the stranger makes of its own comes last: it may well be named as ours is.
    for route in sorted(CLOSED, key=about_something, reverse=True):
        reply = await call(stranger, route, named(route, names))
        shown = str(reply.body)
        if about_something(route) and route.path not in MAKES_ITSELF:
            absent = await call(stranger, route, named(route, names | ABSENT))
            if not reply.status == absent.status == 404:
                wrong.append(f"{route.method} {route.path}: {reply.status}, absent {absent.status}")
            for key, value in names.items():
                shown = shown.replace(value, "?") if "{" + key + "}" in route.path else shown
        else:
            assert reply.status == 200 or reply.status in (400, 404, 409), (route, reply.body)
        assert not [value for value in unguessable if value in shown], route
    assert not wrong, wrong


def test_every_parameter_of_a_path_and_every_body_is_declared() -> None:
    for route in CLOSED:
        for part in route.path.split("/"):
            if part.startswith("{"):
                assert part[1:-1] in ABSENT, f"say in ABSENT how {part} names nothing"
        assert route.method == "GET" or route.path in BODIES, f"say in BODIES what {route.path} is sent"
    assert set(BESIDE) <= {route.path for route in CLOSED}
    assert {route.path for route in CLOSED} >= MAKES_ITSELF
