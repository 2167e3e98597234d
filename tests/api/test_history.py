"""What a workflow went through, through the HTTP interface."""

from __future__ import annotations

from dataclasses import replace

from orbit_server.platform.permissions import PERMISSIONS
from tests.api.flows import ASKING, WORKING, approve, pages, start, submit
from tests.server import EVERYTHING, Api


async def test_operations_tell_who_did_what_why_and_on_what_evidence(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    for action in ("pause", "resume", "cancel"):
        await api.post(f"/v1/workflows/{workflow_id}/{action}", {"reason": f"to {action}"})
    found = [item for page in await pages(api, f"/v1/workflows/{workflow_id}/operations", 2) for item in page]
    assert [item["action"] for item in found] == ["workflow.cancel", "workflow.resume", "workflow.pause"]
    assert [item["reason"] for item in found] == ["to cancel", "to resume", "to pause"]
    assert {item["actor"] for item in found} == {"tests"}
    assert found[0]["before_digest"] == found[1]["after_digest"]
    assert (await api.get(f"/v1/workflows/{'0' * 32}/operations")).code == "NOT_FOUND"


async def test_operations_are_closed_to_who_has_no_right_on_every_queue(api: Api) -> None:
    workflow_id = await start(api, WORKING)
    other = await api.with_rights(replace(EVERYTHING, submit_queues=(), consume_queues=("other",)))
    assert (await other.get(f"/v1/workflows/{workflow_id}/operations")).code == "NOT_FOUND"


async def test_activations_and_rounds_show_what_each_was_given(api: Api) -> None:
    workflow_id = await start(api, WORKING)
    path = f"/v1/workflows/{workflow_id}/steps/work"
    (activation,) = (await api.get(f"{path}/activations")).data["items"]
    assert (activation["activation_no"], activation["state"]) == (1, "WAITING_TASK")
    assert activation["parameters"] == {}
    (only,) = (await api.get(f"{path}/rounds")).data["items"]
    assert (only["task_id"], only["task_state"]) == (activation["task_id"], "READY")
    assert (await api.get(f"/v1/workflows/{workflow_id}/steps/nope/rounds")).code == "NOT_FOUND"
    assert (await api.get(f"/v1/workflows/{'0' * 32}/steps/{'work'}/rounds")).code == "NOT_FOUND"
    masked = await api.with_rights(
        replace(EVERYTHING, permissions=tuple(sorted(PERMISSIONS - {"payloads:read"})))
    )
    assert (await masked.get(f"{path}/activations")).status == 200


async def test_a_wait_that_was_answered_keeps_what_it_was_answered_with(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    await approve(api, workflow_id, {"ok": True})
    (activation,) = (await api.get(f"/v1/workflows/{workflow_id}/steps/ask/activations")).data["items"]
    assert (activation["state"], activation["result"]) == ("COMPLETED", {"ok": True})


async def test_a_task_tells_its_origin(api: Api) -> None:
    workflow_id = await start(api, WORKING, business_key="order 7")
    step = (await api.get(f"/v1/workflows/{workflow_id}/steps/work")).data
    found = (await api.get(f"/v1/tasks/{step['task_id']}/origin")).data
    assert (found["kind"], found["workflow_id"], found["step_key"]) == ("WORKFLOW", workflow_id, "work")
    assert (found["definition_id"], found["definition_version"]) == ("test.work", 1)
    assert (found["activation_id"], found["activation_no"]) == (step["activation_id"], 1)
    alone = (await api.get(f"/v1/tasks/{await submit(api)}/origin")).data
    assert (alone["kind"], alone["submitted_by"]) == ("SUBMITTED", "tests")
    assert (await api.get(f"/v1/tasks/{'0' * 32}/origin")).code == "NOT_FOUND"


async def test_a_signal_tells_who_sent_what(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    receipt = (await approve(api, workflow_id, {"ok": True})).data
    path = f"/v1/workflows/{workflow_id}/signals/{receipt['id']}"
    found = (await api.get(path)).data
    assert (found["body"], found["actor"], found["parameters_version"]) == ({"ok": True}, "tests", 1)
    assert found["consumed_step"] == "ask"
    masked = await api.with_rights(replace(EVERYTHING, permissions=("workflows:read",)))
    assert (await masked.get(path)).status == 200
