"""What waits for a signal, through the HTTP interface."""

from __future__ import annotations

import asyncio

from orbit_server.platform.credentials import Rights
from tests.api.flows import ASKING, approve, pages, start
from tests.documents import document, end, poll, wait
from tests.server import Api


async def test_a_wait_says_what_it_takes_and_what_happens_if_nobody_answers(api: Api) -> None:
    doc = document(
        {"ask": wait("done", on_timeout={"next": "late"}, match="m"), "late": end(), "done": end()},
        id="test.w",
    )
    workflow_id = await start(api, doc, business_key="order 7")
    (item,) = (await api.get("/v1/waits")).data["items"]
    assert (item["workflow_id"], item["step_key"], item["business_key"]) == (workflow_id, "ask", "order 7")
    assert (item["signal"], item["match"], item["body_type"]) == ("approval", "m", {})
    assert (item["on_timeout"], item["then"], item["may_answer"]) == ("next: late", "done", True)
    assert item["deadline_at"] > item["since"]


async def test_a_double_click_is_one_signal_and_another_answer_is_a_conflict(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    (item,) = (await api.get("/v1/waits", workflow_id=workflow_id)).data["items"]
    path = f"/v1/waits/{item['id']}/answer"
    first, second = await asyncio.gather(
        api.post(path, {"body": "yes"}, key=None), api.post(path, {"body": "yes"}, key=None)
    )
    assert first.data["id"] == second.data["id"]
    assert first.data["state"] == "CONSUMED"
    assert (await api.post(path, {"body": "no"}, key=None)).code == "CONFLICT"
    assert len((await api.get(f"/v1/workflows/{workflow_id}/signals")).data["items"]) == 1
    assert (await api.get("/v1/waits")).data["items"] == []


async def test_a_wait_that_is_over_takes_no_answer(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    (item,) = (await api.get("/v1/waits", workflow_id=workflow_id)).data["items"]
    await approve(api, workflow_id)
    reply = await api.post(f"/v1/waits/{item['id']}/answer", {"body": "yes"}, key=None)
    assert reply.code == "FAILED_PRECONDITION"
    assert (await api.post(f"/v1/waits/{'0' * 32}/answer", {"body": 1}, key=None)).code == "NOT_FOUND"


async def test_waits_are_paged_and_filtered_newest_first(api: Api) -> None:
    doc = document({"ask": poll("done", receipt=True), "done": end()}, id="test.poll")
    polled = await start(api, doc, business_key="p")
    asked = [await start(api, ASKING) for _ in range(4)]
    found = [item["workflow_id"] for page in await pages(api, "/v1/waits", 2) for item in page]
    assert found == [*reversed(asked), polled]
    for filters in ({"signal": "receipt"}, {"definition_id": "test.poll"}, {"business_key": "p"}):
        (item,) = (await api.get("/v1/waits", **filters)).data["items"]
        assert (item["workflow_id"], item["kind"]) == (polled, "POLL")


async def test_only_who_may_signal_a_definition_may_answer_its_waits(api: Api) -> None:
    await start(api, ASKING)
    other = await api.with_rights(
        Rights(("workflows:read", "workflows:signal"), (), (), ("another.definition",))
    )
    (item,) = (await other.get("/v1/waits")).data["items"]
    assert item["may_answer"] is False
    reply = await other.post(f"/v1/waits/{item['id']}/answer", {"body": "yes"}, key=None)
    assert reply.code == "NOT_FOUND"
