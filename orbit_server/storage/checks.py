"""What a server looks at before it starts, and why it would rather not."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sqlalchemy import Connection

from orbit_sdk.errors import Unavailable
from orbit_server.clock import Clock
from orbit_server.storage.dialects import mysql_now
from orbit_server.storage.migrations.state import SchemaState, different, state_of
from orbit_server.storage.settings import StorageSettings

log = logging.getLogger(__name__)

PACKET_MIN_BYTES = 16 * 1024 * 1024

_REASONS = {
    SchemaState.EMPTY: "the database has no schema yet; run orbit migrate",
    SchemaState.BEHIND: "the database has the schema of an earlier release; run orbit migrate",
    SchemaState.HALF_APPLIED: "a migration of the database was interrupted; run orbit migrate again",
    SchemaState.UNKNOWN: "the database has a schema that this release does not know",
}

_VARIABLES = (
    "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation', 'time_zone', "
    "'max_allowed_packet', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin')"
)


def check_schema(conn: Connection) -> None:
    """Raises Unavailable unless the schema is exactly the present one."""
    state = state_of(conn)
    if state is SchemaState.DIFFERENT:
        raise different(conn)
    reason = _REASONS.get(state)
    if reason is not None:
        raise Unavailable(reason)


def check_session(conn: Connection) -> None:
    """Raises Unavailable when the session is not what every decision relies on; warns of weak durability."""
    found: Mapping[str, str] = {
        str(name).lower(): str(value) for name, value in conn.exec_driver_sql(_VARIABLES)
    }
    isolation = found.get("transaction_isolation", found.get("tx_isolation", ""))
    if isolation.upper().replace(" ", "-") != "READ-COMMITTED":
        raise Unavailable(f"the database runs at isolation {isolation}, not READ-COMMITTED")
    if found.get("time_zone") != "+00:00":
        raise Unavailable(f"the database session has time zone {found.get('time_zone')}, not +00:00")
    packet = int(found.get("max_allowed_packet", "0"))
    if packet < PACKET_MIN_BYTES:
        raise Unavailable(f"max_allowed_packet is {packet} bytes, at least {PACKET_MIN_BYTES} are needed")
    for weakness in weaknesses(found):
        log.warning("durability: %s", weakness)


def weaknesses(found: Mapping[str, str]) -> list[str]:
    """Settings under which a power cut can lose what was acknowledged."""
    weak = []
    if found.get("innodb_flush_log_at_trx_commit") != "1":
        weak.append("innodb_flush_log_at_trx_commit is not 1: a crash can lose acknowledged work")
    if found.get("log_bin", "OFF").upper() in ("ON", "1") and found.get("sync_binlog") != "1":
        weak.append("sync_binlog is not 1: a crash can lose what replicas were to get")
    return weak


def check_clock(conn: Connection, clock: Clock, settings: StorageSettings) -> None:
    """Raises Unavailable when the two clocks disagree by more than the limit (the question's time aside)."""
    before = clock.wall_us()
    database = mysql_now(conn)
    after = clock.wall_us()
    limit = settings.clock_skew_max_ms * 1_000
    if database < before - limit or database > after + limit:
        off_ms = (database - after) // 1_000
        raise Unavailable(f"the clocks of this machine and of the database differ by {off_ms} ms")
