"""The pure decisions on a bulk: what each bite, order and settled item makes of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import FailedPrecondition
from orbit_server.bulk.lifecycle import ENDED, MOVES, BulkState, ItemState, StoppedBy
from orbit_server.bulk.records import BulkRow

__all__ = [
    "KEPT_US",
    "SHARE_FROM",
    "SLACK_US",
    "Terms",
    "began",
    "expired",
    "is_due",
    "planned",
    "purging",
    "settled",
    "stopped",
]

SECOND: Final = 1_000_000
SLACK_US: Final = SECOND
"""After a break, so much of the time that was lost is made up for."""
KEPT_US: Final = 30 * 24 * 3600 * SECOND
"""An ended bulk is kept for 30 days."""
SHARE_FROM: Final = 10
"""The share of failures counts from so many tried items on."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a plan is applied: one item each `interval_us`; when it stops by itself."""

    interval_us: int
    failures_max: int | None
    failures_percent: int | None


def planned(row: BulkRow, added: int, refused: int, place: str | None, *, more: bool, now: int) -> BulkRow:
    """A bite of the plan. `more`: there are candidates beyond `place`."""
    items = row.items + added
    full = items >= row.most
    after = altered(row, items=items, refused=row.refused + refused, place=place, due_at=now)
    if more and not full:
        return after
    frozen = _moved(after, BulkState.PLANNED)
    return altered(frozen, truncated=more, planned_at=now, due_at=row.expires_at)


def began(row: BulkRow, terms: Terms, actor: str, now: int, behalf: str | None = None) -> BulkRow:
    """A person applies the plan. Raises FailedPrecondition."""
    if row.state is BulkState.PLANNING:
        raise FailedPrecondition("the bulk is still being planned; wait until it is PLANNED")
    if row.state is BulkState.PLANNED and row.expires_at <= now:
        raise FailedPrecondition("the plan has expired: plan again")
    if row.state is not BulkState.PLANNED:
        raise FailedPrecondition(f"the bulk is {row.state}: only a plan can be applied, and only once")
    after = altered(
        _moved(row, BulkState.APPLYING),
        interval_us=terms.interval_us,
        failures_max=terms.failures_max,
        failures_percent=terms.failures_percent,
        applied_by=actor,
        applied_for=behalf,
        started_at=now,
        due_at=now,
    )
    return after if _left(after) else _ended(after, BulkState.DONE, now)


def is_due(row: BulkRow, now: int) -> bool:
    """Whether the next item may be done now."""
    return row.state is BulkState.APPLYING and row.due_at <= now


def settled(row: BulkRow, state: ItemState, now: int) -> BulkRow:
    """One item is settled: counted, the next one's time, and whether that was the last one."""
    after = altered(
        row,
        applied=row.applied + (state is ItemState.APPLIED),
        skipped=row.skipped + (state is ItemState.SKIPPED_CHANGED),
        failed=row.failed + (state is ItemState.REFUSED),
        due_at=max(row.due_at, now - SLACK_US) + row.interval_us,
        revision=row.revision + 1,
    )
    if not _left(after):
        return _ended(after, BulkState.DONE, now)
    why = _fails(after) if state is ItemState.REFUSED else None
    return after if why is None else altered(_ended(after, BulkState.STOPPED, now), stopped_by=why)


def stopped(row: BulkRow, now: int) -> BulkRow:
    """A person stops it, or gives the plan up. Raises FailedPrecondition when it has ended."""
    if row.state in ENDED:
        raise FailedPrecondition(f"the bulk is {row.state}: there is nothing to stop")
    return altered(_ended(row, BulkState.STOPPED, now), stopped_by=StoppedBy.PERSON)


def expired(row: BulkRow, now: int) -> BulkRow | None:
    """Nobody has applied it in time; None when that is not so."""
    if BulkState.EXPIRED not in MOVES[row.state] or row.expires_at > now:
        return None
    return _ended(row, BulkState.EXPIRED, now)


def purging(row: BulkRow, now: int) -> BulkRow | None:
    """It was kept long enough; None when that is not so."""
    if BulkState.PURGING not in MOVES[row.state] or row.due_at > now:
        return None
    return altered(_moved(row, BulkState.PURGING), due_at=now)


def _left(row: BulkRow) -> int:
    return row.items - row.refused - row.applied - row.skipped - row.failed


def _fails(row: BulkRow) -> StoppedBy | None:
    if row.failures_max is not None and row.failed >= row.failures_max:
        return StoppedBy.FAILURES
    tried = row.applied + row.failed
    counts = row.failures_percent is not None and tried >= SHARE_FROM
    if counts and row.failed * 100 >= (row.failures_percent or 0) * tried:
        return StoppedBy.FAILURE_SHARE
    return None


def _ended(row: BulkRow, state: BulkState, now: int) -> BulkRow:
    return altered(_moved(row, state), ended_at=now, due_at=now + KEPT_US)


def _moved(row: BulkRow, state: BulkState) -> BulkRow:
    assert state in MOVES[row.state], f"no move from {row.state} to {state}"
    return altered(row, state=state, revision=row.revision + 1)
