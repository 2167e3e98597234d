"""The databases that tests run on are what tests take them for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pymysql
import pytest

from tests.databases import MariaDb


def test_each_test_gets_an_empty_database(database_url: str) -> None:
    assert database_url.startswith(("sqlite:////", "mysql://orbit@127.0.0.1:"))


def test_a_new_database_holds_text_of_every_script_byte_for_byte(mariadb: MariaDb, mariadb_url: str) -> None:
    name = mariadb_url.rpartition("/")[2]
    mariadb.execute(f"CREATE TABLE {name}.words (word VARCHAR(20) PRIMARY KEY)")
    mariadb.execute(f"INSERT INTO {name}.words VALUES ('ä'), ('a'), ('A'), ('字'), ('🛰')")
    assert mariadb.execute(f"SELECT COUNT(*) FROM {name}.words WHERE word = 'a'") == [(1,)]


def test_a_killed_server_comes_back_with_what_was_committed(new_mariadb: Callable[..., MariaDb]) -> None:
    server = new_mariadb()
    name = server.create_database().rpartition("/")[2]
    server.execute(f"CREATE TABLE {name}.kept (id INT PRIMARY KEY)")
    server.execute(f"INSERT INTO {name}.kept VALUES (7)")
    port, pid = server.port, server.pid
    server.kill()
    with pytest.raises(pymysql.err.OperationalError):
        server.execute("SELECT 1")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    server.start()
    assert server.port == port
    assert server.execute(f"SELECT id FROM {name}.kept") == [(7,)]


def test_a_server_started_for_crash_tests_flushes_at_each_commit(new_mariadb: Callable[..., MariaDb]) -> None:
    assert new_mariadb().execute("SELECT @@innodb_flush_log_at_trx_commit") == [(1,)]


def test_a_database_is_removed_although_somebody_still_holds_a_lock(mariadb: MariaDb) -> None:
    url = mariadb.create_database()
    name = url.rpartition("/")[2]
    mariadb.execute(f"CREATE TABLE {name}.held (id INT PRIMARY KEY)")
    holder = pymysql.connect(host="127.0.0.1", port=mariadb.port, user="orbit", database=name)
    try:
        with holder.cursor() as cursor:
            cursor.execute("INSERT INTO held VALUES (1)")
        mariadb.drop_database(url)
    finally:
        holder.close()
    assert (name,) not in mariadb.execute("SHOW DATABASES")
