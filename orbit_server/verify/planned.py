"""Rule 10: what schedules planned ran once or is on record; nothing ran twice, and nothing is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection, func, select

from orbit_sdk.errors import OrbitError
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.schedules.decide import InForce, planned_ranges
from orbit_server.schedules.lifecycle import Cause
from orbit_server.schedules.specs import stored_spec
from orbit_server.storage.tables import schedule_fires, schedule_records, schedule_versions, schedules
from orbit_server.verify.finding import MOST

Found = Iterator[tuple[str, str, str]]

_F: Final = schedule_fires.c
_R: Final = schedule_records.c
_S: Final = schedules.c
_V: Final = schedule_versions.c


def fired_twice(conn: Connection) -> Found:
    """A planned instant with two occurrences, or with one and a record that says it did not run by itself.

    An instant that was run again by hand (BACKFILL) may well be on record.
    """
    twice = (
        select(_F.schedule_id, _F.planned_at, func.count())
        .where(_F.cause != Cause.TRIGGER)
        .group_by(_F.schedule_id, _F.planned_at)
        .having(func.count() > 1)
    )
    for schedule_id, at, times in conn.execute(twice).fetchmany(MOST):
        yield "schedule", schedule_id, f"has {times} occurrences for {to_rfc3339(at)}"
    both = (
        select(_F.schedule_id, _F.planned_at)
        .join(
            schedule_records,
            (_R.schedule_id == _F.schedule_id)
            & (_F.planned_at >= _R.first_at)
            & (_F.planned_at <= _R.last_at),
        )
        # One that stands for several has a record of them all.
        .where(_F.cause == Cause.PLAN, _F.first_at.is_(None))
    )
    for schedule_id, at in conn.execute(both).fetchmany(MOST):
        yield "schedule", schedule_id, f"has an occurrence and a record for {to_rfc3339(at)}"


def recorded_twice(conn: Connection) -> Found:
    """Records of one schedule that overlap."""
    known, reached = "", 0
    query = select(_R.schedule_id, _R.first_at, _R.last_at).order_by(_R.schedule_id, _R.first_at, _R.last_at)
    for schedule_id, first_at, last_at in conn.execute(query):
        if schedule_id != known:
            known, reached = schedule_id, last_at
            continue
        if first_at <= reached:
            yield "schedule", schedule_id, f"has two records for {to_rfc3339(first_at)}"
        reached = max(reached, last_at)


def not_accounted(conn: Connection) -> Found:
    """What each version planned up to where its schedule is accounted for, counted against what is stored."""
    stored = _stored(conn)
    versions: dict[str, list[InForce]] = defaultdict(list)
    unread: set[str] = set()
    for row in conn.execute(select(_V.schedule_id, _V.version, _V.effective_at, _V.spec)):
        try:
            versions[row.schedule_id].append(InForce(row.version, row.effective_at, stored_spec(row.spec)))
        except (OrbitError, ValueError):
            unread.add(row.schedule_id)
            yield "schedule", row.schedule_id, f"has a version {row.version} that cannot be read"
    query = select(_S.id, func.coalesce(_S.kept_from, _S.created_at), _S.accounted_to)
    for schedule_id, kept_from, accounted_to in conn.execute(query):
        if schedule_id in unread:
            continue
        planned = _planned(versions[schedule_id], kept_from, accounted_to)
        for version in sorted(planned.keys() | stored[schedule_id].keys()):
            want, have = planned[version], stored[schedule_id][version]
            if want != have:
                reached = to_rfc3339(accounted_to)
                message = (
                    f"planned {want} instants up to {reached} by version {version}; {have} are accounted for"
                )
                yield "schedule", schedule_id, message


def _planned(versions: Sequence[InForce], after: int, until: int) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    for version, _, _, count in planned_ranges(versions, after, until):
        found[version] += count
    return found


def _stored(conn: Connection) -> dict[str, dict[int, int]]:
    """Instants that ran one by one, and those on record, by schedule and version."""
    found: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    ran = (
        select(_F.schedule_id, _F.version, func.count())
        .join(schedules, _S.id == _F.schedule_id)
        .where(_F.cause == Cause.PLAN, _F.first_at.is_(None), _F.planned_at > func.coalesce(_S.kept_from, 0))
        .group_by(_F.schedule_id, _F.version)
    )
    noted = (
        select(_R.schedule_id, _R.version, func.sum(_R["count"]))
        .join(schedules, _S.id == _R.schedule_id)
        .where(_R.last_at > func.coalesce(_S.kept_from, 0))
        .group_by(_R.schedule_id, _R.version)
    )
    for query in (ran, noted):
        for schedule_id, version, count in conn.execute(query):
            found[schedule_id][version] += int(count)
    return found
