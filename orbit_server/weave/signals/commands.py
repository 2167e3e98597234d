"""Accepting a signal: stored, matched and consumed in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orbit_sdk.check.words import near
from orbit_sdk.engine.commands import AcceptSignal
from orbit_sdk.engine.matching import is_open_wait
from orbit_sdk.engine.state import Signal, SignalBody, SignalState, Step
from orbit_sdk.errors import Conflict, Detail, FailedPrecondition, InvalidArgument
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome, Refused
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.signals.views import signal_view
from orbit_server.weave.state.closed import closed_needs, waits_that_are_over
from orbit_server.weave.state.rows import INSTANCES, InstanceRow
from orbit_server.weave.state.running import (
    Weave,
    advance_needs,
    base_needs,
    head_of,
    live_steps,
    merged,
    move,
    reports_of,
    signal_needs,
    task_needs,
)
from orbit_server.weave.state.signals import (
    BODIES,
    PENDING_SIGNALS,
    SIGNALS_BY_ID,
    SignalBodyRow,
    SignalRow,
    signal_meta,
)


@dataclass(frozen=True, slots=True)
class SendSignal(Keyless):
    """A signal for one instance. `signal_id` follows from the instance and the Idempotency-Key; `digest` is
    of the whole request, so that a repeat of the same meaning gets the first receipt and another meaning
    a conflict.

    `match_key` is `engine.matching.match_key` of the match value. The answer is the signal as JSON.
    """

    signal_id: Id
    namespace_id: Id
    instance_id: Id
    signal: str
    match_key: str
    body: Json
    digest: str
    actor: str
    seed: IdSeed
    weave: Weave
    on_behalf_of: str | None = None
    step_key: str | None = None
    activation_id: Id | None = None
    expires_at: int | None = None
    parameters_version: int = 1
    evidence: str | None = None
    open_only: bool = False
    """Refuse unless the addressed activation waits now: an answer to a wait, not a signal for later."""

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return {
            **base_needs(self.instance_id),
            PENDING_SIGNALS.name: (self.instance_id,),
            SIGNALS_BY_ID.name: (self.signal_id,),
            BODIES.name: (self.signal_id,),
        }

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None or row.namespace_id != self.namespace_id:
            return {}
        steps = live_steps(book, row.id)
        waits = [step for step in steps.values() if step.signal == self.signal]
        polls = [step.task_id for step in waits if step.task_id is not None]
        compiled = self.weave.compiled(row.definition_key)
        return merged(
            signal_needs(book, row),
            advance_needs(book, compiled.plan, row, waits),
            task_needs(polls),
            closed_needs(book, row.id, self._waits(compiled)) if row.ended_at is None else {},
        )

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        row = head_of(book, self.instance_id, self.namespace_id)
        known = self._known(book)
        if known is not None:
            return self._repeated(book, known)
        self._check(row.definition_key)
        if self.open_only:
            self._check_open(book, row)
        body = SignalBody(self.body, signal_meta(self.signal_id, self.actor, book.now))
        waits = [step for step in live_steps(book, row.id).values() if step.signal == self.signal]
        order = AcceptSignal(self._fresh(book.now), body, self.seed, reports_of(book, waits))
        over: dict[str, Step] = {}
        if row.ended_at is None:
            compiled = self.weave.compiled(row.definition_key)
            over = waits_that_are_over(book, row.id, compiled.plan, self._waits(compiled))
        outcome = move(book, self.weave, row, order, over)
        if not isinstance(outcome, Done):
            return outcome
        book.insert(
            BODIES,
            SignalBodyRow(
                id=self.signal_id,
                body=canonical_json(self.body),
                digest=self.digest,
                actor=self.actor,
                on_behalf_of=self.on_behalf_of,
                accepted_at=book.now,
                parameters_version=self.parameters_version,
                evidence=self.evidence,
            ),
        )
        stored = book.member(PENDING_SIGNALS, self.instance_id, self.signal_id)
        assert stored is not None, "the decision stores the signal it accepts"
        return Done(signal_view(stored), subject_id=self.signal_id)

    def _waits(self, compiled: Compiled) -> Sequence[str]:
        """The steps that this signal could ever serve."""
        waits = compiled.plan.waits.get(self.signal, ())
        return waits if self.step_key is None else [key for key in waits if key == self.step_key]

    def _known(self, book: Book) -> SignalRow | None:
        """The signal, accepted earlier or in this very transaction."""
        row: SignalRow | None = book.member(PENDING_SIGNALS, self.instance_id, self.signal_id)
        return row if row is not None else book.get(SIGNALS_BY_ID, self.signal_id)

    def _repeated(self, book: Book, row: SignalRow) -> Outcome[Mapping[str, Json]]:
        body = book.get(BODIES, self.signal_id)
        if body is None or body.digest != self.digest:
            return Refused(
                Conflict(
                    "this Idempotency-Key was used for another signal of this workflow",
                    [Detail("Idempotency-Key", "use a new key for a new signal")],
                )
            )
        return Done(signal_view(row), subject_id=self.signal_id)

    def _check(self, definition_key: Id) -> None:
        compiled = self.weave.compiled(definition_key)
        judge = compiled.plan.signal_problems.get(self.signal)
        if judge is None:
            known = ", ".join(sorted(compiled.plan.signal_problems)) or "none"
            hint = near(self.signal, compiled.plan.signal_problems)
            raise InvalidArgument.at(
                "signal", f"{self.signal} is not a signal of this workflow (it knows: {known}).{hint}"
            )
        problems = judge(self.body)
        if problems:
            raise InvalidArgument(
                "the body does not fit the signal's type", [problem.detail("body") for problem in problems]
            )
        if self.step_key is not None and self.step_key not in compiled.plan.nodes:
            raise InvalidArgument.at("step_key", "is not a step of this workflow")

    def _check_open(self, book: Book, row: InstanceRow) -> None:
        steps = live_steps(book, row.id).values()
        step = next((step for step in steps if step.id == self.activation_id), None)
        if step is None or not is_open_wait(step):
            said = "it was answered, or its time was over" if step is None else f"it is {step.state.value}"
            raise FailedPrecondition(f"this wait is over: {said}")

    def _fresh(self, now: int) -> Signal:
        return Signal(
            id=self.signal_id,
            instance_id=self.instance_id,
            signal=self.signal,
            match_key=self.match_key,
            state=SignalState.PENDING,
            accepted_at=now,
            step_key=self.step_key,
            activation_id=self.activation_id,
            expires_at=self.expires_at,
        )
