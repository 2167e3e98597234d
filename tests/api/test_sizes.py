"""What is too large is refused by field and limit, and nothing of it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits
from tests.api.flows import ASKING, approve, publish, start, submit
from tests.api.test_reviews import in_review
from tests.api.test_tasks import put_in_review
from tests.server import Api, Reply, node, until

SMALL = Limits(signal_body_bytes=40, evidence_bytes=20, input_bytes=40, result_bytes=40, output_bytes=30)


@pytest.fixture
async def small(migrated_sqlite_url: str) -> AsyncIterator[Api]:
    """A node whose limits are small."""
    async with node(migrated_sqlite_url, limits=SMALL) as found:
        yield found


def says(reply: Reply, field: str, limit: str) -> bool:
    """Whether the refusal names the field, the limit and a way out."""
    (detail,) = reply.body["error"]["details"]
    return (reply.status, reply.code, reply.fields) == (413, "PAYLOAD_TOO_LARGE", [field]) and all(
        word in detail["reason"] for word in (limit, str(getattr(SMALL, limit)), "send where it is")
    )


async def test_a_signal_at_its_limit_is_taken_and_one_above_it_is_not(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    most = DEFAULT_LIMITS.signal_body_bytes
    over = await approve(edge, workflow_id, "x" * (most - 1), key="k")
    assert (over.status, over.code, over.fields) == (413, "PAYLOAD_TOO_LARGE", ["body"])
    assert (await edge.get(f"/v1/workflows/{workflow_id}/signals")).data["items"] == []
    assert (await approve(edge, workflow_id, "x" * (most - 2), key="k")).data["state"] == "CONSUMED"


async def test_a_signal_and_an_answer_that_are_too_large_are_refused_and_stored_nowhere(small: Api) -> None:
    workflow_id = await start(small, ASKING)
    assert says(await approve(small, workflow_id, "x" * 50), "body", "signal_body_bytes")
    (wait,) = (await small.get("/v1/waits")).data["items"]
    path = f"/v1/waits/{wait['id']}/answer"
    assert says(await small.post(path, {"body": "x" * 50}, key=None), "body", "signal_body_bytes")
    told = {"body": 1, "evidence": "é" * 11}
    assert says(await small.post(path, told, key=None), "evidence", "evidence_bytes")
    sent = {"signal": "approval", "match": "m", **told}
    refused = await small.post(f"/v1/workflows/{workflow_id}/signals", sent)
    assert says(refused, "evidence", "evidence_bytes")
    assert (await small.get(f"/v1/workflows/{workflow_id}/signals")).data["items"] == []
    assert (await small.post(path, {"body": 1, "evidence": "é" * 10}, key=None)).data["state"] == "CONSUMED"


async def test_evidence_of_a_decision_about_a_step_has_a_limit(small: Api) -> None:
    workflow_id, item = await in_review(small)
    path = f"/v1/workflows/{workflow_id}/reviews/ask"
    body: dict[str, Any] = {
        "verdict": "SUCCEEDED",
        "expected_revision": item["revision"],
        "reason": "r",
        "basis": "PROVEN",
        "evidence": "x" * 21,
        "result": 1,
    }
    assert says(await small.post(path, body, key="op"), "evidence", "evidence_bytes")
    big = await small.post(path, {**body, "evidence": "x", "result": "x" * 50}, key="op")
    assert (big.code, big.fields) == ("PAYLOAD_TOO_LARGE", ["result"])
    assert (await small.post(path, {**body, "evidence": "x" * 20}, key="op")).data["state"] == "SUCCEEDED"


async def test_evidence_and_result_of_a_decision_about_a_task_have_limits(small: Api) -> None:
    task_id = await submit(small)
    revision = await put_in_review(small, task_id)
    path = f"/v1/tasks/{task_id}/review"
    body: dict[str, Any] = {
        "verdict": "SUCCEEDED",
        "expected_revision": revision,
        "reason": "r",
        "basis": "PROVEN",
        "evidence": "x" * 21,
        "result": 1,
    }
    assert says(await small.post(path, body, key="op"), "evidence", "evidence_bytes")
    large = {**body, "evidence": "x", "result": "x" * 50}
    assert says(await small.post(path, large, key="op"), "result", "result_bytes")
    assert (await small.post(path, {**body, "evidence": "x"}, key="op")).data["state"] == "SUCCEEDED"


async def test_an_input_that_is_too_large_starts_nothing_and_an_output_asks_a_person(small: Api) -> None:
    await publish(small, ASKING)
    big = await small.post("/v1/workflows", {"definition_id": ASKING["id"], "input": "x" * 50})
    assert (big.code, big.fields) == ("PAYLOAD_TOO_LARGE", ["input"])
    assert (await small.get("/v1/workflows")).data["items"] == []
    workflow_id = await start(small, ASKING)
    await approve(small, workflow_id, "x" * 35)

    async def asked() -> bool:
        return bool((await small.get(f"/v1/workflows/{workflow_id}")).data["state"] == "NEEDS_REVIEW")

    assert await until(asked)
