"""Commands on queues: pause and resume, and the wake-up of other nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orbit_sdk.errors import FailedPrecondition
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.queues.rows import QUEUES, QueueRow
from orbit_server.pulse.tasks.commands import By
from orbit_server.pulse.tasks.hints import QueueChanged
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Keyless, Needs, Order


@dataclass(frozen=True, slots=True)
class PauseQueue(Order):
    """Stop or resume the dispatch of a queue. What runs goes on; repeating it changes nothing.

    `expected_revision` (0: no row yet) is checked where it is given.
    """

    key: CommandKey | None
    namespace_id: Id
    queue: str
    paused: bool
    by: By
    expected_revision: int | None = None

    @property
    def queue_id(self) -> Id:
        """The id of the queue's row."""
        return queue_id_of(self.namespace_id, self.queue)

    @property
    def lane(self) -> str:
        return self.queue_id

    def needs(self) -> Needs:
        return {"queues": [self.queue_id]}

    def decide(self, book: Book) -> Done[dict[str, Json]]:
        before = book.get(QUEUES, self.queue_id)
        revision = 0 if before is None else before.revision
        if self.expected_revision is not None and self.expected_revision != revision:
            raise FailedPrecondition(f"the queue is at revision {revision}, not {self.expected_revision}")
        after = _row(before, self.namespace_id, self.queue, book.now)
        if after.paused != self.paused:
            after = replace(
                after, paused=self.paused, revision=after.revision + 1, wake_seq=after.wake_seq + 1
            )
            if before is None:
                book.insert(QUEUES, after)
            else:
                book.change(QUEUES, before, after)
            self._audit(book, before, after)
            book.after_commit(QueueChanged(after.id))
        return Done({"queue": self.queue, "paused": after.paused, "revision": str(after.revision)})

    def _audit(self, book: Book, before: QueueRow | None, after: QueueRow) -> None:
        book.insert(
            AUDIT,
            AuditRow(
                id=self.by.seed.nth(0),
                namespace_id=self.namespace_id,
                at=book.now,
                actor=self.by.actor,
                action="queue.pause" if self.paused else "queue.resume",
                subject_kind="queue",
                subject_id=after.id,
                on_behalf_of=self.by.on_behalf_of,
                reason=self.by.reason,
                before_digest=digest({"paused": before is not None and before.paused}),
                after_digest=digest({"paused": after.paused}),
            ),
        )


@dataclass(frozen=True, slots=True)
class WakeQueues(Keyless):
    """Tell other nodes that there is ready work this node cannot place: (namespace id, queue) pairs."""

    queues: tuple[tuple[Id, str], ...]

    @property
    def lane(self) -> str:
        return queue_id_of(*self.queues[0]) if self.queues else ""

    def needs(self) -> Needs:
        return {"queues": [queue_id_of(*queue) for queue in self.queues]}

    def decide(self, book: Book) -> Done[None]:
        for namespace_id, queue in self.queues:
            before = book.get(QUEUES, queue_id_of(namespace_id, queue))
            after = _row(before, namespace_id, queue, book.now)
            after = replace(after, wake_seq=after.wake_seq + 1)
            if before is None:
                book.insert(QUEUES, after)
            else:
                book.change(QUEUES, before, after)
        return Done(None)


@dataclass(frozen=True, slots=True)
class RaiseVirtualTime(Keyless):
    """Write down how far the claims of queues have come: ((namespace id, queue), virtual time) pairs."""

    reached: tuple[tuple[tuple[Id, str], int], ...]

    @property
    def lane(self) -> str:
        return queue_id_of(*self.reached[0][0]) if self.reached else ""

    def needs(self) -> Needs:
        return {"queues": [queue_id_of(*queue) for queue, _ in self.reached]}

    def decide(self, book: Book) -> Done[None]:
        for (namespace_id, queue), at in self.reached:
            before = book.get(QUEUES, queue_id_of(namespace_id, queue))
            after = _row(before, namespace_id, queue, book.now)
            if before is None:
                book.insert(QUEUES, replace(after, virtual_time=at))
            elif at > before.virtual_time:
                book.change(QUEUES, before, replace(after, virtual_time=at))
        return Done(None)


def _row(before: QueueRow | None, namespace_id: Id, queue: str, now: int) -> QueueRow:
    if before is not None:
        return before
    return QueueRow(
        id=queue_id_of(namespace_id, queue),
        namespace_id=namespace_id,
        name=queue,
        paused=False,
        wake_seq=0,
        virtual_time=0,
        revision=0,
        last=now,
    )
