"""What a client makes of answers, good and damaged, over a real socket; both twins alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orbit_sdk.client import ClientSettings, Orbit, OrbitClient
from orbit_sdk.errors import Conflict, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from tests.unit.client.paper import Answer, Asked, paper, refused

W, E1, E2, OTHER = "a" * 32, "1" * 32, "2" * 32, "f" * 32
QUICK = ClientSettings(backoff=0.001, max_backoff=0.002, retry_for=30)
AT = "2026-01-01T00:00:00.000001Z"
LATER = "2026-01-01T00:00:00.000002Z"

WORKFLOW: dict[str, Any] = {
    "id": W,
    "definition_id": "a.b",
    "definition_version": 1,
    "state": "RUNNING",
    "paused": False,
    "cancel_requested": False,
    "control_version": "1",
    "revision": "18446744073709551615",
    "started_at": AT,
    "input": {},
    "started_by": "x",
}


def event(event_id: str, at: str = AT, **more: Any) -> dict[str, Any]:
    return {
        "id": event_id,
        "workflow_id": W,
        "aggregate_kind": "workflow",
        "aggregate_id": W,
        "aggregate_revision": "1",
        "type": "workflow.advanced",
        "state_scope": "WORKFLOW",
        "state": "RUNNING",
        "occurred_at": at,
        **more,
    }


def events(*items: Any, **more: Any) -> Answer:
    return Answer({"workflow_id": W, "revision": "9", "items": list(items), **more})


def ask(answers: list[Answer], call: Callable[[Orbit], Any]) -> Any:
    with paper(answers) as server, Orbit(server.url, "orbit_x", settings=QUICK) as client:
        return call(client)


def test_counters_are_ints_of_any_size() -> None:
    assert ask([Answer(WORKFLOW)], lambda client: client.workflows.get(W)).revision == 2**64 - 1


@pytest.mark.parametrize(
    "damaged",
    [
        {**WORKFLOW, "id": OTHER},
        {**WORKFLOW, "id": "A" * 32},
        {**WORKFLOW, "state": "DANCING"},
        {**WORKFLOW, "started_at": "yesterday"},
        {name: value for name, value in WORKFLOW.items() if name != "revision"},
        None,
        [],
    ],
)
def test_a_damaged_workflow_is_refused(damaged: Any) -> None:
    with pytest.raises(Unavailable):
        ask([Answer(damaged)], lambda client: client.workflows.get(W))


def test_unknown_fields_of_a_newer_server_are_ignored() -> None:
    newer = {**WORKFLOW, "mood": "good"}
    assert ask([Answer(newer)], lambda client: client.workflows.get(W)).id == W


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.workflows.steps(W),
        lambda client: client.workflows.step(W, "a"),
        lambda client: client.tasks.get(W),
        lambda client: client.workflows.signal(W, "s", "m", {}),
        lambda client: client.workflows.cancel(W, reason="r"),
        lambda client: client.reviews.resolve_step(W, "a", {}),
    ],
)
def test_an_answer_about_something_else_is_refused(call: Callable[[Orbit], Any]) -> None:
    task = {
        "id": OTHER,
        "queue": "q",
        "handler": "h",
        "handler_version": 1,
        "state": "READY",
        "cancel_requested": False,
        "priority": 5,
        "attempts_used": 0,
        "attempts_max": 1,
        "revision": "1",
        "created_at": AT,
        "effect_key": "k",
        "recovery": "IDEMPOTENT",
    }
    other = {
        **WORKFLOW,
        **task,
        "state": "RUNNING",
        "workflow_id": OTHER,
        "items": [],
        "key": "b",
        "kind": "TASK",
        "workflow": {**WORKFLOW, "id": OTHER},
        "signal": "s",
        "match": "m",
        "accepted_at": AT,
    }
    with pytest.raises(Unavailable):
        ask([Answer(other)], call)


def test_a_sound_page_of_events_is_given() -> None:
    page = ask(
        [events(event(E2, LATER), event(E2), event(E1), next_cursor="c")],
        lambda client: client.list_workflow_events(W, limit=3),
    )
    assert [item.id for item in page.items] == [E2, E2, E1]
    assert page.revision == 9


@pytest.mark.parametrize(
    "answer",
    [
        events(event(E1), event(E2)),
        events(event(E1), event(E1)),
        events(event(E1), event(E2, LATER)),
        events(event(E1, workflow_id=OTHER)),
        events(event(E1, aggregate_id=OTHER)),
        events(event(E1, aggregate_kind="workflow_step")),
        events(event(E1, type="workflow.unknown")),
        events(event(E1, state="PENDING")),
        events(event(E1, step_key="a")),
        events(event(E1, type="workflow.step.changed", aggregate_kind="workflow_step", state_scope="STEP")),
        events(event(E1, type="workflow.signal.accepted", state_scope="SIGNAL", state="CONSUMED")),
        events({**event(E1), "aggregate_revision": "-1"}),
        events({**event(E1), "aggregate_revision": "1.5"}),
        events({**event(E1), "id": "E" * 32}),
        events({**event(E1), "occurred_at": "yesterday"}),
        events({name: value for name, value in event(E1).items() if name != "state"}),
        Answer({"workflow_id": W, "revision": "nine", "items": []}),
        Answer({"workflow_id": W, "revision": "9", "items": None}),
        events(next_cursor="x" * 1025),
        events(next_cursor=""),
        events(next_cursor="again"),
        events(event(E2, LATER), event(E2), event(E1), event("0" * 32)),
        Answer({"workflow_id": OTHER, "revision": "1", "items": []}),
    ],
)
def test_a_damaged_page_of_events_is_refused(answer: Answer) -> None:
    with pytest.raises(Unavailable):
        ask([answer], lambda client: client.list_workflow_events(W, limit=3, cursor="again"))


def test_a_sound_event_is_given_with_its_payload() -> None:
    found = ask(
        [Answer(event(E1, payload={"workflow_id": W, "n": 2**60}))],
        lambda client: client.get_workflow_event(W, E1),
    )
    assert found.payload["n"] == 2**60


@pytest.mark.parametrize(
    "damaged",
    [
        event(E2, payload={}),
        event(E1, workflow_id=OTHER, payload={}),
        event(E1, type="workflow.unknown", payload={}),
        event(E1, payload={"workflow_id": OTHER}),
        event(E1, payload={"x": "y" * 70_000}),
        event(E1, payload=[]),
        event(E1),
    ],
)
def test_a_damaged_event_is_refused(damaged: Any) -> None:
    with pytest.raises(Unavailable):
        ask([Answer(damaged)], lambda client: client.get_workflow_event(W, E1))


def test_a_list_is_read_page_by_page_with_its_filters() -> None:
    pages = [
        Answer({"items": [WORKFLOW], "next_cursor": "c1"}),
        Answer({"items": [{**WORKFLOW, "id": OTHER}]}),
    ]
    with paper(pages) as server, Orbit(server.url, "orbit_x") as client:
        assert [item.id for item in client.workflows.list(state="RUNNING", paused=False)] == [W, OTHER]
        assert [item.path for item in server.asked] == [
            "/v1/workflows?state=RUNNING&paused=false&limit=100",
            "/v1/workflows?state=RUNNING&paused=false&cursor=c1&limit=100",
        ]


def test_a_list_that_never_moves_on_is_refused() -> None:
    stuck = Answer({"items": [], "next_cursor": "same"})
    with pytest.raises(Unavailable, match="does not move on"):
        ask([stuck], lambda client: list(client.workflows.list()))


def test_a_busy_server_is_asked_again_under_the_same_key() -> None:
    script = [
        refused("RESOURCE_EXHAUSTED", 429, Retry_After="0"),
        refused("UNAVAILABLE", 503, Retry_After="0"),
        Answer(raw=b"<html>bad gateway</html>", status=502),
        Answer(hang_up=True),
        Answer(WORKFLOW),
    ]
    with paper(script) as server, Orbit(server.url, "orbit_x", settings=QUICK) as client:
        assert client.workflows.start("a.b", {"x": 1}).id == W
        assert len(server.asked) == 5
        assert len({(item.headers["idempotency-key"], item.body) for item in server.asked}) == 1


def test_a_refusal_is_final_and_told_as_it_was_said() -> None:
    with paper([refused("CONFLICT", 409, details=[{"field": "f", "reason": "r"}])]) as server:
        with Orbit(server.url, "orbit_x", settings=QUICK) as client, pytest.raises(Conflict) as caught:
            client.workflows.start("a.b", {})
        assert caught.value.details[0].field == "f"
        assert len(server.asked) == 1


def test_a_damaged_row_is_not_asked_for_for_ever() -> None:
    with paper([refused("UNAVAILABLE", 503)]) as server:
        with Orbit(server.url, "orbit_x", settings=QUICK) as client, pytest.raises(Unavailable):
            client.workflows.get(W)
        assert len(server.asked) == 4


def test_a_call_that_makes_a_token_is_never_repeated() -> None:
    with paper([Answer(hang_up=True)]) as server:
        with Orbit(server.url, "orbit_x", settings=QUICK) as client, pytest.raises(Unavailable):
            client.credentials.create("x", ["workflows:read"])
        assert len(server.asked) == 1


def test_the_end_of_patience_gives_the_last_refusal() -> None:
    settings = ClientSettings(backoff=0.001, max_backoff=0.002, retry_for=0.05)
    with paper([refused("RESOURCE_EXHAUSTED", 429)]) as server:
        with Orbit(server.url, "orbit_x", settings=settings) as client, pytest.raises(ResourceExhausted):
            client.workflows.get(W)
        assert len(server.asked) > 1


def test_an_address_and_a_token_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORBIT_URL", raising=False)
    monkeypatch.delenv("ORBIT_TOKEN", raising=False)
    with pytest.raises(InvalidArgument, match="ORBIT_URL"):
        Orbit()
    monkeypatch.setenv("ORBIT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ORBIT_TOKEN", "orbit_x")
    Orbit().close()


async def test_the_async_twin_reads_the_same_answers() -> None:
    def script(asked: Asked) -> Answer:
        if asked.path.startswith("/v1/workflows?"):
            return Answer({"items": [WORKFLOW]})
        if asked.path == f"/v1/workflows/{OTHER}":
            return refused("NOT_FOUND", 404)
        return Answer(WORKFLOW)

    with paper(script) as server:
        async with OrbitClient(server.url, "orbit_x", settings=QUICK) as client:
            assert (await client.workflows.get(W, wait=0.5, after_revision=3)).id == W
            assert "wait_ms=500&after_revision=3" in server.asked[-1].path
            assert [item.id async for item in client.workflows.list(business_key="k")] == [W]
            with pytest.raises(NotFound):
                await client.workflows.get(OTHER)
