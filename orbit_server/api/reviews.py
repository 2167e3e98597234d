"""What waits for a person, and the decisions on steps in review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from orbit_sdk.definition.nodes import PollNode, TaskNode, WaitNode
from orbit_sdk.engine.commands import Verdict
from orbit_sdk.engine.refs import effect_key
from orbit_sdk.engine.reviews import rerun_needs_proof
from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.reviews import GrantBudget, ReviewDetail
from orbit_sdk.protocol.workflows import DecideReview, ReviewItem, ReviewResult
from orbit_sdk.values.ids import Id
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.masking import hidden, masks_of, shown
from orbit_server.api.query import PAGING, name_filter, one_of
from orbit_server.api.routes import Route
from orbit_server.api.sizes import require_evidence, require_one_result
from orbit_server.api.task_views import attempt_view, error_view, evidence_view
from orbit_server.api.workflows import compiled_of, present, step_item
from orbit_server.pulse.tasks.lists import TaskFilter, list_tasks
from orbit_server.pulse.tasks.queries import Trial, attempts_of, evidence_of, task_of_evidence, trials_of
from orbit_server.pulse.tasks.records import Attempt, Evidence, Task
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.instances import history
from orbit_server.weave.instances import queries as instances
from orbit_server.weave.instances.queries import StepFacts
from orbit_server.weave.rehearsal.commands import Rehearse
from orbit_server.weave.reviews import queries
from orbit_server.weave.reviews.commands import Adopt, ResolveStep
from orbit_server.weave.reviews.examine import ExamineReview
from orbit_server.weave.reviews.grants import GrantStep
from orbit_server.weave.reviews.queries import StepReview
from orbit_server.weave.service import send
from orbit_server.weave.state.rows import InstanceRow

_STEP: Final = "STEP"
_TASK: Final = "TASK"
_CLASSES: Final = ("UNKNOWN", "DEFINITE", "EXPIRED", "TIMEOUT", "UNMAPPED", "ENGINE_ERROR")
"""`ReviewClass`, as written."""

_TASKS_SHOWN: Final = 5
"""Of so many tasks of a step the attempts are shown with its review."""

Found = StepReview | Task


async def _list_reviews(call: Call) -> Any:
    """Steps of workflows first, then standalone tasks (for credentials that may read those)."""
    paging = call.paging("reviews", (str, str))
    kind = call.query.get("kind")
    after: Any = paging.after or (_STEP, None)
    shows_tasks = call.principal.allows("tasks:read") and "definition_id" not in call.query

    def read(conn: Connection) -> tuple[list[Found], dict[Id, Trial]]:
        found: list[Found] = []
        if kind in (None, _STEP) and after[0] == _STEP:
            found += queries.page(
                conn,
                call.namespace_id,
                review_class=call.query.get("review_class"),
                definition_id=call.query.get("definition_id"),
                before=after[1],
                limit=paging.take,
            )
        if kind in (None, _TASK) and shows_tasks and len(found) < paging.take:
            found += list_tasks(
                conn,
                call.namespace_id,
                TaskFilter(
                    states=("NEEDS_REVIEW",), review_class=call.query.get("review_class"), standalone=True
                ),
                before=after[1] if after[0] == _TASK else None,
                limit=paging.take - len(found),
            )
        return found, trials_of(conn, [task_id for row in found if (task_id := _task_of(row)) is not None])

    rows, trials = await call.server.database.read(read)
    compiled = {
        key: await call.server.weave.catalog.get(key)
        for key in {row.definition_key for row in rows if isinstance(row, StepReview)}
    }
    reads = call.principal.allows("payloads:read")
    return paging.page(
        rows,
        lambda row: _item(row, compiled) | _tried(trials.get(_task_of(row) or ""), reads=reads),
        _position,
    )


def _task_of(row: Found) -> Id | None:
    return row.id if isinstance(row, Task) else row.task_id


def _tried(trial: Trial | None, *, reads: bool) -> dict[str, Any]:
    if trial is None:
        return {}
    return present({"effect_key": trial.effect_key, "error": error_view(trial.error, reads=reads)})


def _position(row: Found) -> tuple[str, str]:
    return (_STEP if isinstance(row, StepReview) else _TASK, row.id)


def _item(row: Found, compiled: dict[str, Compiled]) -> dict[str, Any]:
    if isinstance(row, Task):
        view: dict[str, Any] = {
            "kind": _TASK,
            "task_id": row.id,
            "handler": row.handler,
            "reason": row.error_code,
            "effect_possible": bool(row.effect_possible),
            "allowed": ["SUCCEEDED", "FAILED", "CANCELLED", "RETRY"],
        }
    else:
        view = _step_item(row, compiled[row.definition_key])
    view |= {
        "review_class": str(row.review_class or "UNKNOWN"),
        "revision": str(row.revision),
        "since": to_rfc3339(row.last if isinstance(row, Task) else row.since),
        "business_key": row.business_key,
    }
    return present(view)


def _step_item(row: StepReview, compiled: Compiled) -> dict[str, Any]:
    node = compiled.definition.nodes.get(row.step_key)
    view: dict[str, Any] = {
        "kind": _STEP,
        "workflow_id": row.instance_id,
        "definition_id": row.definition_id,
        "step_key": row.step_key,
        "task_id": row.task_id,
        "reason": row.reason,
        "effect_possible": bool(row.effect_possible),
        "allowed": ["FAILED", "RERUN"]
        if node is not None and node.kind in ("BRANCH", "JOIN")
        else ["SUCCEEDED", "FAILED", "RERUN"],
    }
    spec = compiled.plan.nodes[row.step_key].spec
    if rerun_needs_proof(spec, effect_possible=bool(row.effect_possible)):
        view["needs_proof"] = ["RERUN"]
    if isinstance(node, TaskNode | PollNode):
        view["handler"] = node.handler.partition("@")[0]
    if isinstance(node, TaskNode | PollNode | WaitNode) and node.review is not None:
        view["guide"] = node.review.guide
    return view


def _command(call: Call, body: DecideReview, adopt: Adopt | None = None) -> ResolveStep:
    instance_id, step_key = call.path["workflow_id"], call.path["step_key"]
    behalf = None if call.body is None else call.on_behalf_of
    meaning: Json = {
        "adopt": body.adopt,
        "basis": body.basis,
        "code": body.code,
        "evidence": body.evidence,
        "expected_revision": body.expected_revision,
        "message": body.message,
        "on_behalf_of": behalf,
        "reason": body.reason,
        "result": body.result,
        "step_key": step_key,
        "verdict": body.verdict,
        "workflow_id": instance_id,
    }
    return ResolveStep(
        key=call.command_key("workflow.review", meaning),
        instance_id=instance_id,
        namespace_id=call.namespace_id,
        step_key=step_key,
        verdict=Verdict(body.verdict),
        expected_revision=body.expected_revision,
        actor=call.principal.actor,
        reason=body.reason,
        basis=body.basis,
        seed=call.seed(),
        weave=call.server.weave,
        evidence=body.evidence,
        result=body.result,
        code=body.code,
        message=body.message,
        on_behalf_of=behalf,
        adopt=adopt,
    )


async def _decide(call: Call) -> Any:
    body: DecideReview = call.body
    require_evidence(call.server.settings.limits, body.evidence)
    require_one_result(body)
    command = _command(call, body, await _adopted(call, body))
    chosen = Rehearse(command) if body.dry_run else command
    return await send(call.server.database, call.server.weave, chosen)


async def _grant(call: Call) -> Any:
    body: GrantBudget = call.body
    instance_id, step_key = call.path["workflow_id"], call.path["step_key"]
    by = call.by()
    said = body.model_dump(mode="json", exclude={"dry_run"})
    meaning: Json = {**said, "step_key": step_key, "workflow_id": instance_id}
    command = GrantStep(
        key=call.command_key("workflow.grant", meaning),
        instance_id=instance_id,
        namespace_id=call.namespace_id,
        step_key=step_key,
        expected_revision=body.expected_revision,
        actor=by.actor,
        reason=by.reason,
        seed=by.seed,
        weave=call.server.weave,
        attempts=body.attempts,
        rounds=body.rounds,
        time_ms=body.time_ms,
        on_behalf_of=by.on_behalf_of,
    )
    chosen = Rehearse(command) if body.dry_run else command
    return await send(call.server.database, call.server.weave, chosen)


async def _adopted(call: Call, body: DecideReview) -> Adopt | None:
    """Of which task the named evidence is; whether that is one of the step is decided later."""
    named = body.adopt
    if named is None:
        return None
    task_id = await call.server.database.read(lambda conn: task_of_evidence(conn, call.namespace_id, named))
    if task_id is None:
        raise NotFound(f"there is no evidence {named} of this step")
    return Adopt(named, task_id)


async def _get_review(call: Call) -> Any:
    """The step, what was tried for it, what came late, and what may be decided."""
    instance_id, step_key = call.path["workflow_id"], call.path["step_key"]

    def read(conn: Connection) -> _Case | None:
        head = instances.head(conn, call.namespace_id, instance_id)
        facts = None if head is None else instances.step(conn, instance_id, step_key)
        if head is None or facts is None or facts.row.state != "NEEDS_REVIEW":
            return None
        tasks = [item.task_id for item in history.rounds(conn, instance_id, step_key, None, _TASKS_SHOWN)]
        return _Case(
            head,
            facts,
            [attempt for task_id in tasks for attempt in reversed(attempts_of(conn, task_id))],
            [found for task_id in tasks for found in evidence_of(conn, task_id)],
        )

    case = await call.server.database.read(read)
    if case is None:
        raise NotFound("no such review")
    asked = _command(
        call, DecideReview(verdict="FAILED", expected_revision=0, reason="asked only", basis="PROVEN")
    )
    examined = await send(call.server.database, call.server.weave, ExamineReview(asked))
    return _case(call, case, await compiled_of(call, case.head)) | dict(examined)


@dataclass(frozen=True, slots=True)
class _Case:
    """What is stored about a step in review; attempts newest first."""

    head: InstanceRow
    facts: StepFacts
    attempts: list[Attempt]
    evidence: list[Evidence]


def _case(call: Call, case: _Case, compiled: Compiled) -> dict[str, Any]:
    row = case.facts.row
    reads = call.principal.allows("payloads:read")
    node = compiled.definition.nodes[row.step_key]
    guide = None
    if isinstance(node, TaskNode | PollNode | WaitNode) and node.review is not None:
        guide = node.review.guide
    view: dict[str, Any] = step_item(case.facts, compiled)
    view |= {
        "workflow_id": row.instance_id,
        "paused": case.head.paused,
        "cancel_requested": case.head.cancel_requested,
        "effect_possible": row.effect_possible,
        "attempts": [attempt_view(found, reads=reads) for found in case.attempts],
        "evidence": [evidence_view(found, reads=reads) for found in case.evidence],
    }
    result, failure = case.facts.result, case.facts.failure
    values = {
        "business_key": case.head.business_key,
        "guide": guide,
        "effect_key": effect_key(case.head.effect_root, row.step_key, row.round)
        if isinstance(node, TaskNode | PollNode)
        else None,
        "result": shown(result) if reads else masks_of(compiled).result(row.step_key, result),
        "failure": shown(failure) if reads else hidden(failure),
    }
    return view | present(values)


ROUTES = (
    Route(
        "POST",
        "/v1/workflows/{workflow_id}/reviews/{step_key}",
        "workflows:recover",
        ReviewResult,
        _decide,
        "Decide on a step in review, or ask what would follow",
        body=DecideReview,
        idempotency="required",
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow_id}/reviews/{step_key}/grant",
        "workflows:grant",
        ReviewResult,
        _grant,
        "Grant more attempts, rounds or time to a step in review",
        body=GrantBudget,
        idempotency="required",
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/reviews/{step_key}",
        "workflows:read",
        ReviewDetail,
        _get_review,
        "Read a step in review: what was tried, what is known, what may be decided and why not the rest",
    ),
    Route(
        "GET",
        "/v1/reviews",
        "workflows:read",
        Page[ReviewItem],
        _list_reviews,
        "List what waits for a person: steps, then standalone tasks",
        query=(
            *PAGING,
            one_of("kind", (_STEP, _TASK), "Only steps, or only standalone tasks."),
            one_of("review_class", _CLASSES, "Only reviews of this class."),
            name_filter("definition_id", "Only steps of workflows of this definition."),
        ),
    ),
)
