"""A reading connection of its own that sees the database as it was at one moment."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.pool import NullPool


@contextmanager
def snapshot(url: str) -> Generator[Connection]:
    """Read one consistent state of `sqlite:///<path>` or `mysql://…`, also while servers write."""
    embedded = url.startswith("sqlite:")
    if embedded:
        path = quote(url.removeprefix("sqlite:///"))
        engine = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true", poolclass=NullPool)
    else:
        address = make_url(url).set(drivername="mysql+pymysql", query={"charset": "utf8mb4"})
        # The servers work with READ COMMITTED; here all queries must see the same moment.
        engine = create_engine(address, poolclass=NullPool, isolation_level="REPEATABLE READ")
    try:
        with engine.connect() as conn:
            # SQLAlchemy sends no BEGIN to the embedded database by itself before a read.
            conn.exec_driver_sql("BEGIN" if embedded else "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            yield conn
    finally:
        engine.dispose()
