"""What a bulk may do: one row per kind of action, each ending in the command that one person's order is.

A new kind of action is a row in `ACTIONS` and a body in `protocol.bulk`; nothing else knows the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from orbit_sdk.engine.commands import Verdict as StepVerdict
from orbit_sdk.engine.state import StepState
from orbit_sdk.errors import FailedPrecondition
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import split_handler_key
from orbit_server.bulk.lifecycle import Target
from orbit_server.bulk.rows import RESTARTS, restart_id
from orbit_server.pulse.tasks.commands import Basis, By, CancelTask, ResolveReview, RetryTask
from orbit_server.pulse.tasks.decide.stop import Verdict as TaskVerdict
from orbit_server.pulse.tasks.lifecycle import TERMINAL
from orbit_server.pulse.tasks.probes import Ask, ProbeTask
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Command, CommandKey, Needs
from orbit_server.weave.control.commands import Action as ControlAction
from orbit_server.weave.control.commands import ControlWorkflow
from orbit_server.weave.instances.restart import Effects, RestartWorkflow
from orbit_server.weave.reviews.commands import Adopt, ResolveStep
from orbit_server.weave.reviews.grants import GrantStep
from orbit_server.weave.reviews.probes import ProbeStep
from orbit_server.weave.state.rows import INSTANCES, STEPS, InstanceRow
from orbit_server.weave.state.running import Weave
from orbit_server.weave.state.views import is_draft

__all__ = ["ACTIONS", "PRIORITY_MAX", "Action", "Draft"]

PRIORITY_MAX: Final = "priority_max"
"""The member of stored orders that keeps the cap of who planned it, if there is one."""
Orders = Mapping[str, Any]
"""The body of the action, as JSON (`protocol.bulk`), and `PRIORITY_MAX`."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One item on its way into a command: what is done, by whom, and why.

    `near`: for a restart, the origin and those whose effects it may mean, as they were read beforehand.
    """

    bulk_id: Id
    item_id: Id
    namespace_id: Id
    subject_id: Id
    step_key: str | None
    expected: int
    orders: Orders
    actor: str
    reason: str
    seed: IdSeed
    weave: Weave
    near: Mapping[Id, InstanceRow] = field(default_factory=dict)
    on_behalf_of: str | None = None
    adopt: Adopt | None = None
    """The stored evidence that a decision takes, where `orders` say that each adopts its own."""

    @property
    def key(self) -> CommandKey:
        """The identity that stands where a single order has that of its request."""
        return CommandKey(self.namespace_id, "bulk.item", self.item_id, digest({"bulk_item": self.item_id}))


@dataclass(frozen=True, slots=True)
class Action:
    """One kind of action.

    Args:
        target: what its items are.
        rights: the permissions of the same order given once.
        command: the command of an item.
        changed: why an item is not what was planned any more; None when it is.
        check: refuses, by raising, what a single order lets pass without doing anything.
        more: rows that `check` reads beside those of the command.
    """

    target: Target
    rights: tuple[str, ...]
    command: Callable[[Draft], Command[Any]]
    changed: Callable[[Book, Draft], str | None]
    check: Callable[[Book, Draft], None] = lambda _book, _draft: None
    more: Callable[[Draft], Needs] = lambda _draft: {}


# --- steps in review ---------------------------------------------------------------------------------------


def _step_changed(book: Book, draft: Draft) -> str | None:
    row = book.get(INSTANCES, draft.subject_id)
    if row is None or row.namespace_id != draft.namespace_id:
        return "the workflow is not kept any more"
    for step in book.members(STEPS, draft.subject_id):
        if step.live and step.step_key == draft.step_key:
            if step.state is not StepState.NEEDS_REVIEW:
                return f"the step is {step.state}, not in review any more"
            if step.revision != draft.expected:
                return f"the step is at revision {step.revision}, not {draft.expected}"
            return None
    return "the step is not in review any more"


def _resolve_step(draft: Draft) -> ResolveStep:
    orders = draft.orders
    return ResolveStep(
        key=draft.key,
        instance_id=draft.subject_id,
        namespace_id=draft.namespace_id,
        step_key=draft.step_key or "",
        verdict=StepVerdict(orders["verdict"]),
        expected_revision=draft.expected,
        actor=draft.actor,
        reason=draft.reason,
        basis=orders["basis"],
        seed=draft.seed,
        weave=draft.weave,
        evidence=orders.get("evidence"),
        result=orders.get("result"),
        code=orders.get("code"),
        message=orders.get("message"),
        on_behalf_of=draft.on_behalf_of,
        adopt=draft.adopt,
    )


def _grant(draft: Draft) -> GrantStep:
    return GrantStep(
        key=draft.key,
        instance_id=draft.subject_id,
        namespace_id=draft.namespace_id,
        step_key=draft.step_key or "",
        expected_revision=draft.expected,
        actor=draft.actor,
        reason=draft.reason,
        seed=draft.seed,
        weave=draft.weave,
        attempts=draft.orders.get("attempts", 0),
        rounds=draft.orders.get("rounds", 0),
        time_ms=draft.orders.get("time_ms", 0),
        on_behalf_of=draft.on_behalf_of,
    )


def _ask(draft: Draft) -> Ask:
    handler = draft.orders.get("handler")
    return Ask(
        task_id=draft.seed.nth(1),
        by=_by(draft),
        attempt_timeout_ms=draft.orders["attempt_timeout_ms"],
        start_within_ms=draft.orders["start_within_ms"],
        handler=None if handler is None else split_handler_key(handler),
    )


def _probe_step(draft: Draft) -> ProbeStep:
    return ProbeStep(
        key=draft.key,
        instance_id=draft.subject_id,
        namespace_id=draft.namespace_id,
        step_key=draft.step_key or "",
        ask=_ask(draft),
        weave=draft.weave,
    )


def _probe_task(draft: Draft) -> ProbeTask:
    return ProbeTask(draft.key, draft.namespace_id, draft.subject_id, _ask(draft))


def _has_evidence(_book: Book, draft: Draft) -> None:
    if draft.orders.get("adopt") and draft.adopt is None:
        says = "holds a result" if draft.orders["verdict"] == "SUCCEEDED" else "says that nothing can happen"
        raise FailedPrecondition(f"no stored evidence of it {says}: there is nothing to adopt")


# --- workflows ---------------------------------------------------------------------------------------------


def _control_changed(book: Book, draft: Draft) -> str | None:
    row = book.get(INSTANCES, draft.subject_id)
    if row is None or row.namespace_id != draft.namespace_id:
        return "the workflow is not kept any more"
    if row.control_version != draft.expected:
        return f"the workflow is at control version {row.control_version}, not {draft.expected}"
    return f"the workflow is {row.state}" if row.ended_at is not None else None


def _control(action: ControlAction) -> Callable[[Draft], Command[Any]]:
    def command(draft: Draft) -> ControlWorkflow:
        return ControlWorkflow(
            key=draft.key,
            action=action,
            instance_id=draft.subject_id,
            namespace_id=draft.namespace_id,
            expected_control_version=draft.expected,
            actor=draft.actor,
            reason=draft.reason,
            seed=draft.seed,
            weave=draft.weave,
            on_behalf_of=draft.on_behalf_of,
        )

    return command


def _origin_changed(book: Book, draft: Draft) -> str | None:
    row = book.get(INSTANCES, draft.subject_id)
    if row is None or row.namespace_id != draft.namespace_id:
        return "the workflow is not kept any more"
    if row.revision != draft.expected:
        return f"the workflow is at revision {row.revision}, not {draft.expected}"
    return None


def _restart(draft: Draft) -> RestartWorkflow:
    effects = cast("Effects", draft.orders["effects"])
    version: int | None = draft.orders.get("version")
    origin = draft.near.get(draft.subject_id)
    near: list[Id] = []
    if origin is not None and effects == "SAME":
        root = draft.near.get(origin.effect_root)
        near = [origin.effect_root, *([] if root is None or root.heir is None else [root.heir])]
    return RestartWorkflow(
        key=draft.key,
        instance_id=draft.seed.nth(0),
        namespace_id=draft.namespace_id,
        origin_id=draft.subject_id,
        effects=effects,
        version=version or (0 if origin is None else origin.definition_version),
        definition_id="" if origin is None else origin.definition_id,
        started_by=draft.actor,
        reason=draft.reason,
        seed=IdSeed(draft.seed.time_us, f"{draft.seed.entropy}:restart"),
        weave=draft.weave,
        near=tuple(near),
        priority_max=draft.orders.get(PRIORITY_MAX),
        draft=None if origin is None or version or not is_draft(origin) else origin.definition_key,
        on_behalf_of=draft.on_behalf_of,
    )


def _once(book: Book, draft: Draft) -> None:
    made = book.get(RESTARTS, restart_id(draft.subject_id))
    if made is not None:
        raise FailedPrecondition(
            f"a bulk has restarted it before, as {made.made_id}: restart that one, or this one by itself"
        )


# --- standalone tasks --------------------------------------------------------------------------------------


def _task_changed(book: Book, draft: Draft) -> str | None:
    task = book.get(TASKS, draft.subject_id)
    if task is None or task.namespace_id != draft.namespace_id:
        return "the task is not kept any more"
    if task.revision != draft.expected:
        return f"the task is {task.state} at revision {task.revision}, not {draft.expected}"
    return None


def _by(draft: Draft) -> By:
    basis, evidence = draft.orders.get("basis"), draft.orders.get("evidence")
    return By(
        actor=draft.actor,
        reason=draft.reason,
        seed=draft.seed,
        basis=None if basis is None else Basis(basis),
        evidence=None if evidence is None else canonical_json(evidence),
        on_behalf_of=draft.on_behalf_of,
    )


def _cancel_task(draft: Draft) -> CancelTask:
    return CancelTask(None, draft.namespace_id, draft.subject_id, _by(draft))


def _may_be_cancelled(book: Book, draft: Draft) -> None:
    task = book.get(TASKS, draft.subject_id)
    if task is not None and (task.state in TERMINAL or task.cancel_requested):
        asked = "is asked to cancel already" if task.cancel_requested else "has ended"
        raise FailedPrecondition(f"the task is {task.state} and {asked}")


def _resolve_task(draft: Draft) -> ResolveReview:
    orders = draft.orders
    verdict = TaskVerdict(orders["verdict"])
    result: Json = orders.get("result")
    gives = verdict is TaskVerdict.SUCCEEDED and draft.adopt is None
    return ResolveReview(
        key=None,
        namespace_id=draft.namespace_id,
        task_id=draft.subject_id,
        expected_revision=draft.expected,
        verdict=verdict,
        by=_by(draft),
        result=canonical_json(result) if gives else None,
        result_digest=digest(result) if gives else None,
        code=orders.get("code"),
        message=orders.get("message") or "",
        adopt=None if draft.adopt is None else draft.adopt.evidence_id,
    )


def _retry_task(draft: Draft) -> RetryTask:
    return RetryTask(
        key=None,
        namespace_id=draft.namespace_id,
        task_id=draft.subject_id,
        expected_revision=draft.expected,
        by=_by(draft),
        attempts_max=DEFAULTS.attempts,
        total_timeout_ms=DEFAULTS.total_timeout_ms,
        priority_max=draft.orders.get(PRIORITY_MAX),
    )


ACTIONS: Final[Mapping[str, Action]] = {
    "workflow.review": Action(
        Target.STEPS, ("workflows:recover",), _resolve_step, _step_changed, _has_evidence
    ),
    "workflow.probe": Action(Target.STEPS, ("workflows:recover",), _probe_step, _step_changed),
    "workflow.grant": Action(Target.STEPS, ("workflows:grant",), _grant, _step_changed),
    **{
        f"workflow.{each.value}": Action(
            Target.WORKFLOWS, ("workflows:control",), _control(each), _control_changed
        )
        for each in ControlAction
    },
    "workflow.restart": Action(
        Target.WORKFLOWS,
        ("workflows:start",),
        _restart,
        _origin_changed,
        _once,
        lambda draft: {RESTARTS.name: (restart_id(draft.subject_id),)},
    ),
    "task.cancel": Action(Target.TASKS, ("tasks:cancel",), _cancel_task, _task_changed, _may_be_cancelled),
    "task.review": Action(Target.TASKS, ("tasks:review",), _resolve_task, _task_changed, _has_evidence),
    "task.probe": Action(Target.TASKS, ("tasks:review",), _probe_task, _task_changed),
    "task.retry": Action(Target.TASKS, ("tasks:review", "tasks:retry"), _retry_task, _task_changed),
}
"""Every kind of action, by the name that requests and audit rows use."""
