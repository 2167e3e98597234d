"""Steps kept as SQL text, one file per dialect: what was released never changes with declarations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from alembic import op
from sqlalchemy import Dialect, MetaData
from sqlalchemy.schema import CreateIndex, CreateTable

_VERSIONS = Path(__file__).parent / "versions"
_BETWEEN = "\n;\n\n"


def run_frozen(name: str) -> None:
    """Run the statements of a step for the database at hand. Each creates only what is missing."""
    dialect = "sqlite" if op.get_bind().dialect.name == "sqlite" else "mysql"
    for statement in (_VERSIONS / f"{name}.{dialect}.sql").read_text().split(_BETWEEN):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)


def frozen_text(metadata: MetaData, dialect: Dialect) -> str:
    """The statements that create the declared tables, as a step keeps them."""
    return "".join(f"{statement}{_BETWEEN}" for statement in _statements(metadata, dialect))


def _statements(metadata: MetaData, dialect: Dialect) -> Iterator[str]:
    """MySQL makes the indexes with their table: it could not create a missing one on its own terms."""
    inline = dialect.name != "sqlite"
    for table in metadata.sorted_tables:
        text = _tidy(str(CreateTable(table, if_not_exists=True).compile(dialect=dialect)))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        if inline:
            keys = [f"    KEY {index.name} {_columns(CreateIndex(index), dialect)}" for index in indexes]
            head, tail = text.rsplit("\n)", 1)
            yield ",\n".join([head, *keys]) + "\n)" + tail
            continue
        yield text
        for index in indexes:
            yield _tidy(str(CreateIndex(index, if_not_exists=True).compile(dialect=dialect)))


def _columns(create: CreateIndex, dialect: Dialect) -> str:
    """The bracket of an index, directions included."""
    text = str(create.compile(dialect=dialect)).strip()
    return text[text.index("(") :]


def _tidy(text: str) -> str:
    return text.strip().replace("\t", "    ").replace(", \n", ",\n")
