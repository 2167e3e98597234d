"""Pause, resume and cancel: one audited, idempotent command each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orbit_sdk.engine.commands import Cancel, Pause, Resume
from orbit_sdk.engine.decision import Decision
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow, audit_id_of
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Outcome, Refused
from orbit_server.storage.commands import Missing as MissingRows
from orbit_server.weave.state.apply import apply_decision
from orbit_server.weave.state.closed import whole_history
from orbit_server.weave.state.rows import HISTORY, INSTANCES, InstanceRow
from orbit_server.weave.state.running import (
    Weave,
    advance_needs,
    base_needs,
    engine_outcome,
    head_of,
    live_steps,
    merged,
    reports_of,
    signal_needs,
    task_needs,
)
from orbit_server.weave.state.views import summary_of


class Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class ControlWorkflow:
    """One control action. `key` carries the operation id; the answer is a `ControlResult` as JSON.

    All live tasks are touched with the instance: their gate, their offers and their cancel are part of this
    transaction.
    """

    key: CommandKey
    action: Action
    instance_id: Id
    namespace_id: Id
    expected_control_version: int | None
    actor: str
    reason: str
    seed: IdSeed
    weave: Weave
    on_behalf_of: str | None = None

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return base_needs(self.instance_id)

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None or row.namespace_id != self.namespace_id:
            return {}
        steps = live_steps(book, row.id).values()
        compiled = self.weave.compiled(row.definition_key)
        return merged(
            signal_needs(book, row),
            advance_needs(book, compiled.plan, row, steps if self.action is Action.RESUME else ()),
            task_needs(step.task_id for step in steps if step.task_id is not None),
            {HISTORY.name: [row.id]} if self.action is Action.CANCEL else {},
        )

    def consider(self, book: Book) -> Decision | Refused | MissingRows:
        """What the engine decides now; nothing is written."""
        row = head_of(book, self.instance_id, self.namespace_id)
        done = whole_history(book, row.id) if self.action is Action.CANCEL else {}
        return engine_outcome(book, self.weave, row, self._order(book, row), done)

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        row = head_of(book, self.instance_id, self.namespace_id)
        answer = self.consider(book)
        if isinstance(answer, Refused | MissingRows):
            return answer
        audit_id = audit_id_of(self.seed)
        head = apply_decision(book, answer, before=row, audit_id=audit_id)
        book.insert(AUDIT, self._audit(audit_id, row, head, book.now))
        return Done(self._shown(head, answer), subject_id=row.id)

    def _order(self, book: Book, row: InstanceRow) -> Pause | Resume | Cancel:
        expected = self.expected_control_version
        if self.action is Action.PAUSE:
            return Pause(row.control_version if expected is None else expected, self.seed)
        reports = reports_of(book, live_steps(book, row.id).values())
        if self.action is Action.RESUME:
            return Resume(row.control_version if expected is None else expected, self.seed, reports)
        return Cancel(expected, self.seed, reports)

    def _shown(self, head: InstanceRow, decision: Decision) -> Mapping[str, Json]:
        return {"workflow": summary_of(head), "effects_kept": list(decision.effects_kept)}

    def _audit(self, audit_id: Id, before: InstanceRow, after: InstanceRow, now: int) -> AuditRow:
        return AuditRow(
            id=audit_id,
            namespace_id=self.namespace_id,
            at=now,
            actor=self.actor,
            on_behalf_of=self.on_behalf_of,
            action=f"workflow.{self.action.value}",
            subject_kind="workflow",
            subject_id=self.instance_id,
            reason=self.reason,
            before_digest=digest(dict(summary_of(before))),
            after_digest=digest(dict(summary_of(after))),
        )
