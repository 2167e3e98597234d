"""What a person may decide about a step in review, and why not the rest: the engine is asked for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orbit_sdk.engine.commands import Verdict
from orbit_sdk.engine.decision import Decision
from orbit_sdk.engine.poll import rounds_allowed
from orbit_sdk.engine.shape import Poll, Spec, Task
from orbit_sdk.engine.state import Step, StepState
from orbit_sdk.engine.tasks import attempts_left
from orbit_sdk.errors import Code, NotFound, OrbitError
from orbit_sdk.values.json_strict import Json
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome, Refused
from orbit_server.storage.commands import Missing as MissingRows
from orbit_server.weave.reviews.commands import ResolveStep
from orbit_server.weave.state.running import head_of, live_steps


@dataclass(frozen=True, slots=True)
class ExamineReview(Keyless):
    """Ask the engine about every decision that could be made now; nothing is written.

    `command` says which step; its verdict, basis and values do not count. The answer has `decisions` (each
    with `allowed` and, where it is not, the reason) and the budgets that are left.
    """

    command: ResolveStep

    @property
    def lane(self) -> str:
        return self.command.instance_id

    def needs(self) -> Needs:
        return self.command.needs()

    def more(self, book: Book) -> Needs:
        return self.command.more(book)

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        row = head_of(book, self.command.instance_id, self.command.namespace_id)
        step = live_steps(book, row.id).get(self.command.step_key)
        if step is None or step.state is not StepState.NEEDS_REVIEW:
            raise NotFound("no such review")
        decisions: list[Json] = []
        for verdict in Verdict:
            answer = self._asked(book, step, verdict, "PROVEN")
            if isinstance(answer, MissingRows):
                return answer
            reason = _reason(answer)
            said: dict[str, Json] = {"verdict": verdict.value, "allowed": reason is None}
            if reason is not None:
                said["reason"] = reason
            elif verdict is Verdict.RERUN:
                weaker = self._asked(book, step, verdict, "ACCEPTED_RISK")
                if isinstance(weaker, MissingRows):
                    return weaker
                if (reason := _reason(weaker)) is not None:
                    said |= {"needs_proof": True, "reason": reason}
            decisions.append(said)
        spec = self.command.weave.compiled(row.definition_key).plan.nodes[step.step_key].spec
        return Done({"decisions": decisions, **_budgets(spec, step)})

    def _asked(
        self, book: Book, step: Step, verdict: Verdict, basis: str
    ) -> Decision | OrbitError | MissingRows:
        order = replace(
            self.command,
            verdict=verdict,
            basis=basis,
            expected_revision=step.revision,
            evidence="asked only",
            code="ASKED",
        )
        try:
            answer = order.consider(book)
        except OrbitError as error:
            return error
        return answer.error if isinstance(answer, Refused) else answer


def _budgets(spec: Spec, step: Step) -> dict[str, Json]:
    """What is left of the present round, and how many rounds."""
    left: dict[str, Json] = {}
    if isinstance(spec, Task | Poll):
        left["attempts_left"] = max(0, attempts_left(spec.call, step))
    if isinstance(spec, Poll):
        left["rounds_left"] = max(0, rounds_allowed(spec, step) - step.round)
    if step.granted is not None:
        given = step.granted
        left["granted"] = {
            "attempts": given.attempts,
            "rounds": given.rounds,
            "time_ms": given.time_ms,
        }
    return left


def _reason(answer: Decision | OrbitError) -> str | None:
    """A value that does not fit yet is for the person to give; only the state of things refuses."""
    if isinstance(answer, OrbitError) and answer.code is not Code.INVALID_ARGUMENT:
        return answer.message
    return None
