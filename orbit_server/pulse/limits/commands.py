"""Setting limits: of a queue, of a namespace, of a class of concurrency keys. Each leaves its audit row."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import Detail, FailedPrecondition
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.tasks.commands import By
from orbit_server.pulse.tasks.hints import LimitsChanged
from orbit_server.pulse.tasks.keys.records import DEFAULT_MOST, ClassRow, class_id_of
from orbit_server.pulse.tasks.keys.rows import CLASSES
from orbit_server.pulse.tasks.limits.decide import Settings, changed
from orbit_server.pulse.tasks.limits.records import LimitRow, limit_id_of
from orbit_server.pulse.tasks.limits.rows import LIMITS
from orbit_server.pulse.tasks.trail import write_audit
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order


@dataclass(frozen=True, slots=True)
class SetLimits(Order):
    """Replace the limits of a queue (of the namespace where `queue` is None).

    They bind every claim and submission from here on; what runs goes on, what was accepted stays.
    `expected_revision` (0: nothing was ever set) is checked where it is given.
    """

    key: CommandKey | None
    namespace_id: Id
    queue: str | None
    settings: Settings
    by: By
    expected_revision: int | None = None

    @property
    def limit_id(self) -> Id:
        """The id of the row."""
        return limit_id_of(self.namespace_id, self.queue)

    @property
    def lane(self) -> str:
        return self.limit_id

    def needs(self) -> Needs:
        return {"limits": [self.limit_id]}

    def decide(self, book: Book) -> Done[dict[str, Json]]:
        before = book.get(LIMITS, self.limit_id)
        check_revision(0 if before is None else before.revision, self.expected_revision, "the limit")
        if before is None and not self.settings.limits_anything:
            return Done({"revision": "0"})
        if before is not None and settings_of(before) == settings_of(
            changed(before, self.settings, book.now)
        ):
            return Done({"revision": str(before.revision)})
        after = changed(before or self._new(book.now), self.settings, book.now)
        if before is None:
            book.insert(LIMITS, after)
        else:
            book.change(LIMITS, before, after)
        was: Json = None if before is None else settings_of(before)
        subject = ("limit", self.limit_id)
        details: dict[str, Json] = {"queue": self.queue, "before": was, "after": settings_of(after)}
        write_audit(book, self.namespace_id, "limits.set", subject, self.by, details)
        book.after_commit(LimitsChanged(self.namespace_id))
        return Done({"revision": str(after.revision)})

    def _new(self, now: int) -> LimitRow:
        return LimitRow(
            id=self.limit_id,
            namespace_id=self.namespace_id,
            queue=self.queue,
            running_max=None,
            running=0,
            backlog_max=None,
            backlog=0,
            rate=None,
            rate_per_ms=1_000,
            burst=0,
            level=0,
            level_at=now,
            changed_at=now,
            revision=0,
            last=now,
        )


@dataclass(frozen=True, slots=True)
class SetKeyClass(Order):
    """Say how many tasks of each concurrency key of this class may be under way in a queue at once."""

    key: CommandKey | None
    namespace_id: Id
    queue: str
    name: str
    running_max: int
    by: By
    expected_revision: int | None = None

    @property
    def class_id(self) -> Id:
        """The id of the row."""
        return class_id_of(self.namespace_id, self.queue, self.name)

    @property
    def lane(self) -> str:
        return self.class_id

    def needs(self) -> Needs:
        return {"key_classes": [self.class_id]}

    def decide(self, book: Book) -> Done[dict[str, Json]]:
        before = book.get(CLASSES, self.class_id)
        revision = 0 if before is None else before.revision
        check_revision(revision, self.expected_revision, "the class")
        most = DEFAULT_MOST if before is None else before.running_max
        if most == self.running_max:
            return Done({"revision": str(revision)})
        if before is None:
            book.insert(
                CLASSES,
                ClassRow(
                    self.class_id, self.namespace_id, self.queue, self.name, self.running_max, 1, book.now
                ),
            )
        else:
            book.change(CLASSES, before, altered(before, running_max=self.running_max, revision=revision + 1))
        subject = ("key_class", self.class_id)
        details: dict[str, Json] = {
            "queue": self.queue,
            "class": self.name,
            "before": most,
            "after": self.running_max,
        }
        write_audit(book, self.namespace_id, "key_class.set", subject, self.by, details)
        return Done({"revision": str(revision + 1)})


def settings_of(row: LimitRow) -> dict[str, Json]:
    """What is set, as JSON."""
    values = asdict(Settings(row.running_max, row.backlog_max, row.rate, row.rate_per_ms, row.burst))
    if row.rate is None:
        del values["rate_per_ms"], values["burst"]
    return values


def check_revision(found: int, expected: int | None, what: str) -> None:
    """Raises FailedPrecondition when somebody else was there in between."""
    if expected is not None and expected != found:
        raise FailedPrecondition(
            f"{what} is at revision {found}, not {expected}",
            [Detail("expected_revision", f"is {expected}, {what} is at {found}")],
        )
