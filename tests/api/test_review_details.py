"""One review as a person reads it, and decisions that are only asked about."""

from __future__ import annotations

from dataclasses import replace

from orbit_server.platform.permissions import PERMISSIONS
from tests.api.flows import ASKING, WORKING, start
from tests.api.test_reviews import in_review
from tests.server import EVERYTHING, Api


async def test_a_review_shows_what_is_known_and_what_may_be_decided(api: Api) -> None:
    workflow_id, item = await in_review(api)
    path = f"/v1/workflows/{workflow_id}/reviews/ask"
    found = (await api.get(path)).data
    assert (found["key"], found["state"], found["business_key"]) == ("ask", "NEEDS_REVIEW", "order 9")
    assert (found["review_class"], found["revision"]) == (item["review_class"], item["revision"])
    assert found["attempts"] == []
    allowed = {choice["verdict"]: choice["allowed"] for choice in found["decisions"]}
    assert allowed == {"SUCCEEDED": True, "FAILED": True, "RERUN": False}
    masked = await api.with_rights(
        replace(EVERYTHING, permissions=tuple(sorted(PERMISSIONS - {"payloads:read"})))
    )
    assert (await masked.get(path)).status == 200


async def test_what_is_in_no_review_is_not_found(api: Api) -> None:
    asking, working = await start(api, ASKING), await start(api, WORKING)
    for path in (
        f"/v1/workflows/{asking}/reviews/ask",
        f"/v1/workflows/{working}/reviews/nope",
        f"/v1/workflows/{'0' * 32}/reviews/ask",
    ):
        assert (await api.get(path)).code == "NOT_FOUND"


async def test_a_dry_run_tells_what_would_follow_and_leaves_the_key_free(api: Api) -> None:
    workflow_id, item = await in_review(api)
    path = f"/v1/workflows/{workflow_id}/reviews/ask"
    body = {
        "verdict": "FAILED",
        "expected_revision": item["revision"],
        "reason": "r",
        "basis": "ACCEPTED_RISK",
        "code": "NO",
    }
    forecast = (await api.post(path, {**body, "dry_run": True}, key="one")).data["forecast"]
    assert (forecast["state"], forecast["ends"]) == ("FAILED", True)
    assert (await api.get(path)).status == 200
    done = (await api.post(path, body, key="one")).data
    assert done["state"] == "FAILED"
    assert "forecast" not in done
    assert (await api.post(path, {**body, "dry_run": True})).code == "FAILED_PRECONDITION"


async def test_control_is_asked_about_in_the_same_way(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    path = f"/v1/workflows/{workflow_id}"
    found = (await api.post(f"{path}/cancel", {"reason": "r", "dry_run": True}, key="one")).data
    assert found["forecast"]["state"] == "CANCELLED"
    assert [step["key"] for step in found["forecast"]["steps"]] == ["ask"]
    assert (await api.get(path)).data["state"] == "WAITING"
    assert (await api.post(f"{path}/cancel", {"reason": "r"}, key="one")).data["workflow"][
        "state"
    ] == "CANCELLED"
