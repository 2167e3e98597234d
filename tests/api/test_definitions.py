"""Definitions through the HTTP interface."""

from __future__ import annotations

from typing import Any

from orbit_sdk.protocol.definitions import CheckResult, DefinitionDetail
from tests.api.flows import ASKING, pages, publish
from tests.documents import document, end, task, wait
from tests.server import Api


def version(number: int, **more: Any) -> dict[str, Any]:
    return {**ASKING, "version": number, **more}


async def test_publishing_the_same_content_again_changes_nothing(api: Api) -> None:
    first = await publish(api, ASKING, current=False)
    assert (first["current"], first["retired"], first["published_by"]) == (False, False, "tests")
    assert await publish(api, dict(reversed(ASKING.items())), current=False) == first
    other = await api.post("/v1/definitions", {"definition": version(1, title="other")}, key=None)
    assert (other.status, other.code, other.fields) == (409, "CONFLICT", ["definition.version"])


async def test_a_version_is_read_back_as_it_was_published(api: Api) -> None:
    body = {"definition": ASKING, "side": {"nodes.ask": {"file": "a.py", "line": 3}}}
    made = (await api.post("/v1/definitions", body, key=None)).data
    found = (await api.get("/v1/definitions/test.ask/versions/1")).data
    DefinitionDetail.model_validate(found)
    assert found["definition"] == ASKING
    assert found["side"] == body["side"]
    assert found["digest"] == made["digest"]
    for path in ("test.ask/versions/2", "test.none/versions/1"):
        assert (await api.get(f"/v1/definitions/{path}")).code == "NOT_FOUND"
    for path in ("test.ask/versions/0", "test.ask/versions/01x", "NO/versions/1"):
        assert (await api.get(f"/v1/definitions/{path}")).code == "INVALID_ARGUMENT"


async def test_a_definition_with_errors_is_refused_with_all_of_them(api: Api) -> None:
    broken = document({"ask": wait("nowhere"), "lost": task("gone"), "done": end()}, id="test.broken")
    reply = await api.post("/v1/definitions", {"definition": broken}, key=None)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")
    assert len(reply.fields) >= 2
    checked = (await api.post("/v1/definitions/check", {"definition": broken}, key=None)).data
    CheckResult.model_validate(checked)
    assert checked["ok"] is False
    assert {finding["path"] for finding in checked["findings"]} >= set(reply.fields)
    assert (await api.get("/v1/definitions")).data["items"] == []


async def test_current_points_where_it_is_told_and_retired_versions_take_no_starts(api: Api) -> None:
    for number in (1, 2, 3):
        await publish(api, version(number), current=number == 1)
    path = "/v1/definitions/test.ask"
    moved = (await api.post(f"{path}/current", {"version": 3, "reason": "new"}, key=None)).data
    assert (moved["version"], moved["current"]) == (3, True)
    refused = await api.post(f"{path}/versions/3/retire", {"reason": "old"}, key=None)
    assert refused.code == "FAILED_PRECONDITION"
    assert (await api.post(f"{path}/versions/2/retire", {"reason": "old"}, key=None)).data["retired"] is True
    start = {"definition_id": "test.ask", "input": None}
    assert (await api.post("/v1/workflows", start)).data["definition_version"] == 3
    assert (await api.post("/v1/workflows", {**start, "version": 1})).data["definition_version"] == 1
    assert (await api.post("/v1/workflows", {**start, "version": 2})).code == "FAILED_PRECONDITION"
    assert (await api.post("/v1/workflows", {**start, "version": 9})).code == "NOT_FOUND"
    assert (await api.post(f"{path}/current", {"version": 2}, key=None)).code == "FAILED_PRECONDITION"
    assert (await api.post(f"{path}/current", {"version": 9}, key=None)).code == "NOT_FOUND"


async def test_versions_are_listed_newest_first(api: Api) -> None:
    for number in (1, 2, 3):
        await publish(api, version(number))
    await publish(api, {**ASKING, "id": "test.another"})
    found = [item for page in await pages(api, "/v1/definitions", 2) for item in page]
    assert [(item["definition_id"], item["version"]) for item in found] == [
        ("test.another", 1),
        ("test.ask", 3),
        ("test.ask", 2),
        ("test.ask", 1),
    ]
    assert [item["current"] for item in found] == [True, True, False, False]
    only = (await api.get("/v1/definitions", definition_id="test.another")).data["items"]
    assert len(only) == 1


async def test_a_document_may_be_as_large_as_the_limit_and_no_larger(edge: Api) -> None:
    def sized(length: int) -> dict[str, Any]:
        return {"definition": {**ASKING, "description": "x" * length}}

    over = await edge.post("/v1/definitions/check", sized(300 * 1024), key=None)
    assert over.status in (400, 413)
    assert (await edge.post("/v1/definitions/check", sized(100), key=None)).data["ok"] is True
