"""A connection of aiomysql that answers several statements in one round trip, and reads answers in bulk.

A group's transaction is a dozen statements with a few rows each. What the driver does around them (two waits
for every packet, a column description parsed anew for every answer, every value escaped through a table of
encoders) costs more than the statements. So this file replaces exactly that: how an answer is read, and how a
list of finished statements is sent. Connecting, authenticating, TLS and errors stay the driver's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import aiomysql
from aiomysql.connection import MySQLResult
from pymysql.constants import COMMAND, CR, FIELD_TYPE
from pymysql.err import InternalError, OperationalError
from pymysql.protocol import EOFPacketWrapper, FieldDescriptorPacket, MysqlPacket, OKPacketWrapper

_READ_SIZE: Final = 1 << 17
_HEADER: Final = 4
_WHOLE: Final = 0xFFFFFF
"""A packet of this length is continued by the next one."""
_OK, _EOF, _ERROR, _FILE = 0x00, 0xFE, 0xFF, 0xFB
_EOF_LENGTH: Final = 9
_BINARY: Final = 63
"""The character set number of bytes."""
_TEXTS: Final = frozenset(
    {
        FIELD_TYPE.VARCHAR,
        FIELD_TYPE.VAR_STRING,
        FIELD_TYPE.STRING,
        FIELD_TYPE.TINY_BLOB,
        FIELD_TYPE.BLOB,
        FIELD_TYPE.MEDIUM_BLOB,
        FIELD_TYPE.LONG_BLOB,
    }
)
_INTEGERS: Final = frozenset(
    {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG}
)
_SHAPES_MAX: Final = 512

Parser = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of an answer: as a cursor describes them, and how each value is read."""

    description: tuple[Any, ...]
    parsers: tuple[Parser, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one statement did."""

    affected: int
    """Rows that an update found or an insert wrote."""
    rows: tuple[tuple[Any, ...], ...]


class WireConnection(aiomysql.Connection):  # type: ignore[misc]  # the driver has no types
    """Reads through a buffer of its own; `run` is the way for many statements at once."""

    _next_seq_id: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ahead = b""
        self._at = 0
        self._shapes: dict[bytes, Shape] = {}

    async def connected(self) -> WireConnection:
        """This connection, once it is open: what `aiomysql.connect` does."""
        await self._connect()
        return self

    async def run(self, statements: Sequence[str]) -> list[Answer]:
        """Send finished statements as one query; the database stops at the first that fails.

        Raises the driver's error of that statement, with `failed` set to its place in the list.
        """
        await self._execute_command(COMMAND.COM_QUERY, ";".join(statements).encode())
        answers: list[Answer] = []
        try:
            for place in range(len(statements)):
                result = await self._read_answer()
                answers.append(Answer(result.affected_rows or 0, result.rows or ()))
                self._must_go_on(result, place + 1 < len(statements))
        except Exception as error:
            error.failed = len(answers)  # type: ignore[attr-defined]  # for whoever names the statement
            raise
        return answers

    def _must_go_on(self, result: Any, wanted: bool) -> None:  # one caller
        if bool(result.has_next) != wanted:
            self.close()
            raise InternalError(CR.CR_COMMANDS_OUT_OF_SYNC, "the answers do not match the statements")

    # --- what the driver calls ---

    async def _read_query_result(self, unbuffered: bool = False) -> None:  # the driver's
        if unbuffered:
            await super()._read_query_result(unbuffered=True)
            return
        self._result = None
        self._result = await self._read_answer()
        self._affected_rows = self._result.affected_rows

    async def _read_bytes(self, num_bytes: int) -> bytes:
        while len(self._ahead) - self._at < num_bytes:
            await self._fill()
        data = self._ahead[self._at : self._at + num_bytes]
        self._at += num_bytes
        return data

    # --- reading ---

    async def _fill(self) -> None:
        try:
            reader: Any = self._reader
            data = await reader.read(_READ_SIZE)
        except asyncio.CancelledError:
            self._close_on_cancel()
            raise
        except OSError as error:
            self.close()
            raise OperationalError(
                CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query ({error})"
            ) from error
        if not data:
            self.close()
            raise OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
        self._ahead = self._ahead[self._at :] + data
        self._at = 0

    async def _packet(self) -> bytes:
        """The next packet's content; one that was split is put together."""
        whole = b""
        while True:
            while len(self._ahead) - self._at < _HEADER:
                await self._fill()
            header = int.from_bytes(self._ahead[self._at : self._at + _HEADER], "little")
            length, number = header & _WHOLE, header >> 24
            if number != self._next_seq_id:
                self.close()
                if number == 0:  # how a server that shuts down says so
                    raise OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
                raise InternalError(
                    CR.CR_COMMANDS_OUT_OF_SYNC, f"packet {number} came where {self._next_seq_id} was expected"
                )
            self._next_seq_id = (number + 1) & 0xFF
            end = self._at + _HEADER + length
            while len(self._ahead) < end:
                end -= self._at
                await self._fill()
            data = self._ahead[end - length : end]
            self._at = end
            if length < _WHOLE:
                return whole + data if whole else data
            whole += data

    async def _read_answer(self) -> Any:
        """One statement's answer in the driver's own form. Raises the error that the server sent."""
        result = MySQLResult(self)
        result.connection = None
        first = await self._packet()
        kind = first[0]
        if kind == _ERROR:
            MysqlPacket(first, self._encoding).raise_for_error()
        if kind == _FILE:
            self.close()
            raise OperationalError(CR.CR_COMMANDS_OUT_OF_SYNC, "the server asked for a file")
        if kind == _OK:
            told: Any = OKPacketWrapper(MysqlPacket(first, self._encoding))
            result.affected_rows, result.insert_id = told.affected_rows, told.insert_id
            result.message = told.message
        else:
            told = await self._read_rows(first, result)
        result.server_status, result.warning_count = told.server_status, told.warning_count
        result.has_next = told.has_next
        self.server_status = told.server_status
        return result

    async def _read_rows(self, first: bytes, result: Any) -> Any:
        """Columns, then rows up to the end mark, which is answered."""
        count: Any = MysqlPacket(first, self._encoding).read_length_encoded_integer()
        columns = [await self._packet() for _ in range(count)]
        result.field_count = count
        _ = await self._packet()  # the end of the columns
        shape = self._shape(columns)
        parsers = shape.parsers
        rows = []
        while True:
            data = await self._packet()
            lead = data[0]
            if lead == _EOF and len(data) < _EOF_LENGTH:
                break
            if lead == _ERROR:
                MysqlPacket(data, self._encoding).raise_for_error()
            rows.append(_row(data, parsers))
        result.description, result.rows, result.affected_rows = shape.description, tuple(rows), len(rows)
        return EOFPacketWrapper(MysqlPacket(data, self._encoding))

    def _shape(self, columns: Sequence[bytes]) -> Shape:
        key = b"".join(columns)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= _SHAPES_MAX:
                self._shapes.clear()
            fields = [FieldDescriptorPacket(one, self._encoding) for one in columns]
            shape = self._shapes[key] = Shape(
                tuple(cast(Any, one).description() for one in fields),
                tuple(self._parser(one) for one in fields),
            )
        return shape

    def _parser(self, field: Any) -> Parser:
        if field.type_code in _INTEGERS:
            return int
        encoding = "ascii"
        if field.type_code in _TEXTS:
            if field.charsetnr == _BINARY:
                return bytes
            encoding = self._encoding
        convert = self.decoders.get(field.type_code)
        if convert is None or field.type_code in _TEXTS:
            return partial(str, encoding=encoding)
        return lambda data: convert(str(data, encoding))


def _row(data: bytes, parsers: Sequence[Parser]) -> tuple[Any, ...]:
    """A row of the text protocol: every value is its length and its bytes; 0xFB is NULL."""
    at = 0
    values: list[Any] = []
    for parse in parsers:
        length = data[at]
        at += 1
        if length == 0xFB:  # the protocol's NULL
            values.append(None)
            continue
        if length > 0xFB:  # 0xFC, 0xFD, 0xFE: the length stands in 2, 3 or 8 bytes
            size = _LENGTHS[length]
            length = int.from_bytes(data[at : at + size], "little")
            at += size
        end = at + length
        values.append(parse(data[at:end]))
        at = end
    return tuple(values)


_LENGTHS: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def literal(value: Any) -> str:
    """A value as it stands in a statement, for a session without NO_BACKSLASH_ESCAPES.

    Statements travel with their length, so only what ends or changes a text between quotes is escaped.
    """
    if isinstance(value, str):
        if type(value) is not str:
            value = str.__str__(value)  # a member of an Enum is written by its value
        if "\\" in value:
            value = value.replace("\\", "\\\\")
        if "'" in value:
            value = value.replace("'", "\\'")
        return f"'{value}'"
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(int(value))
    raise TypeError(f"{type(value).__name__} is no value of a column")


async def connect(**arguments: Any) -> WireConnection:
    """A connected `WireConnection`; the arguments are those of `aiomysql.connect`."""
    return await WireConnection(**arguments).connected()
