"""What time and the ends of occurrences move: the commands of the loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.schedules.lifecycle import FireState, ScheduleState
from orbit_server.schedules.rows import FIRES, INBOX, SCHEDULES, VERSIONS, WAITING
from orbit_server.schedules.specs import stored_spec
from orbit_server.schedules.targets import Means, target_needs
from orbit_server.schedules.turn import BITE, Turn
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs

__all__ = ["RunSchedule", "SettleFire", "base_needs", "more_needs"]

_AHEAD: Final = 2 * BITE


def base_needs(schedule_id: Id) -> dict[str, tuple[Id, ...]]:
    """A schedule with what it owns."""
    ids = (schedule_id,)
    return {SCHEDULES.name: ids, VERSIONS.name: ids, WAITING.name: ids}


def more_needs(book: Book, schedule_id: Id, means: Means) -> Needs:
    """What the loaded rows lead to: the fires that may start, and the definitions that they may start."""
    row = book.get(SCHEDULES, schedule_id)
    if row is None:
        return {}
    needs: dict[str, list[Id]] = {}
    if not book.missing(WAITING.name, [schedule_id]):
        waiting = book.members(WAITING, schedule_id)
        first = sorted(waiting, key=lambda fire: (fire.start_at or 0, fire.planned_at, fire.id))
        if first:
            needs[FIRES.name] = [fire.id for fire in first[:_AHEAD]]
    if not book.missing(VERSIONS.name, [schedule_id]):
        specs = [stored_spec(version.spec) for version in book.members(VERSIONS, schedule_id)]
        for name, ids in target_needs(book, row.namespace_id, specs, means).items():
            needs[name] = list(ids)
    return needs


@dataclass(frozen=True, slots=True)
class RunSchedule(Keyless):
    """Do what a schedule owes now. Answers how many occurrences started; 0 when it owes nothing."""

    schedule_id: Id
    seed: IdSeed
    means: Means

    @property
    def lane(self) -> str:
        return self.schedule_id

    def needs(self) -> Needs:
        return base_needs(self.schedule_id)

    def more(self, book: Book) -> Needs:
        return more_needs(book, self.schedule_id, self.means)

    def decide(self, book: Book) -> Done[int]:
        row = book.get(SCHEDULES, self.schedule_id)
        if row is None or row.state is not ScheduleState.ACTIVE:
            return Done(0)
        if row.due_at is None or row.due_at > book.now:
            return Done(0)
        turn = Turn(book, row, self.seed, self.means)
        turn.run()
        turn.close()
        return Done(turn.started)


@dataclass(frozen=True, slots=True)
class SettleFire(Keyless):
    """The target of a fire has ended: the occurrence is finished, and the next in line may start."""

    schedule_id: Id
    fire_id: Id
    inbox_id: Id
    seed: IdSeed
    means: Means

    @property
    def lane(self) -> str:
        return self.schedule_id

    def needs(self) -> Needs:
        return {
            **base_needs(self.schedule_id),
            FIRES.name: (self.fire_id,),
            INBOX.name: (self.inbox_id,),
        }

    def more(self, book: Book) -> Needs:
        return more_needs(book, self.schedule_id, self.means)

    def decide(self, book: Book) -> Done[bool]:
        told = book.get(INBOX, self.inbox_id)
        if told is None or told.state != "PENDING":
            return Done(answer=False)
        book.change(INBOX, told, altered(told, state="APPLIED"))
        row, fire = book.get(SCHEDULES, self.schedule_id), book.get(FIRES, self.fire_id)
        if row is None or fire is None or fire.state is not FireState.STARTED:
            return Done(answer=False)
        after = altered(fire, state=FireState.FINISHED, outcome=told.outcome, finished_at=book.now)
        book.change(FIRES, fire, after)
        turn = Turn(book, row, self.seed, self.means)
        turn.row = altered(row, unfinished=row.unfinished - 1)
        if row.state is ScheduleState.ACTIVE:
            turn.start_waiting()
        turn.close()
        return Done(answer=True)
