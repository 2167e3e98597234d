"""A signal for the one open workflow of a definition that has a business key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orbit_sdk.errors import Conflict, Detail, NotFound
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Needs, Order, Outcome
from orbit_server.weave.signals.commands import SendSignal
from orbit_server.weave.state.rows import INSTANCES
from orbit_server.weave.state.running import merged

SHOWN = 5
"""So many of several open workflows are named in a conflict."""


@dataclass(frozen=True, slots=True)
class SignalOpen(Order):
    """Send to whichever of these is still open; exactly one has to be.

    `sends`: the same signal for each workflow that was open under this business key when it was looked up,
    `SHOWN` + 1 of them at most. `key` remembers the receipt, so that a repeat gets it even when the workflow
    has ended since. `about` names the workflow in a refusal. The answer is the signal as JSON.
    """

    key: CommandKey
    sends: tuple[SendSignal, ...]
    about: str

    @property
    def lane(self) -> str:
        return self.sends[0].lane if self.sends else self.key.id

    def needs(self) -> Needs:
        return merged(*(send.needs() for send in self.sends))

    def more(self, book: Book) -> Needs:
        return merged(*(send.more(book) for send in self.sends))

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        found = [send for send in self.sends if _is_open(book, send.instance_id)]
        if not found:
            raise NotFound(f"no such {self.about}")
        if len(found) > 1:
            ids = ", ".join(send.instance_id for send in found[:SHOWN])
            more = ", …" if len(found) > SHOWN else ""
            raise Conflict(
                "several open workflows have this business key: send to one of them by its id",
                [Detail("business_key", f"is that of {ids}{more}")],
            )
        return found[0].decide(book)


def _is_open(book: Book, instance_id: Id) -> bool:
    row = book.get(INSTANCES, instance_id)
    return row is not None and row.ended_at is None
