"""Published definitions, parsed and compiled, kept in memory: they never change once published.

What may change (`current`, `retired`) is never here; it is read in the transaction that needs it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from orbit_sdk.definition.models import Definition, load_definition
from orbit_sdk.engine.plan import Plan, compile_plan
from orbit_sdk.errors import NotFound, Unavailable
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import parse_json
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_server.storage.database import Database
from orbit_server.weave.definitions import queries


@dataclass(frozen=True, slots=True)
class Compiled:
    """One version, ready to run: the model and the engine's plan."""

    key: Id
    definition: Definition
    digest: str
    plan: Plan
    queues: tuple[str, ...]


def compile_document(key: Id, text: str) -> Compiled:
    """Compile a stored document. Raises Unavailable when the stored row is damaged."""
    try:
        document = parse_json(
            text, max_bytes=DEFAULT_LIMITS.document_bytes, max_depth=DEFAULT_LIMITS.json_depth
        )
        definition = load_definition(document)
    except Exception as error:
        raise Unavailable(f"the stored definition {key} is damaged") from error
    plan = compile_plan(definition)
    return Compiled(key, definition, digest(document), plan, tuple(plan.queues))


class Catalog:
    """The process-wide cache of compiled definitions, bounded; the oldest used one goes first."""

    def __init__(self, database: Database, *, capacity: int = 1000) -> None:
        self._database = database
        self._capacity = capacity
        self._kept: OrderedDict[Id, Compiled] = OrderedDict()

    def peek(self, key: Id) -> Compiled | None:
        """The compiled version if it is in memory. Safe from the writer thread: it reads one dict entry."""
        return self._kept.get(key)

    async def get(self, key: Id) -> Compiled:
        """The compiled version. Raises NotFound, or Unavailable when the row is damaged."""
        found = self._kept.get(key)
        if found is None:
            row = await self._database.read(lambda conn: queries.document(conn, key))
            if row is None:
                raise NotFound("no such definition version")
            found = compile_document(key, row.document)
            self.keep(found)
        return found

    def keep(self, compiled: Compiled) -> None:
        """Remember a version that was just compiled."""
        self._kept[compiled.key] = compiled
        self._kept.move_to_end(compiled.key)
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
