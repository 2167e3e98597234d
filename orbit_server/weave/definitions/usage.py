"""Which versions of definitions are still in use, and which handlers they still need.

Of instances only those that are not finished are read, through the index of their states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson
from sqlalchemy import Connection, func, select

from orbit_sdk.values.ids import Id
from orbit_sdk.values.names import handler_key
from orbit_server.pulse.in_use import OpenTasks, open_tasks
from orbit_server.pulse.workers.offers import Offering, offerings
from orbit_server.storage.tables import definition_documents, definition_pointers, definitions, instances
from orbit_server.weave.definitions.rows import definition_key

OPEN_STATES: Final = ("RUNNING", "WAITING", "CANCELLING", "NEEDS_REVIEW")
_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class VersionUse:
    """One version (or draft): how many of its workflows are not finished, and since when the oldest runs.

    `retired`: it takes no new starts.
    """

    key: Id
    definition_id: str
    version: int
    draft: bool
    current: bool
    retired: bool
    open: int
    since: int | None


@dataclass(slots=True)
class HandlerUse:
    """One handler version, who still needs it, and who offers it.

    `started_by`: versions that name it and still take starts. `builds`: of connected workers.
    """

    handler: str
    tasks: int = 0
    since: int | None = None
    workflows: int = 0
    started_by: list[str] = field(default_factory=list)
    workers: int = 0
    builds: set[str] = field(default_factory=set)

    @property
    def needed(self) -> bool:
        """Whether a worker must go on offering it."""
        return self.tasks > 0 or self.workflows > 0 or bool(self.started_by)


@dataclass(frozen=True, slots=True)
class Usage:
    """Versions by definition, newest first; handlers by name and version. `more`: there are more versions."""

    versions: tuple[VersionUse, ...]
    handlers: tuple[HandlerUse, ...]
    more: bool


def read_usage(conn: Connection, namespace_id: Id, definition_id: str | None, limit: int) -> Usage:
    """Read everything at one moment. With a definition only its versions, and the handlers that they name."""
    running = _running(conn, namespace_id, definition_id)
    known = _versions(conn, namespace_id, definition_id, limit + 1)
    more = len(known) > limit
    versions = [*known[:limit], *_drafts(running, namespace_id)]
    found = tuple(sorted((_with(each, running) for each in versions), key=_order))
    named = _handlers_of(conn, [each.key for each in found])
    handlers = handlers_in_use(found, named, open_tasks(conn, namespace_id), offerings(conn, namespace_id))
    if definition_id is not None:
        mine = {key for keys in named.values() for key in keys}
        handlers = [each for each in handlers if each.handler in mine]
    return Usage(found, tuple(handlers), more)


def handlers_in_use(
    versions: Iterable[VersionUse],
    named: Mapping[Id, Sequence[str]],
    tasks: Iterable[OpenTasks],
    workers: Iterable[Offering],
) -> list[HandlerUse]:
    """Put together who needs each handler version and who offers it. `named`: handlers by version's key."""
    uses: dict[str, HandlerUse] = {}

    def use(key: str) -> HandlerUse:
        return uses.setdefault(key, HandlerUse(key))

    for each in versions:
        for key in named.get(each.key, ()):
            use(key).workflows += each.open
            if not each.retired and not each.draft:
                use(key).started_by.append(f"{each.definition_id}@{each.version}")
    for one in tasks:
        waiting = use(handler_key(one.handler, one.version))
        waiting.tasks, waiting.since = one.count, one.since
    for worker in workers:
        if worker.connected and not worker.blocked:
            for key in worker.digests:
                use(key).workers += 1
                use(key).builds |= {worker.build} if worker.build else set()
    return sorted(uses.values(), key=lambda each: _handler_order(each.handler))


def _order(each: VersionUse) -> tuple[str, int, bool, Id]:
    return each.definition_id, -each.version, each.draft, each.key


def _handler_order(key: str) -> tuple[str, int]:
    name, _, version = key.partition("@")
    return name, -int(version)


_Running = dict[Id, tuple[str, int, int, int]]


def _running(conn: Connection, namespace_id: Id, definition_id: str | None) -> _Running:
    """Key of the version -> definition, version, unfinished instances, start of the oldest."""
    c = instances.c
    columns = (c.definition_key, c.definition_id, c.definition_version)
    query = select(*columns, func.count(), func.min(c.started_at)).where(
        c.namespace_id == namespace_id, c.state.in_(OPEN_STATES)
    )
    if definition_id is not None:
        query = query.where(c.definition_id == definition_id)
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in conn.execute(query.group_by(*columns))}


def _versions(conn: Connection, namespace_id: Id, definition_id: str | None, limit: int) -> list[VersionUse]:
    d, p = definitions.c, definition_pointers.c
    at = (p.namespace_id == d.namespace_id) & (p.definition_id == d.definition_id)
    query = (
        select(d.id, d.definition_id, d.version, d.retired_at, p.current_version)
        .select_from(definitions.outerjoin(definition_pointers, at))
        .where(d.namespace_id == namespace_id)
    )
    if definition_id is not None:
        query = query.where(d.definition_id == definition_id)
    rows = conn.execute(query.order_by(d.definition_id, d.version.desc()).limit(limit))
    return [
        VersionUse(
            row.id,
            row.definition_id,
            row.version,
            draft=False,
            current=row.version == row.current_version,
            retired=row.retired_at is not None,
            open=0,
            since=None,
        )
        for row in rows
    ]


def _drafts(running: _Running, namespace_id: Id) -> list[VersionUse]:
    """What runs and is no published version."""
    return [
        VersionUse(key, name, version, draft=True, current=False, retired=False, open=0, since=None)
        for key, (name, version, _, _) in running.items()
        if key != definition_key(namespace_id, name, version)
    ]


def _with(each: VersionUse, running: _Running) -> VersionUse:
    found = running.get(each.key)
    return each if found is None else replace(each, open=found[2], since=found[3])


def _handlers_of(conn: Connection, keys: list[Id]) -> dict[Id, list[str]]:
    table = definition_documents.c
    found: dict[Id, list[str]] = defaultdict(list)
    for first in range(0, len(keys), _AT_ONCE):
        part = keys[first : first + _AT_ONCE]
        for key, handlers in conn.execute(select(table.id, table.handlers).where(table.id.in_(part))):
            found[key] = orjson.loads(handlers)
    return found
