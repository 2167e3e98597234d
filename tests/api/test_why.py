"""Why a workflow stands where it stands, through the HTTP interface."""

from __future__ import annotations

from typing import Any

from tests.api.flows import ASKING, WORKING, approve, start, submit
from tests.api.test_reviews import in_review
from tests.api.test_tasks import put_in_review
from tests.documents import document, end, join, parallel, poll, task, timer, wait
from tests.server import Api


async def why(api: Api, workflow_id: str) -> tuple[bool, dict[str, Any]]:
    found = (await api.get(f"/v1/workflows/{workflow_id}/why")).data
    return found["moves"], {reason["code"]: reason for reason in found["reasons"]}


async def test_a_wait_tells_who_is_waited_for_and_what_happens_without_an_answer(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    moves, reasons = await why(api, workflow_id)
    assert not moves
    waits = reasons["WAITS_FOR_SIGNAL"]
    assert waits["message"] == 'ask waits for approval with match "m"'
    assert waits["then"] == "ask needs a person"
    assert waits["command"] == f"orbit wait answer {workflow_id} ask BODY"
    answer = f"/v1/waits/{waits['wait_id']}/answer"
    assert (await api.post(answer, {"body": 1}, key=None)).data["state"] == "CONSUMED"
    assert set((await why(api, workflow_id))[1]) == {"ENDED"}


async def test_every_sort_of_standing_still_is_named(api: Api) -> None:
    doc = document(
        {
            "fork": parallel("meet", "LET_OTHERS_FINISH", a="work", b="sleep", c="ask"),
            "work": task("meet", "safe"),
            "sleep": timer("meet"),
            "ask": wait("meet", on_timeout={"next": "late"}),
            "late": timer("meet"),
            "meet": join("done"),
            "done": end(),
        },
        id="test.many",
    )
    workflow_id = await start(api, doc)
    moves, reasons = await why(api, workflow_id)
    assert moves
    assert set(reasons) == {"WAITS_FOR_SIGNAL", "WAITS_FOR_TIME", "WAITS_FOR_TASK", "WAITS_FOR_ARMS"}
    assert reasons["WAITS_FOR_TASK"]["message"] == "the task of work waits for a free worker"
    assert reasons["WAITS_FOR_SIGNAL"]["then"] == "ask goes to late"
    await api.post(f"/v1/workflows/{workflow_id}/pause", {"reason": "r"})
    moves, reasons = await why(api, workflow_id)
    assert not moves
    assert reasons["PAUSED"]["command"].startswith("orbit resume")
    await approve(api, workflow_id)
    assert "WAITS_FOR_SIGNAL" not in (await why(api, workflow_id))[1]


async def test_a_review_and_a_cancel_are_told(api: Api) -> None:
    workflow_id, _ = await in_review(api)
    moves, reasons = await why(api, workflow_id)
    assert not moves
    assert "TIMED_OUT" in reasons["IN_REVIEW"]["message"]
    running = await start(api, WORKING)
    polling = await start(api, document({"ask": poll("done"), "done": end()}, id="test.poll"))
    assert set((await why(api, running))[1]) == set((await why(api, polling))[1]) == {"WAITS_FOR_TASK"}
    assert (await api.get(f"/v1/workflows/{'0' * 32}/why")).code == "NOT_FOUND"


async def test_what_is_stuck_is_counted_by_step_and_reason(api: Api) -> None:
    assert (await api.get("/v1/reviews/stuck")).data == {"items": [], "more": False}
    for _ in range(3):
        await in_review(api)
    (group,) = (await api.get("/v1/reviews/stuck", definition_id="test.late", limit=1)).data["items"]
    assert (group["definition_id"], group["step_key"], group["count"]) == ("test.late", "ask", "3")
    assert (group["review_class"], group["reason"]) == ("TIMEOUT", "TIMED_OUT")
    assert (await api.get("/v1/reviews/stuck", definition_id="another")).data["items"] == []


async def test_tasks_that_do_not_move_are_counted_by_queue_handler_state_and_reason(api: Api) -> None:
    for _ in range(2):
        await submit(api)
    await put_in_review(api, await submit(api, queue="bank"), error_code="EFFECT_UNKNOWN")
    groups = (await api.get("/v1/tasks/stuck", ready_s=0)).data["items"]
    told = [(item["queue"], item["state"], item.get("reason"), item["count"]) for item in groups]
    assert told == [("jobs", "READY", "UNCLAIMED", "2"), ("bank", "NEEDS_REVIEW", "EFFECT_UNKNOWN", "1")]
    fresh = (await api.get("/v1/tasks/stuck", queue="jobs")).data["items"]
    assert fresh == [], "they have just been submitted"
