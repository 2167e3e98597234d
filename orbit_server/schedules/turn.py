"""One turn of a schedule inside a transaction: counts kept, fires placed, started, recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orbit_sdk.calendar.misfire import Run
from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.schedules.decide import Account, InForce, Place, account, next_planned, place
from orbit_server.schedules.lifecycle import Cause, FireState, Overlap, ScheduleState, Why, fire_id_of
from orbit_server.schedules.rows import (
    FIRES,
    RECORDS,
    SCHEDULES,
    VERSIONS,
    WAITING,
    FireRow,
    RecordRow,
    ScheduleRow,
    VersionRow,
)
from orbit_server.schedules.specs import Spec, stored_spec
from orbit_server.schedules.targets import Means, Started, start_target
from orbit_server.storage.book import Book

__all__ = ["ScheduleDueAt", "Turn", "versions_of"]

BITE: Final = 100
"""Fires started in one transaction."""

_TRY_AGAIN_US: Final = 5_000_000
_NOTE_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class ScheduleDueAt:
    """Hint: a schedule has work at this instant."""

    at: int


def versions_of(rows: Sequence[VersionRow]) -> list[InForce]:
    """The versions, ready to compute with."""
    return [InForce(row.version, row.effective_at, _spec(row)) for row in rows]


def _spec(row: VersionRow) -> Spec:
    spec = stored_spec(row.spec)
    return spec if row.priority_max is None else replace(spec, priority_max=row.priority_max)


class Turn:
    """Works on one schedule that this transaction has touched; `close` writes it back."""

    def __init__(self, book: Book, row: ScheduleRow, seed: IdSeed, means: Means) -> None:
        self.book = book
        self.before = row
        self.row = row
        self.seed = seed
        self.means = means
        self.versions = versions_of(book.members(VERSIONS, row.id))
        self.specs: Mapping[int, Spec] = {each.version: each.spec for each in self.versions}
        self.started = 0
        self._made = 0
        self._waiting = {fire.id: fire for fire in book.members(WAITING, row.id)}

    # --- a whole turn ---

    def run(self) -> None:
        """Start what waits and is due, then judge what was planned since the last turn."""
        self.start_waiting()
        if self.started < BITE:
            self.take(account(self.versions, self.row.accounted_to, self.book.now, BITE - self.started))

    def take(self, found: Account) -> None:
        """Make the fires and records of an account."""
        for version, cut in found.cuts:
            self.record(version, cut.reason.value, cut.first_at, cut.last_at, cut.count)
        for version, run in found.runs:
            self.make(version, run)
        self.row = altered(self.row, accounted_to=max(self.row.accounted_to, found.accounted_to))

    def close(self) -> ScheduleRow:
        """Say when to look again, let go of versions that are behind, and write the row."""
        self._let_go()
        if self.row.state is ScheduleState.FINISHED and self._waiting:
            self.row = altered(self.row, state=ScheduleState.ACTIVE)
        row = altered(self.row, due_at=self._due_at(), waiting=len(self._waiting))
        if row.state is ScheduleState.ACTIVE and row.due_at is None and not self._waiting:
            row = altered(row, state=ScheduleState.FINISHED)
        if row != self.before:
            row = altered(row, revision=row.revision + 1)
            self.book.change(SCHEDULES, self.before, row)
        if row.due_at is not None:
            self.book.after_commit(ScheduleDueAt(row.due_at))
        return row

    # --- parts ---

    def make(self, version: int, run: Run, cause: Cause = Cause.PLAN, fire_id: Id | None = None) -> FireRow:
        """A new occurrence, placed at once."""
        spec = self.specs[version]
        fire = FireRow(
            id=fire_id or fire_id_of(self.row.id, run.planned_at),
            schedule_id=self.row.id,
            namespace_id=self.row.namespace_id,
            version=version,
            cause=cause,
            state=FireState.WAITING,
            planned_at=run.planned_at,
            start_at=run.start_at if run.start_at > self.book.now else None,
            first_at=run.first_at,
            merged=run.merged,
            target_kind=spec.target_kind,
            target_id=None,
            target_version=None,
            reason=None,
            note=None,
            outcome=None,
            decided_at=None,
            finished_at=None,
            last=self.book.now,
        )
        if fire.start_at is None:
            fire = self._placed(fire)
        self.book.insert(FIRES, fire)
        self._keep(fire)
        return fire

    def record(self, version: int, reason: str, first_at: int, last_at: int, count: int) -> None:
        """Planned instants that do not run one by one."""
        row = RecordRow(
            self._next_id(),
            self.row.id,
            self.row.namespace_id,
            self.book.now,
            version,
            reason,
            first_at,
            last_at,
            count,
        )
        self.book.insert(RECORDS, row)

    def start_waiting(self) -> None:
        """Start the fires that waited and may start now, oldest first."""
        now = self.book.now
        for fire in sorted(self._waiting.values(), key=lambda each: (each.planned_at, each.id)):
            if self.started >= BITE:
                return
            if fire.start_at is not None and fire.start_at > now:
                continue
            if fire.start_at is None and self._queues(fire) and self.row.unfinished:
                continue
            if self.book.missing(FIRES.name, [fire.id]):
                continue
            stored = self.book.get(FIRES, fire.id)
            assert stored is not None
            del self._waiting[fire.id]
            after = self._placed(stored)
            if after != stored:
                self.book.change(FIRES, stored, after)
            self._keep(after)

    def _placed(self, fire: FireRow) -> FireRow:
        """Start it, let it wait for an earlier one, or skip it, as the overlap rule says."""
        spec = self.specs[fire.version]
        queued = sum(
            1 for each in self._waiting.values() if each.start_at is None and self._before(each, fire)
        )
        where, why = place(spec, self.row.unfinished, queued)
        reason = None if why is None else why.value
        if where is Place.WAIT:
            return altered(fire, start_at=None, reason=reason)
        if where is Place.SKIP:
            return altered(fire, state=FireState.SKIPPED, reason=reason, decided_at=self.book.now)
        seed = IdSeed(self.seed.time_us, f"{self.seed.entropy}:{fire.id}")
        return self._settled(fire, start_target(self.book, spec, fire, seed, self.means))

    def _settled(self, fire: FireRow, started: Started) -> FireRow:
        now = self.book.now
        if started.later:
            reason, note = Why.NO_CAPACITY.value, str(started.error)[:_NOTE_MAX]
            return altered(fire, start_at=now + _TRY_AGAIN_US, reason=reason, note=note)
        if started.error is not None:
            note = str(started.error)[:_NOTE_MAX]
            return altered(
                fire, state=FireState.REFUSED, reason=Why.TARGET_REFUSED.value, note=note, decided_at=now
            )
        self.started += 1
        self.row = altered(self.row, unfinished=self.row.unfinished + 1)
        return altered(
            fire,
            state=FireState.STARTED,
            start_at=None,
            reason=None,
            note=None,
            target_id=started.target_id,
            target_version=started.version,
            decided_at=now,
        )

    @staticmethod
    def _before(waiting: FireRow, fire: FireRow) -> bool:
        return (waiting.planned_at, waiting.id) < (fire.planned_at, fire.id)

    def _queues(self, fire: FireRow) -> bool:
        return self.specs[fire.version].overlap is Overlap.QUEUE

    def _keep(self, fire: FireRow) -> None:
        if fire.state is FireState.WAITING:
            self._waiting[fire.id] = fire

    def _next_id(self) -> Id:
        self._made += 1
        return self.seed.nth(self._made)

    def _let_go(self) -> None:
        """Versions whose time is over and whose fires have all been placed are not loaded any more."""
        needed = {fire.version for fire in self._waiting.values()}
        after = self.row.accounted_to + 1
        current = [each.version for each in self.versions if each.effective_at <= after]
        newest = max(current, default=0)
        for row in self.book.members(VERSIONS, self.row.id):
            if row.live and row.version < newest and row.version not in needed:
                self.book.change(VERSIONS, row, altered(row, live=False))

    def _due_at(self) -> int | None:
        if self.row.state is not ScheduleState.ACTIVE:
            return None
        planned = next_planned(self.versions, self.row.accounted_to)
        found = [] if planned is None else [planned]
        for fire in self._waiting.values():
            if fire.start_at is not None:
                found.append(fire.start_at)
            elif not (self._queues(fire) and self.row.unfinished):
                found.append(self.book.now)
        return min(found, default=None)
