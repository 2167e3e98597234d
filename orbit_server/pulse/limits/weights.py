"""Setting the weight of a fairness key."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.tasks.commands import By
from orbit_server.pulse.tasks.fairness.rows import FLOWS, FlowRow, flow_id_of
from orbit_server.pulse.tasks.trail import write_audit
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order


@dataclass(frozen=True, slots=True)
class SetWeight(Order):
    """Say how large the share of a fairness key is. It counts for tasks that become READY from here on."""

    key: CommandKey | None
    namespace_id: Id
    queue: str
    fairness_key: str
    weight: int
    by: By

    @property
    def flow_id(self) -> Id:
        """The id of the row."""
        return flow_id_of(queue_id_of(self.namespace_id, self.queue), self.fairness_key)

    @property
    def lane(self) -> str:
        return self.flow_id

    def needs(self) -> Needs:
        return {"fair_flows": [self.flow_id]}

    def decide(self, book: Book) -> Done[dict[str, Json]]:
        before = book.get(FLOWS, self.flow_id)
        was = 1 if before is None else before.weight
        if was != self.weight:
            if before is None:
                queue_id = queue_id_of(self.namespace_id, self.queue)
                row = FlowRow(
                    self.flow_id, self.namespace_id, queue_id, self.fairness_key, self.weight, 0, book.now
                )
                book.insert(FLOWS, row)
            else:
                book.change(FLOWS, before, altered(before, weight=self.weight))
            details: dict[str, Json] = {
                "queue": self.queue,
                "fairness_key": self.fairness_key,
                "before": was,
                "after": self.weight,
            }
            write_audit(
                book, self.namespace_id, "weight.set", ("fairness_key", self.flow_id), self.by, details
            )
        return Done({"weight": self.weight})
