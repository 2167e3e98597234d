"""Signals that go to whatever is open under a business key, and whom they may come from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.api.flows import ASKING, approve, publish, start
from tests.documents import document, end, wait
from tests.server import EVERYTHING, Api, Reply

PATH = "/v1/definitions/test.ask/signals"
TWO = document(
    {"ask": wait("both", match="m"), "both": {**wait("done"), "signal": "second"}, "done": end()},
    id="test.two",
    signals={"approval": {"body": {}}, "second": {"body": {}}},
)


async def by_key(api: Api, business_key: str, *, key: str = "", path: str = PATH, **more: Any) -> Reply:
    body = {"signal": "approval", "match": "m", "body": "yes", "business_key": business_key, **more}
    return await api.post(path, body, key=key)


async def test_a_business_key_finds_the_one_open_workflow(api: Api) -> None:
    workflow_id = await start(api, ASKING, business_key="order 7")
    await start(api, ASKING, business_key="order 8")
    receipt = await by_key(api, "order 7", key="mail-1")
    assert (receipt.data["workflow_id"], receipt.data["state"]) == (workflow_id, "CONSUMED")
    assert (await api.get(f"/v1/workflows/{workflow_id}")).data["output"] == "yes"
    assert (await by_key(api, "order 7", key="mail-1")).data == receipt.data
    assert (await by_key(api, "order 7", key="mail-1", body="no")).code == "CONFLICT"
    over = await by_key(api, "order 7", key="mail-2")
    never = await by_key(api, "order 99", key="mail-2")
    assert (over.code, over.body["error"]) == ("NOT_FOUND", never.body["error"])


async def test_the_business_key_is_the_match_where_none_is_said(api: Api) -> None:
    doc = document({"ask": wait("done", match="order 7"), "done": end()}, id="test.keyed")
    await start(api, doc, business_key="order 7")
    body = {"signal": "approval", "body": 1, "business_key": "order 7"}
    receipt = await api.post("/v1/definitions/test.keyed/signals", body)
    assert (receipt.data["match"], receipt.data["state"]) == ("order 7", "CONSUMED")


async def test_several_open_workflows_are_named_and_none_is_chosen(api: Api) -> None:
    ids = [await start(api, ASKING, business_key="twice") for _ in range(2)]
    refused = await by_key(api, "twice")
    assert (refused.status, refused.code, refused.fields) == (409, "CONFLICT", ["business_key"])
    assert all(each in refused.body["error"]["details"][0]["reason"] for each in ids)
    await approve(api, ids[0])
    assert (await by_key(api, "twice")).data["workflow_id"] == ids[1]


async def test_a_right_may_be_for_one_signal_alone(edge: Api) -> None:
    workflow_id = await start(edge, TWO, business_key="b")
    limited = await edge.with_rights(replace(EVERYTHING, signal_definitions=("test.two:second", "test.ask")))
    refused = await approve(limited, workflow_id)
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    (first,) = (await limited.get("/v1/waits")).data["items"]
    assert not first["may_answer"]
    assert (await limited.post(f"/v1/waits/{first['id']}/answer", {"body": 1}, key=None)).status == 403
    path = "/v1/definitions/test.two/signals"
    assert (await by_key(limited, "b", path=path)).status == 403
    assert (await approve(edge, workflow_id)).status == 200
    (second,) = (await limited.get("/v1/waits")).data["items"]
    assert second["may_answer"]
    assert (await by_key(limited, "b", path=path, signal="second")).data["state"] == "CONSUMED"


async def test_a_right_for_one_signal_of_every_definition_reaches_no_other_signal(edge: Api) -> None:
    workflow_id = await start(edge, TWO)
    limited = await edge.with_rights(replace(EVERYTHING, signal_definitions=("*:approval",)))
    assert (await approve(limited, workflow_id)).status == 200
    path = f"/v1/workflows/{workflow_id}/signals"
    assert (await limited.post(path, {"signal": "second", "match": "m", "body": 1})).status == 403


async def test_a_definition_out_of_reach_is_as_good_as_absent_by_key_too(edge: Api) -> None:
    await publish(edge, ASKING)
    await start(edge, ASKING, business_key="b")
    limited = await edge.with_rights(replace(EVERYTHING, signal_definitions=("test.two:second",)))
    allowed = await edge.with_rights(replace(EVERYTHING, signal_definitions=("test.ask:approval",)))
    refused, absent = await by_key(limited, "b"), await by_key(allowed, "nothing")
    assert (refused.status, refused.body["error"]) == (404, absent.body["error"])


async def test_nobody_gives_a_signal_right_that_they_do_not_have(edge: Api) -> None:
    giver = await edge.with_rights(replace(EVERYTHING, signal_definitions=("test.two:second", "test.ask")))
    body = {"name": "n", "permissions": ["workflows:signal"]}
    for given, status in (
        (["test.two:second"], 200),
        (["test.ask:approval"], 200),
        (["test.two"], 403),
        (["*:second"], 403),
        (["*"], 403),
    ):
        made = await giver.post("/v1/credentials", {**body, "signal_definitions": given})
        assert made.status == status, (given, made.body)
    for wrong in ("test.two:", "a b:c", "test.two:second:third", ":second"):
        refused = await edge.post("/v1/credentials", {**body, "signal_definitions": [wrong]})
        assert (refused.code, refused.fields) == ("INVALID_ARGUMENT", ["signal_definitions[0]"])
