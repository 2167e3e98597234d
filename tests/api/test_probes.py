"""Probes through the HTTP interface: who may ask, what is refused, and where the answer is seen."""

from __future__ import annotations

from dataclasses import replace

from orbit_sdk.protocol.tasks import Task, TaskDetail
from orbit_server.platform.permissions import PERMISSIONS
from tests.api.flows import submit
from tests.api.test_reviews import in_review
from tests.api.test_tasks import put_in_review
from tests.server import EVERYTHING, Api

ASK = {"handler": "bank.look_up@1", "parameters": {"order": "A-17"}, "reason": "did they get it?"}


async def test_a_standalone_task_is_probed_and_the_answer_is_its_evidence(api: Api) -> None:
    task_id = await submit(api, business_key="A-17", recovery="CONSERVATIVE")
    path = f"/v1/tasks/{task_id}/probe"
    assert (await api.post(path, ASK)).code == "FAILED_PRECONDITION"
    revision = await put_in_review(api, task_id)
    made = await api.post(path, ASK, key="op")
    Task.model_validate(made.data)
    assert (made.data["state"], made.data["probe_of"]) == ("READY", task_id)
    assert (made.data["handler"], made.data["business_key"]) == ("bank.look_up", "A-17")
    assert (await api.post(path, ASK, key="op")).data["id"] == made.data["id"]
    shown = (await api.get(f"/v1/tasks/{made.data['id']}")).data
    assert (shown["parameters"], shown["recovery"]) == ({"order": "A-17"}, "READ_ONLY")
    cancelled = await api.post(f"/v1/tasks/{made.data['id']}/cancel", {"reason": "never mind"})
    assert cancelled.data["state"] == "CANCELLED"
    about = (await api.get(f"/v1/tasks/{task_id}")).data
    TaskDetail.model_validate(about)
    assert (about["revision"], about["state"]) == (revision, "NEEDS_REVIEW")
    assert {found["kind"] for found in about["evidence"]} == {"PROBE_ASKED", "PROBE_CANCELLED"}


async def test_a_verify_handler_is_asked_only_where_there_is_one(api: Api) -> None:
    bare, able = await submit(api, recovery="CONSERVATIVE"), await submit(api, can_verify=True)
    for task_id in (bare, able):
        await put_in_review(api, task_id)
    refused = await api.post(f"/v1/tasks/{bare}/probe", {"reason": "r"})
    assert (refused.code, refused.fields) == ("FAILED_PRECONDITION", ["handler"])
    assert "no verify handler: name a READ_ONLY handler" in refused.body["error"]["message"]
    unstarted = await api.post(f"/v1/tasks/{able}/probe", {"reason": "r"})
    assert "nothing to verify" in unstarted.body["error"]["message"]


async def test_a_step_without_a_task_has_nothing_to_probe(edge: Api) -> None:
    workflow_id, _ = await in_review(edge)
    refused = await edge.post(f"/v1/workflows/{workflow_id}/reviews/ask/probe", {"reason": "r"})
    assert (refused.code, "nothing to probe" in refused.body["error"]["message"]) == (
        "FAILED_PRECONDITION",
        True,
    )
    absent = await edge.post(f"/v1/workflows/{workflow_id}/reviews/nowhere/probe", {"reason": "r"})
    assert absent.code == "NOT_FOUND"


async def test_a_probe_goes_to_no_queue_that_the_caller_may_not_submit_to(edge: Api) -> None:
    task_id = await submit(edge)
    await put_in_review(edge, task_id)
    limited = await edge.with_rights(replace(EVERYTHING, submit_queues=("mine",)))
    path = f"/v1/tasks/{task_id}/probe"
    assert (await limited.post(path, {**ASK, "queue": "other"})).code == "PERMISSION_DENIED"
    assert (await limited.post(path, ASK)).status == 200, "the task's own queue needs no right"
    kept = tuple(sorted(PERMISSIONS - {"tasks:review"}))
    other = await edge.with_rights(replace(EVERYTHING, permissions=kept))
    assert (await other.post(path, ASK)).code == "PERMISSION_DENIED"
    for wrong in ({"handler": "look up"}, {"handler": "look.up"}, {"start_within_ms": 0}):
        assert (await edge.post(path, {**ASK, **wrong})).code == "INVALID_ARGUMENT"
