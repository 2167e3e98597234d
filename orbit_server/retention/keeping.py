"""How long things are kept: the server's settings, and what a namespace says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

import orjson
from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.settings import KEEP_MS, Settings
from orbit_server.storage.tables import namespaces

SETTING: Final = "retention"
"""The member of a namespace's settings that holds what it says otherwise."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Milliseconds after the end of a task or a workflow, after the instant of an occurrence or an action."""

    tasks_ms: int
    workflows_ms: int
    schedules_ms: int
    audit_ms: int


NAMES: Final = tuple(each.name for each in fields(Keeping))


def of_server(settings: Settings) -> Keeping:
    """What holds where a namespace says nothing else."""
    return Keeping(
        settings.keep_tasks_ms,
        settings.keep_workflows_ms,
        settings.keep_schedules_ms,
        settings.keep_audit_ms,
    )


def said_by(stored: str) -> dict[str, int]:
    """What the settings of a namespace (JSON) say; members that are not understood say nothing."""
    said = orjson.loads(stored).get(SETTING, {})
    low, high = KEEP_MS
    return {
        name: value
        for name in NAMES
        if isinstance(value := said.get(name), int) and not isinstance(value, bool) and low <= value <= high
    }


def keepings(conn: Connection, default: Keeping) -> Mapping[Id, Keeping]:
    """What holds in each namespace."""
    c = namespaces.c
    return {
        row.id: replace(default, **said_by(row.settings)) for row in conn.execute(select(c.id, c.settings))
    }
