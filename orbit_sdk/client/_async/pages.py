"""Lists as iterators: pages are fetched when they are needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.checks import check_next_cursor
from orbit_sdk.client.wire import Call
from orbit_sdk.errors import Unavailable
from orbit_sdk.protocol.common import Page

M = TypeVar("M", bound=BaseModel)


def parse(model: type[M], data: Any) -> M:
    """An answer as its model. Raises Unavailable for a damaged answer: it is refused, never guessed at."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Unavailable(f"the server's answer is damaged: {error.errors()[0]['msg']}") from error


async def page(
    transport: AsyncTransport,
    path: str,
    model: type[M],
    filters: Mapping[str, Any],
    cursor: str | None,
    limit: int | None,
) -> Page[M]:
    """One page of a list, newest first."""
    data = await transport.call(Call("GET", path, params={**filters, "cursor": cursor, "limit": limit}))
    found: Page[M] = parse(Page[model], data)  # type: ignore[valid-type]
    check_next_cursor(found.next_cursor, cursor)
    return found


async def each(
    transport: AsyncTransport, path: str, model: type[M], filters: Mapping[str, Any], limit: int = 100
) -> AsyncIterator[M]:
    """Every item of a list, newest first."""
    cursor: str | None = None
    while True:
        found = await page(transport, path, model, filters, cursor, limit)
        for item in found.items:
            yield item
        cursor = found.next_cursor
        if cursor is None:
            return
