"""Doing it once more: a new instance with an origin, which says whose effects it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson

from orbit_sdk.engine.decision import Decision
from orbit_sdk.errors import Detail, FailedPrecondition
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow, audit_id_of
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Outcome, Refused
from orbit_server.weave.definitions.rows import DEFINITIONS, DRAFTS, definition_key
from orbit_server.weave.instances.start import StartWorkflow
from orbit_server.weave.state.rows import INPUTS, INSTANCES, InstanceRow
from orbit_server.weave.state.running import Weave, head_of, merged
from orbit_server.weave.state.views import summary_of

Effects = Literal["SAME", "NEW"]


@dataclass(frozen=True, slots=True)
class RestartWorkflow:
    """Start a new instance from an origin, with the origin's input unless another is given.

    `effects` SAME: it means the very effects of the origin, so effect keys are equal; the origin must have
    ended, and so must every other restart that means them. NEW: other effects, with keys of their own.
    `near` are instances that the caller found on the way (the root, its heir); what is missing is loaded.
    The answer is the new instance's summary as JSON.
    """

    key: CommandKey
    instance_id: Id
    namespace_id: Id
    origin_id: Id
    effects: Effects
    version: int
    definition_id: str
    started_by: str
    reason: str
    seed: IdSeed
    weave: Weave
    input: Json = None
    other_input: bool = False
    near: tuple[Id, ...] = field(default=())
    priority_max: int | None = None
    draft: Id | None = None
    """The key of the draft that the new instance runs, instead of the version."""
    on_behalf_of: str | None = None

    @property
    def lane(self) -> str:
        return self.origin_id

    def needs(self) -> Needs:
        row_id = definition_key(self.namespace_id, self.definition_id, self.version)
        runs = {DEFINITIONS.name: (row_id,)} if self.draft is None else {DRAFTS.name: (self.draft,)}
        return {
            **runs,
            INSTANCES.name: (self.origin_id, *self.near),
            INPUTS.name: (self.origin_id,),
        }

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.origin_id)
        if row is None or self.effects == "NEW":
            return {}
        root = book.get(INSTANCES, row.effect_root)
        heirs = [root.heir] if root is not None and root.heir is not None else []
        return merged({INSTANCES.name: [row.effect_root, *heirs]})

    def consider(self, book: Book) -> Decision | Refused:
        """What the engine decides on the start now; nothing is written."""
        return self._start(book)[0].consider(book)

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        start, origin, root = self._start(book)
        outcome = start.decide(book)
        if isinstance(outcome, Done):
            if root is not None:
                book.change(INSTANCES, root, replace(root, heir=self.instance_id))
            book.insert(AUDIT, self._audit(origin, outcome.answer, book.now))
        return outcome

    def _start(self, book: Book) -> tuple[StartWorkflow, InstanceRow, InstanceRow | None]:
        """The start that this comes to, the origin, and with SAME the root of the effects."""
        origin = head_of(book, self.origin_id, self.namespace_id)
        root = self._claimed(book, origin) if self.effects == "SAME" else None
        given = book.get(INPUTS, origin.id)
        assert given is not None, "every instance has an input"
        start = StartWorkflow(
            key=self.key,
            instance_id=self.instance_id,
            namespace_id=self.namespace_id,
            definition_id=self.definition_id,
            version=self.version,
            input=self.input if self.other_input else orjson.loads(given.input),
            started_by=self.started_by,
            seed=self.seed,
            weave=self.weave,
            business_key=origin.business_key,
            labels=given.labels,
            parameters_version=origin.parameters_version,
            effect_root=None if root is None else root.id,
            origin={"workflow_id": origin.id, "effects": self.effects},
            priority_max=self.priority_max,
            draft=self.draft,
        )
        return start, origin, root

    def _claimed(self, book: Book, origin: InstanceRow) -> InstanceRow:
        """The root of the effects, which no unfinished instance may share."""
        root = book.get(INSTANCES, origin.effect_root)
        if root is None:
            raise FailedPrecondition("the workflow whose effects these are is not kept any more")
        heir = None if root.heir is None else book.get(INSTANCES, root.heir)
        for other in (origin, root, heir):
            if other is not None and other.ended_at is None:
                reason = f"workflow {other.id} is {other.state.value}: its effects may still happen"
                raise FailedPrecondition(reason, [Detail("effects", reason)])
        return root

    def _audit(self, origin: InstanceRow, made: Mapping[str, Json], now: int) -> AuditRow:
        return AuditRow(
            id=audit_id_of(self.seed),
            namespace_id=self.namespace_id,
            at=now,
            actor=self.started_by,
            action="workflow.restart",
            subject_kind="workflow",
            subject_id=origin.id,
            on_behalf_of=self.on_behalf_of,
            reason=self.reason,
            before_digest=digest(dict(summary_of(origin))),
            after_digest=digest(dict(made)),
        )
