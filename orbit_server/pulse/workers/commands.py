"""Blocking a bad build, and letting it work again."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.tasks.commands import By
from orbit_server.pulse.tasks.hints import LimitsChanged
from orbit_server.pulse.tasks.trail import write_audit
from orbit_server.pulse.workers.rows import BUILDS, BuildRow, build_id_of
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order


@dataclass(frozen=True, slots=True)
class BlockBuild(Order):
    """Give the workers of a build no work any more (or again). What they run goes on, an offer in flight may
    pass.
    """

    key: CommandKey | None
    namespace_id: Id
    build: str
    blocked: bool
    by: By

    @property
    def build_id(self) -> Id:
        """The id of the row."""
        return build_id_of(self.namespace_id, self.build)

    @property
    def lane(self) -> str:
        return self.build_id

    def needs(self) -> Needs:
        return {"blocked_builds": [self.build_id]}

    def decide(self, book: Book) -> Done[dict[str, Json]]:
        before = book.get(BUILDS, self.build_id)
        was = before is not None and before.blocked
        if was != self.blocked:
            after = BuildRow(
                id=self.build_id,
                namespace_id=self.namespace_id,
                build=self.build,
                blocked=self.blocked,
                actor=self.by.actor,
                reason=self.by.reason,
                changed_at=book.now,
                revision=1 if before is None else before.revision + 1,
                last=book.now,
            )
            if before is None:
                book.insert(BUILDS, after)
            else:
                book.change(BUILDS, before, after)
            details: dict[str, Json] = {"build": self.build, "before": was, "after": self.blocked}
            action = "build.block" if self.blocked else "build.unblock"
            write_audit(book, self.namespace_id, action, ("build", self.build_id), self.by, details)
            book.after_commit(LimitsChanged(self.namespace_id))
        return Done({"build": self.build, "blocked": self.blocked})
