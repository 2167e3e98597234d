"""The states of schedules and of their fires, and the moves between them.

    schedule   ACTIVE <-> PAUSED;  ACTIVE -> FINISHED (nothing is planned);  FINISHED -> ACTIVE (edited)

    fire       WAITING -> STARTED -> FINISHED      WAITING: for its pace, or for an earlier one to end
               WAITING -> SKIPPED | REFUSED        SKIPPED: by the overlap rule; REFUSED: it cannot start

A fire of a plan is the pair (schedule, planned instant): its id is made of both, so that no instant can run
twice whoever computes it. A trigger is an occurrence of its own.
"""

from __future__ import annotations

from enum import StrEnum

from orbit_sdk.values.ids import Id, IdSeed

__all__ = ["Cause", "FireState", "Overlap", "ScheduleState", "Why", "fire_id_of"]


class ScheduleState(StrEnum):
    """What a schedule does."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    FINISHED = "FINISHED"


class FireState(StrEnum):
    """How an occurrence stands. STARTED is the only one that counts as unfinished."""

    WAITING = "WAITING"
    STARTED = "STARTED"
    FINISHED = "FINISHED"
    SKIPPED = "SKIPPED"
    REFUSED = "REFUSED"


class Cause(StrEnum):
    """Why an occurrence is there."""

    PLAN = "PLAN"
    TRIGGER = "TRIGGER"
    BACKFILL = "BACKFILL"


class Overlap(StrEnum):
    """What happens to an occurrence while an earlier one is not finished."""

    ALLOW = "ALLOW"
    QUEUE = "QUEUE"
    SKIP = "SKIP"


class Why(StrEnum):
    """Reasons of fires and records, beside those of the misfire rule."""

    OVERLAP_SKIPPED = "OVERLAP_SKIPPED"
    OVERLAP_BACKLOG_FULL = "OVERLAP_BACKLOG_FULL"
    OVERLAP_QUEUED = "OVERLAP_QUEUED"
    PAUSED = "PAUSED"
    TARGET_REFUSED = "TARGET_REFUSED"
    NO_CAPACITY = "NO_CAPACITY"


def fire_id_of(schedule_id: Id, planned_at: int) -> Id:
    """The id of the one occurrence that a schedule has for a planned instant; ids sort by that instant."""
    return IdSeed(planned_at, f"fire:{schedule_id}").nth(0)
