"""A person's decision about a step in review: conclude it with evidence, or run it again where that is
safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from orbit_sdk.engine.commands import DecideReview, Verdict
from orbit_sdk.engine.decision import Decision
from orbit_sdk.engine.state import Step
from orbit_sdk.errors import Detail, FailedPrecondition, InvalidArgument, NotFound
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow, audit_id_of
from orbit_server.pulse.tasks.decide.evidence import adopted, adopted_result, require_denial, trace_of
from orbit_server.pulse.tasks.records import Evidence
from orbit_server.pulse.tasks.rows import ATTEMPTS, EVIDENCE, TASKS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Outcome, Refused
from orbit_server.storage.commands import Missing as MissingRows
from orbit_server.weave.state.apply import apply_decision
from orbit_server.weave.state.rows import INSTANCES
from orbit_server.weave.state.running import (
    Weave,
    advance_needs,
    base_needs,
    engine_outcome,
    head_of,
    live_steps,
    merged,
    report_of,
    signal_needs,
    task_needs,
)
from orbit_server.weave.state.views import summary_of


@dataclass(frozen=True, slots=True)
class Adopt:
    """Stored evidence that a decision names, and the task that it was found to be of."""

    evidence_id: Id
    task_id: Id


@dataclass(frozen=True, slots=True)
class ResolveStep:
    """`key` carries the operation id. `basis` is PROVEN or ACCEPTED_RISK; a re-run of what may have had an
    effect needs PROVEN with evidence. SUCCEEDED takes `result`, or that of the stored evidence `adopt`; for
    any other verdict `adopt` has to say that no effect can happen any more. The answer is the workflow's
    summary as JSON.
    """

    key: CommandKey
    instance_id: Id
    namespace_id: Id
    step_key: str
    verdict: Verdict
    expected_revision: int
    actor: str
    reason: str
    basis: str
    seed: IdSeed
    weave: Weave
    evidence: str | None = None
    result: Json = None
    code: str | None = None
    message: str | None = None
    on_behalf_of: str | None = None
    adopt: Adopt | None = None

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        found: dict[str, tuple[Id, ...]] = {**base_needs(self.instance_id)}
        if self.adopt is not None:
            found |= {TASKS.name: (self.adopt.task_id,), EVIDENCE.name: (self.adopt.evidence_id,)}
        return found

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None or row.namespace_id != self.namespace_id:
            return {}
        steps = live_steps(book, row.id)
        compiled = self.weave.compiled(row.definition_key)
        mine = [steps[self.step_key]] if self.step_key in steps else []
        return merged(
            signal_needs(book, row),
            advance_needs(book, compiled.plan, row, mine),
            task_needs(step.task_id for step in steps.values() if step.task_id is not None),
        )

    def consider(self, book: Book) -> Decision | Refused | MissingRows:
        """What the engine decides now; nothing is written."""
        row = head_of(book, self.instance_id, self.namespace_id)
        step = live_steps(book, row.id).get(self.step_key)
        if step is None:
            if self.step_key in self.weave.compiled(row.definition_key).plan.nodes:
                raise FailedPrecondition(f"the step {self.step_key} waits for no decision")
            raise NotFound("no such step")
        adopts = self._adopted(book)
        if adopts is not None and self.verdict is not Verdict.SUCCEEDED:
            task_id = step.task_id or ""
            require_denial(adopts, task_id, book.members(ATTEMPTS, task_id) if task_id else ())
        result = self.result
        if adopts is not None and self.verdict is Verdict.SUCCEEDED:
            result = orjson.loads(adopted_result(adopts).result or "null")
        self._check(row.definition_key, result)
        return engine_outcome(book, self.weave, row, self._order(book, step, result))

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        answer = self.consider(book)
        if isinstance(answer, Refused | MissingRows):
            return answer
        row = head_of(book, self.instance_id, self.namespace_id)
        step = live_steps(book, row.id)[self.step_key]
        adopts = self._adopted(book)
        audit_id = audit_id_of(self.seed)
        head = apply_decision(book, answer, before=row, audit_id=audit_id)
        book.insert(
            AUDIT,
            AuditRow(
                id=audit_id,
                namespace_id=self.namespace_id,
                at=book.now,
                actor=self.actor,
                on_behalf_of=self.on_behalf_of,
                action=f"workflow.review.{self.verdict.value.lower()}",
                subject_kind="workflow_step",
                subject_id=step.id,
                reason=self.reason,
                basis=self.basis,
                evidence=self.evidence,
                before_digest=digest({"state": step.state.value, "revision": step.revision}),
                after_digest=digest(dict(summary_of(head))),
                details=None if adopts is None else canonical_json(trace_of(adopts)),
            ),
        )
        return Done(summary_of(head), subject_id=row.id)

    def _adopted(self, book: Book) -> Evidence | None:
        """The evidence, if it is of a task of this step. Raises NotFound."""
        if self.adopt is None:
            return None
        named = self.adopt
        task = book.get(TASKS, named.task_id)
        if task is None or (task.instance_id, task.step_key) != (self.instance_id, self.step_key):
            raise NotFound(f"there is no evidence {named.evidence_id} of this step")
        return adopted(book.get(EVIDENCE, named.evidence_id), named.evidence_id, task.id)

    def _check(self, definition_key: Id, result: Json) -> None:
        if self.verdict is Verdict.SUCCEEDED:
            judge = self.weave.compiled(definition_key).plan.nodes[self.step_key].result_problems
            problems = [] if judge is None else judge(result)
            if problems:
                raise InvalidArgument(
                    "the result does not fit the step's result type",
                    [problem.detail("result" if self.adopt is None else "adopt") for problem in problems],
                )
        if self.verdict is Verdict.FAILED and self.code is None:
            raise InvalidArgument.at("code", "is required when a step is concluded as failed")
        if self.basis == "PROVEN" and not self.evidence and self.adopt is None:
            raise InvalidArgument(
                "a proven decision says what proves it",
                [Detail("evidence", "is required with basis PROVEN (or `adopt`); silence is never evidence")],
            )

    def _order(self, book: Book, step: Step, result: Json) -> DecideReview:
        task = None if step.task_id is None else book.get(TASKS, step.task_id)
        return DecideReview(
            step_key=self.step_key,
            expected_revision=self.expected_revision,
            verdict=self.verdict,
            seed=self.seed,
            result=result,
            code=self.code,
            message=self.message,
            no_effect_proven=self.basis == "PROVEN",
            report=None if task is None else report_of(book, task, values=False),
        )
