"""The few column shapes that every table is made of, each for both dialects.

SQLite tables are STRICT, so a column is INTEGER or TEXT there; on MySQL identifiers compare byte by byte
in ASCII and texts byte by byte in UTF-8, so that no collation ever makes two different keys equal.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, SmallInteger, String, text
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.types import TypeEngine

_SQLITE_TEXT = sqlite.TEXT()
_SQLITE_INTEGER = sqlite.INTEGER()


def _both(common: TypeEngine[str], on_mysql: TypeEngine[str]) -> TypeEngine[str]:
    return common.with_variant(on_mysql, "mysql", "mariadb").with_variant(_SQLITE_TEXT, "sqlite")


def ident(name: str, *, null: bool = False, primary: bool = False) -> Column[str]:
    """An id: 32 lower-case hex digits."""
    shape = _both(String(32), mysql.CHAR(32, charset="ascii", collation="ascii_bin"))
    return Column(name, shape, nullable=null, primary_key=primary, autoincrement=False)


def word(name: str, size: int = 128, *, null: bool = False) -> Column[str]:
    """A name of our own grammar (ASCII): states, kinds, handlers, step keys, digests."""
    return Column(
        name, _both(String(size), mysql.VARCHAR(size, charset="ascii", collation="ascii_bin")), nullable=null
    )


def label(name: str, size: int = 255, *, null: bool = False) -> Column[str]:
    """A short text of the user's, at most `size` characters."""
    return Column(
        name,
        _both(String(size), mysql.VARCHAR(size, charset="utf8mb4", collation="utf8mb4_bin")),
        nullable=null,
    )


def body(name: str, *, null: bool = False) -> Column[str]:
    """A payload: canonical JSON text exactly as accepted (up to 16 MiB; the edges allow far less)."""
    return Column(
        name, _both(String(), mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin")), nullable=null
    )


def instant(name: str, *, null: bool = False) -> Column[int]:
    """UTC microseconds since 1970."""
    return Column(name, BigInteger().with_variant(_SQLITE_INTEGER, "sqlite"), nullable=null)


def number(name: str, *, null: bool = False) -> Column[int]:
    """A 64-bit counter, revision or duration in milliseconds."""
    return Column(name, BigInteger().with_variant(_SQLITE_INTEGER, "sqlite"), nullable=null)


def small(name: str, *, null: bool = False) -> Column[int]:
    """A small whole number."""
    return Column(name, SmallInteger().with_variant(_SQLITE_INTEGER, "sqlite"), nullable=null)


def flag(name: str) -> Column[int]:
    """0 or 1; a field of type `bool` in the row's dataclass."""
    return Column(name, SmallInteger().with_variant(_SQLITE_INTEGER, "sqlite"), nullable=False)


def lock_seq() -> Column[int]:
    """What a touch raises to take the row; never shown, never in a row's dataclass."""
    return Column(
        "lock_seq",
        BigInteger().with_variant(_SQLITE_INTEGER, "sqlite"),
        nullable=False,
        server_default=text("0"),
    )
