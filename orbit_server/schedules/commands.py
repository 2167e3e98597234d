"""What people order: create, edit, pause, resume, trigger, backfill. Each leaves an audit row."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from orbit_sdk.calendar.misfire import Run
from orbit_sdk.engine.records import altered
from orbit_sdk.errors import Detail, FailedPrecondition, InvalidArgument, NotFound
from orbit_sdk.values.canonical import digest_of_text
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.instants import Micros, to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.schedules.decide import planned_ranges
from orbit_server.schedules.lifecycle import Cause, FireState, ScheduleState, Why, fire_id_of
from orbit_server.schedules.rows import FIRES, SCHEDULES, VERSIONS, ScheduleRow, VersionRow, version_id
from orbit_server.schedules.running import base_needs, more_needs
from orbit_server.schedules.specs import stored_spec
from orbit_server.schedules.targets import Means, require_priority
from orbit_server.schedules.turn import Turn
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order

__all__ = [
    "BackfillSchedule",
    "ControlSchedule",
    "CreateSchedule",
    "EditSchedule",
    "Ordered",
    "TriggerSchedule",
    "answer_of",
]

_MINUTE: int = 60_000_000
Answer = dict[str, Json]


def answer_of(row: ScheduleRow) -> Answer:
    """A schedule as the answer of a command."""
    return {
        "id": row.id,
        "state": row.state.value,
        "version": row.version,
        "revision": str(row.revision),
    }


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order on a schedule: its identity, who gives it and why."""

    key: CommandKey
    schedule_id: Id
    namespace_id: Id
    actor: str
    reason: str | None
    seed: IdSeed
    means: Means
    priority_max: int | None = None
    """The highest priority that whoever gives it may give to work; None: any."""
    on_behalf_of: str | None = None


class _OnSchedule(Order):
    """What orders on an existing schedule share."""

    __slots__ = ()
    by: Ordered

    @property
    def key(self) -> CommandKey:
        return self.by.key

    @property
    def lane(self) -> str:
        return self.by.schedule_id

    def needs(self) -> Needs:
        return base_needs(self.by.schedule_id)

    def more(self, book: Book) -> Needs:
        return more_needs(book, self.by.schedule_id, self.by.means)

    def turn(self, book: Book) -> Turn:
        """Raises NotFound."""
        row = book.get(SCHEDULES, self.by.schedule_id)
        if row is None or row.namespace_id != self.by.namespace_id:
            raise NotFound("no such schedule")
        return Turn(book, row, self.by.seed, self.by.means)


def _audit(book: Book, by: Ordered, action: str, before: str | None, after: str | None) -> None:
    book.insert(
        AUDIT,
        AuditRow(
            id=by.seed.nth(0),
            namespace_id=by.namespace_id,
            at=book.now,
            actor=by.actor,
            action=f"schedule.{action}",
            subject_kind="schedule",
            subject_id=by.schedule_id,
            on_behalf_of=by.on_behalf_of,
            reason=by.reason,
            before_digest=None if before is None else digest_of_text(before),
            after_digest=None if after is None else digest_of_text(after),
        ),
    )


def _version(book: Book, by: Ordered, number: int, effective_at: Micros, spec: str) -> None:
    with suppress(
        NotFound, FailedPrecondition
    ):  # a definition may be published later: its starts are checked
        require_priority(book, stored_spec(spec), by.namespace_id, by.priority_max, by.means)
    row = VersionRow(
        id=version_id(by.schedule_id, number),
        schedule_id=by.schedule_id,
        version=number,
        effective_at=effective_at,
        live=True,
        spec=spec,
        made_by=by.actor,
        made_at=book.now,
        priority_max=by.priority_max,
    )
    book.insert(VERSIONS, row)


@dataclass(frozen=True, slots=True)
class CreateSchedule(Order):
    """Make a schedule; its first version counts from now on. `spec` is the text of `accepted_spec`."""

    by: Ordered
    name: str
    spec: str
    paused: bool

    @property
    def key(self) -> CommandKey:
        return self.by.key

    @property
    def lane(self) -> str:
        return self.by.schedule_id

    def needs(self) -> Needs:
        return base_needs(self.by.schedule_id)

    def more(self, book: Book) -> Needs:
        return more_needs(book, self.by.schedule_id, self.by.means)

    def decide(self, book: Book) -> Done[Answer]:
        by, now = self.by, book.now
        row = ScheduleRow(
            id=by.schedule_id,
            namespace_id=by.namespace_id,
            name=self.name,
            state=ScheduleState.PAUSED if self.paused else ScheduleState.ACTIVE,
            version=1,
            revision=0,
            accounted_to=now,
            due_at=None,
            unfinished=0,
            waiting=0,
            created_at=now,
            last=now,
        )
        book.insert(SCHEDULES, row)
        _version(book, by, 1, now, self.spec)
        turn = Turn(book, row, by.seed, by.means)
        turn.row = altered(row, revision=row.revision)
        _audit(book, by, "create", None, self.spec)
        return Done(answer_of(turn.close()), subject_id=row.id)


