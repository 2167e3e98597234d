"""Pages: newest first, with a cursor that only fits the list it came from.

A cursor is a position and a digest over it and everything it is bound to: namespace, kind of list, parent and
filters. Cursors give no rights, every page is read with the caller's own; the digest finds altered ones.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.defaults import DEFAULTS

T = TypeVar("T")

Position = tuple[str | int, ...]
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Paging:
    """One page asked for. `after` is the position of the last item seen, None for the first page.

    Read `limit + 1` rows (`take`): the one too many says that there is a next page.
    """

    limit: int
    after: Position | None
    binding: bytes = field(repr=False)

    @property
    def take(self) -> int:
        return self.limit + 1

    def page(
        self,
        rows: Sequence[T],
        item: Callable[[T], Any],
        position: Callable[[T], Position],
        reached: Position | None = None,
    ) -> dict[str, Any]:
        """`{"items", "next_cursor"?}` of the rows that were read.

        `reached`: the page may be short, and the next one goes on from there.
        """
        shown = rows[: self.limit]
        page: dict[str, Any] = {"items": [item(row) for row in shown]}
        if len(rows) > self.limit:
            page["next_cursor"] = self._cursor(position(shown[-1]))
        elif reached is not None:
            page["next_cursor"] = self._cursor(reached)
        return page

    def _cursor(self, position: Position) -> str:
        body = orjson.dumps(position)
        return base64.urlsafe_b64encode(_digest(self.binding, body) + body).decode().rstrip("=")


def paging(
    key: bytes,
    query: Mapping[str, Any],
    *,
    kind: str,
    shape: tuple[type, ...],
    parent: str = "",
) -> Paging:
    """The page that a query asks for.

    Args:
        key: secret of the namespace and database (32 bytes).
        query: parsed parameters; all but `limit` and `cursor` are filters that the cursor is bound to.
        kind: the kind of list.
        shape: types of a position's parts.
        parent: id of what the list belongs to.

    Raises InvalidArgument for a cursor of another list, or an altered one.
    """
    filters = {name: value for name, value in query.items() if name not in ("limit", "cursor")}
    bound = orjson.dumps([kind, parent, filters], option=orjson.OPT_SORT_KEYS)
    binding = hashlib.blake2b(bound, key=key, digest_size=32).digest()
    cursor = query.get("cursor")
    after = None if cursor is None else _position(cursor, binding, shape)
    return Paging(query.get("limit", DEFAULTS.page_size), after, binding)


def _digest(binding: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, key=binding, digest_size=_DIGEST_BYTES).digest()


def _position(cursor: str, binding: bytes, shape: tuple[type, ...]) -> Position:
    refused = InvalidArgument.at("cursor", "is not a cursor of this list with these filters")
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise refused from None
    # Several texts decode to the same bytes; only the one that was given out is a cursor.
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != cursor:
        raise refused
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if digest != _digest(binding, body):
        raise refused
    position = orjson.loads(body)
    if len(position) != len(shape) or not all(map(isinstance, position, shape)):
        raise refused
    return tuple(position)
