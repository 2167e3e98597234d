"""Granting more to a step in review, through HTTP, client and command line."""

from __future__ import annotations

from dataclasses import replace

from orbit_sdk.protocol.reviews import ReviewDetail
from orbit_server.platform.permissions import PERMISSIONS
from tests.api.test_reviews import in_review
from tests.server import EVERYTHING, Api


async def test_granted_time_opens_a_wait_again(api: Api) -> None:
    workflow_id, item = await in_review(api)
    path = f"/v1/workflows/{workflow_id}/reviews/ask"
    body = {"expected_revision": item["revision"], "reason": "on leave", "time_ms": 600_000}
    dry = (await api.post(f"{path}/grant", {**body, "dry_run": True}, key="op")).data["forecast"]
    assert [(step["key"], step["state"]) for step in dry["steps"]] == [("ask", "NEEDS_REVIEW")]
    done = await api.post(f"{path}/grant", {**body, "on_behalf_of": "Ms Chen"}, key="op")
    assert done.data["state"] == "NEEDS_REVIEW"
    shown = (await api.get(path)).data
    ReviewDetail.model_validate(shown)
    assert shown["granted"] == {"attempts": 0, "rounds": 0, "time_ms": 600_000}
    assert {choice["verdict"]: choice["allowed"] for choice in shown["decisions"]}["RERUN"]
    (kept,) = (await api.get(f"/v1/workflows/{workflow_id}/operations")).data["items"]
    assert (kept["action"], kept["on_behalf_of"]) == ("workflow.review.grant", "Ms Chen")
    assert kept["details"]["granted"]["time_ms"] == 600_000
    again = {
        "verdict": "RERUN",
        "expected_revision": shown["revision"],
        "reason": "r",
        "basis": "PROVEN",
        "evidence": "mail",
    }
    assert (await api.post(path, again)).data["state"] == "WAITING"


async def test_a_grant_has_its_own_right_and_its_limits_are_named(edge: Api) -> None:
    workflow_id, item = await in_review(edge)
    path = f"/v1/workflows/{workflow_id}/reviews/ask/grant"
    body = {"expected_revision": item["revision"], "reason": "r"}
    kept = tuple(sorted(PERMISSIONS - {"workflows:grant"}))
    other = await edge.with_rights(replace(EVERYTHING, permissions=kept))
    assert (await other.post(path, {**body, "time_ms": 1})).code == "PERMISSION_DENIED"
    for more, code, field in (
        ({}, "INVALID_ARGUMENT", "attempts"),
        ({"attempts": 1}, "INVALID_ARGUMENT", "attempts"),
        ({"attempts": 21}, "INVALID_ARGUMENT", "attempts"),
        ({"time_ms": 31 * 24 * 3_600_000}, "INVALID_ARGUMENT", "time_ms"),
        ({"time_ms": 1, "expected_revision": "99"}, "FAILED_PRECONDITION", "expected_revision"),
    ):
        refused = await edge.post(path, {**body, **more})
        assert (refused.code, refused.fields) == (code, [field]), refused.body
    absent = f"/v1/workflows/{workflow_id}/reviews/nowhere/grant"
    assert (await edge.post(absent, {**body, "time_ms": 1})).code == "NOT_FOUND"