@dataclass(frozen=True, slots=True)
class EditSchedule(_OnSchedule):
    """A new version, from an instant on that is not in the past. What was planned before stays as it was."""

    by: Ordered
    spec: str
    expected_version: int
    effective_at: Micros | None

    def decide(self, book: Book) -> Done[Answer]:
        turn, now = self.turn(book), book.now
        row = turn.row
        if row.version != self.expected_version:
            raise FailedPrecondition(
                f"the schedule is at version {row.version}",
                [Detail("expected_version", f"is {self.expected_version}; the current one is {row.version}")],
            )
        effective = now if self.effective_at is None else self.effective_at
        if effective < now:
            raise InvalidArgument.at("effective_at", f"is in the past: it is {to_rfc3339(now)}")
        effective = max(effective, row.accounted_to + 1)
        newest = max(book.members(VERSIONS, row.id), key=lambda each: each.version)
        _version(book, self.by, row.version + 1, effective, self.spec)
        _audit(book, self.by, "edit", newest.spec, self.spec)
        after = Turn(book, row, self.by.seed, self.by.means)
        state = ScheduleState.ACTIVE if row.state is ScheduleState.FINISHED else row.state
        after.row = altered(row, version=row.version + 1, state=state)
        return Done(answer_of(after.close()), subject_id=row.id)


@dataclass(frozen=True, slots=True)
class ControlSchedule(_OnSchedule):
    """Pause or resume. What is planned while a schedule is paused is not due; one record names the range.

    Doing it again changes nothing.
    """

    by: Ordered
    pause: bool

    def decide(self, book: Book) -> Done[Answer]:
        turn = self.turn(book)
        row = turn.row
        if self.pause == (row.state is ScheduleState.PAUSED):
            return Done(answer_of(row), subject_id=row.id)
        if self.pause:
            turn.row = altered(row, state=ScheduleState.PAUSED)
        else:
            if row.state is not ScheduleState.PAUSED:
                return Done(answer_of(row), subject_id=row.id)
            for version, first, last, count in planned_ranges(turn.versions, row.accounted_to, book.now):
                turn.record(version, Why.PAUSED.value, first, last, count)
            reached = max(row.accounted_to, book.now)
            turn.row = altered(row, state=ScheduleState.ACTIVE, accounted_to=reached)
        after = turn.close()
        _audit(book, self.by, "pause" if self.pause else "resume", row.state.value, after.state.value)
        return Done(answer_of(after), subject_id=row.id)


@dataclass(frozen=True, slots=True)
class TriggerSchedule(_OnSchedule):
    """One more occurrence, now, with an identity of its own; the overlap rule counts for it, too."""

    by: Ordered

    def decide(self, book: Book) -> Done[Answer]:
        turn, now = self.turn(book), book.now
        version = _in_force(turn, now)
        _within(turn, version, self.by)
        fire_id = IdSeed(self.by.seed.time_us, f"{self.by.seed.entropy}:trigger").nth(0)
        fire = turn.make(version, Run(now, now), Cause.TRIGGER, fire_id)
        if fire.state in (FireState.SKIPPED, FireState.REFUSED):
            raise FailedPrecondition(fire.note or "an earlier occurrence has not finished (its overlap rule)")
        turn.close()
        _audit(book, self.by, "trigger", None, None)
        answer: Answer = {"schedule_id": turn.row.id, "fire_id": fire.id, "state": fire.state.value}
        if fire.target_id is not None:
            answer["target_id"] = fire.target_id
        return Done(answer, subject_id=fire.id)


@dataclass(frozen=True, slots=True)
class BackfillSchedule(_OnSchedule):
    """Run what was planned and has not run: `instants`, ascending, at a rate. The version in force now says
    what runs; each instant keeps its own identity, so that none runs twice.
    """

    by: Ordered
    instants: tuple[Micros, ...]
    per_minute: int
    dry_run: bool

    def needs(self) -> Needs:
        ids = [fire_id_of(self.by.schedule_id, at) for at in self.instants]
        return {**base_needs(self.by.schedule_id), FIRES.name: ids}

    def decide(self, book: Book) -> Done[Answer]:
        turn, now = self.turn(book), book.now
        late = [at for at in self.instants if at > turn.row.accounted_to]
        if late:
            reached = to_rfc3339(turn.row.accounted_to)
            raise InvalidArgument.at("end_at", f"is beyond what the schedule has accounted for ({reached})")
        kept_from = turn.row.kept_from
        if kept_from is not None and any(at <= kept_from for at in self.instants):
            raise InvalidArgument.at(
                "start_at",
                f"is not after {to_rfc3339(kept_from)}: what ran up to then is not kept any more and might "
                "run twice",
            )
        left = [at for at in self.instants if book.get(FIRES, fire_id_of(turn.row.id, at)) is None]
        answer: Answer = {
            "planned": len(self.instants),
            "known": len(self.instants) - len(left),
            "runs": len(left),
            "dry_run": self.dry_run,
        }
        if left:
            answer["first_at"], answer["last_at"] = to_rfc3339(left[0]), to_rfc3339(left[-1])
        if self.dry_run:
            return Done(answer)
        version = _in_force(turn, now)
        _within(turn, version, self.by)
        for place, at in enumerate(left):
            start = now + place * (_MINUTE // self.per_minute)
            turn.make(version, Run(at, start, late=True), Cause.BACKFILL)
        turn.close()
        _audit(book, self.by, "backfill", None, None)
        return Done(answer, subject_id=turn.row.id)


def _within(turn: Turn, version: int, by: Ordered) -> None:
    """Nobody starts through a schedule what their credential is too low for. Raises PermissionDenied."""
    require_priority(turn.book, turn.specs[version], by.namespace_id, by.priority_max, by.means)


def _in_force(turn: Turn, now: Micros) -> int:
    """The version that counts now; before the first has taken effect, the first."""
    current = [each.version for each in turn.versions if each.effective_at <= now]
    return max(current) if current else min(each.version for each in turn.versions)
