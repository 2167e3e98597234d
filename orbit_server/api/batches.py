"""Many items in one request: each has a result of its own, in input order; failure of some is data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from orbit_sdk.errors import OrbitError
from orbit_server.api.errors import error_json

T = TypeVar("T")


async def run_batch(
    items: Sequence[T | OrbitError], submit: Callable[[list[T]], Awaitable[list[str | OrbitError]]]
) -> dict[str, Any]:
    """`{"items": [{"id"} | {"error"}]}`. `submit` gets the items that are well formed, all at once."""
    good = [place for place, item in enumerate(items) if not isinstance(item, OrbitError)]
    answers = await submit([cast(T, items[place]) for place in good])
    results: list[str | OrbitError] = [item if isinstance(item, OrbitError) else "" for item in items]
    for place, answer in zip(good, answers, strict=True):
        results[place] = answer
    return {
        "items": [
            {"error": error_json(result)} if isinstance(result, OrbitError) else {"id": result}
            for result in results
        ]
    }
