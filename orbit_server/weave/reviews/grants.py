"""Granting more attempts, rounds or time to a step in review."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orbit_sdk.engine.commands import GrantBudget
from orbit_sdk.engine.decision import Decision
from orbit_sdk.errors import NotFound
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow, audit_id_of
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order, Outcome, Refused
from orbit_server.storage.commands import Missing as MissingRows
from orbit_server.weave.state.apply import apply_decision
from orbit_server.weave.state.rows import INSTANCES
from orbit_server.weave.state.running import (
    Weave,
    base_needs,
    engine_outcome,
    head_of,
    live_steps,
    signal_needs,
)
from orbit_server.weave.state.views import summary_of


@dataclass(frozen=True, slots=True)
class GrantStep(Order):
    """`key` carries the operation id. The audit row is what `verify` counts grants by. The answer is the
    workflow's summary as JSON.
    """

    key: CommandKey
    instance_id: Id
    namespace_id: Id
    step_key: str
    expected_revision: int
    actor: str
    reason: str
    seed: IdSeed
    weave: Weave
    attempts: int = 0
    rounds: int = 0
    time_ms: int = 0
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
        return signal_needs(book, row)

    def consider(self, book: Book) -> Decision | Refused | MissingRows:
        """What the engine decides now; nothing is written."""
        row = head_of(book, self.instance_id, self.namespace_id)
        if self.step_key not in self.weave.compiled(row.definition_key).plan.nodes:
            raise NotFound("no such step")
        order = GrantBudget(
            self.step_key, self.expected_revision, self.seed, self.attempts, self.rounds, self.time_ms
        )
        return engine_outcome(book, self.weave, row, order)

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        answer = self.consider(book)
        if not isinstance(answer, Decision):
            return answer
        row = head_of(book, self.instance_id, self.namespace_id)
        step = live_steps(book, row.id)[self.step_key]
        audit_id = audit_id_of(self.seed)
        head = apply_decision(book, answer, before=row, audit_id=audit_id)
        granted: dict[str, Json] = {
            "attempts": self.attempts,
            "round": step.round,
            "rounds": self.rounds,
            "time_ms": self.time_ms,
        }
        book.insert(
            AUDIT,
            AuditRow(
                id=audit_id,
                namespace_id=self.namespace_id,
                at=book.now,
                actor=self.actor,
                on_behalf_of=self.on_behalf_of,
                action="workflow.review.grant",
                subject_kind="workflow_step",
                subject_id=step.id,
                reason=self.reason,
                before_digest=digest({"state": step.state.value, "revision": step.revision}),
                after_digest=digest(dict(summary_of(head))),
                details=canonical_json({"granted": granted}),
            ),
        )
        return Done(summary_of(head), subject_id=row.id)
