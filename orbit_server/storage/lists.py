"""Lists and counts of large tables whose cost is bounded whatever is asked.

A list follows one index, newest first. What the index does not answer is looked for among a bounded number
of rows at a time: such a page may be short, or empty, and still say where the next one goes on. A count looks
at a bounded number of rows, too, and says when that was not everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, Table, func, select

from orbit_sdk.values.ids import Id
from orbit_server.storage.row_sql import IN_MAX

LOOKS: Final = (500, 4_500)
"""Rows that one page looks at: first few, then, where they held too little, more."""
COUNTED: Final = 50_000
"""Rows that one count looks at, in each range of the index."""
GROUPS: Final = 100
"""Groups that a count tells of, the largest first."""
_SKEW_US: Final = 60_000_000

Condition = ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a table that one index finds: its conditions. `ordered`: the index gives it by id, too."""

    where: tuple[Condition, ...]
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Slice:
    """Ids of a page, newest first. `reached`: the page is short; the next one goes on from there."""

    ids: list[Id]
    reached: Id | None = None


def page(
    conn: Connection,
    table: Table,
    ranges: Sequence[Range],
    narrow: Sequence[Condition],
    *,
    before: Id | None,
    take: int,
) -> Slice | None:
    """The next ids. None: the ranges have no order and hold too much to be sorted; ask with another."""
    if all(each.ordered for each in ranges) and len(ranges) == 1:
        return _in_order(conn, table, ranges[0], narrow, before=before, take=take)
    return _sorted(conn, table, ranges, narrow, before=before, take=take)


def _in_order(
    conn: Connection, table: Table, part: Range, narrow: Sequence[Condition], *, before: Id | None, take: int
) -> Slice:
    row_id = table.c.id
    if not narrow:
        return Slice(_next(conn, table, part, before, take))
    found: list[Id] = []
    for rows in LOOKS:
        window = _window(table, part, before, rows)
        seen, lowest = conn.execute(select(func.count(), func.min(window.c.id))).one()
        # Each statement sees its own moment: the look ends at a row, whatever comes and goes meanwhile.
        end = Range((*part.where, row_id >= (lowest or "")))
        window = _window(table, end, before, 2 * rows)
        query = select(row_id).join(window, window.c.id == row_id).where(*narrow).order_by(row_id.desc())
        found += conn.execute(query.limit(take - len(found))).scalars()
        if len(found) >= take or seen < rows:
            return Slice(found)
        before = lowest
    return Slice(found, before)


def _next(conn: Connection, table: Table, part: Range, before: Id | None, take: int) -> list[Id]:
    query = select(table.c.id).where(*part.where)
    if before is not None:
        query = query.where(table.c.id < before)
    return list(conn.execute(query.order_by(table.c.id.desc()).limit(take)).scalars())


def _window(table: Table, part: Range, before: Id | None, rows: int) -> FromClause:
    query = select(table.c.id).where(*part.where)
    if before is not None:
        query = query.where(table.c.id < before)
    return query.order_by(table.c.id.desc()).limit(rows).subquery()


def _sorted(
    conn: Connection,
    table: Table,
    ranges: Sequence[Range],
    narrow: Sequence[Condition],
    *,
    before: Id | None,
    take: int,
) -> Slice | None:
    ids: list[Id] = []
    for part in ranges:
        ids += conn.execute(select(table.c.id).where(*part.where).limit(COUNTED + 1 - len(ids))).scalars()
        if len(ids) > COUNTED:
            return None
    ids = sorted((each for each in ids if before is None or each < before), reverse=True)
    if not narrow:
        return Slice(ids[:take])
    found: list[Id] = []
    for start in range(0, len(ids), IN_MAX):
        if start >= sum(LOOKS):
            return Slice(found, ids[start - 1])
        part_ids = ids[start : start + IN_MAX]
        query = select(table.c.id).where(table.c.id.in_(part_ids), *narrow).order_by(table.c.id.desc())
        found += conn.execute(query.limit(take - len(found))).scalars()
        if len(found) >= take:
            break
    return Slice(found)


# --- counts ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grouping:
    """How rows are grouped: columns (of the table, or of `joined` under `on`), made into a name."""

    columns: tuple[ColumnElement[Any], ...] = ()
    name: Callable[..., str | None] = lambda *_: None
    joined: FromClause | None = None
    on: Condition | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows there are, by group (largest first, None: they have none). Not `complete`: at least."""

    total: int
    groups: list[tuple[str | None, int]]
    complete: bool
    more: bool
    """There are more groups."""


def tally(
    conn: Connection, table: Table, ranges: Sequence[Range], narrow: Sequence[Condition], by: Grouping
) -> Tally:
    """Count the rows of all ranges that meet the conditions."""
    counts: Counter[str | None] = Counter()
    total, complete = 0, True
    for part in ranges:
        window = _window(table, part, None, COUNTED)
        source: FromClause = table.join(window, window.c.id == table.c.id)
        query = select(func.count()).select_from(source).where(*narrow)
        total += conn.execute(query).scalar_one()
        seen = conn.execute(select(func.count()).select_from(window)).scalar_one()
        complete = complete and seen < COUNTED
        if by.columns:
            if by.joined is not None and by.on is not None:
                source = source.join(by.joined, by.on)
            grouped = select(*by.columns, func.count()).select_from(source).where(*narrow)
            for *values, count in conn.execute(grouped.group_by(*by.columns)):
                counts[by.name(*values)] += count
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] or ""))
    return Tally(total, ordered[:GROUPS], complete, len(ordered) > GROUPS)


# --- conditions --------------------------------------------------------------------------------------------


def made_between(row_id: ColumnElement[str], start: int | None, end: int | None) -> tuple[Condition, ...]:
    """Bounds of ids, which begin with the time they were made at: a little wide, for clocks differ."""
    found: list[Condition] = []
    if start is not None:
        found.append(row_id >= _id_of(start - _SKEW_US))
    if end is not None:
        found.append(row_id < _id_of(end + _SKEW_US))
    return tuple(found)


def _id_of(at: int) -> Id:
    return f"{max(0, at) // 1_000:012x}" + "0" * 20


def has_member(column: ColumnElement[Any], member: str) -> Condition:
    """Whether a column of canonical JSON holds this text, byte by byte."""
    return func.instr(column, member) > 0
