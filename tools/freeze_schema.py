"""Write the first migration's SQL from the declared tables: until the first release, never afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

from sqlalchemy.dialects import mysql, sqlite

from orbit_server.storage.migrations.frozen import frozen_text
from orbit_server.storage.tables import metadata

VERSIONS = Path(__file__).parent.parent / "orbit_server" / "storage" / "migrations" / "versions"


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for dialect in (sqlite.dialect(), mysql.dialect()):
        path = VERSIONS / f"v0001_first.{dialect.name}.sql"
        text = frozen_text(metadata, dialect)
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        print(f"out of date: {', '.join(stale)}; run python tools/freeze_schema.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
