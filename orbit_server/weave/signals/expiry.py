"""Marking pending signals whose own time is over, so that everybody sees it; matching needs no mark."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.commands import ExpireSignals
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome
from orbit_server.weave.state.rows import INSTANCES
from orbit_server.weave.state.running import Weave, base_needs, move
from orbit_server.weave.state.signals import PENDING_SIGNALS


@dataclass(frozen=True, slots=True)
class ExpirePending(Keyless):
    """Expire the signals of one instance that are over. The answer says whether there was one."""

    instance_id: Id
    seed: IdSeed
    weave: Weave

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return {**base_needs(self.instance_id), PENDING_SIGNALS.name: (self.instance_id,)}

    def decide(self, book: Book) -> Outcome[bool]:
        row = book.get(INSTANCES, self.instance_id)
        if row is None:
            return Done(answer=False)
        return move(book, self.weave, row, ExpireSignals(self.seed))
