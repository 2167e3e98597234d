"""Probing a step in review: what its task did is asked, and the answer kept as evidence for a person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from orbit_sdk.engine.shape import Call, Poll, Task
from orbit_sdk.engine.state import Step, StepState
from orbit_sdk.errors import Detail, FailedPrecondition, InvalidArgument, NotFound
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id
from orbit_server.platform.audit import AUDIT, AuditRow, audit_id_of
from orbit_server.pulse.tasks.commands import TaskAnswer, answer_of
from orbit_server.pulse.tasks.lifecycle import Recovery
from orbit_server.pulse.tasks.operations import task_of
from orbit_server.pulse.tasks.probes import Ask, create_probe, rows_for
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.state.rows import INSTANCES
from orbit_server.weave.state.running import Weave, base_needs, head_of, live_steps


@dataclass(frozen=True, slots=True)
class ProbeStep(Order):
    """Probe the task of a step in review. `key` carries the operation id; the answer is the probe as JSON."""

    key: CommandKey
    instance_id: Id
    namespace_id: Id
    step_key: str
    ask: Ask
    weave: Weave

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return base_needs(self.instance_id)

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None or row.namespace_id != self.namespace_id:
            return {}
        step = live_steps(book, row.id).get(self.step_key)
        return {} if step is None or step.task_id is None else rows_for(step.task_id)

    def decide(self, book: Book) -> Done[TaskAnswer]:
        row = head_of(book, self.instance_id, self.namespace_id)
        compiled = self.weave.compiled(row.definition_key)
        step = live_steps(book, row.id).get(self.step_key)
        if self.step_key not in compiled.plan.nodes:
            raise NotFound("no such step")
        if step is None or step.state is not StepState.NEEDS_REVIEW:
            raise FailedPrecondition(f"the step {self.step_key} is not in review")
        if step.task_id is None:
            raise FailedPrecondition(f"the step {self.step_key} has no task: there is nothing to probe")
        self._check(compiled)
        probe = create_probe(book, task_of(book, step.task_id), self.ask)
        book.insert(AUDIT, self._audit(step, probe.id, book.now))
        return Done(answer_of(probe), subject_id=probe.id)

    def _check(self, compiled: Compiled) -> None:
        """What the definition itself says of the named handler; a worker's word is checked at the claim."""
        if self.ask.handler is None:
            return
        name = "{}@{}".format(*self.ask.handler)
        declared = compiled.definition.handlers.get(name)
        if declared is None:
            return
        if declared.recovery != Recovery.READ_ONLY.value:
            reason = f"{name} is declared {declared.recovery}; a probe runs READ_ONLY handlers only"
            raise FailedPrecondition(reason, [Detail("handler", reason)])
        judge = next(
            (call.parameters_problems for call in _calls(compiled) if _key(call) == self.ask.handler), None
        )
        if self.ask.parameters is not None and judge is not None:
            problems = judge(orjson.loads(self.ask.parameters))
            if problems:
                details = [problem.detail("parameters") for problem in problems]
                raise InvalidArgument("the parameters do not fit the handler's type", details)

    def _audit(self, step: Step, probe_id: Id, now: int) -> AuditRow:
        by = self.ask.by
        seen = digest({"state": step.state.value, "revision": step.revision})
        return AuditRow(
            id=audit_id_of(by.seed),
            namespace_id=self.namespace_id,
            at=now,
            actor=by.actor,
            on_behalf_of=by.on_behalf_of,
            action="workflow.review.probe",
            subject_kind="workflow_step",
            subject_id=step.id,
            reason=by.reason,
            before_digest=seen,
            after_digest=seen,
            details=canonical_json({"probe": probe_id}),
        )


def _calls(compiled: Compiled) -> Iterator[Call]:
    for node in compiled.plan.nodes.values():
        if isinstance(node.spec, Task | Poll):
            yield node.spec.call


def _key(call: Call) -> tuple[str, int]:
    return call.handler, call.handler_version
