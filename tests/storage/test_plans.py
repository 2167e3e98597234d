"""What a transaction reads of each kind of row is found by an index."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import Connection

from orbit_server.bootstrap import KINDS, open_database
from orbit_server.settings import Settings
from orbit_server.storage.faults import FAULTS
from orbit_server.storage.migrations import migrate

IDS = ["0" * 32, "1" * 32]
OF_ROWS = [kind for kind in KINDS if hasattr(kind, "table")]


class Noted:
    """Notes every statement that is sent past Core."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def statement(self, sql: str) -> None:
        self.texts.append(sql)


def plans(conn: Connection, kind: Any) -> list[dict[str, Any]]:
    noted = Noted()
    conn.info[FAULTS] = noted
    try:
        kind.load(conn, IDS)
    finally:
        del conn.info[FAULTS]
    word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
    return [
        dict(row)
        for text in noted.texts
        for row in conn.exec_driver_sql(f"{word} {text}", tuple(IDS)).mappings()
    ]


async def test_rows_of_a_group_are_found_by_an_index(database_url: str) -> None:
    migrate(database_url)
    async with open_database(Settings(database=database_url)) as database:
        for kind in OF_ROWS:
            found = await database.read(partial(plans, kind=kind))
            assert found
            assert all(map(uses_an_index, found)), (kind.name, found)


def uses_an_index(plan: dict[str, Any]) -> bool:
    if "detail" in plan:
        return "SEARCH" in plan["detail"] and "SCAN" not in plan["detail"]
    return plan["type"] in ("range", "ref", "eq_ref", "const") and plan["key"] is not None
