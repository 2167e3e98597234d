"""Lists and counts of instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import Connection, exists, func

from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.lists import label_in, label_members
from orbit_server.storage import lists
from orbit_server.storage.lists import Condition, Grouping, Range, Tally
from orbit_server.storage.tables import instance_inputs, instance_outputs, instances, schedule_fires, steps
from orbit_server.weave.state.rows import INSTANCES, InstanceRow

__all__ = ["GROUPS", "InstanceFilter", "InstancePage", "count_instances", "page_instances"]

GROUPS = ("state", "definition", "paused", "step", "reason", "error_code")
"""What a count may group by, beside `label:<name>`. A workflow counts once for each step it stands at."""
_STATES = ("RUNNING", "WAITING", "CANCELLING", "NEEDS_REVIEW", "SUCCEEDED", "FAILED", "CANCELLED")
_CODE_CHARS = 200
_I = instances.c


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """What a list of instances is narrowed to; None means anything.

    `step` and `reason` are of a step at which the instance stands now. Times are microseconds, start
    included, end not.
    """

    definition_id: str | None = None
    definition_version: int | None = None
    state: str | None = None
    business_key: str | None = None
    paused: bool | None = None
    step: str | None = None
    reason: str | None = None
    error_code: str | None = None
    schedule_id: Id | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    started_from: int | None = None
    started_to: int | None = None


@dataclass(frozen=True, slots=True)
class InstancePage:
    """Instances, newest first. `reached`: the page is short; the next one goes on from there."""

    rows: list[InstanceRow]
    reached: Id | None = None


def page_instances(
    conn: Connection, namespace_id: Id, wanted: InstanceFilter, before: Id | None, limit: int
) -> InstancePage:
    """Newest first; `before` is the id of the last one seen, or where the page before had got to."""
    part, conditions = _range(namespace_id, wanted)
    found = lists.page(conn, instances, [part], conditions, before=before, take=limit)
    assert found is not None, "an ordered range always has a next page"
    rows = INSTANCES.load(conn, found.ids) if found.ids else {}
    return InstancePage([rows[row_id] for row_id in found.ids if row_id in rows], found.reached)


def count_instances(
    conn: Connection, namespace_id: Id, wanted: InstanceFilter, group_by: str | None
) -> Tally:
    """How many instances there are."""
    part, conditions = _range(namespace_id, wanted)
    ranges = [part]
    served = (wanted.state, wanted.business_key, wanted.definition_id)
    if group_by in (None, "state") and all(each is None for each in served):
        ranges = [Range((*part.where, _I.state == state)) for state in _STATES]
    return lists.tally(conn, instances, ranges, conditions, _grouping(group_by))


def _range(namespace_id: Id, wanted: InstanceFilter) -> tuple[Range, list[Condition]]:
    """The index that finds least, and what it leaves to look at."""
    rest = _conditions(wanted)
    between = lists.made_between(_I.id, wanted.started_from, wanted.started_to)
    where: tuple[Condition, ...] = (_I.namespace_id == namespace_id,)
    for name in ("business_key", "state", "definition_id"):
        if name in rest:
            where = (*where, rest.pop(name))
            break
    return Range((*where, *between)), list(rest.values())


def _conditions(wanted: InstanceFilter) -> dict[str, Condition]:
    found: dict[str, Condition] = {}
    for name in ("business_key", "state", "definition_id", "definition_version"):
        value = getattr(wanted, name)
        if value is not None:
            found[name] = _I[name] == value
    if wanted.paused is not None:
        found["paused"] = _I.paused == int(wanted.paused)
    if wanted.started_from is not None:
        found["started_from"] = _I.started_at >= wanted.started_from
    if wanted.started_to is not None:
        found["started_to"] = _I.started_at < wanted.started_to
    if wanted.step is not None or wanted.reason is not None:
        s = steps.c
        at = [s.instance_id == _I.id, s.live == 1]
        if wanted.step is not None:
            at.append(s.step_key == wanted.step)
        if wanted.reason is not None:
            at.append(s.reason == wanted.reason)
        found["step"] = exists().where(*at)
    if wanted.error_code is not None:
        o = instance_outputs.c
        start = canonical_json({"code": wanted.error_code})[:-1]
        found["error_code"] = exists().where(
            o.instance_id == _I.id, func.substr(o.error, 1, len(start)) == start
        )
    if wanted.schedule_id is not None:
        f = schedule_fires.c
        found["schedule"] = exists().where(f.target_id == _I.id, f.schedule_id == wanted.schedule_id)
    if wanted.labels:
        n = instance_inputs.c
        members = [lists.has_member(n.labels, member) for member in label_members(wanted.labels)]
        found["labels"] = exists().where(n.instance_id == _I.id, *members)
    return found


def _grouping(group_by: str | None) -> Grouping:
    s, o, n = steps.c, instance_outputs.c, instance_inputs.c
    stands = (s.instance_id == _I.id) & (s.live == 1)
    match group_by:
        case None:
            return Grouping()
        case "definition":
            columns = (_I.definition_id, _I.definition_version)
            return Grouping(columns, lambda name, version: f"{name}@{version}")
        case "state":
            return Grouping((_I.state,), str)
        case "paused":
            return Grouping((_I.paused,), lambda paused: "true" if paused else "false")
        case "step":
            return Grouping((s.step_key,), str, steps, stands)
        case "reason":
            return Grouping((s.reason,), lambda reason: reason, steps, stands)
        case "error_code":
            begins = func.substr(o.error, 1, _CODE_CHARS)
            return Grouping((begins,), _code_in, instance_outputs, o.instance_id == _I.id)
        case _:
            name = group_by.removeprefix("label:")
            return Grouping(
                (n.labels,), lambda text: label_in(text, name), instance_inputs, n.instance_id == _I.id
            )


def _code_in(text: str | None) -> str | None:
    """The code that an error (the beginning of its canonical JSON) begins with."""
    if text is None or not text.startswith('{"code":"'):
        return None
    code: Any = orjson.loads('"' + text.removeprefix('{"code":"').partition('"')[0] + '"')
    return str(code)
