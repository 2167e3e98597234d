"""What stored evidence may stand for in a person's decision: a result, or that no effect can happen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from orbit_sdk.errors import FailedPrecondition, NotFound
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.tasks.decide.move import Body
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Said
from orbit_server.pulse.tasks.records import Attempt, Evidence

PROBE: Final = "PROBE_"
"""Before the kind of what a probe found out."""

_LATE: Final = ("LATE_", PROBE, f"{PROBE}LATE_")
_RESULTS: Final = frozenset(f"{way}{said}" for way in _LATE for said in (Said.SUCCEEDED, Said.HAPPENED))
_DENIALS: Final = frozenset(f"{way}{Said.CANNOT_HAPPEN_ANY_MORE}" for way in _LATE)


def adoptable_kinds(*, denies: bool) -> frozenset[str]:
    """The kinds that hold a result, or with `denies` those that say that no effect can happen any more."""
    return _DENIALS if denies else _RESULTS


def adopted_result(found: Evidence) -> Body:
    """The result that it holds. Raises FailedPrecondition when it is not a (whole) result."""
    if found.kind not in _RESULTS or found.body is None:
        raise FailedPrecondition(f"evidence of kind {found.kind} holds no result to adopt")
    return Body(result=found.body, digest=found.digest)


def require_denial(found: Evidence, task_id: Id, attempts: Iterable[Attempt]) -> None:
    """Raises FailedPrecondition unless it says that no effect of this task can happen any more, the last run
    included. `attempts`: those of the task.
    """
    if found.kind not in _DENIALS:
        raise FailedPrecondition(
            f"evidence of kind {found.kind} does not say that no effect can happen any more"
        )
    if found.task_id != task_id:
        raise FailedPrecondition(f"evidence {found.id} is of an earlier task of this step: probe this one")
    attempts = list(attempts)
    asked = next((each.asked_generation for each in attempts if each.id == found.attempt_id), None)
    runs = [each.generation for each in attempts if each.kind is AttemptKind.RUN and each.effect_possible]
    if asked is not None and max(runs, default=0) > asked:
        raise FailedPrecondition(
            f"evidence {found.id} was asked for before the last run of the task: probe the task"
        )


def adopted(found: Evidence | None, evidence_id: Id, task_id: Id) -> Evidence:
    """The evidence that a decision about this task names. Raises NotFound for any other."""
    if found is None or found.task_id != task_id:
        raise NotFound(f"there is no evidence {evidence_id} of this task")
    return found


def trace_of(found: Evidence) -> dict[str, Json]:
    """How the audit tells of it."""
    return {"adopted": {"evidence_id": found.id, "kind": found.kind, "digest": found.digest}}
